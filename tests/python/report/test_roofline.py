"""Bounds against roofs given by hand, worked out again from the ops themselves."""

from __future__ import annotations

import math

import pytest
import torch
from given_roofs import LEVELS, PEAKS, profiler, roofs
from torch import nn

FLOATING = {"fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4"}


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


def level_of(distance: int) -> str:
    return min((name for name, (_, room) in LEVELS.items() if not room or distance <= room), key=_room)


def _room(name: str) -> float:
    return LEVELS[name][1] or math.inf


def moved_by_level(op: dict) -> dict[str, float]:
    """Bytes by the level that they come from; the operands of an op may hold more than it moves."""
    by_level: dict[str, float] = {}
    for kind in ("read_bytes", "write_bytes"):
        known = sum(part.get(kind, 0) for part in op.get("reuse", []))
        assert known >= op["work"][kind]
        for part in op.get("reuse", []):
            level = level_of(part["distance_bytes"])
            by_level[level] = by_level.get(level, 0) + part.get(kind, 0) * op["work"][kind] / max(known, 1)
    return by_level


def shares_of(op: dict, peaks=PEAKS) -> tuple[float, float, dict[str, float]] | None:
    """Seconds of computing and of moving at the roofs, and these by level; None where a roof is missing."""
    work = op["work"]
    compute = 0.0
    for dtype, operations in work["operations"].items():
        if dtype in peaks:
            compute += operations / peaks[dtype]
        elif dtype in FLOATING or work["macs"]:
            return None
    at_level = {level: moved / LEVELS[level][0] for level, moved in moved_by_level(op).items()}
    return compute, sum(at_level.values()), at_level


def bound_ns(op: dict) -> int:
    shares = shares_of(op)
    assert shares is not None
    return round(max(shares[:2]) * 1e9)


def below(report, path: str) -> list[dict]:
    """The ops of a row's subtree."""
    data = report.to_dict()
    paths = [module["path"] for module in data["modules"]]
    inside = [place for place, name in enumerate(paths) if name == path or name.startswith(f"{path}.") or not path]
    return [op for op in data["ops"] if op["module"] in inside]


def test_lower_bounds_of_leaves_and_parents(report):
    for row in report.rows:
        assert row.lower_bound_time == pytest.approx(sum(map(bound_ns, below(report, row.path))) * 1e-9, abs=1e-15)
    assert report.total.lower_bound_time == pytest.approx(report.row("").lower_bound_time)


def test_the_two_sides_of_the_lower_bound(report):
    for row in report.rows:
        shares = [shares_of(op) for op in below(report, row.path)]
        assert row.compute_time == pytest.approx(sum(round(share[0] * 1e9) for share in shares) * 1e-9, abs=1e-15)
        assert row.memory_time == pytest.approx(sum(round(share[1] * 1e9) for share in shares) * 1e-9, abs=1e-15)


def text_of(shapes):
    return ", ".join("x".join(map(str, shape)) or "scalar" for shape in shapes)


def test_groups_by_module_op_and_shapes_say_the_same(report):
    by_module: dict[str, float] = {}
    modules = [module["path"] for module in report.to_dict()["modules"]]
    bounds: dict[tuple, int] = {}
    for op in report.to_dict()["ops"]:
        key = (modules[op["module"]], op["op"], text_of(op.get("shapes", [])), op["phase"])
        bounds[key] = bounds.get(key, 0) + bound_ns(op)
    groups = report.group("module", "op", "shapes", "phase")
    assert len(groups) == len(bounds)
    for group in groups:
        assert group.lower_bound_time == pytest.approx(bounds[tuple(group.keys)] * 1e-9, abs=1e-15)
        by_module[group.keys[0]] = by_module.get(group.keys[0], 0) + group.lower_bound_time
    for row in report.rows:
        assert row.self_lower_bound_time == pytest.approx(by_module.get(row.path, 0), abs=1e-12)


