"""torch's profiler in the same program: whichever starts and stops first, both see what ran meanwhile."""

import itertools

import pytest
import torch
from given_roofs import profiler
from torch import nn

import roofprof

MACS = 2 * 4 * 4

KINDS = {
    "stacks": lambda: torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True),
    "autograd": lambda: torch.autograd.profiler.profile(),
}
OURS = ["block on", "region on", "region off", "block off"]
# Where torch's profiler starts and stops among these.
ORDERS = [
    [*OURS[:start], "torch on", *OURS[start:stop], "torch off", *OURS[stop:]]
    for start, stop in itertools.combinations_with_replacement(range(5), 2)
]


def recorded(theirs):
    return sum(event.count for event in theirs.key_averages() if event.key == "aten::linear")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ORDERS, ids=" ".join)
def test_either_starts_and_stops_at_any_time(kind, order):
    model, value = nn.Linear(4, 4), torch.ones(2, 4)
    prof, theirs, region = profiler(model), KINDS[kind](), roofprof.scope("mine")
    parts = {"block": prof, "torch": theirs, "region": region}
    calls, on = dict.fromkeys(parts, 0), set()
    for action in order:
        part, what = action.split()
        if what == "on":
            parts[part].__enter__()
            on.add(part)
        else:
            parts[part].__exit__(None, None, None)
            on.remove(part)
        model(value).sum().backward()
        for each in on:
            calls[each] += 1
    report = prof.report()
    assert recorded(theirs) == calls["torch"]
    assert report.row("").calls == calls["block"]
    # A backward multiplies once: the input needs no gradient.
    assert report.total.macs == 2 * MACS * calls["block"]
    assert report.within("mine").total.macs == 2 * MACS * calls["region"]
