"""What needs no torch does not load it; any import of the package may be the first."""

import json
import subprocess
import sys

import pytest
from kinds_of_reports import REPORTS
from scaled_reports import scaled_report

import roofprof

PROGRAM = """
import runpy, sys
sys.argv = ["roofprof", *sys.argv[1:]]
try:
    runpy.run_module("roofprof", run_name="__main__")
except SystemExit as end:
    code = end.code or 0
assert "torch" not in sys.modules, "torch was loaded"
sys.exit(code)
"""


def shell(*arguments):
    return subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("--version",),
        ("profile", "--help"),
        ("show", "--help"),
        ("trace", "--help"),
        ("ceilings", "--help"),
        ("doctor", "--help"),
        ("ops", "--help"),
        ("ops", "conv"),
        ("explain", "percent_of_roof", "no-roof", "softmax"),
        ("docs",),
        ("docs", "definitions#roofline"),
    ],
)
def test_without_torch(arguments):
    run = shell(*arguments)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout


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
    """All commands in one process: whether torch was loaded is asked at its end."""
    program = """
import shlex, sys
from roofprof.cli import main
for line in sys.argv[1].strip().splitlines():
    code = main(shlex.split(line))
    print("ended", code)
    assert "torch" not in sys.modules, line
"""
    run = subprocess.run(
        [sys.executable, "-c", program, OF_FILES], cwd=file.parent, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr
    codes = [line for line in run.stdout.splitlines() if line.startswith("ended")]
    assert len(codes) == len(OF_FILES.split("\n")) - 2
    assert codes[:7] == ["ended 0"] * 7
    assert "part of the loss" in run.stdout or '"merged"' not in file.read_text()


def test_errors_of_options_come_without_torch_too():
    run = shell("profile")
    assert run.returncode == 2
    assert "target" in run.stderr
    run = shell("ops", "no_such_op")
    assert run.returncode == 2
    assert run.stderr.startswith("roofprof: no operator")


@pytest.mark.parametrize(
    "program",
    [
        "import roofprof.profiling.profiler",
        "import roofprof.report.report",
        "import roofprof.compat.thop",
        "from roofprof.roofs import ceilings",
        "import roofprof.roofs.ceilings; roofprof.roofs.ceilings.cache_dir()",
        "from roofprof import *; assert Report and profile",
        "import torch, roofprof; assert 'profile' in vars(roofprof)",
        "import roofprof; assert set(roofprof.__all__) <= set(dir(roofprof))",
    ],
)
def test_any_import_may_be_the_first(program):
    subprocess.run([sys.executable, "-c", program], check=True)


def test_names_that_are_not_there_are_said_as_python_does():
    with pytest.raises(AttributeError, match="module 'roofprof' has no attribute 'profil'"):
        _ = roofprof.profil
