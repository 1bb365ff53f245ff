"""torch.compile: work by module from the eager twin, time of the compiled run, and nothing compiled anew."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time

import pytest
import torch
import torch._dynamo
from attributed import calls, macs
from given_roofs import profiler
from models import LeNet
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend

import roofprof

LINEAR = 4 * 8 * 8  # MACs of Linear(8, 8) on 4 rows


class Net(nn.Module):
    """Two stages of two linear layers each."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
        self.second = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))

    def forward(self, x):
        return self.second(self.first(x)) + x


EVERY_LINEAR = dict.fromkeys(("first.0", "first.2", "second.0", "second.1"), LINEAR)


def x() -> torch.Tensor:
    return torch.ones(4, 8)


@pytest.fixture(autouse=True)
def fresh():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.fixture
def backend():
    """Counts the graphs that it is given, and runs them as AOTAutograd leaves them."""
    return CompileCounterWithBackend("aot_eager")


def wrapped(model, backend):
    return torch.compile(model, backend=backend)


def in_place(model, backend):
    model.compile(backend=backend)
    return model


def in_part(model, backend):
    model.first = torch.compile(model.first, backend=backend)
    return model


WAYS = pytest.mark.parametrize("compiled", [wrapped, in_place, in_part])


# ---- rows


@WAYS
def test_rows_are_those_of_the_model_before(compiled, backend):
    plain = roofprof.count(Net(), x())
    for report in (roofprof.count(compiled(Net(), backend), x()), profiler(compiled(Net(), backend)).run(x())):
        assert [(row.path, row.type, row.calls, row.params, row.self_flops, row.self_bytes) for row in report.rows] == [
            (row.path, row.type, row.calls, row.params, row.self_flops, row.self_bytes) for row in plain.rows
        ]
        assert [(row.input_shapes, row.output_shapes) for row in report.rows] == [
            (row.input_shapes, row.output_shapes) for row in plain.rows
        ]
        assert macs(report) == EVERY_LINEAR
        assert report.total.macs == sum(row.self_macs for row in report.rows)
        assert not report.total.incomplete
        assert report.model == "Net"


def test_a_module_compiled_twice_is_one_row(backend):
    twice = torch.compile(torch.compile(Net(), backend=backend), backend=backend)
    assert calls(roofprof.count(twice, x())) == calls(roofprof.count(Net(), x()))


def test_a_layer_of_torch_itself_may_be_compiled(backend):
    layer = torch.compile(nn.Linear(8, 8), backend=backend)
    report = profiler(layer).run(x())
    assert calls(report) == {"": 1}
    assert report.total.macs == LINEAR
    assert report.row("").type == "Linear"


def test_compiled_modules_in_a_compiled_model_are_one_region(backend):
    model = in_part(Net(), backend)
    model.second.compile(backend=backend)
    report = profiler(torch.compile(model, backend=backend)).run(x())
    assert macs(report) == EVERY_LINEAR
    assert backend.frame_count == 1
    assert report.row("").self_time == report.total.time
    assert report.row("first").time is report.row("second.0").time is None


def test_the_plain_module_and_its_compiled_form_have_rows_of_their_own(backend):
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.plain = Net()
            self.fast = torch.compile(self.plain, backend=backend)

        def forward(self, value):
            return self.plain(value) + self.fast(value)

    report = roofprof.count(Both(), x())
    assert macs(report) == {f"{name}.{path}": LINEAR for name in ("plain", "fast") for path in EVERY_LINEAR}


# ---- what the compiler notices


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


# ---- times


def test_the_time_stands_on_the_row_of_the_region(backend):
    report = profiler(torch.compile(Net(), backend=backend), repeat=3).run(x())
    model = report.row("")
    assert len(report.run_times) == 3
    assert 0 < model.self_op_time <= model.self_time == model.time == report.total.time
    assert model.wasted_time == pytest.approx(model.time - model.lower_bound_time)
    assert model.self_wasted_time is None
    for row in report.rows[1:]:
        if row.path != "(outside)":
            assert row.time is row.self_time is row.op_time is row.percent_of_roof is row.achieved_flops is None
    assert any("counts from the eager twin, time from the compiled run" in note for note in report.coverage.notes)


def test_shares_are_of_the_work(backend):
    report = profiler(torch.compile(Net(), backend=backend)).run(x())
    bound = {row.path: row.lower_bound_time for row in report.rows}
    for row in report.rows:
        expected = None if row.path == "" else pytest.approx(100 * bound[row.path] / bound[""])
        assert row.work_share == expected
    assert report.row("first").work_share == pytest.approx(
        sum(report.row(f"first.{index}").work_share for index in range(3))
    )
    assert "share" in report.table().partition("\n\n")[2].splitlines()[0]
    assert profiler(Net()).run(x()).row("first").work_share is None


def test_only_what_is_compiled_loses_its_times(backend):
    report = profiler(in_part(Net(), backend)).run(x())
    assert report.row("first.0").time is None
    assert report.row("first.0").work_share > 0
    for path in ("first", "second", "second.0", "second.1"):
        assert report.row(path).time > 0
    assert report.row("").time == pytest.approx(sum(row.self_time or 0 for row in report.rows))


def test_parts_left_out_by_the_compiler_keep_their_times(backend):
    class Slow(nn.Linear):
        @torch.compiler.disable
        def forward(self, value):
            time.sleep(0.02)
            return super().forward(value)

    model = Net()
    model.second = Slow(8, 8)
    report = profiler(torch.compile(model, backend=backend), repeat=1).run(x())
    assert macs(report) == {"first.0": LINEAR, "first.2": LINEAR, "second": LINEAR}
    assert report.row("second").time > 0.02
    assert report.row("first.0").time is None
    assert report.row("").self_time < 0.02 < report.row("").time


