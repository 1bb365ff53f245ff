"""Times of matrix products on tensor cores: limits that need no measurement."""

import importlib
import itertools
import json
import sys
from pathlib import Path

import pytest
import torch

import roofprof
from roofprof import _C
from roofprof.roofs import published_peaks

sys.path.append(str(Path(__file__).parents[3] / "benchmarks" / "prediction"))
products = importlib.import_module("products")

SHIPPED = json.loads((Path(roofprof.__file__).parent / "data" / "prediction.json").read_text())["parameters"]
# With tensor cores, of every architecture.
CARDS = [card for card in published_peaks.data()["cards"] if "bf16" in card["peaks"]]
NAMES = [card["name"] for card in CARDS]
LAST_WAVES = ["A100 SXM 80GB", "L40S", "RTX 4090"]


def achieved(card):
    capability = next(entry for entry in CARDS if entry["name"] == card)["compute_capability"]
    return next(entry for entry in SHIPPED["achieved"] if entry["compute_capability"] == capability)["product"]


def seconds(card, *sizes, dtype="bfloat16", **options):
    """Of one kernel for each of the sizes (rows, outputs, depth), in the order of the sizes."""
    cases = products.counted(card, dtype, dict.fromkeys(sizes, 1.0), **options)
    return cases.predicted(_C.PredictionParameters.shipped())


@pytest.mark.parametrize("card", NAMES)
def test_twice_the_size_never_takes_less(card):
    steps = [2**power for power in (4, 7, 10, 13)]
    sizes = list(itertools.product(steps, steps, steps))
    for axis in range(3):
        doubled = [tuple(n * 2 if i == axis else n for i, n in enumerate(size)) for size in sizes]
        for size, once, twice in zip(sizes, seconds(card, *sizes), seconds(card, *doubled), strict=True):
            # Ways to cut a product are compared by an estimate.
            assert twice >= once * 0.99, (card, size, axis)


@pytest.mark.parametrize("card", NAMES)
def test_none_is_faster_than_its_roofs(card):
    roofs = _C.published_ceilings(card).to_dict()
    flops = next(row["operations_per_second"] for row in roofs["compute"] if row["dtype"] == "bf16")
    bandwidth = next(row["bytes_per_second"] for row in roofs["memory"] if row["level"] == "DRAM")
    large, decode = (8192, 8192, 8192), (1, 2**16, 2**15)  # weights of 4 GiB, which no cache holds
    times = seconds(card, large, decode)
    bound = 2 * 8192**3 / flops
    assert bound <= times[0] < 2.5 * bound
    bound = 2 * 2**31 / bandwidth
    assert bound <= times[1] < 1.8 * bound


def test_twice_the_bandwidth_halves_what_memory_bounds():
    sizes = (1, 2**16, 2**14), (2**13, 2**13, 2**13)
    launch = achieved("H100 SXM")["launch"]
    once, twice = seconds("H100 SXM", *sizes), seconds("H100 SXM", *sizes, bandwidth=2.0)
    assert (twice[0] - launch) / (once[0] - launch) == pytest.approx(0.5, rel=0.05)
    assert 0.9 < twice[1] / once[1] < 1
    faster = seconds("H100 SXM", *sizes, peak=2.0)
    assert faster[0] == pytest.approx(once[0], rel=0.05)
    assert (faster[1] - launch) / (once[1] - launch) == pytest.approx(0.5, rel=0.1)


@pytest.mark.parametrize("card", LAST_WAVES)
def test_one_tile_more_than_multiprocessors_takes_longer_by_far(card):
    processors = _C.published_ceilings(card).to_dict()["facts"]["multiprocessors"]
    full, more = seconds(card, (128 * processors, 256, 8192), (128 * processors + 128, 256, 8192))
    assert more / full > 1 + 5 / processors
    # Rows within one tile cost no arithmetic.
    inside = seconds(card, (128 * processors - 100, 256, 8192))[0]
    assert inside == pytest.approx(full, rel=0.01)


@pytest.mark.parametrize("card", NAMES)
def test_few_outputs_of_great_depth_are_split(card):
    steps = SHIPPED["gpu"]["product"]["byte_latency"] * 2 * 2**17
    time = seconds(card, (16, 16, 2**17))[0] - achieved(card)["launch"]
    assert SHIPPED["gpu"]["product"]["split"] < time < steps / 2


@pytest.mark.parametrize(("dtype", "share"), [("fp8", 1 / 2), ("nvfp4", 1 / 4 + 1 / 32)])
def test_weights_of_fewer_bits_take_less_time_to_read(dtype, share):
    """Sixteen elements of fp4 share a scale of one byte."""
    sizes = (1, 2**16, 2**14)
    assert seconds("B200", sizes, dtype=dtype)[0] / seconds("B200", sizes)[0] == pytest.approx(share, rel=0.05)


def test_a_batch_is_many_tiles():
    def time(batch):
        with torch.device("meta"):
            a = torch.empty(batch, 1024, 1024, dtype=torch.half)
            report = roofprof.count(torch.bmm, a, a)
        return report.predict("A100 SXM 80GB", mode="graph").total.time

    assert time(512) / time(256) == pytest.approx(2, rel=0.02)


def test_odd_sizes_in_half_leave_fast_tensor_cores_waiting():
    """An H100 took 12 times what its peak allows for 3137 x 3137 x 64; an RTX 3090's rate is low anyway."""
    even, odd, deep = (8192, 3136, 3136), (8192, 3137, 3136), (8192, 3136, 3137)
    times = seconds("H100 SXM", even, odd, deep)
    assert times[1] / times[0] > 3
    assert times[2] / times[0] > 3
    times = seconds("RTX 3090", even, odd)
    assert times[1] / times[0] < 2
