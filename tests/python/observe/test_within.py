"""Regions as a dimension: what ran inside of one, whichever module it is of."""

from __future__ import annotations

import threading

import pytest
import torch
from given_roofs import profiler
from torch import nn
from torch.profiler import record_function
from truths import assert_conserved

import roofprof
from roofprof import scope

IN, HIDDEN, OUT = 8, 16, 4
PER_TOKEN = IN * HIDDEN + HIDDEN * OUT
PROMPT, STEPS = 5, 3
OUTSIDE = "(no region)"


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(IN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, OUT))


def tokens(number: int) -> torch.Tensor:
    return torch.rand(number, IN)


class Generator(nn.Module):
    """A prompt at once, then token by token, and a row of its own work outside of both."""

    def __init__(self):
        super().__init__()
        self.body = mlp()

    def forward(self, prompt):
        with scope("prefill"):
            last = self.body(prompt)[-1:]
        with scope("decode"):
            for _ in range(STEPS):
                with scope("step"):
                    last = self.body(tokens(1))
        return last @ torch.ones(OUT, OUT)


def macs(rows):
    return {row.path: row.macs for row in rows}


def add_up(rows, total, *figures):
    for figure in figures:
        assert sum(getattr(row, f"self_{figure}") for row in rows) == pytest.approx(getattr(total, figure)), figure


def regions_of(call, **options):
    """Of a block around that call."""
    model = mlp()
    prof = profiler(model, **options)
    with prof:
        call(model)
    report = prof.report()
    assert_conserved(report)
    return report


@pytest.mark.parametrize("timed", [False, True])
def test_two_regions_of_a_loop(timed):
    model = Generator()
    report = profiler(model, repeat=3).run(tokens(PROMPT)) if timed else roofprof.count(model, tokens(PROMPT))
    assert_conserved(report)
    outside = OUT * OUT
    expected = {
        "prefill": PROMPT * PER_TOKEN,
        "decode": STEPS * PER_TOKEN,
        "decode/step": STEPS * PER_TOKEN,
        OUTSIDE: outside,
    }
    assert macs(report.regions) == expected
    assert [row.depth for row in report.regions] == [0, 0, 1, 0]
    assert [row.calls for row in report.regions] == [1, 1, STEPS, None]
    add_up(report.regions, report.total, "macs", "flops", "bytes", *(["time", "op_time"] if timed else []))
    prefill = report.within("prefill")
    assert_conserved(prefill)
    assert prefill.total.macs == PROMPT * PER_TOKEN
    assert prefill.row("body.0").macs == PROMPT * IN * HIDDEN
    assert (prefill.row("body.0").calls, prefill.row("").calls) == (1, 0)
    assert [row.path for row in prefill.rows if not row.path.startswith(("prefill", "decode"))] == [
        row.path for row in report.rows if not row.path.startswith(("prefill", "decode"))
    ]
    decode = report.within("decode")
    assert decode.row("body.0").calls == STEPS
    assert decode.row("body").macs == STEPS * PER_TOKEN
    assert macs(decode.regions) == {"decode": STEPS * PER_TOKEN, "decode/step": STEPS * PER_TOKEN}
    for path in ("step", "decode/step"):
        assert report.within(path).total.macs == STEPS * PER_TOKEN
    assert decode.within("step").total.macs == STEPS * PER_TOKEN
    assert prefill.by_operator()["aten::linear"].calls == 2
    groups = {group.scope: group.macs for group in report.group("scope")}
    assert groups == {"prefill": PROMPT * PER_TOKEN, "decode/step": STEPS * PER_TOKEN, "": outside} | (
        {"decode": 0} if "decode" in groups else {}
    )
    if not timed:
        assert prefill.total.time is None
        return
    assert prefill.ceilings.compute == report.ceilings.compute or prefill.environment == report.environment
    assert len(prefill.run_times) == len(report.run_times) == 3
    for name in ("prefill", "decode"):
        (row,) = (row for row in report.regions if row.path == name)
        part = report.within(name)
        assert row.wall == part.total.wall
        assert row.wall in part.run_times
        assert row.time == pytest.approx(part.total.time)
        assert row.time == pytest.approx(row.wall, rel=0.05, abs=2e-5)
        assert (row.lower_bound_time, row.wasted_time) == (part.total.lower_bound_time, part.total.wasted_time)
        assert row.bound == part.total.bound
    times = [report.within(name).row("body").time for name in ("prefill", "decode")]
    assert sum(times) == pytest.approx(report.row("body").time)


