"""The magics in a real shell of IPython's: what they count, show and keep, and that nothing is left."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
import trackers
from trackers import nothing_is_patched

import roofprof

pytest.importorskip("IPython")

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

pytestmark = pytest.mark.integration

SETUP = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, target = torch.rand(8, 16), torch.rand(8, 4)
"""
FORWARD_MACS = 8 * (16 * 32 + 32 * 4)
STEP_MACS = 8 * (2 * 16 * 32 + 3 * 32 * 4)  # the first layer has no gradient of its input
STEP = """
optimizer.zero_grad()
loss = nn.functional.mse_loss(model(x), target)
loss.backward()
optimizer.step()
"""
FIGURES = ("path", "type", "calls", "params", "macs", "flops", "bytes")


def figures(report):
    return [[getattr(row, name) for name in FIGURES] for row in [*report.rows, report.total]]


class Ran:
    """What a cell printed, displayed and gave."""

    def __init__(self, shell, text):
        with capture_output() as io:
            self.result = shell.run_cell(text)
        self.out, self.err = io.stdout, io.stderr
        self.shown = [output.data for output in io.outputs]
        self.error = self.result.error_in_exec

    @property
    def message(self):
        """What was wrong in one sentence, and no traceback."""
        assert type(self.error).__name__ == "UsageError"
        assert "Traceback" not in self.out + self.err
        [line] = (self.out + self.err).splitlines()
        return line


