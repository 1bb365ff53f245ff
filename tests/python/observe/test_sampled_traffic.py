"""Traffic in long blocks: reuse distances and crossings are logged in some calls, and scaled to all of them."""

from __future__ import annotations

import pytest
import torch
from given_roofs import LEVELS, profiler
from torch import nn

import roofprof

WIDTH = 128
FLOAT = 4
ROW = WIDTH * FLOAT
WEIGHT = WIDTH * ROW
SAMPLED = "traffic-sampled"
L2, L3 = LEVELS["L2"][0], LEVELS["L3"][0]


def chain(count=12):
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False), nn.ReLU()) for _ in range(count)]
    return nn.Sequential(*layers).eval()


def block(model, calls, inputs=lambda _: torch.ones(1, WIDTH), steps=False):
    with torch.no_grad(), profiler(model) as prof:
        for call in range(calls):
            model(inputs(call))
            if steps:
                prof.step()
    return prof.report()


def note(report):
    return next((note.text for note in report.coverage.notes if note.code == SAMPLED), None)


def figures(report):
    return {row.path: (row.fused_bytes, row.bytes) for row in report.rows}


@pytest.mark.parametrize("steps", [False, True])
def test_alike_calls_have_the_traffic_of_one_times_their_number(steps):
    report = block(chain(), 60, steps=steps)
    one = {row.path: (2 * ROW + WEIGHT, 4 * ROW + WEIGHT) for row in report.rows if row.path.isdigit()}
    assert len(one) == 12
    found = figures(report)
    assert {path: found[path] for path in one} == {path: tuple(60 * each for each in one[path]) for path in one}
    assert found[""][0] == 60 * (2 * ROW + 12 * WEIGHT)
    # The weights of all layers are 768 KiB: each comes from the level that holds them, whichever call was logged.
    assert report.total.memory_time == pytest.approx(60 * (12 * WEIGHT + 48 * ROW) / L2, rel=0.05)
    assert ("steps" if steps else "calls of the model") in note(report)


def test_calls_of_changing_shapes():
    """Within 5% of the closed form, and exact in what is counted; of most of 40 shapes no call is logged."""
    rows = [1 + call % 40 for call in range(80)]
    report = block(chain(), len(rows), lambda call: torch.ones(rows[call], WIDTH))
    layer = sum(2 * ROW * each + WEIGHT for each in rows)
    found = figures(report)
    assert found["0"][1] == sum(4 * ROW * each + WEIGHT for each in rows)
    assert report.total.macs == 12 * WIDTH * WIDTH * sum(rows)
    assert found["5"][0] == pytest.approx(layer, rel=0.05)
    assert found[""][0] == pytest.approx(sum(2 * ROW * each + 12 * WEIGHT for each in rows), rel=0.05)


def test_a_first_call_that_differs_is_not_scaled():
    class Prepares(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(WIDTH, WIDTH, bias=False)
            self.scale = None

        def forward(self, value):
            if self.scale is None:
                self.scale = torch.exp(self.layer.weight)
            return self.layer(value)

    report = block(Prepares(), 40)
    by_op = {group.keys[0]: group for group in report.group("op")}
    assert by_op["aten::exp"].bytes == 2 * WEIGHT
    found = {row.path: row.fused_bytes for row in report.rows}
    assert found["layer"] == 40 * (2 * ROW + WEIGHT)
    # The weight comes in once a call, exp's result goes out once. In the first call the weight came in for exp, and
    # that call stands for more than itself.
    assert found[""] == pytest.approx(40 * (2 * ROW + WEIGHT) + WEIGHT, rel=0.1)


@pytest.mark.parametrize(("calls", "within"), [(1, 0.02), (4, 0.35), (50, 0.02)])
def test_a_region_around_calls_is_of_one_part(calls, within):
    """What the region wrote goes out to the calls in it, though these were not logged.

    What it reads once counts too much where it begins with ops, which belong to the call before.
    """
    layer = nn.Linear(WIDTH, WIDTH, bias=False).eval()
    loops = 100 // calls

    def run(device):
        layer.to(device)
        with torch.no_grad(), profiler(layer) as prof:
            value = torch.ones(8, WIDTH, device=device)
            for _ in range(loops):
                with roofprof.scope("loop"):
                    for _ in range(calls):
                        layer(value * 2)
        return figures(prof.report())

    # On meta nothing is timed, and all is logged.
    sampled, all_logged = run("cpu"), run("meta")
    assert sampled["(outside).loop"][1] == all_logged["(outside).loop"][1]
    assert sampled["(outside).loop"][0] == pytest.approx(all_logged["(outside).loop"][0], rel=within)
    assert sampled[""][0] == pytest.approx(all_logged[""][0], rel=0.02)
