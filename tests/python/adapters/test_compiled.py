"""torch.compile: work by module from the eager model, time of the compiled run, and nothing compiled anew."""

import time

import pytest
import torch
import torch._dynamo
from attributed import Model, calls, macs
from compiled_models import EVERY_LINEAR, LINEAR, WAYS, Net, x
from given_roofs import profiler
from torch import nn

import roofprof

pytestmark = pytest.mark.usefixtures("nothing_compiled")


# ---- rows


@WAYS
def test_rows_are_those_of_the_model_before(compiled, backend):
    def facts(report):
        figures = ("path", "type", "calls", "params", "self_flops", "self_bytes", "input_shapes", "output_shapes")
        return [[getattr(row, name) for name in figures] for row in report.rows]

    plain = roofprof.count(Net(), x())
    for report in (roofprof.count(compiled(Net(), backend), x()), profiler(compiled(Net(), backend)).run(x())):
        assert facts(report) == facts(plain)
        assert macs(report) == EVERY_LINEAR
        assert report.total.macs == sum(row.self_macs for row in report.rows)
        assert not report.total.incomplete
        assert report.model == "Net"


def test_what_is_compiled_twice_or_one_layer_or_a_function_is_one_row(backend):
    twice = torch.compile(torch.compile(Net(), backend=backend), backend=backend)
    assert calls(roofprof.count(twice, x())) == calls(roofprof.count(Net(), x()))
    report = profiler(torch.compile(nn.Linear(8, 8), backend=backend)).run(x())
    assert (calls(report), report.total.macs, report.row("").type) == ({"": 1}, LINEAR, "Linear")

    def square(value):
        return value @ value.T

    report = profiler(torch.compile(square, backend=backend)).run(x())
    assert (report.model, report.total.macs) == ("square", 4 * 8 * 4)
    assert report.total.time > 0


def test_the_plain_module_and_its_compiled_form_have_rows_of_their_own(backend):
    plain = Net()
    fast = torch.compile(plain, backend=backend)
    report = roofprof.count(Model(lambda self, x: self.plain(x) + self.fast(x), plain=plain, fast=fast), x())
    assert macs(report) == {f"{name}.{path}": LINEAR for name in ("plain", "fast") for path in EVERY_LINEAR}


# ---- times


def test_the_time_stands_on_the_row_of_the_region_and_shares_are_of_the_work(backend, tmp_path):
    report = profiler(torch.compile(Net(), backend=backend), repeat=3).run(x())
    model = report.row("")
    assert len(report.run_times) == 3
    assert 0 < model.self_op_time <= model.self_time == model.time == report.total.time
    assert model.wasted_time == pytest.approx(model.time - model.lower_bound_time)
    assert model.self_wasted_time is model.work_share is None
    for row in report.rows[1:]:
        if row.path != "(outside)":
            assert row.time is row.self_time is row.op_time is row.percent_of_roof is row.achieved_flops is None
        assert row.work_share == pytest.approx(100 * row.lower_bound_time / model.lower_bound_time)
    parts = sum(report.row(f"first.{index}").work_share for index in range(3))
    assert report.row("first").work_share == pytest.approx(parts)
    assert "share" in report.table().partition("\n\n")[2].splitlines()[0]
    assert any("counts from the eager model, time from the compiled run" in note for note in report.coverage.notes)
    assert profiler(Net()).run(x()).row("first").work_share is None
    report.to_json(tmp_path / "report.json")
    again = roofprof.Report.from_json(tmp_path / "report.json")
    assert (again, again.row("first").work_share) == (report, report.row("first").work_share)


def test_compiling_is_not_timed():
    seen, compiled_in = [], []

    def compiler(graph, _):
        compiled_in.append(len(seen))
        return graph.forward

    model = Model(lambda self, x: seen.append(x) or self.net(x), net=torch.compile(Net(), backend=compiler))
    report = profiler(model, warmup=0, repeat=2).run(x())
    assert len(report.run_times) == len(report.bare_times) == 2
    assert 0 < max(compiled_in) <= len(seen) - 4, "the last four calls are the timed ones"
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


def test_all_warm_ups_are_made_however_long_compiling_takes():
    """2.5 seconds are for the warm-up, and what the compiler takes does not count."""

    def compiler(graph, _):
        time.sleep(2.6)
        return graph.forward

    report = profiler(torch.compile(Net(), backend=compiler), warmup=None, repeat=None).run(x())
    assert report.to_dict()["runs"]["warmup"] == 3


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

    work = Disabled.forward

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
    assert warm or "found nothing there that it could compile" in notes["compiled-meanwhile"]
    with profiler(model) as block:
        model(x())
    assert block.report().total.macs == roofprof.count(kind(), x()).total.macs
    assert block.report().coverage.uncosted == {}
    assert "compiled-not-counted" not in {note.code for note in block.report().coverage.notes}


def test_a_graph_whose_number_code_without_one_had_is_a_region(backend):
    """torch.compiler.reset() starts the numbers of Dynamo's code again."""
    profiler(torch.compile(Disabled(), backend=backend)).run(x())
    torch.compiler.reset()
    report = profiler(torch.compile(Net(), backend=backend)).run(x())
    assert report.row("first.0").time is None
    assert "compiled region" in {row.op for row in report.group("op")}


def test_the_work_of_a_compiled_region_stands_with_its_ops(backend):
    """Its own cells say n/a: 0 bytes would be wrong. A rate of an op is of its calls that have a time."""
    model = nn.Sequential(torch.compile(nn.Linear(8, 8), backend=backend), nn.Linear(8, 8), nn.Linear(8, 8))
    report = profiler(model).run(x())
    with profiler(model) as block:
        model(x())
    columns = ["macs", "flops", "bytes", "achieved_flops", "achieved_bandwidth", "intensity"]
    for one in (report, block.report()):
        lines = [line.split() for line in one.table(by="op", columns=columns).splitlines()]
        assert [line[2:] for line in lines if line[:2] == ["compiled", "region"]] == [["n/a"] * 6]
    (region,) = (row for row in report.group("op") if row.op == "compiled region")
    assert region.time > 0
    assert region.achieved_flops is region.achieved_bandwidth is None
    linear = report.by_operator()["aten::linear"]
    assert linear.macs == 3 * LINEAR
    eager = [row for row in report.group("module", "op") if row.op == "aten::linear" and row.time is not None]
    assert len(eager) == 2
    assert linear.achieved_flops == pytest.approx(sum(row.flops for row in eager) / linear.time)


# ---- parts of a program that are compiled


def test_compiled_functions_and_forwards(backend):
    halved = torch.compile(lambda layer, value: layer(value) / 2, backend=backend)

    class Inner(nn.Linear):
        @torch.compile(backend=backend)
        def forward(self, value):
            return super().forward(value)

    model = Model(lambda self, x: self.b(halved(self.a, x)), a=nn.Linear(8, 8), b=Inner(8, 8))
    report = profiler(model).run(x())
    assert macs(report) == {"a": LINEAR, "b": LINEAR}
    assert report.row("a").time is None
    assert report.row("a").work_share > 0
    assert report.row("b").time > 0
    assert backend.frame_count == 2


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
    for rows in (4, 12):
        assert profiler(model).run(torch.ones(rows, 8)).total.macs == rows * LINEAR
    assert backend.frame_count == 1
