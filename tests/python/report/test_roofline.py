"""Bounds against roofs given by hand, worked out again from the ops themselves."""

from __future__ import annotations

import math

import pytest
import torch
from given_roofs import LEVELS, PEAKS, profiler, roofs
from torch import nn


class Net(nn.Module):
    """Large and small ops, shared and repeated ones, and a child that only moves data."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.ReLU()) for _ in range(2)])
        self.move = nn.Flatten()
        self.head = nn.Sequential(nn.Linear(16 * 32 * 32, 32), nn.Softmax(dim=1))

    def forward(self, image):
        value = self.conv(image)
        for block in self.blocks:
            value = block(block(value))
        return self.head(self.move(value.contiguous()))


@pytest.fixture(scope="module")
def report():
    return profiler(Net(), repeat=3).run(torch.ones(2, 3, 32, 32))


def room(level: str) -> float:
    return LEVELS[level][1] or math.inf


def seconds_of_memory(op: dict) -> float:
    """Each part from the level that holds it; the operands of an op may hold more than it moves."""
    seconds = 0.0
    for kind in ("read_bytes", "write_bytes"):
        known = sum(part.get(kind, 0) for part in op.get("reuse", []))
        assert known >= op["work"][kind]
        for part in op.get("reuse", []):
            level = min((name for name in LEVELS if part["distance_bytes"] <= room(name)), key=room)
            seconds += part.get(kind, 0) * op["work"][kind] / max(known, 1) / LEVELS[level][0]
    return seconds


def shares_of(op: dict) -> tuple[float, float]:
    """Seconds of computing and of moving at the roofs."""
    operations = op["work"]["operations"].items()
    return sum(count / PEAKS[dtype] for dtype, count in operations if dtype in PEAKS), seconds_of_memory(op)


def bound_ns(op: dict) -> int:
    return round(max(shares_of(op)) * 1e9)


def below(report, path: str) -> list[dict]:
    """The ops of a row's subtree."""
    data = report.to_dict()
    paths = [module["path"] for module in data["modules"]]
    inside = [place for place, name in enumerate(paths) if name == path or name.startswith(f"{path}.") or not path]
    return [op for op in data["ops"] if op["module"] in inside]


def test_bounds_of_leaves_and_parents(report):
    for row in report.rows:
        ops = below(report, row.path)
        shares = [shares_of(op) for op in ops]
        assert row.lower_bound_time == pytest.approx(sum(map(bound_ns, ops)) * 1e-9, abs=1e-15)
        assert row.compute_time == pytest.approx(sum(round(share[0] * 1e9) for share in shares) * 1e-9, abs=1e-15)
        assert row.memory_time == pytest.approx(sum(round(share[1] * 1e9) for share in shares) * 1e-9, abs=1e-15)
        assert row.wasted_time == pytest.approx(row.time - row.lower_bound_time, abs=1e-12)
        assert row.achieved_flops == pytest.approx(row.flops / row.time)
        assert row.achieved_bandwidth == pytest.approx(row.bytes / row.time)
        assert row.intensity == (pytest.approx(row.flops / row.bytes) if row.bytes else None)
        expected = pytest.approx(100 * row.lower_bound_time / row.time) if row.bytes or row.flops else None
        assert row.percent_of_roof == expected
    assert report.total.lower_bound_time == pytest.approx(report.row("").lower_bound_time)


def bound_by(row, roof: str) -> str:
    """That roof, unless the machine was so slow, or busy, that none explains the time or most of it was between ops."""
    if row.op_time < row.time - row.op_time:
        return "overhead"
    return roof if row.percent_of_roof >= 3 else "latency/code"


def test_both_kinds_of_bound_are_met():
    """A large matrix product and a large copy, by figures worked out by hand."""
    side = 1024
    model = nn.Sequential(nn.Linear(side, side, bias=False), nn.ReLU())
    report = profiler(model).run(torch.ones(side, side))
    product, relu = report.row("0"), report.row("1")
    assert product.flops == 2 * side**3
    assert product.bytes == 3 * 4 * side**2
    assert product.lower_bound_time == pytest.approx(2 * side**3 / PEAKS["fp32"])
    assert product.bound == bound_by(product, "compute fp32")
    assert product.attainable == pytest.approx(PEAKS["fp32"])
    # 8 MiB fit in L3.
    assert relu.bytes == 2 * 4 * side**2
    assert relu.lower_bound_time == pytest.approx(relu.bytes / LEVELS["L3"][0])
    assert relu.bound == bound_by(relu, "memory L3")
    assert relu.attainable == pytest.approx(relu.intensity * LEVELS["L3"][0])
    assert report.row("").bound == bound_by(report.row(""), "compute fp32")


def test_several_dtypes_and_one_without_a_roof():
    layers = nn.Sequential(nn.Linear(512, 512), nn.Linear(512, 512).double(), nn.Linear(512, 512).bfloat16())

    def forward(value):
        return layers[2](layers[1](layers[0](value).double()).bfloat16())

    layers.forward = forward
    report = profiler(layers, repeat=1).run(torch.ones(512, 512))
    single, double, unknown = (report.row(path) for path in "012")
    assert single.lower_bound_time == pytest.approx(single.flops / PEAKS["fp32"], abs=1e-9)
    assert double.lower_bound_time == pytest.approx(double.flops / PEAKS["fp64"], abs=1e-9)
    for row in (unknown, report.row("")):
        assert (row.bound, row.lower_bound_time, row.wasted_time, row.percent_of_roof) == ("unknown", None, None, None)
        assert row.time > 0 and row.intensity > 0
    assert any("no roof for bf16" in note for note in report.coverage.notes)


@pytest.mark.parametrize(("spread", "flagged"), [(None, True), (1e12, False)])
def test_figures_above_their_roof_by_more_than_its_spread_are_flagged(spread, flagged):
    ceilings = roofs({"fp32": 1e3}, {"L2": (1e3, 0)}, spread=spread)
    report = profiler(nn.Linear(64, 64), ceilings=ceilings, repeat=1).run(torch.ones(64, 64))
    assert report.total.percent_of_roof > 100
    assert report.total.wasted_time < 0
    notes = [str(note) for note in report.coverage.notes if "above its roof" in note]
    assert len(notes) == flagged
    assert all("aten::linear in the model" in note and "fp32" in note for note in notes)


def test_mfu_says_what_it_divides_by():
    """2 x MACs a second of the given peak, over the wall time that stands beside it."""
    report = profiler(nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 8))).run(torch.randn(32, 64))
    used = report.to_dict()["flops_utilization"]
    assert used["time_of"] == "its wall time"
    assert used["time_ns"] == pytest.approx(report.total.wall * 1e9, abs=1)
    assert used["mfu"] == pytest.approx(100 * 2 * report.total.macs / PEAKS["fp32"] / (used["time_ns"] / 1e9))
    assert report.mfu == pytest.approx(used["mfu"])


def test_a_training_step_has_bounds_in_every_phase():
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
    with profiler(model) as prof:
        model(torch.ones(32, 64, requires_grad=True)).sum().backward()
        optimizer.step()
    report = prof.report()
    ops = report.to_dict()["ops"]
    phases = {phase: sum(bound_ns(op) for op in ops if op["phase"] == phase) for phase in report.by_phase()}
    assert set(phases) == {"forward", "backward", "optimizer"}
    for phase, group in report.by_phase().items():
        assert group.lower_bound_time == pytest.approx(phases[phase] * 1e-9)
    assert report.total.lower_bound_time == pytest.approx(sum(phases.values()) * 1e-9)
    assert report.row("0").macs == 3 * 32 * 64 * 64
