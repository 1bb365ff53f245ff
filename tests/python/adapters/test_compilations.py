"""What torch.compile notices of a profile, nothing, and what a block says of compiled code that runs in it once."""

import contextlib
import subprocess
import sys
import time

import pytest
import torch
import torch._dynamo
from attributed import calls, macs
from compiled_models import (
    LINEAR,
    WAYS,
    Net,
    in_part,
    x,
)
from given_roofs import profiler
from torch import nn

import roofprof

pytestmark = pytest.mark.usefixtures("nothing_compiled")


# ---- what the compiler notices


@pytest.mark.parametrize(
    "reset", [torch.compiler.reset, torch._dynamo.reset, lambda: torch._dynamo.explain(Net())(x())]
)
def test_a_reset_inside_leaves_the_compiler_without_our_hooks(reset, backend):
    """It removes all callbacks, and ours take the hooks away while the compiler is at work."""
    net = Net()
    with roofprof.RooflineProfiler(net, ceilings=roofprof.Ceilings()) as prof:
        reset()
        torch.compile(net, backend=backend, fullgraph=True)(x())
        explained = torch._dynamo.explain(net)(x())
    assert len(backend.graphs) == 1
    assert (explained.graph_count, explained.graph_break_count) == (1, 0)
    assert prof.report is not None
    handler = torch._dynamo.callback_handler
    assert "clear" not in vars(handler)
    assert (handler.start_callbacks, handler.end_callbacks) == ([], [])


@WAYS
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("use", ["count", "run", "block"])
def test_the_compiler_does_what_it_does_without_a_profile(compiled, warm, use, backend):
    def graphs():
        return [[node.name for node in graph.graph.nodes] for graph in backend.graphs]

    alone = compiled(Net(), backend)
    alone(x())
    expected = graphs()
    torch.compiler.reset()
    backend.graphs.clear()

    model = compiled(Net(), backend)
    if warm:
        model(x())
    if use == "count":
        roofprof.count(model, x())
    elif use == "run":
        profiler(model).run(x())
    else:
        with profiler(model):
            model(x())
    if not warm and use == "count":
        assert graphs() == []
    with torch.compiler.set_stance("fail_on_recompile") if use != "count" or warm else contextlib.nullcontext():
        model(x())
    assert graphs() == expected
    assert not torch._dynamo.utils.counters["graph_break"]


@pytest.mark.filterwarnings("error:Using .torch.compile:UserWarning")
def test_torch_does_not_warn_of_our_hooks(backend):
    profiler(torch.compile(Net(), backend=backend)).run(x())


def test_the_stance_is_the_users_again():
    model = torch.compile(Net(), backend="eager")
    model(x())
    with torch.compiler.set_stance("fail_on_recompile"):
        profiler(model).run(x())
        with pytest.raises(RuntimeError, match="recompile"):
            model(torch.ones(5, 8, dtype=torch.float64))


def test_the_model_is_left_as_a_call_leaves_it(backend):
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5))
    twin = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5))
    twin.load_state_dict(model.state_dict())
    torch.manual_seed(1)
    twin(x())
    random = torch.get_rng_state()
    torch.manual_seed(1)
    profiler(torch.compile(model, backend=backend)).run(x())
    assert torch.equal(torch.get_rng_state(), random)
    for name, value in twin.state_dict().items():
        assert torch.equal(model.state_dict()[name], value), name


def built_in(backend, *, child=False, model=True):
    result = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    if child:
        result[2].compile(backend=backend)
    if model:
        result.compile(backend=backend)
    return result


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("parts", [{}, {"child": True, "model": False}, {"child": True}])
def test_torchs_own_modules_compiled_in_place_are_not_compiled_anew(parts, warm, backend):
    """Of these torch compiles the call with its look for hooks, not the forward alone; torch 2.11 compiles nothing."""
    built_in(backend, **parts)(x())
    compiles = backend.frame_count == 1
    torch.compiler.reset()
    backend.frame_count = 0
    model = built_in(backend, **parts)
    own_calls = [vars(module).get("_compiled_call_impl") for module in model.modules()]
    if warm:
        model(x())
    report = profiler(model).run(x())
    with profiler(model) as prof:
        model(x())
    with torch.compiler.set_stance("fail_on_recompile"):
        model(x())
    assert backend.frame_count == compiles
    assert [vars(module).get("_compiled_call_impl") for module in model.modules()] == own_calls
    assert macs(report) == {"0": LINEAR, "2": LINEAR}
    assert calls(report) == {"": 1, "0": 1, "1": 1, "2": 1}
    if not compiles:
        assert report.row("0").time > 0
        assert prof.report().row("0").macs == LINEAR
        return
    region = "2" if not parts.get("model", True) else ""
    assert report.row(region).time > 0
    assert any(note.code == "compiled" for note in report.coverage.notes)
    assert prof.report().coverage.uncosted == {"compiled region": 1}


