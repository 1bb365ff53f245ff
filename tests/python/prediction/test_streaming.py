"""Times of ops that stream their tensors: limits that need no measurement."""

import json
from pathlib import Path

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


def test_none_is_faster_than_the_memory():
    elements = 2**30
    for card in CARDS:
        least = 8 * elements / bandwidth(card)
        for time in (relu(card, elements), norm(card, 2**20, 1024), softmax(card, 2**20, 1024)):
            assert 0.99 * least < time < 4 * least, card
    assert relu("H100 SXM", elements) / relu("H100 SXM", elements, bandwidth=2.0) == pytest.approx(2, rel=1e-3)


@pytest.mark.parametrize("call", [norm, softmax])
def test_more_rows_and_wider_ones_never_take_less(call):
    for card in ("T4", "H100 SXM", "MI300X"):
        by_rows = [call(card, 2**power, 1024) for power in range(4, 21, 4)]
        by_width = [call(card, 2**14, 2**power) for power in range(4, 17, 2)]
        assert (by_rows, by_width) == (sorted(by_rows), sorted(by_width)), card


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