def test_parents_are_the_sums_of_what_is_below(report):
    for row in report.rows:
        inside = [
            other
            for other in report.rows
            if other.path == row.path or other.path.startswith(f"{row.path}.") or not row.path
        ]
        for figure in ("lower_bound_time", "wasted_time", "time"):
            total = sum(getattr(other, f"self_{figure}") for other in inside)
            assert getattr(row, figure) == pytest.approx(total, abs=1e-12)
        for figure in ("macs", "flops", "bytes", "read_bytes", "write_bytes"):
            assert getattr(row, figure) == sum(getattr(other, f"self_{figure}") for other in inside)


def test_wasted_and_percent(report):
    for row in [*report.rows, report.total]:
        assert row.wasted_time == pytest.approx(row.time - row.lower_bound_time, abs=1e-12)
        if row.bytes or row.flops:
            assert row.percent_of_roof == pytest.approx(100 * row.lower_bound_time / row.time)
        else:
            assert row.percent_of_roof is None


def test_rates_and_intensity(report):
    for row in report.rows:
        assert row.achieved_flops == pytest.approx(row.flops / row.time)
        assert row.achieved_bandwidth == pytest.approx(row.bytes / row.time)
        assert row.intensity == (pytest.approx(row.flops / row.bytes) if row.bytes else None)


def bound_by(row, roof: str) -> str:
    """That roof, unless the machine was so slow, or busy, that none explains the time or most of it was between ops."""
    if row.op_time < row.time - row.op_time:
        return "overhead"
    return roof if row.percent_of_roof >= 3 else "latency/code"


def test_bound_is_the_larger_share(report):
    for row in report.rows:
        sums: dict[str, float] = {"compute": 0.0, "memory": 0.0}
        largest: dict[str, float] = {}
        for op in below(report, row.path):
            compute, memory, at_level = shares_of(op)
            sums["compute" if compute > memory else "memory"] += max(compute, memory)
            for level, seconds in at_level.items() if memory >= compute else ():
                largest[level] = largest.get(level, 0) + seconds
        if row.op_time < row.time - row.op_time or not (row.bytes or row.flops):
            assert row.bound == "overhead"
        elif sums["compute"] > sums["memory"]:
            assert row.bound == bound_by(row, "compute fp32")
        else:
            assert row.bound == bound_by(row, f"memory {max(largest, key=largest.get)}")


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


def test_level_is_the_smallest_that_holds_the_footprint():
    for count, level in ((64, "L2"), (1 << 17, "L2"), ((1 << 17) + 1, "L3"), (1 << 21, "L3"), ((1 << 21) + 1, "DRAM")):
        row = profiler(torch.neg, repeat=1).run(torch.ones(count)).row("")
        assert row.lower_bound_time == pytest.approx(8 * count / LEVELS[level][0], abs=1e-9)


def test_repeated_ops_count_once_each():
    model = nn.Linear(64, 64, bias=False)
    once = profiler(model, repeat=1).run(torch.ones(8, 64))
    thrice = profiler(lambda value: [model(value) for _ in range(3)], repeat=1).run(torch.ones(8, 64))
    assert thrice.total.lower_bound_time == pytest.approx(3 * once.total.lower_bound_time, abs=3e-9)
    assert thrice.group("op")[0].calls == 3


def test_no_flops_but_bytes_is_memory_with_intensity_zero():
    report = profiler(lambda value: value.clone(), repeat=1).run(torch.ones(1 << 20))
    row = report.row("")
    assert row.flops == 0
    assert row.intensity == 0
    assert row.bound == bound_by(row, "memory L3")


def test_no_work_at_all_is_overhead_without_percent():
    model = nn.Sequential(nn.Identity())
    row = profiler(model, repeat=1).run(torch.ones(3)).row("0")
    assert (row.flops, row.bytes) == (0, 0)
    assert row.intensity is None
    assert row.percent_of_roof is None
    assert row.lower_bound_time == 0
    assert row.bound == "overhead"


# ---- roofs that are missing or too low


