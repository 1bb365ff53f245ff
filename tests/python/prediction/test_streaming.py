"""Times of ops that stream their tensors: limits that need no measurement, and the error on measured kernels."""

import csv
import gzip
import importlib
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from on_meta import counted
from torch import nn

import roofprof
from roofprof import _C
from roofprof.roofs import published_peaks

CARDS = [card["name"] for card in published_peaks.data()["cards"]]
SHIPPED = json.loads((Path(roofprof.__file__).parent / "data" / "prediction.json").read_text())["parameters"]
FLOOR = SHIPPED["gpu"]["kernel_floor"]
RTX_4090_L2 = 72 * 2**20
ROWS = 2**18


def seconds(card, make, *shape, dtype=torch.float32, **options):
    """Of the kernel without its floor."""
    report = counted(make, *shape, dtype=dtype)
    return report.predict(card, mode="graph", autocast=False, **options).total.time - FLOOR


def relu(card, elements, **options):
    return seconds(card, nn.ReLU, elements, **options)


def norm(card, rows, width, **options):
    return seconds(card, lambda: nn.LayerNorm(width), rows, width, **options)


def softmax(card, rows, width, **options):
    return seconds(card, lambda: nn.Softmax(-1), rows, width, **options)


def bandwidth(card):
    levels = _C.published_ceilings(card).to_dict()["memory"]
    return next(row["bytes_per_second"] for row in levels if row["level"] == "DRAM")


@pytest.mark.parametrize("card", CARDS)
def test_none_is_faster_than_the_memory(card):
    elements = 2**30
    for time in (relu(card, elements), norm(card, 2**20, 1024), softmax(card, 2**20, 1024)):
        assert 8 * elements / bandwidth(card) * 0.99 < time < 4 * 8 * elements / bandwidth(card)


@pytest.mark.parametrize("call", [norm, softmax])
@pytest.mark.parametrize("card", ["A100 SXM 80GB", "T4", "RTX 4090", "H100 SXM", "MI300X"])
def test_more_rows_and_wider_ones_never_take_less(card, call):
    by_rows = [call(card, 2**power, 1024) for power in range(4, 21, 4)]
    assert by_rows == sorted(by_rows)
    by_width = [call(card, 2**14, 2**power) for power in range(4, 17, 2)]
    assert by_width == sorted(by_width)


def test_the_smallest_takes_a_launch():
    report = counted(nn.ReLU, 1).predict("H100 SXM", mode="graph")
    assert report.total.time == pytest.approx(FLOOR, rel=0.01)


def test_half_the_cache_holds_what_an_op_touches():
    """What fits is given at the rate of the L2, several times that of the memory."""

    def rate(elements):
        return 8 * elements / relu("RTX 4090", elements)

    most = SHIPPED["gpu"]["streaming"]["cache_share"] * RTX_4090_L2 / 8
    dram = SHIPPED["achieved"][next(i for i, a in enumerate(SHIPPED["achieved"]) if a["compute_capability"] == "8.9")]
    assert rate(int(most / 4)) > 3 * bandwidth("RTX 4090")
    assert rate(int(most * 8)) == pytest.approx(dram["dram"] * bandwidth("RTX 4090"), rel=0.01)


def test_inline_ecc_takes_its_part_of_the_bandwidth():
    """L4 and RTX 4090 are of one architecture; L4's memory holds its error correction among the data."""
    times = [relu(card, 2**30) * bandwidth(card) for card in ("L4", "RTX 4090")]
    assert times[1] / times[0] == pytest.approx(SHIPPED["gpu"]["inline_ecc"], rel=1e-6)


def test_a_norm_works_in_steps_of_512_elements():
    """Narrow rows leave most of a block's threads without work."""
    narrow, full = norm("H100 SXM", ROWS, 64), norm("H100 SXM", ROWS, 512)
    assert 1 < full / narrow < 4  # eight times the bytes
    assert norm("H100 SXM", ROWS, 516) / full > 1.5


def test_a_short_softmax_is_filled_up_to_a_power_of_two():
    ratio = softmax("A100 SXM 80GB", ROWS, 520) / softmax("A100 SXM 80GB", ROWS, 1024)
    assert 520 / 1024 * 1.2 < ratio < 1


@pytest.mark.parametrize(("card", "width"), [("A100 SXM 80GB", 2**16), ("H100 SXM", 2**17), ("T4", 2**15)])
def test_a_softmax_whose_rows_leave_the_caches_reads_them_three_times(card, width):
    """Three reads and a write in place of one each."""
    short = relu(card, 4096 * width)
    assert softmax(card, 4096, width) / short == pytest.approx(2, rel=0.05)
    assert norm(card, 4096, width) / short == pytest.approx(1.5, rel=0.08)  # and its instructions


def test_rows_stay_in_large_caches():
    assert softmax("L4", 2**14, 4096) == pytest.approx(relu("L4", 2**26), rel=0.02)
    assert softmax("T4", 2**14, 16384) > 1.8 * relu("T4", 2**28)