def test_what_is_printed():
    report = profiler(Generator(), repeat=2).run(tokens(PROMPT))
    table = report.table(by="scope")
    for path in ("prefill", "decode", "decode/step", OUTSIDE, "total"):
        assert path in table
    assert "within prefill, in one call" in str(report.within("prefill"))
    assert "in the median one of 2 runs" in str(report.within("prefill"))
    assert OUTSIDE in report.table(by="scope, op")
    assert "no regions" in roofprof.count(mlp(), tokens(1)).table(by="scope")


def test_from_json():
    report = profiler(Generator(), repeat=2).run(tokens(PROMPT))
    again = roofprof.Report.from_dict(report.to_dict())
    assert again == report
    assert again.within("decode").to_dict() == report.within("decode").to_dict()
    part = roofprof.Report.from_dict(report.within("decode").to_dict())
    assert part == report.within("decode")
    assert "within decode" in str(part)
    written = report.to_dict()
    assert written["schema_version"] == 6
    assert {row["path"]: row["macs"] for row in written["regions"]} == macs(report.regions)
    # As readers that do not know regions see it.
    for items in (written["ops"], written["times"]):
        for item in items:
            item.pop("region", None)
    del written["region_paths"]
    assert roofprof.Report.from_dict(written).total.macs == report.total.macs


def test_names_that_are_not_there():
    report = roofprof.count(Generator(), tokens(1))
    with pytest.raises(KeyError, match="no region 'prefil'; the closest are 'prefill'"):
        report.within("prefil")
    with pytest.raises(KeyError, match="none was opened"):
        roofprof.count(mlp(), tokens(1)).within("prefill")
    with pytest.raises(KeyError, match="no region 'prefill'"):
        report.within("decode").within("prefill")
    assert roofprof.count(mlp(), tokens(1)).regions == []


def test_a_name_under_several_others_is_all_of_them():
    def call(model):
        for outer, number in (("a", 1), ("b", 2)):
            with scope(outer), scope("inner"):
                model(tokens(number))
        with scope("inner"):
            model(tokens(4))

    report = regions_of(call)
    assert report.within("inner").total.macs == 7 * PER_TOKEN
    assert report.within("b/inner").total.macs == 2 * PER_TOKEN
    assert report.within("a").total.macs == PER_TOKEN


def test_a_region_in_itself_counts_once():
    def down(model, levels):
        with scope("recursive"):
            model(tokens(1))
            if levels:
                with scope("other"):
                    down(model, levels - 1)

    report = regions_of(lambda model: down(model, 2))
    rows = {row.path: row for row in report.regions}
    assert {path: row.calls for path, row in rows.items() if row.calls} == {"recursive": 1, "recursive/other": 1}
    assert rows["recursive"].macs == report.total.macs == 3 * PER_TOKEN
    assert rows["recursive/other"].macs == 2 * PER_TOKEN
    assert rows["recursive"].wall <= report.total.wall


def test_regions_that_raise_end():
    def call(model):
        for _ in range(2):
            with pytest.raises(RuntimeError), scope("fails"):
                model(tokens(1))
                range_left_open = record_function("left open")
                range_left_open.__enter__()
                model(tokens(3, 1))
        model(tokens(2))

    def tokens(number, width=IN):
        return torch.rand(number, width)

    report = regions_of(call)
    (fails, *_, outside) = report.regions
    assert (fails.path, fails.calls, fails.macs) == ("fails", 2, 2 * PER_TOKEN)
    assert outside.path == OUTSIDE
    assert outside.macs == 2 * PER_TOKEN


def test_the_backward_belongs_where_it_runs():
    x = tokens(2)
    # Forward, and backward without the gradient of the input.
    forward, backward = 2 * PER_TOKEN, 2 * (IN * HIDDEN + 2 * HIDDEN * OUT)

    def call(model):
        with scope("loss"):
            loss = model(x).sum()
        loss.backward()
        with scope("both"):
            model(x).sum().backward()

    report = regions_of(call)
    assert macs(report.regions) == {"loss": forward, "both": forward + backward, OUTSIDE: backward}
    phases = {group.phase: group.macs for group in report.within("both").group("phase")}
    assert phases == {"forward": forward, "backward": backward}
    assert report.within("both").row("0").macs == 2 * 2 * IN * HIDDEN


