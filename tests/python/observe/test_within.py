"""Regions as a dimension: what ran inside of one, whichever module it is of."""

from __future__ import annotations

import threading

import pytest
import torch
from attributed import Model
from given_roofs import profiler
from torch import nn
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
    assert [(row.depth, row.calls) for row in report.regions] == [(0, 1), (0, 1), (1, STEPS), (0, None)]
    for figure in ("macs", "flops", "bytes", *(["time", "op_time"] if timed else [])):
        own = [getattr(row, f"self_{figure}") for row in report.regions]
        assert sum(own) == pytest.approx(getattr(report.total, figure)), figure
    prefill, decode = report.within("prefill"), report.within("decode")
    assert_conserved(prefill)
    assert prefill.total.macs == PROMPT * PER_TOKEN
    assert prefill.row("body.0").macs == PROMPT * IN * HIDDEN
    assert (prefill.row("body.0").calls, prefill.row("").calls) == (1, 0)
    assert prefill.by_operator()["aten::linear"].calls == 2
    assert decode.row("body.0").calls == STEPS
    assert macs(decode.regions) == {"decode": STEPS * PER_TOKEN, "decode/step": STEPS * PER_TOKEN}
    assert decode.within("step").total.macs == report.within("decode/step").total.macs == STEPS * PER_TOKEN
    groups = {group.scope: group.macs for group in report.group("scope") if group.macs}
    assert groups == {"prefill": PROMPT * PER_TOKEN, "decode/step": STEPS * PER_TOKEN, "": outside}
    if not timed:
        assert prefill.total.time is None
        return
    assert len(prefill.run_times) == len(report.run_times) == 3
    for row, part in zip(report.regions, (prefill, decode), strict=False):
        assert row.wall == part.total.wall
        assert row.wall in part.run_times
        assert row.time == pytest.approx(part.total.time)
        assert (row.lower_bound_time, row.wasted_time) == (part.total.lower_bound_time, part.total.wasted_time)
    times = [part.row("body").time for part in (prefill, decode)]
    assert sum(times) == pytest.approx(report.row("body").time)


def test_what_is_printed_and_written():
    report = profiler(Generator(), repeat=2).run(tokens(PROMPT))
    table, part = report.table(by="scope"), report.within("decode")
    assert all(path in table for path in ("prefill", "decode", "decode/step", OUTSIDE, "total"))
    assert "within decode, in one call" in str(part)
    assert "in the median one of 2 runs" in str(part)
    again = roofprof.Report.from_dict(report.to_dict())
    assert again == report
    assert again.within("decode").to_dict() == part.to_dict()
    assert roofprof.Report.from_dict(part.to_dict()) == part
    with pytest.raises(KeyError, match="no region 'prefil'; the closest are 'prefill'"):
        report.within("prefil")
    without = roofprof.count(mlp(), tokens(1))
    assert without.regions == []
    assert "no regions" in without.table(by="scope")


def test_a_name_under_several_others_is_all_of_them_and_counts_once_in_itself():
    def down(model, levels):
        with scope("recursive"):
            model(tokens(1))
            if levels:
                with scope("other"):
                    down(model, levels - 1)

    def call(model):
        for outer, number in (("a", 1), ("b", 2)):
            with scope(outer), scope("inner"):
                model(tokens(number))
        with scope("inner"):
            model(tokens(4))
        down(model, 2)

    report = regions_of(call)
    assert report.within("inner").total.macs == 7 * PER_TOKEN
    assert report.within("b/inner").total.macs == 2 * PER_TOKEN
    rows = {row.path: row for row in report.regions}
    assert (rows["recursive"].calls, rows["recursive"].macs) == (1, 3 * PER_TOKEN)
    assert (rows["recursive/other"].calls, rows["recursive/other"].macs) == (1, 2 * PER_TOKEN)


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


def test_threads_begin_in_no_region_and_open_their_own_inside_modules():
    def forward(self, value):
        with scope(threading.current_thread().name):
            return self.body(value)

    model = Model(forward, body=mlp())

    def work():
        model.body(tokens(1))
        for _ in range(10):
            model(tokens(1))

    prof = profiler(model)
    with prof, scope("main"):
        threads = [threading.Thread(target=work, name=name) for name in ("a", "b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        model.body(tokens(1))
    each = 10 * PER_TOKEN
    assert macs(prof.report().regions) == {"main": PER_TOKEN, "a": each, "b": each, OUTSIDE: 2 * PER_TOKEN}


def test_compiled_code_opens_none_and_has_its_time_in_a_region():
    def forward(self, value):
        with scope("inside"):
            return self.body(value)

    model = torch.compile(Model(forward, body=mlp()), backend="eager")

    def step(value):
        for name in ("first", "second"):
            with scope(name):
                model(value)

    report = profiler(model, repeat=2).run_step(step, tokens(2))
    parts = [report.within(name) for name in ("first", "second")]
    for part in parts:
        assert part.total.macs == 2 * PER_TOKEN
        assert 0 < part.row("").time <= part.total.wall
    assert sum(part.row("").time for part in parts) == pytest.approx(report.row("").time)
    inside = report.within("inside")
    assert inside.total.macs == 2 * 2 * PER_TOKEN
    assert (inside.total.time, inside.total.wall, inside.run_times) == (None, None, [])
    assert "no time is known of it" in str(inside)
