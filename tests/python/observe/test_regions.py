"""Regions: rows that the user's code opens while it runs."""

from __future__ import annotations

import pytest
import torch
from attributed import MACS, Model, calls, linear, macs, x
from given_roofs import profiler
from torch.profiler import record_function
from truths import assert_conserved

import roofprof
from roofprof import scope

OUTSIDE = "(outside)"


def test_a_region_is_a_row_below_the_module_that_runs():
    def forward(model, value):
        with scope("post"):
            return model.head(value) @ torch.ones(4, 3)

    inner = Model(forward, head=linear())
    prof = profiler(model := Model(lambda m, v: m.inner(v), inner=inner))
    with prof, scope("loss"):
        model(x()).sum()
    report = prof.report()
    assert_conserved(report)
    # The module called in it stands where it stands in the model.
    assert macs(report) == {"inner.head": MACS, "inner.post": 2 * 4 * 3}
    types = {row.path: row.type for row in report.rows if row.type != "Model"}
    assert types == {"inner.head": "Linear", "inner.post": "region", OUTSIDE: "", f"{OUTSIDE}.loss": "region"}
    row = report.row("post")
    assert (row.path, row.calls, row.depth, row.params) == ("inner.post", 1, 2, 0)
    assert report.row("inner").macs == MACS + 24
    assert report.row("loss").flops == 2 * 3


def test_nested_recursive_and_repeated():
    @scope("walk")
    def walk(depth):
        x().add(1)
        if depth:
            walk(depth - 1)

    def forward(model):
        for _ in range(3):
            walk(1)
        with scope("other"), scope("walk"):
            x().add(1)

    report = roofprof.count(Model(forward))
    assert calls(report) == {"": 1, "walk": 3, "walk.walk": 3, "other": 1, "other.walk": 1}
    assert [report.row(path).self_flops for path in ("walk", "walk.walk", "other", "other.walk")] == [48, 48, 0, 16]
    assert report.row("walk").flops == 96
    with pytest.raises(KeyError, match="no row 'elsewhere'"):
        report.row("elsewhere")


def test_a_bare_name_must_be_the_only_one_and_modules_come_first():
    def forward(model, value):
        for parent in ("a", "b"):
            with scope(parent), scope("same"):
                x().add(1)
        with scope("dotted.name"), scope("only"), scope("layer"):
            x().add(1)
        return model.layer(value)

    report = roofprof.count(Model(forward, layer=linear()), x())
    assert report.row("only").path == "dotted.name.only"
    assert report.row("dotted.name").path == "dotted.name"
    assert report.row("layer").type == "Linear"
    for name in ("same", "name"):
        with pytest.raises(KeyError, match=f"no row '{name}'"):
            report.row(name)


def test_torchs_ranges_are_regions_but_of_those_that_it_opens_itself_only_data_loading():
    model = linear()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = torch.utils.data.DataLoader(torch.ones(4, 8), batch_size=2)
    prof = profiler(model)
    with prof:
        for batch in data:
            with record_function("mine"), torch.autograd.profiler.record_function("too"):
                loss = model(batch).sum()
            for name in ("ProfilerStep#3", "Torch-Compiled Region: 0/1", "## Call CompiledFxGraph abc ##"):
                with record_function(name):
                    optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    report = prof.report()
    assert_conserved(report)
    regions = {row.path: row.calls for row in report.rows if row.type == "region"}
    # The loader is asked once more than it has batches.
    assert regions == {f"{OUTSIDE}.mine": 2, f"{OUTSIDE}.mine.too": 2, f"{OUTSIDE}.(data loading)": 3}
    assert report.row("too").flops > 0


def test_backward_of_what_ran_in_a_region_and_regions_in_the_backward():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            ctx.save_for_backward(value)
            return value * value

        @staticmethod
        def backward(ctx, grad):
            with scope("gradient"):
                return 2 * ctx.saved_tensors[0] * grad

    def forward(model, value):
        with scope("square"):
            return Square.apply(model.first(value))

    prof = profiler(model := Model(forward, first=linear()))
    with prof:
        model(x()).sum().backward()
    report = prof.report()
    assert_conserved(report)
    assert report.row("first").macs == 2 * MACS
    flops = {tuple(group.keys): group.flops for group in report.group("module", "phase") if "square" in group.keys[0]}
    assert flops == {("square", "forward"): 8, ("square.gradient", "backward"): 16}


def test_a_thousand_regions_at_most():
    def forward(model):
        for number in range(1100):
            with scope(f"region {number}"):
                x(1).add(1)

    report = roofprof.count(Model(forward))
    assert_conserved(report)
    assert sum(row.type == "region" for row in report.rows) == 1000
    assert report.row("").self_flops == 100 * 2
    assert report.total.flops == 1100 * 2
    assert any("more than 1000 distinct regions" in note for note in report.coverage.notes)


def test_inside_an_op_that_counts_as_a_whole_there_are_none():
    @torch.library.custom_op("regions::whole", mutates_args=())
    def whole(value: torch.Tensor) -> torch.Tensor:
        with scope("hidden"), record_function("hidden too"):
            return value * 2 + 1

    roofprof.op_cost("regions::whole")(lambda value: roofprof.Work(macs=value.numel()))
    report = profiler(lambda value: whole(value)).run(x())
    assert [row.path for row in report.rows] == [""]
    assert report.total.macs == 16


@pytest.mark.parametrize(("name", "error"), [(3, TypeError), (None, TypeError), ("", ValueError)])
def test_names_are_checked(name, error):
    with pytest.raises(error, match="a name must"):
        scope(name)
    with pytest.raises(error, match="a name must"):
        roofprof.work(name)