@pytest.fixture
def shell(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOFPROF_CEILINGS", "off")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    main, call = sys.modules["__main__"], torch.nn.Module.__call__
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(colors="nocolor")
    shell.history_manager.enabled = False
    for text in ("%load_ext roofprof", SETUP):
        assert shell.run_cell(text).success
    yield shell
    assert torch.nn.Module.__call__ is call
    nothing_is_patched(shell.user_ns["model"])
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()
    sys.modules["__main__"] = main


@pytest.fixture
def run(shell):
    return lambda text: Ran(shell, text)


# ---- what is counted


def test_a_cell_is_counted_shown_and_kept(run, shell):
    ran = run("%%roofprof\ny = model(x)\ny.shape")
    report = shell.user_ns["_roofprof"]
    assert report.total.macs == FORWARD_MACS
    assert report.row("0").macs == 8 * 16 * 32
    assert ran.result.result == torch.Size([8, 4])
    assert shell.user_ns["y"].shape == (8, 4)
    shown = ran.shown[0]
    assert "Sequential" in shown["text/plain"]
    assert shown["text/html"].startswith("<div>") and "Sequential" in shown["text/html"]
    assert ran.err == ""


REGIONS = """
for i in range(4):
    with roofprof.scope("step"):
        with roofprof.scope("predict"):
            y = model(x)
        with roofprof.scope("loss"):
            loss = nn.functional.mse_loss(y, target)
"""


@pytest.mark.parametrize("loop", ["for _ in range(5):" + textwrap.indent(STEP, "    "), REGIONS.lstrip()])
def test_equals_a_block_around_the_same_code(run, shell, loop):
    run("import roofprof")
    run(f"%%roofprof -o mine\n{loop}")
    run("prof = roofprof.RooflineProfiler(model)\nwith prof:\n" + textwrap.indent(loop, "    "))
    mine, block = shell.user_ns["mine"], shell.user_ns["prof"].report()
    assert figures(mine) == figures(block)
    assert [(row.path, row.calls, row.macs) for row in mine.regions] == [
        (row.path, row.calls, row.macs) for row in block.regions
    ]
    if "scope" in loop:
        assert mine.within("predict").total.macs == 4 * FORWARD_MACS
    else:
        assert mine.total.macs == 5 * STEP_MACS
        assert mine.by_phase()["backward"].macs == 5 * (STEP_MACS - FORWARD_MACS)
        assert mine.steps == 5


@pytest.mark.parametrize(("options", "calls"), [("--skip 4", 8), ("--skip 2 --steps 3", 3), ("--steps 99", 12)])
def test_which_calls(run, shell, options, calls):
    ran = run(f"%%roofprof {options}\nfor _ in range(12):\n    model(x)")
    report = shell.user_ns["_roofprof"]
    assert (report.row("").calls, report.steps, report.total.macs) == (calls, calls, calls * FORWARD_MACS)
    assert ran.err == ""


# ---- which module


TWO = """
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(64, width)

    def forward(self, x):
        return self.inner(x)

small, large = Net(2), Net(4000)
few, many = torch.rand(1, 64), torch.rand(1000, 64)
"""


@pytest.mark.parametrize(
    ("model", "macs"),
    [("small", 5 * 64 * 2), ("large.inner", 5 * 64 * 4000 * 1000), ("Net[0]", 5 * 64 * 2)],
)
def test_a_model_is_chosen(run, shell, model, macs):
    run(TWO)
    run(f"%%roofprof -q --model {model}\nfor _ in range(5):\n    small(few)\n    large(many)")
    [row] = [row for row in shell.user_ns["_roofprof"].rows if row.path == ""]
    assert (row.macs, row.calls) == (macs, 5)


def test_the_model_is_that_with_most_time(run, shell):
    run(TWO)
    ran = run("%%roofprof\nsmall(few)\nfor _ in range(5):\n    large(many)")
    [row] = [row for row in shell.user_ns["_roofprof"].rows if row.path == ""]
    assert (row.calls, row.macs) == (4, 4 * 64 * 4000 * 1000)  # of the first it was not known
    assert "profiled 4 of 5 calls of Net" in ran.err
    assert "Net (1) ran in the cell too" in ran.err


# ---- lines


def test_a_line_has_its_value(run, shell):
    ran = run("v = %roofprof -q --by op -o one model(x)\nv.shape")
    assert ran.result.result == torch.Size([8, 4])
    assert shell.user_ns["one"].total.macs == FORWARD_MACS
    assert not ran.shown


def test_a_line_in_a_function_and_a_semicolon_that_hides_the_value_alone(run, shell):
    run("def f(a):\n    %roofprof -q model(a)\nf(x)")
    assert shell.user_ns["_roofprof"].total.macs == FORWARD_MACS
    ran = run("%%roofprof\nmodel(x);")
    assert ran.result.result is None
    assert len(ran.shown) == 1


# ---- what is shown


def test_options_of_the_table(run, shell):
    [shown] = run("%%roofprof --by op --columns calls,macs --no-legend\ny = model(x)").shown
    assert shown["text/plain"].splitlines()[3].split() == ["op", "calls", "MACs"]
    assert "aten::linear" in shown["text/plain"] and "aten::linear" in shown["text/html"]
    shell.display_formatter.active_types = ["text/plain"]  # as in a terminal
    [shown] = run("%%roofprof\ny = model(x)").shown
    assert list(shown) == ["text/plain"]


def test_with_roofs_there_is_a_picture(run, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from given_roofs import roofs

    roofs().save(tmp_path / "roofs.json")
    monkeypatch.setenv("ROOFPROF_CEILINGS", str(tmp_path / "roofs.json"))
    [shown] = run("%%roofprof\ny = model(x)").shown
    assert '<img alt="roofline"' in shown["text/html"]


@pytest.mark.parametrize("columns", [" calls,macs", "='calls, macs'", ' "calls, macs"'])
def test_values_may_have_quotes(run, columns):
    [shown] = run(f"%roofprof --by op --no-legend --columns{columns}  y = 'a  b'; model(x)").shown
    assert shown["text/plain"].splitlines()[3].split() == ["op", "calls", "MACs"]


def test_files_are_written(run, shell, tmp_path):
    run("%%roofprof -q --json r.json --csv r.csv\ny = model(x)")
    assert roofprof.Report.from_json(tmp_path / "r.json") == shell.user_ns["_roofprof"]
    assert (tmp_path / "r.csv").read_bytes().decode() == shell.user_ns["_roofprof"].to_csv()


# ---- what goes wrong


@pytest.mark.parametrize(
    ("cell", "error", "shown"),
    [
        ("model(x)\nw = 1 / 0", ZeroDivisionError, "----> 3 w = 1 / 0"),
        ("model(x)\nmodel(x[:, :3])", RuntimeError, "----> 3 model(x[:, :3])"),
        ("model(x)\nraise KeyboardInterrupt", KeyboardInterrupt, ""),
    ],
)
def test_an_exception_is_the_users(run, shell, cell, error, shown):
    ran = run(f"%%roofprof -o broken\n{cell}")
    assert isinstance(ran.error, error)
    assert not ran.result.success
    assert shown in ran.out
    assert "notebook.py" not in ran.out and "window.py" not in ran.out
    report = shell.user_ns["broken"]
    assert report.partial
    assert report.row("2").calls == 1
    assert "what ran before the exception is in the variable broken" in ran.err


def test_an_exception_before_any_call(run, shell):
    ran = run("%%roofprof\n1 / 0")
    assert isinstance(ran.error, ZeroDivisionError)
    assert ran.err == ""
    assert shell.user_ns["_roofprof"] is None


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("y = x + 1", "nothing was profiled: no torch.nn module was called"),
        ("nn.ReLU()(x)", "no module with parameters was called, but ReLU (1); --model chooses one"),
    ],
)
def test_a_cell_without_a_model(run, shell, cell, message):
    run("%%roofprof -q\nmodel(x)")
    ran = run(f"%%roofprof\n{cell}")
    assert ran.result.success
    assert message in ran.err and len(ran.err.splitlines()) == 1
    assert shell.user_ns["_roofprof"] is None  # and not that of the cell before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%%roofprof --foo\nz = 1", "unrecognized arguments: --foo"),
        ("%%roofprof --by bar\nz = 1", "argument --by: 'bar' is not known"),
        ("%%roofprof --steps 0\nz = 1", "--steps must be 1 or more"),
        ("%%roofprof -o a.b\nz = 1", "-o names a variable, and 'a.b' cannot be one"),
        ("%%roofprof --json none/r.json\nz = 1", "there is no folder 'none'"),
        ("%%roofprof model(x)\nz = 1", "'model(x)' stands after %%roofprof"),
        ("%roofprof", "a statement is missing"),
    ],
)
def test_wrong_options_are_reported_before_the_cell_runs(run, shell, text, message):
    assert message in run(text).message
    assert "z" not in shell.user_ns