def test_compiling_is_not_timed():
    def slow(graph, _):
        time.sleep(0.3)
        return graph.forward

    report = profiler(torch.compile(Net(), backend=slow), warmup=0, repeat=2).run(x())
    assert len(report.run_times) == len(report.bare_times) == 2
    assert max(report.run_times + report.bare_times) < 0.3
    assert report.to_dict()["runs"]["warmup"] > 0
    assert any("compiled 1 time meanwhile" in note and "none of the times" in note for note in report.coverage.notes)


def test_a_model_that_compiles_in_each_call_is_timed_in_the_end():
    class Restless(nn.Linear):
        def forward(self, value):
            torch._dynamo.reset_code_caches()
            return super().forward(value)

    model = nn.Sequential(Restless(8, 8), torch.compile(nn.Linear(8, 8), backend="eager"))
    report = profiler(model, repeat=1).run(x())
    assert len(report.run_times) == 1
    assert report.to_dict()["runs"]["warmup"] > 10


# ---- parts of a program that are compiled


def test_compiled_functions_and_forwards(backend):
    @torch.compile(backend=backend)
    def halved(layer, value):
        return layer(value) / 2

    class Inner(nn.Linear):
        @torch.compile(backend=backend)
        def forward(self, value):
            return super().forward(value)

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), Inner(8, 8)

        def forward(self, value):
            return self.b(halved(self.a, value))

    report = profiler(Outer()).run(x())
    assert macs(report) == {"a": LINEAR, "b": LINEAR}
    assert report.row("a").time is None
    assert report.row("a").work_share > 0
    assert report.row("b").time > 0
    assert backend.frame_count == 2


def test_a_compiled_function_is_a_model(backend):
    def square(value):
        return value @ value.T

    report = profiler(torch.compile(square, backend=backend)).run(x())
    assert report.model == "square"
    assert report.total.macs == 4 * 8 * 4
    assert report.total.time > 0


def test_a_module_that_also_ran_outside_of_the_region_has_no_time_of_its_own(backend):
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(8, 8)
            self.fast = torch.compile(lambda value: self.fc(value) + 1, backend=backend)

        def forward(self, value):
            return self.fast(self.fc(value))

    report = profiler(Both(), repeat=1).run(x())
    assert report.row("fc").calls == 2
    assert report.row("fc").macs == 2 * LINEAR
    assert report.row("fc").time is report.row("fc").self_time is None
    assert report.row("fc").work_share > 0
    # What was seen of it is part of the region's row: nothing is lost.
    assert report.row("").self_time == report.row("").time == report.total.time
    assert report.total.time == pytest.approx(report.run_times[0], rel=0.9)


def test_graph_breaks_lose_no_work(backend):
    class Broken(Net):
        def forward(self, value):
            value = self.first(value)
            torch._dynamo.graph_break()
            if value.sum() > 0:  # the compiler cannot know
                value = value + 1
            return self.second(value)

    torch.manual_seed(1)
    report = profiler(torch.compile(Broken(), backend=backend)).run(x())
    assert backend.frame_count > 1
    assert macs(report) == EVERY_LINEAR
    assert report.row("").time == report.total.time


def test_dynamic_shapes_count_what_was_given(backend):
    model = torch.compile(Net(), backend=backend, dynamic=True)
    assert profiler(model).run(torch.ones(4, 8)).total.macs == 4 * LINEAR
    assert profiler(model).run(torch.ones(12, 8)).total.macs == 12 * LINEAR
    assert backend.frame_count == 1


def test_scripted_children(backend):
    model = Net()
    model.second = torch.jit.script(model.second)
    report = profiler(torch.compile(model, backend=backend)).run(x())
    assert report.total.macs == 4 * LINEAR
    assert report.row("second").macs == 2 * LINEAR


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
    assert report.row("").time < 0.3 < report.row("(outside)").time
    assert report.row("(outside)").flops == 0  # what the compiler tried out
    assert any("which stands in (outside)" in note for note in report.coverage.notes)


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
print(prof._compilations.note(timed=True))
"""


@pytest.mark.parametrize(
    ("code", "said"),
    [("torch.compile(model, backend='eager')(value)", True), ("torch.optim.SGD(model.parameters(), 0.1)", False)],
)
def test_what_was_compiled_with_our_hooks_in_it_is_said(code, said):
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FIRST_USE.format(code=code)], capture_output=True, text=True, check=True
    )
    assert ("until torch.compiler.reset()" in ran.stdout) == said


# ---- the real compiler


@pytest.mark.slow
def test_inductor():
    model = torch.compile(LeNet().eval())
    image = torch.rand(1, 1, 32, 32)
    plain = roofprof.count(LeNet().eval(), image)
    with torch.no_grad():
        report = profiler(model).run(image)
        with profiler(model) as prof:
            model(image)
    assert [(row.path, row.self_flops, row.self_bytes) for row in report.rows] == [
        (row.path, row.self_flops, row.self_bytes) for row in plain.rows
    ]
    assert report.row("").self_time == report.total.time
    assert report.row("conv1").time is None
    assert report.row("conv1").work_share > 0
    block = prof.report()
    assert block.total.incomplete
    assert block.total.flops < plain.total.flops  # fused loops are not dispatched
    assert any("compiled region of the model: 1 call" in note for note in block.coverage.notes)


@pytest.mark.slow
def test_inductor_trains():
    model = torch.compile(Net())

    def step(value):
        model(value).sum().backward()

    report = profiler(step).run(x())
    assert report.total.macs == (4 + 3 * 2 + 1) * LINEAR
    assert report.total.op_time > 0
