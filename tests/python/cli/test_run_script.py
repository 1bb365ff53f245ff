"""``roofprof run``: programs as they are, and the figures of a window of their steps."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest
import torch
from real_ranks import torchrun

import roofprof
from roofprof.cli import main

TRAIN = """
import argparse
import os
import signal
import sys

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--at-4", default="")
options = parser.parse_args()
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
critic = nn.Linear(4, 1)
loss_of = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step(i):
    optimizer.zero_grad()
    x = torch.rand(8 + i, 16)  # each step has work of its own
    if i == 4 and options.at_4:
        exec(options.at_4)
    loss_of(model(x), torch.zeros(8 + i, 4)).backward()
    optimizer.step()


if __name__ == "__main__":
    for i in range(options.steps):
        step(i)
    assert nn.Module.__call__ is nn.Module._wrapped_call_impl or i < 10, "the program goes on with calls as ever"
    print("arguments", sys.argv[1:])
"""


@pytest.fixture
def script(here):
    """A training program, in a folder that is the current one."""
    path = here / "train.py"
    path.write_text(TRAIN)
    before = torch.nn.Module.__call__, list(sys.path), sys.argv, sys.modules["__main__"]
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background
    yield path
    signal.signal(signal.SIGINT, interrupt)
    assert (torch.nn.Module.__call__, list(sys.path), sys.argv, sys.modules["__main__"]) == before


def report(path="train.roofprof.json"):
    return roofprof.Report.from_json(path)


def figures(report):
    names = ("path", "type", "calls", "params", "macs", "flops", "bytes")
    return [[getattr(row, name) for name in names] for row in report.rows if row.path != "(outside)"]


# Closed form of the steps 5 to 7: forward, and the backward's two products; the first layer's input has no gradient.
MACS = ((8 + 5) + (8 + 6) + (8 + 7)) * (16 * 32 * 2 + 32 * 4 * 3)


def test_the_window_has_the_figures_of_a_block_around_its_steps(script, here, capsys):
    assert main(["run", "--skip", "5", "--steps", "3", str(script), "--steps", "10"]) == 0
    assert "arguments ['--steps', '10']" in capsys.readouterr().out  # the program's own are its own
    block = TRAIN.replace(
        "    for i in range(options.steps):\n        step(i)\n",
        "    import roofprof\n"
        "    for i in range(5):\n        step(i)\n"
        "    with roofprof.RooflineProfiler(model) as profiler:\n"
        "        for i in range(5, 8):\n            step(i)\n            profiler.step()\n"
        '    profiler.report().to_json("block.json")\n',
    )
    (here / "block.py").write_text(block)
    subprocess.run([sys.executable, "block.py"], check=True)
    assert figures(report()) == figures(report("block.json"))
    # A step lasts from call to call: outside is the input of step 8, with 3 rows more than that of step 5.
    assert report().row("(outside)").flops - report("block.json").row("(outside)").flops == 3 * 16
    assert report().steps == 3
    assert report().total.macs == MACS


@pytest.mark.parametrize(
    ("line", "call"), [("", ""), ("model.compile(backend='eager')\n", "critic(torch.rand(1, 4)); ")]
)
def test_a_compiled_model_and_modules_beside_it(script, line, call):
    text = TRAIN.replace("critic =", f"{line}critic =").replace("loss_of(model(x)", f"{call}loss_of(model(x)")
    script.write_text(text)
    assert main(["run", "--skip", "5", "--steps", "3", str(script)]) == 0
    assert report().total.macs == MACS + (3 * 4 if call else 0)


@pytest.mark.parametrize(("steps", "calls"), [(1, 1), (4, 1), (6, 3), (30, 10)])
def test_without_a_wish_there_is_a_report_of_any_number_of_steps(script, steps, calls, capsys):
    assert main(["run", str(script), "--steps", str(steps)]) == 0
    assert report().row("").calls == calls
    assert f"profiled {calls} step" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("action", "code", "printed"),
    [
        ("raise KeyError('mine')", 1, "KeyError: 'mine'"),
        ("sys.exit('no data')", 1, "no data"),
        ("sys.exit()", 0, ""),
        ("os.kill(os.getpid(), signal.SIGINT)", 130, "KeyboardInterrupt"),
    ],
)
def test_a_program_that_ends_early_has_its_exit_code_and_a_report(script, action, code, printed, capsys):
    assert main(["run", "--skip", "1", str(script), "--at-4", action]) == code
    shown = capsys.readouterr().err
    assert printed in shown
    assert "profiling/script" not in shown  # the traceback is the program's
    assert report().row("").calls == 3
    assert report().partial == (code != 0)


def test_files_are_where_the_command_was_given(script, here):
    (here / "elsewhere").mkdir()
    assert main(["run", "--csv", "rows.csv", "train.py", "--at-4", "os.chdir('elsewhere')"]) == 0
    os.chdir(here)
    assert report().steps
    assert (here / "rows.csv").is_file()
    assert not list((here / "elsewhere").iterdir())


def test_stop_ends_the_program(script, capsys):
    assert main(["run", "--stop", "--skip", "0", "--steps", "2", str(script)]) == 0
    assert "arguments" not in capsys.readouterr().out
    assert report().row("").calls == 2


TWO = """
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(8, width)
    def forward(self, x):
        return self.inner(x)