class Forked(nn.Module):
    def forward(self, value: torch.Tensor, weight: torch.Tensor):
        return torch.jit.wait(torch.jit.fork(torch.matmul, value, weight))


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_work_that_torch_starts_on_other_threads():
    model = torch.jit.script(Forked())
    value = torch.rand(2, 4)
    prof = profiler(model)
    with prof:
        with scope("fork"):
            model(value, value.t())
        model(value, value.t())
    assert macs(prof.report().regions) == {"fork": 2 * 4 * 2, OUTSIDE: 2 * 4 * 2}


class Named(nn.Module):
    """Opens a region of the name that the thread has."""

    def __init__(self):
        super().__init__()
        self.body = mlp()

    def forward(self, value):
        with scope(threading.current_thread().name):
            return self.body(value)


def test_threads_begin_in_no_region_and_open_their_own_inside_modules():
    model = Named()

    def work():
        model.body(tokens(1))
        for _ in range(10):
            model(tokens(1))
        with scope("no module runs here"):  # nothing is observed yet, so nobody knows of it
            model.body(tokens(1))

    prof = profiler(model)
    with prof, scope("main"):
        threads = [threading.Thread(target=work, name=name) for name in ("a", "b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        model.body(tokens(1))
    assert macs(prof.report().regions) == {
        "main": PER_TOKEN,
        "a": 10 * PER_TOKEN,
        "b": 10 * PER_TOKEN,
        OUTSIDE: 2 * 2 * PER_TOKEN,
    }


def test_too_many_are_counted_around():
    def call(model):
        with scope("all"):
            for number in range(1100):
                with scope(f"region {number}"):
                    model(tokens(1))

    report = regions_of(call)
    assert sum(note.code == "regions-refused" for note in report.coverage.notes) == 1
    assert report.within("all").total.macs == report.total.macs == 1100 * PER_TOKEN
    assert report.within("region 5").total.macs == PER_TOKEN
    with pytest.raises(KeyError):
        report.within("region 1099")
    assert report.regions[0].self_macs == (1100 - 999) * PER_TOKEN


def test_one_region_in_more_places_than_get_rows():
    model = nn.ModuleList(nn.Identity() for _ in range(1100))

    class Named(nn.Module):
        def forward(self, value):
            with scope("norm"):
                return value @ torch.ones(4, 4)

    model = nn.Sequential(*[Named() for _ in range(1100)])
    report = roofprof.count(model, torch.ones(1, 4))
    assert report.within("norm").total.macs == report.total.macs == 1100 * 16
    (norm,) = (row for row in report.regions if row.path == "norm")
    assert norm.calls == 1100


def test_compiled_code_opens_none():
    class Inside(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = mlp()

        def forward(self, value):
            with scope("inside"):
                return self.body(value)

    model = torch.compile(Inside(), backend="eager")
    prof = profiler(model, repeat=2)
    report = prof.run(tokens(2))
    inside = report.within("inside")
    assert inside.total.macs == 2 * PER_TOKEN
    assert inside.total.time is None
    assert inside.total.wall is None
    assert inside.run_times == []
    assert "no time is known of it" in str(inside)
    (row, *_) = report.regions
    assert (row.path, row.macs, row.time, row.wall) == ("inside", 2 * PER_TOKEN, None, None)


def test_a_compiled_model_in_a_region_has_its_time():
    model = torch.compile(mlp(), backend="eager")

    def step(value):
        with scope("first"):
            model(value)
        with scope("second"):
            model(value)

    report = profiler(model, repeat=2).run_step(step, tokens(2))
    for name in ("first", "second"):
        part = report.within(name)
        assert part.total.macs == 2 * PER_TOKEN
        assert 0 < part.row("").time <= part.total.wall
    parts = sum(report.within(name).row("").time for name in ("first", "second"))
    assert parts == pytest.approx(report.row("").time)


def test_shapes_of_calls_elsewhere_are_not_shown():
    report = profiler(mlp(), repeat=1)
    with report as prof:
        with scope("first"):
            prof.model(tokens(3))
        with scope("second"):
            prof.model(tokens(2))
    whole = prof.report()
    assert whole.row("0").output_shapes == [[2, HIDDEN]]
    assert whole.within("first").row("0").output_shapes == []