# ---- blocks: compiled code runs once and is not counted, which must be said


def test_a_block_says_what_it_could_not_count(backend):
    model = in_part(Net(), backend)
    with profiler(model) as prof:
        model(x())
        model(x())
    report = prof.report()
    assert any("compiled region of first: 2 calls, work inside not counted" in note for note in report.coverage.notes)
    assert report.coverage.uncosted == {"compiled region": 2}
    assert report.row("first").incomplete
    assert report.row("first").time > 0
    for path in ("first.0", "first.1", "first.2"):
        row = report.row(path)
        assert row.incomplete
        assert row.time is row.calls is row.work_share is None
    assert report.coverage.uncalled_modules == []
    assert not report.row("second").incomplete
    assert report.row("second").macs == 2 * 2 * LINEAR
    assert report.total.incomplete


def test_what_compiled_code_dispatches_is_counted_once_on_its_row(backend):
    model = torch.compile(Net(), backend=backend)
    with profiler(model) as prof:
        model(x())
    assert macs(prof.report()) == {"": 4 * LINEAR}  # this backend dispatches everything


def test_a_block_knows_a_model_that_was_compiled_after_the_profiler_was_made(backend):
    model = nn.Sequential(Net(), nn.Linear(8, 8))
    with profiler(model) as prof:
        torch.compile(model, backend=backend)(x())
    report = prof.report()
    assert macs(report) == {"": 5 * LINEAR}
    assert report.row("").calls == 1
    assert report.row("1").incomplete


def test_a_compiled_function_that_calls_the_model_leaves_no_silent_zero(backend):
    model = Net()

    @torch.compile(backend=backend)
    def loss(value):
        return model(value).sum()

    with profiler(model) as prof:
        loss(x())
    report = prof.report()
    assert report.row("(outside)").macs == 4 * LINEAR
    assert report.row("").incomplete
    assert report.row("first.0").incomplete
    assert report.row("").calls is report.row("first.0").time is None
    assert report.coverage.uncalled_modules == []


@pytest.mark.parametrize("warm", [False, True])
def test_training_in_a_block(warm, backend):
    model = torch.compile(Net(), backend=backend)
    if warm:
        model(x()).sum().backward()
    graphs = backend.frame_count
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with profiler(model) as prof:
        model(x()).sum().backward()
        optimizer.step()
    report = prof.report()
    # Forward, and two of three gradients of the first layer, three of three of the others.
    assert report.row("").macs == (4 + 3 * 2 + 1) * LINEAR
    assert {group.keys[1] for group in report.group("op", "phase") if group.keys[0] == "compiled region"} >= {
        "forward",
        "backward",
    }
    assert report.row("(optimizer)").flops > 0
    assert backend.frame_count == (graphs if warm else 1)


def test_the_time_of_the_compiler_is_no_modules_time():
    def slow(graph, _):
        time.sleep(0.3)
        return graph.forward

    model = torch.compile(Net(), backend=slow)
    with profiler(model) as prof:
        model(x())
    report = prof.report()
    assert report.row("(outside)").time >= 0.9 * 0.3
    assert report.row("").time + report.row("(outside)").time <= report.total.wall + 1e-6
    assert report.row("(outside)").flops == 0  # what the compiler tried out
    assert any("which is in the row (outside)" in note for note in report.coverage.notes)


def test_a_training_step_as_a_callable(backend):
    model = torch.compile(Net(), backend=backend)

    def step(value):
        model(value).sum().backward()

    report = profiler(step).run(x())
    assert report.total.macs == (4 + 3 * 2 + 1) * LINEAR
    assert not report.total.incomplete
    assert report.total.op_time > 0
    assert backend.frame_count == 1


def test_reports_of_compiled_models_read_back(backend, tmp_path):
    report = profiler(torch.compile(Net(), backend=backend)).run(x())
    report.to_json(tmp_path / "report.json")
    again = roofprof.Report.from_json(tmp_path / "report.json")
    assert again == report
    assert again.row("first").work_share == report.row("first").work_share


# ---- the first use of the compiler in a process

FIRST_USE = """
import sys, torch, roofprof
model, value = torch.nn.Sequential(torch.nn.Linear(8, 8)), torch.ones(4, 8)
assert "torch._dynamo" not in sys.modules
roofprof.count(model, value)
assert "torch._dynamo" not in sys.modules  # it takes seconds to load
with roofprof.RooflineProfiler(model) as prof:
    {code}
print(prof._observer.compilations.note(timed=True))
"""


@pytest.mark.parametrize(
    ("code", "said"),
    [("torch.compile(model, backend='eager')(value)", True), ("torch.optim.SGD(model.parameters(), 0.1)", False)],
)
def test_what_the_first_use_compiles_is_said(code, said):
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FIRST_USE.format(code=code)], capture_output=True, text=True, check=True
    )
    assert ("compiled 1 time meanwhile" in ran.stdout) == said