def test_a_cell_that_profiles_by_itself(run, shell):
    ran = run("import roofprof\n%roofprof own = roofprof.count(model, x)")
    assert "nothing was profiled: roofprof itself is called there" in ran.err
    assert shell.user_ns["own"].total.macs == FORWARD_MACS
    run("%%roofprof -q\nmodel(x)\nown = roofprof.count(model, x)\nmodel(x)")
    assert shell.user_ns["_roofprof"].row("").calls == 1


def test_profilers_do_not_nest(run, shell):
    assert "profiled already" in run("%%roofprof\nz = 1\n%roofprof model(x)").message
    run("import roofprof\nprof = roofprof.RooflineProfiler(model)\nprof.__enter__()")
    assert "profilers do not nest" in run("%%roofprof\nz = 2").message
    assert shell.user_ns["z"] == 1
    run("prof.__exit__(None, None, None)")


# ---- the extension


def test_it_is_unloaded_and_loaded_again(run):
    assert run("%unload_ext roofprof").result.success
    assert "not found" in run("%roofprof model(x)").message
    assert run("%load_ext roofprof").result.success
    assert run("%roofprof -q model(x)").result.success
    assert run("%reload_ext roofprof\n%roofprof -q model(x)").result.success


def test_importing_roofprof_loads_no_ipython():
    program = "import sys, torch, roofprof; assert 'IPython' not in sys.modules and 'roofprof.cli' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
    program = "import sys; sys.modules['IPython.core.error'] = None; import roofprof; roofprof.load_ipython_extension"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stderr.splitlines()[-1].endswith("the magics need IPython: run `pip install 'roofprof[notebook]'`")


# ---- the page


def test_the_cells_of_the_page_run(run, shell):
    page = (Path(__file__).parents[3] / "docs" / "notebook.md").read_text()
    cells = re.findall(r"^```\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(cells) == 3
    run("from trackers import Classifier\nmodel = Classifier()")
    run("batch = {'x': torch.rand(4, 6), 'labels': torch.ones(4).long()}")
    run("optimizer = torch.optim.SGD(model.parameters(), lr=0.1)")
    for cell in cells:
        assert run(cell).result.success, cell
    assert shell.user_ns["_roofprof"].total.macs == trackers.STEP_MACS
    assert shell.user_ns["first"].total.macs == trackers.FORWARD_MACS
    assert set(shell.user_ns["output"]) == {"loss", "logits"}