def test_dtype_without_a_roof_is_unknown():
    model = nn.Sequential(nn.Linear(512, 512).bfloat16(), nn.Identity())
    report = profiler(model, repeat=1).run(torch.ones(512, 512, dtype=torch.bfloat16))
    row = report.row("0")
    assert row.bound == "unknown"
    assert row.lower_bound_time is None
    assert row.compute_time is None
    assert row.memory_time is None
    assert row.wasted_time is None
    assert row.percent_of_roof is None
    assert row.time > 0
    assert row.intensity > 0
    assert report.row("").lower_bound_time is None
    assert any("no roof for bf16" in note for note in report.coverage.notes)


def test_parents_of_unknown_rows_are_unknown_and_their_siblings_are_not():
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64).bfloat16())
    model.forward = lambda value: model[1](model[0](value).bfloat16())
    report = profiler(model, repeat=1).run(torch.ones(64, 64))
    assert report.row("0").lower_bound_time > 0
    assert report.row("1").lower_bound_time is None
    assert report.row("").lower_bound_time is None


def test_integer_ops_need_no_roof_of_their_own():
    report = profiler(torch.neg, repeat=1).run(torch.ones(1 << 16, dtype=torch.int32))
    row = report.row("")
    assert row.int_ops == 1 << 16
    assert row.lower_bound_time == pytest.approx(8 * (1 << 16) / LEVELS["L2"][0], abs=1e-9)


def test_no_roofs_at_all():
    report = profiler(Net(), ceilings=roofs({}, {}), repeat=1).run(torch.ones(1, 3, 32, 32))
    assert all(row.lower_bound_time is None for row in report.rows if row.bytes)
    assert report.total.time > 0
    assert str(report)


def test_figures_above_their_roof_are_flagged():
    slow = {"L2": (1e3, 0)}
    report = profiler(nn.Linear(64, 64), ceilings=roofs({"fp32": 1e3}, slow), repeat=1).run(torch.ones(64, 64))
    assert report.total.percent_of_roof > 100
    assert report.total.wasted_time < 0
    (note,) = (note for note in report.coverage.notes if "above its roof" in note)
    assert "aten::linear in the model" in note
    assert "fp32" in note


def test_figures_above_their_roof_by_less_than_its_spread_are_not_flagged():
    slow = {"L2": (1e3, 0)}
    wide = roofs({"fp32": 1e3}, slow, spread=1e12)
    report = profiler(nn.Linear(64, 64), ceilings=wide, repeat=1).run(torch.ones(64, 64))
    assert report.total.percent_of_roof > 100
    assert not any("above its roof" in note for note in report.coverage.notes)


def test_roofs_that_are_never_reached_are_not_flagged(report):
    high = roofs({"fp32": 1e18}, {"L2": (1e18, 0)})
    quick = profiler(Net(), ceilings=high, repeat=1).run(torch.ones(2, 3, 32, 32))
    assert quick.total.percent_of_roof < 1
    assert not any("above its roof" in note for note in quick.coverage.notes)


# ---- phases


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
    for row in report.rows:
        assert row.wasted_time == pytest.approx(row.time - row.lower_bound_time, abs=1e-12)
    assert report.row("0").macs == 3 * 32 * 64 * 64


def test_roofs_of_several_dtypes_add_up():
    model = nn.Sequential(nn.Linear(512, 512), nn.Linear(512, 512).double())
    model.forward = lambda value: model[1](model[0](value).double())
    report = profiler(model, repeat=1).run(torch.ones(512, 512))
    single, double = report.row("0"), report.row("1")
    assert single.lower_bound_time == pytest.approx(single.flops / PEAKS["fp32"], abs=1e-9)
    assert double.lower_bound_time == pytest.approx(double.flops / PEAKS["fp64"], abs=1e-9)
    assert report.row("").flops_by_dtype == {
        "fp32": single.flops_by_dtype["fp32"],
        "fp64": double.flops_by_dtype["fp64"],
    }
    assert report.row("").bound == bound_by(report.row(""), "compute fp64")