def test_twice_the_bandwidth_halves_the_time():
    assert relu("H100 SXM", 2**30) / relu("H100 SXM", 2**30, bandwidth=2.0) == pytest.approx(2, rel=1e-3)


class Scaled(nn.Module):
    """A product with another tensor of the same shape, or one of a row."""

    def __init__(self, *shape):
        super().__init__()
        self.scale = nn.Parameter(torch.empty(*shape))

    def forward(self, x):
        return x * self.scale


@pytest.mark.parametrize(("card", "slower"), [("H100 SXM", True), ("RTX 4090", False)])
def test_finding_elements_takes_longer_than_fast_memory(card, slower):
    """For each element that is broadcast its place is computed."""
    size, width = 2**16, 1024
    whole = seconds(card, lambda: Scaled(size, width), size, width, dtype=torch.half)
    row = seconds(card, lambda: Scaled(width), size, width, dtype=torch.half)  # two thirds of the bytes
    assert (row > 0.9 * whole) == slower
    assert row < 2 * whole


def test_a_clone_puts_in_order_what_is_permuted():
    class Ordered(nn.Module):
        def forward(self, x):
            return x.transpose(0, 1).contiguous()

    elements = 2**26
    time = seconds("H100 SXM", Ordered, 2**13, 2**13, dtype=torch.half)
    assert time > 1.5 * 4 * elements / bandwidth("H100 SXM")


# ---- measured kernels


@pytest.fixture(scope="module")
def streams():
    """`benchmarks/prediction/streams.py`."""
    folder = str(Path(__file__).parents[3] / "benchmarks" / "prediction")
    sys.path.insert(0, folder)
    yield importlib.import_module("streams")
    sys.path.remove(folder)


@pytest.fixture(scope="module")
def tables(streams):
    if not (folder := os.environ.get("ROOFPROF_MEASURED")):
        pytest.skip("ROOFPROF_MEASURED names no folder with measured kernels")
    return streams.cases(Path(folder))


def test_the_shipped_numbers_are_those_of_the_fit(streams, tables):
    file = json.loads(streams.judgement.DATA.read_text())
    found = streams.fitted(tables, file)["parameters"]
    for key, value in file["parameters"]["gpu"]["streaming"].items():
        assert found["gpu"]["streaming"][key] == pytest.approx(value, rel=0.02)


@pytest.mark.parametrize("card", ["A100 PCIe 40GB", "A100 PCIe 80GB", "V100 PCIe", "T4", "L4"])
def test_errors_on_a_card_that_was_left_out(streams, tables, card):
    file = json.loads(streams.judgement.DATA.read_text())
    numbers = streams.parameters_of(streams.left_out(tables, file, card))
    for table in tables:
        if table.card != card:
            continue
        error = np.abs(table.predicted(numbers) / table.seconds - 1)
        assert np.median(error) < 0.09
        assert np.quantile(error, 0.9) < 0.2


@pytest.mark.parametrize("name", ["ln", "softmax"])
def test_rows_are_better_known_than_by_their_bytes(streams, tables, name):
    """Whose bandwidth times one number is fitted to the very table."""
    file = json.loads(streams.judgement.DATA.read_text())
    of = [table for table in tables if table.table == name]

    def roofline(table):
        return streams.judgement.times_one_number(streams.roofline(table), table.seconds)

    ratios = [
        table.predicted(streams.parameters_of(streams.left_out(tables, file, table.card))) / table.seconds
        for table in of
    ]
    error = np.abs(np.concatenate(ratios) - 1)
    plain = np.abs(np.concatenate([roofline(table) / table.seconds for table in of]) - 1)
    assert np.quantile(error, 0.9) < 0.7 * np.quantile(plain, 0.9)


def test_an_a100_keeps_half_its_cache_of_what_a_kernel_wrote():
    """ncu empties the caches before each kernel, so all that a ReLU reads comes from DRAM; of what it writes, what fits
    half of the L2 stays there, however much it is."""
    if not (folder := os.environ.get("ROOFPROF_NCU")):
        pytest.skip("ROOFPROF_NCU names no folder with counters of a GPU")
    sizes = json.loads(gzip.decompress((Path(folder) / "a100_4237.json.gz").read_bytes()))["input_size"]
    with gzip.open(Path(folder) / "nsight_result.csv.gz", "rt", newline="") as text:
        moved = [float(line["dram__bytes.sum"]) for line in csv.DictReader(text)]
    written = np.array([4.0 * np.prod(size) for size in sizes])
    kept = 2 * written - np.array(moved)
    half = SHIPPED["gpu"]["streaming"]["cache_share"] * 40 * 2**20
    large = written > 2 * half
    assert large.sum() > 500
    assert np.quantile(kept[large], [0.05, 0.95]) == pytest.approx(half, rel=0.15)
    small = written < 0.8 * half
    assert kept[small] == pytest.approx(written[small], rel=0.02, abs=2000)
