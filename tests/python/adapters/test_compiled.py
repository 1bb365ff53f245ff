"""torch.compile: work by module from the eager model, time of the compiled run, and nothing compiled anew."""

import time

import pytest
import torch
import torch._dynamo
from attributed import calls, macs
from compiled_models import (
    EVERY_LINEAR,
    LINEAR,
    WAYS,
    Net,
    in_part,
    x,
)
from given_roofs import profiler
from models import LeNet
from torch import nn

import roofprof

pytestmark = pytest.mark.usefixtures("nothing_compiled")


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
    assert any("counts from the eager model, time from the compiled run" in note for note in report.coverage.notes)


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
    assert report.row("second").time >= 0.9 * 0.02
    assert report.row("first.0").time is None
    assert report.row("").self_time <= report.row("").time - report.row("second").time + 1e-6


def test_compiling_is_not_timed():
    calls, compiled_in = [], []

    def compiler(graph, _):
        compiled_in.append(len(calls))
        return graph.forward

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = torch.compile(Net(), backend=compiler)

        def forward(self, value):
            calls.append(value)
            return self.net(value)

    report = profiler(Outer(), warmup=0, repeat=2).run(x())
    assert len(report.run_times) == len(report.bare_times) == 2
    assert 0 < max(compiled_in) <= len(calls) - 4, "the last four calls are the timed ones"
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


# ---- what the compiler leaves as it is


class Disabled(nn.Module):
    """All of its work is hidden from the compiler."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    @torch._dynamo.disable
    def forward(self, value):
        return torch.tanh(self.layer(value)) @ value.T


class CallsDisabled(Disabled):
    """The same, by a method of its own."""

    @torch._dynamo.disable
    def work(self, value):
        return torch.tanh(self.layer(value)) @ value.T

    def forward(self, value):
        return self.work(value)


@pytest.mark.parametrize("kind", [Disabled, CallsDisabled])
@pytest.mark.parametrize("warm", [False, True])
def test_what_ran_as_it_is_is_no_compiled_region(kind, warm, backend):
    """Dynamo puts a range around code that calls no graph: each op there has its own time, as without torch.compile."""
    model = torch.compile(kind(), backend=backend)
    if warm:
        model(x())
    report = profiler(model).run(x())
    assert backend.frame_count == 0
    by_op = {row.op: row for row in report.group("op")}
    assert set(by_op) == {row.op for row in profiler(kind()).run(x()).group("op")}
    assert all(by_op[op].time > 0 for op in ("aten::linear", "aten::tanh", "aten::matmul"))
    assert report.row("layer").time > 0
    notes = {note.code: note.text for note in report.coverage.notes}
    assert "compiled" not in notes
    assert ("compiled-meanwhile" in notes) == (not warm)
    if not warm:
        assert "found nothing there that it could compile" in notes["compiled-meanwhile"]


def test_a_block_counts_what_ran_as_it_is(backend):
    model = torch.compile(Disabled(), backend=backend)
    prof = profiler(model)
    with prof:
        model(x())
    report = prof.report()
    assert report.total.macs == roofprof.count(Disabled(), x()).total.macs
    assert report.coverage.uncosted == {}
    assert "compiled-not-counted" not in {note.code for note in report.coverage.notes}


def test_a_graph_whose_number_code_without_one_had_is_a_region(backend):
    """torch.compiler.reset() starts the numbers of Dynamo's code again."""
    profiler(torch.compile(Disabled(), backend=backend)).run(x())
    torch.compiler.reset()
    report = profiler(torch.compile(Net(), backend=backend)).run(x())
    assert report.row("first.0").time is None
    assert {row.op for row in report.group("op")} >= {"compiled region"}


@pytest.mark.parametrize("pause", [0.0, 3.0])
def test_all_warm_ups_are_made_however_long_compiling_takes(pause):
    """2.5 seconds are for the warm-up, and what the compiler takes does not count."""

    def compiler(graph, _):
        time.sleep(pause)
        return graph.forward

    report = profiler(torch.compile(Net(), backend=compiler), warmup=None, repeat=None).run(x())
    assert report.to_dict()["runs"]["warmup"] == 3


def cells_of_region(report):
    """The cells of its work in the table."""
    columns = ["macs", "flops", "bytes", "achieved_flops", "achieved_bandwidth", "intensity"]
    (line,) = (
        line for line in report.table(by="op", columns=columns).splitlines() if line.startswith("compiled region ")
    )
    return line.removeprefix("compiled region ").split()


def test_the_work_of_a_compiled_region_stands_with_its_ops(backend):
    """Its own cells say n/a: 0 bytes would be wrong. A rate of an op is of its calls that have a time."""
    model = nn.Sequential(torch.compile(nn.Linear(8, 8), backend=backend), nn.Linear(8, 8), nn.Linear(8, 8))
    report = profiler(model).run(x())
    (region,) = (row for row in report.group("op") if row.op == "compiled region")
    assert cells_of_region(report) == ["n/a"] * 6
    assert region.time > 0
    assert region.achieved_flops is region.achieved_bandwidth is None
    linear = report.by_operator()["aten::linear"]
    assert linear.macs == 3 * LINEAR
    eager = [row for row in report.group("module", "op") if row.op == "aten::linear" and row.time is not None]
    assert len(eager) == 2
    assert linear.achieved_flops == pytest.approx(sum(row.flops for row in eager) / linear.time)
    block = profiler(model)
    with block:
        model(x())
    assert cells_of_region(block.report()) == ["n/a"] * 6


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
