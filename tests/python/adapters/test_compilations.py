"""What torch.compile notices of a profile, nothing, and what a block says of compiled code that runs in it once."""

import contextlib
import time

import pytest
import torch
import torch._dynamo
from attributed import calls, macs
from compiled_models import LINEAR, WAYS, Net, in_part, x
from given_roofs import profiler
from torch import nn

import roofprof

pytestmark = [
    pytest.mark.usefixtures("nothing_compiled"),
    pytest.mark.filterwarnings("error:Using .torch.compile:UserWarning"),  # torch's, of hooks
]


def block_of(model, *inputs, prof=None):
    """The report of a block around one call."""
    prof = prof or profiler(model)
    with prof:
        model(*(inputs or (x(),)))
    return prof.report()


# ---- what the compiler notices


@pytest.mark.parametrize("reset", [torch.compiler.reset, lambda: torch._dynamo.explain(Net())(x())])
def test_a_reset_inside_leaves_the_compiler_without_our_hooks(reset, backend):
    """It removes all callbacks, and ours take the hooks away while the compiler is at work."""
    net = Net()
    with roofprof.RooflineProfiler(net, ceilings=roofprof.Ceilings()):
        reset()
        torch.compile(net, backend=backend, fullgraph=True)(x())
        explained = torch._dynamo.explain(net)(x())
    assert (len(backend.graphs), explained.graph_count, explained.graph_break_count) == (1, 1, 0)
    handler = torch._dynamo.callback_handler
    assert "clear" not in vars(handler)
    assert (handler.start_callbacks, handler.end_callbacks) == ([], [])


@WAYS
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("use", ["count", "run", "block"])
def test_the_compiler_does_what_it_does_without_a_profile(compiled, warm, use, backend):
    def graphs():
        return [[node.name for node in graph.graph.nodes] for graph in backend.graphs]

    compiled(Net(), backend)(x())
    expected = graphs()
    torch.compiler.reset()
    backend.graphs.clear()
    model = compiled(Net(), backend)
    if warm:
        model(x())
    {"count": lambda: roofprof.count(model, x()), "run": lambda: profiler(model).run(x())}.get(
        use, lambda: block_of(model)
    )()
    if not warm and use == "count":
        assert graphs() == []
    with torch.compiler.set_stance("fail_on_recompile") if use != "count" or warm else contextlib.nullcontext():
        model(x())
    assert graphs() == expected
    assert not torch._dynamo.utils.counters["graph_break"]


def test_the_stance_is_the_users_again():
    model = torch.compile(Net(), backend="eager")
    model(x())
    with torch.compiler.set_stance("fail_on_recompile"):
        profiler(model).run(x())
        with pytest.raises(RuntimeError, match="recompile"):
            model(torch.ones(5, 8, dtype=torch.float64))


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("places", [("",), ("2",), ("2", "")])
def test_torchs_own_modules_compiled_in_place_are_not_compiled_anew(places, warm, backend):
    """Of these torch compiles the call with its look for hooks, not the forward alone; torch 2.11 compiles nothing."""

    def built():
        result = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
        for place in places:
            result.get_submodule(place).compile(backend=backend)
        return result

    built()(x())
    compiles = backend.frame_count == 1
    torch.compiler.reset()
    backend.frame_count = 0
    model = built()
    own_calls = [vars(module).get("_compiled_call_impl") for module in model.modules()]
    if warm:
        model(x())
    report, block = profiler(model).run(x()), block_of(model)
    with torch.compiler.set_stance("fail_on_recompile"):
        model(x())
    assert backend.frame_count == compiles
    assert [vars(module).get("_compiled_call_impl") for module in model.modules()] == own_calls
    assert macs(report) == {"0": LINEAR, "2": LINEAR}
    assert calls(report) == {"": 1, "0": 1, "1": 1, "2": 1}
    assert report.row(places[-1]).time > 0
    if compiles:
        assert any(note.code == "compiled" for note in report.coverage.notes)
        assert block.coverage.uncosted == {"compiled region": 1}
    else:
        assert block.row("0").macs == LINEAR


# ---- blocks: compiled code runs once and is not counted, which must be said


def test_a_block_says_what_it_could_not_count(backend):
    model = in_part(Net(), backend)
    prof = profiler(model)
    with prof:
        model(x())
        model(x())
    report = prof.report()
    assert any("compiled region of first: 2 calls, work inside not counted" in note for note in report.coverage.notes)
    assert report.coverage.uncosted == {"compiled region": 2}
    assert report.row("first").incomplete and report.total.incomplete and not report.row("second").incomplete
    assert report.row("first").time > 0
    for path in ("first.0", "first.1", "first.2"):
        row = report.row(path)
        assert row.incomplete
        assert row.time is row.calls is row.work_share is None
    assert report.coverage.uncalled_modules == []
    assert report.row("second").macs == 2 * 2 * LINEAR


def test_what_compiled_code_dispatches_is_counted_once_on_its_row(backend):
    """This backend dispatches everything. The second model is compiled when its profiler is there already."""
    assert macs(block_of(torch.compile(Net(), backend=backend))) == {"": 4 * LINEAR}
    model = nn.Sequential(Net(), nn.Linear(8, 8))
    with profiler(model) as prof:
        torch.compile(model, backend=backend)(x())
    assert macs(prof.report()) == {"": 5 * LINEAR}
    assert prof.report().row("").calls == 1
    assert prof.report().row("1").incomplete


def test_a_compiled_function_that_calls_the_model_leaves_no_silent_zero(backend):
    model = Net()
    loss = torch.compile(lambda value: model(value).sum(), backend=backend)
    with profiler(model) as prof:
        loss(x())
    report = prof.report()
    assert report.row("(outside)").macs == 4 * LINEAR
    assert report.row("").incomplete and report.row("first.0").incomplete
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
    phases = {group.keys[1] for group in report.group("op", "phase") if group.keys[0] == "compiled region"}
    assert phases >= {"forward", "backward"}
    assert report.row("(optimizer)").flops > 0
    assert backend.frame_count == (graphs if warm else 1)


def test_the_time_of_the_compiler_is_no_modules_time():
    def slow(graph, _):
        time.sleep(0.3)
        return graph.forward

    report = block_of(torch.compile(Net(), backend=slow))
    assert report.row("(outside)").time >= 0.9 * 0.3
    assert report.row("").time + report.row("(outside)").time <= report.total.wall + 1e-6
    assert report.row("(outside)").flops == 0  # what the compiler tried out
    assert any("which is in the row (outside)" in note for note in report.coverage.notes)
