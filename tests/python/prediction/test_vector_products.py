"""Products in fp32 on vector units: identities and limits of their times."""

import json
from pathlib import Path

import pytest
import torch

import roofprof
from roofprof import _C
from roofprof.roofs import published_peaks

CARDS = [card["name"] for card in published_peaks.data()["cards"] if "fp32" in card["peaks"]]
SIZES = [1, 7, 16, 17, 40, 64, 100, 129, 500, 1000, 4097, 20000]


def facts(card):
    capability = _C.published_ceilings(card).facts.compute_capability
    known = json.loads((Path(roofprof.__file__).parent / "data" / "prediction.json").read_text())
    return next(one for one in known["parameters"]["achieved"] if one["compute_capability"] == capability)


def peak(card):
    return next(roof for roof in _C.published_ceilings(card).compute if roof.dtype == "fp32").operations_per_second


def seconds(card, batch, rows, width, depth, **options):
    """The kernel's time, without what the smallest one takes."""

    def product(x, y):
        return torch.bmm(x, y) if batch > 1 else torch.mm(x[0], y[0])

    with torch.device("meta"):
        report = roofprof.count(product, torch.empty(batch, rows, depth), torch.empty(batch, depth, width))
    predictor = _C.Predictor(_C.report_from_json(report.to_json().encode()), _C.PredictionOptions(**options))
    parameters = _C.PredictionParameters.shipped()
    return sum(predictor.op_seconds(_C.published_ceilings(card), parameters)) - facts(card)["product"]["launch"]


@pytest.mark.parametrize("card", ["A100 SXM 80GB", "T4"])
@pytest.mark.parametrize("place", range(4))
def test_more_of_any_size_takes_no_less(card, place):
    for others in ((2, 300, 300, 300), (1, 40, 5000, 64), (64, 128, 128, 2000)):
        times = [seconds(card, *others[:place], size, *others[place + 1 :]) for size in SIZES]
        # The kernels of one product and of a batch have other tiles.
        steps = zip(times[1 if place == 0 else 0 :], times[2 if place == 0 else 1 :], strict=False)
        assert all(after >= before * (1 - 1e-9) for before, after in steps), (others, times)


@pytest.mark.parametrize("card", CARDS)
def test_no_product_is_above_the_roofs_and_large_ones_are_near_what_the_library_reaches(card):
    for batch, rows, width, depth in ((1, 8192, 8192, 8192), (1, 1, 4096, 4096), (96, 512, 64, 512), (1, 33, 1000, 77)):
        flops = 2 * batch * rows * width * depth
        assert seconds(card, batch, rows, width, depth) >= flops / peak(card) * (1 - 1e-9)
    of_peak = 2 * 8192**3 / peak(card) / seconds(card, 1, 8192, 8192, 8192)
    watts = _C.published_ceilings(card).facts.tdp_watts
    joules = facts(card)["vector_picojoules"] * 1e-12
    power = watts / joules / peak(card) if joules and watts else 1
    assert of_peak == pytest.approx(min(facts(card)["vector"], power), rel=0.12)


def test_the_last_wave_of_tiles_takes_as_long_as_a_full_one():
    card = "A100 SXM 80GB"  # 108 multiprocessors, tiles of 128 x 128 for a batch
    one, full, more = (seconds(card, batch, 128, 128, 8192) for batch in (2, 108, 109))
    assert more == pytest.approx(2 * full, rel=1e-6)
    assert one < full / 10  # few tiles share the depth of each


def test_a_card_without_the_power_takes_the_energy_of_the_work_by_its_watts():
    joules = 2 * 8192**3 * facts("T4")["vector_picojoules"] + 3 * 4 * 8192**2 * facts("T4")["dram_picojoules"]
    assert seconds("T4", 1, 8192, 8192, 8192) == pytest.approx(joules * 1e-12 / 70, rel=1e-6)
    # Half of such a batch's tiles is empty, and takes as much.
    assert seconds("L4", 512, 64, 1024, 1024) > 1.7 * seconds("L4", 512, 64, 1024, 1024, peak=2, bandwidth=2)


def test_a_product_of_a_vector_reads_its_matrix():
    for card in ("A100 SXM 80GB", "RTX 4090"):
        dram = next(level for level in _C.published_ceilings(card).memory if level.level == "DRAM").bytes_per_second
        matrix = 4 * 16384**2
        assert matrix / dram <= seconds(card, 1, 1, 16384, 16384) <= 1.3 * matrix / dram


def test_tf32_is_not_on_vector_units():
    assert seconds("A100 SXM 80GB", 1, 8192, 8192, 8192, precision="tf32") < 2 * 8192**3 / peak("A100 SXM 80GB") / 4
