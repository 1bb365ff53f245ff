"""What needs no torch does not load it; any import of the package may be the first."""

import json
import subprocess
import sys

import pytest
from kinds_of_reports import REPORTS
from scaled_reports import scaled_report

import roofprof

PROGRAM = """
import shlex, sys
from roofprof.cli import main
for line in sys.argv[1].strip().splitlines():
    try:
        code = main(shlex.split(line))
    except SystemExit as end:
        code = end.code
    print("ended", code or 0)
    assert "torch" not in sys.modules, line
"""


def codes_of(lines, **options):
    """All commands in one process: whether torch was loaded is asked after each."""
    run = subprocess.run([sys.executable, "-c", PROGRAM, lines], capture_output=True, text=True, check=False, **options)
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr
    codes = [line for line in run.stdout.splitlines() if line.startswith("ended")]
    assert len(codes) == len(lines.strip().splitlines())
    return codes, run.stdout


OF_NO_FILES = """
--help
--version
profile --help
show --help
trace --help
ceilings --help
doctor --help
ops conv
explain percent_of_roof no-roof softmax
docs definitions#roofline
profile
ops no_such_op
"""


def test_help_pages_and_errors_load_no_torch():
    codes, _ = codes_of(OF_NO_FILES)
    assert codes == ["ended 0"] * 10 + ["ended 2"] * 2
    # The module, too, is started without it.
    program = "import runpy, sys; sys.argv = ['roofprof', 'docs']; runpy.run_module('roofprof', run_name='__main__')"
    check = f"try:\n    {program}\nexcept SystemExit as end:\n    sys.exit(end.code or 'torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", check], capture_output=True, check=True)


@pytest.fixture(scope="module", params=REPORTS)
def file(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "r.json"
    path.write_text(json.dumps(REPORTS[request.param]()))
    path.with_name("more_ranks.json").write_text(scaled_report(4, 0.006, hosts=2).to_json())
    path.with_name("budget.toml").write_text('[total]\nflops = "<= 1 base"\n')
    return path


OF_FILES = """
show r.json --csv rows.csv --json again.json
show r.json --by scope
show r.json --by op,phase --sort flops --columns flops
show r.json --by kernel
show r.json --by rank
show r.json --by collective
check r.json --budget budget.toml --baseline r.json
check r.json --budget written.toml --write
compare r.json r.json --all --json compared.json --html compared.html
html r.json -o page.html --json page.json
merge r.json --skip-bad
scaling r.json more_ranks.json
trace r.json -o trace.json
trace r.json -o r.folded
predict r.json --all
predict r.json --device A100
predict r.json --device A100 --what-if
plot r.json -o roofline.svg
"""


def test_what_reads_reports_loads_no_torch(file):
    codes, printed = codes_of(OF_FILES, cwd=file.parent)
    assert codes[:7] == ["ended 0"] * 7
    assert "part of the loss" in printed or '"merged"' not in file.read_text()


@pytest.mark.parametrize(
    "program",
    [
        "import roofprof.compat.thop",
        "import roofprof.roofs.ceilings; roofprof.roofs.ceilings.cache_dir()",
        "import torch, roofprof; assert 'profile' in vars(roofprof) and {*roofprof.__all__} <= {*dir(roofprof)}",
    ],
)
def test_any_import_may_be_the_first(program):
    subprocess.run([sys.executable, "-c", program], check=True)


def test_names_that_are_not_there_are_reported_as_python_does():
    with pytest.raises(AttributeError, match="module 'roofprof' has no attribute 'profil'"):
        _ = roofprof.profil