small, large = Net(2), Net(4000)
for _ in range(5):
    small(torch.rand(1, 8))
    large(torch.rand(1000, 8))
"""


@pytest.mark.parametrize(
    ("wish", "macs"),
    [
        ([], 8 * 4000 * 1000),  # most of the time
        (["--model", "small"], 8 * 2),
        (["--model", "large.inner"], 8 * 4000 * 1000),
        (["--model", "Net[0]"], 8 * 2),
    ],
)
def test_which_module_is_profiled(run, wish, macs):
    report, streams = run(TWO, *wish, "--skip", "3", "--steps", "1")
    assert report.row("").macs == macs
    if not wish:
        assert "Net (5) ran too: their work is in (outside), or not counted if" in streams.err


def test_a_module_is_run_by_its_name(here, capsys):
    (here / "package").mkdir()
    (here / "package" / "__init__.py").write_text("")
    (here / "package" / "fit.py").write_text(TRAIN)
    assert main(["run", "-m", "package.fit", "--steps", "8"]) == 0
    assert report("fit.roofprof.json").row("").calls == 5
    assert main(["run", "-m", "no_such_module"]) == 1
    assert "No module named no_such_module" in capsys.readouterr().err


INPUTS = """
import threading
import roofprof

class Flip(nn.Module):
    def forward(self, x):
        for _ in range(20):
            x = x.flip(0)
        return x

flip, model = Flip(), nn.Linear(8, 4)
def work():
    for _ in range(6):
        x = torch.cat([flip(torch.rand(1, 8)) for _ in range(16)])
        model(x).sum().backward()
"""


def test_what_prepares_inputs_is_not_the_model(run):
    assert run(INPUTS + "work()\n")[0].row("").type == "Linear"


def test_a_program_that_profiles_by_itself_ends_the_window(run):
    own = "work()\nprint(roofprof.count(model, torch.rand(1, 8)).total.macs)\nwork()\n"
    report, streams = run(INPUTS + own, "--skip", "1", "--steps", "9")
    assert streams.out.startswith("32\n")
    assert report.row("").calls == 5


def test_a_model_on_another_thread(run):
    threads = "thread = threading.Thread(target=work)\nthread.start()\nthread.join()\n"
    assert run(INPUTS + threads, "--stop", "--skip", "1", "--steps", "2")[0].row("").calls == 2


@pytest.mark.parametrize(("rank", "size"), [("abc", "2"), ("2", "2"), ("0", "many"), ("\u0661", "4")])
def test_a_rank_that_is_none_is_refused(script, rank, size, monkeypatch, capsys):
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", size)
    assert main(["run", str(script)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"roofprof: RANK is '{rank}'")
    assert "a rank is a whole number from 0 to one less than the number of ranks" in line


def test_under_torchrun_each_rank_has_a_report(script):
    script.write_text(
        textwrap.dedent("""
        import torch
        import torch.distributed as dist
        from torch import nn
        dist.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(nn.Linear(8, 4))
        for _ in range(6):
            model(torch.rand(2 + dist.get_rank(), 8)).sum().backward()
        dist.destroy_process_group()
        """)
    )
    done = torchrun("-m", "roofprof", "run", "--skip", 2, "--steps", 2, script, ROOFPROF_CEILINGS="off")
    for rank in (0, 1):
        module = next(row for row in report(f"train.roofprof.rank{rank}.json").rows if row.path == "module")
        assert (module.calls, module.type) == (2, "Linear")
    assert done.stdout.count("DistributedDataParallel on cpu") == 1
