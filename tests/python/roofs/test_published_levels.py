"""Published roofs with the level of a shared cache: what ops stand at, in reports, files and predictions."""

import math

import pytest
import torch

import roofprof
from roofprof import Ceilings, Report

GH200, H100, L4 = "GH200 480GB", "H100 SXM", "L4"


def report_of(call, roofs, nanoseconds, reuse=None):
    """A report of one op on that card that took so long, as an importer of traces makes it."""
    data = roofprof.count(call).to_dict()
    (op,) = (op for op in data["ops"] if op["work"]["write_bytes"])
    op["time_ns"] = nanoseconds
    if reuse is not None:
        op["reuse"] = [{"distance_bytes": reuse, **{key: op["work"][key] for key in ("read_bytes", "write_bytes")}}]
    data["ops"] = [op]
    data.update(
        scope="block",
        device="cuda:0",
        device_timed=True,
        busy_ns=nanoseconds,
        ceilings=roofs.to_dict(),
        kernel_buckets=[],
        device_times=[],
        runs={"total_ns": [nanoseconds], "chosen": 0, "bare_ns": [], "warmup": 0, "steps": 0},
    )
    for time in data["times"]:
        is_ops = time["module"] == op["module"] and time["phase"] == op["phase"]
        time["self_ns"], time["host_self_ns"] = [nanoseconds if is_ops else 0], [0]
    return Report.from_dict(data)


def tensor(*sizes, dtype=torch.float32):
    return torch.empty(*sizes, dtype=dtype, device="meta")


def level_of(roofs, name):
    return next(level for level in roofs.memory if level.level == name)


# Ops that others timed. They are quicker than DRAM allows, as their tensors stay in L2.
QUICKER_THAN_DRAM = {
    # sitar-lab/NeuSight, softmax.csv and ln.csv: B = 8192, H = 768 in fp32, all of L2's 48 MiB.
    "softmax on an L4": (L4, lambda: torch.softmax(tensor(8192, 768), -1), 87_974),
    "layer norm on an L4": (L4, lambda: torch.nn.functional.layer_norm(tensor(8192, 768), (768,)), 115_571),
    # Traces of a ReLU of 33.5 MB at 152% of the GH200's DRAM, and of an add of 31.9 MB above the H100's.
    "relu on a GH200": (GH200, lambda: torch.relu(tensor(8_375_000, dtype=torch.bfloat16)), 5_510),
    "add on an H100": (
        H100,
        lambda: tensor(5_316_000, dtype=torch.bfloat16) + tensor(5_316_000, dtype=torch.bfloat16),
        6_300,
    ),
}


@pytest.mark.parametrize("case", QUICKER_THAN_DRAM)
def test_no_op_stands_above_the_roof_of_the_cache_that_holds_it(case):
    card, call, nanoseconds = QUICKER_THAN_DRAM[case]
    roofs = Ceilings.published(card)
    report = report_of(call, roofs, nanoseconds)
    row = report.total
    assert row.bytes / level_of(roofs, "DRAM").bytes_per_second > 1.05 * nanoseconds * 1e-9
    assert row.percent_of_roof < 105
    held, nominal = level_of(roofs, "L2").capacity_bytes, roofs.facts.l2_bytes
    assert row.bound == ("memory L2" if row.bytes <= held else "memory DRAM")
    # From what the L2 was seen to hold to its nominal size the rate falls to DRAM's, in proportion to the logarithms.
    fallen = math.log(max(row.bytes / held, 1)) / math.log(nominal / held) if held < nominal else 0
    rate = level_of(roofs, "L2").bytes_per_second ** (1 - fallen) * level_of(roofs, "DRAM").bytes_per_second ** fallen
    assert row.memory_time == pytest.approx(row.bytes / rate, rel=1e-3)
    assert row.attainable == pytest.approx(row.flops / row.bytes * rate, rel=1e-3)
    assert row.bound.removeprefix("memory ") in report.table()


def test_predictions_read_weights_from_dram():
    """By footprints the weights of any model would be in L2, one layer at a time."""
    model = torch.nn.Linear(1024, 1024, device="meta", dtype=torch.float16)
    report = roofprof.count(model, tensor(1, 1024, dtype=torch.float16)).predict(H100)
    assert [level.level for level in report.ceilings.memory] == ["L2", "DRAM"]
    # A part of them is predicted to be there from an earlier call.
    assert report.total.memory_time == pytest.approx(report.total.bytes / 3.35e12, rel=0.15)
