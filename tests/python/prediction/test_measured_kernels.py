"""The error of predictions on times that others measured, of the folder that ROOFPROF_MEASURED names."""

import csv
import gzip
import importlib
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import roofprof
from roofprof import _C
from roofprof.calibration.calibrate import calibrated
from roofprof.calibration.measured_kernels import of_table

MEASURED = Path(os.environ.get("ROOFPROF_MEASURED", "/nonexistent"))
pytestmark = pytest.mark.skipif(not MEASURED.is_dir(), reason="ROOFPROF_MEASURED names no folder of measured times")


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(Path(__file__).parents[3] / "benchmarks" / "prediction")])


def shipped():
    """What roofprof has, as the benchmarks take it."""
    return json.loads(importlib.import_module("judgement").DATA.read_text())


def errors(predicted, measured):
    """Return the median of the relative errors and what nine of ten are below."""
    error = np.abs(np.asarray(predicted) / np.asarray(measured) - 1)
    return np.array([np.median(error), np.quantile(error, 0.9)])


def are_below(found, limits):
    assert (found < np.array(limits)).all(), found


def test_attention():
    attention = importlib.import_module("attention")
    rows = attention.cases(MEASURED)[::10]
    times = attention.times(attention.counted(rows), rows, shipped())
    measured = np.array([row.seconds for row in rows])
    for card in attention.CARDS:
        for table in attention.TABLES.values():
            here = [(row.card, row.table) == (card, table) for row in rows]
            are_below(errors(times[here], measured[here]), (0.13, 0.38))


def test_vector_products():
    products = importlib.import_module("vector_products")
    rows = products.cases(MEASURED / "neusight")
    times = products.times(products.counted(rows), rows, shipped()) + products.LAUNCH[0]
    measured = np.array([row.seconds for row in rows])
    for card in products.CARDS:
        for table in products.TABLES:
            here = [(row.card, row.table) == (card, table) for row in rows]
            # On cards of 70 W equal products of a batch differ by 10% and a tenth of them by half: their clock's state.
            noisy = table == "bmm" and card in ("T4", "L4")
            are_below(errors(times[here], measured[here]), (0.16, 0.8) if noisy else (0.12, 0.25))


def test_collectives():
    collectives = importlib.import_module("collectives")
    rows = collectives.cases(MEASURED)
    assert len(rows) > 1000
    rows = [row for row in rows if collectives.is_certain(row)]
    predicted = np.array(
        [
            _C.collective_seconds(
                *(row.collective, row.bytes, row.ranks),
                *(roofprof.Ceilings.published(row.card), _C.PredictionParameters.shipped()),
            )
            for row in rows
        ]
    )
    measured = np.array([row.seconds for row in rows])
    are_below(errors(predicted, measured), (0.09, 0.22))
    for card in {row.card for row in rows}:
        here = [row.card == card for row in rows]
        assert 0.85 < np.median(predicted[here] / measured[here]) < 1.15


@pytest.mark.slow
def test_steps_of_language_models(tmp_path):
    pytest.importorskip("transformers")
    models = importlib.import_module("whole_models")
    rows = models.cases(MEASURED / "neusight")
    predictors = models.Predictors(MEASURED / "neusight", tmp_path, rows)
    predicted = np.array([predictors.seconds(case, _C.PredictionParameters.shipped()) for case in rows])
    measured = np.array([case.seconds for case in rows])
    are_below(errors(predicted[:, 0], measured), (0.08, 0.2))
    assert np.mean((predicted[:, 1] <= measured) & (measured <= predicted[:, 2])) > 0.7


@pytest.mark.parametrize("name", ["products", "streams"])
def test_the_shipped_numbers_are_those_of_the_fit(name):
    benchmark = importlib.import_module(name)
    file = shipped()
    found = benchmark.fitted(benchmark.cases(MEASURED), file)
    if name == "products":
        for places in benchmark.numbers_of(benchmark.TABLES):
            fitted, known = (benchmark.judgement.holder_of(of, places[0])[places[0][-1]] for of in (found, file))
            assert fitted == pytest.approx(known, rel=0.03), places
    else:
        fitted, known = (of["parameters"]["gpu"]["streaming"] for of in (found, file))
        assert {key: fitted[key] for key in known} == pytest.approx(known, rel=0.02)


@pytest.mark.parametrize("card", ["A100 SXM 80GB", "H100 SXM", "B200", "L40S"])
def test_products_on_a_card_that_was_left_out(card):
    products = importlib.import_module("products")
    tables, file = products.cases(MEASURED), shipped()
    table = next(table for table in tables if table.card == card)
    found = products.left_out(tables, file, card)
    unknown = errors(table.predicted(products.parameters_of(found)), table.seconds)
    are_below(errors(table.predicted(products.parameters_of(file)), table.seconds), (0.10, 0.27))
    are_below(unknown, (0.14, 0.38))
    one_number = products.judgement.times_one_number(products.roofline(table), table.seconds)
    are_below(unknown, errors(one_number, table.seconds))


def test_streams_on_cards_that_were_left_out():
    """Rows are better known than by their bytes, whose bandwidth times one number is fitted to the very table."""
    streams = importlib.import_module("streams")
    tables, file = streams.cases(MEASURED), shipped()
    ratios, plain = {}, {}
    for table in tables:
        predicted = table.predicted(streams.parameters_of(streams.left_out(tables, file, table.card)))
        if table.card in ("A100 PCIe 40GB", "A100 PCIe 80GB", "V100 PCIe", "T4", "L4"):
            are_below(errors(predicted, table.seconds), (0.09, 0.2))
        ratios.setdefault(table.table, []).append(predicted / table.seconds)
        one_number = streams.judgement.times_one_number(streams.roofline(table), table.seconds)
        plain.setdefault(table.table, []).append(one_number / table.seconds)
    for name in ("ln", "softmax"):
        assert errors(np.concatenate(ratios[name]), 1)[1] < 0.7 * errors(np.concatenate(plain[name]), 1)[1]


@pytest.mark.parametrize(
    ("card", "name"), [("A100 SXM 80GB", "a100_sxm"), ("H100 SXM", "h100_sxm"), ("B200", "b200_sxm"), ("L40S", "l40s")]
)
def test_a_calibration_with_the_device_itself(card, name):
    kernels = of_table(MEASURED / "aiconfigurator" / f"{name}_gemm_perf.csv.gz")
    (of_class,) = calibrated(roofprof.Ceilings.published(card), [kernels], name).calibration.classes
    assert of_class.median_error < min(0.1, of_class.median_error_before)
    assert of_class.percentile_90 < 0.25


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
    half = shipped()["parameters"]["gpu"]["streaming"]["cache_share"] * 40 * 2**20
    large = written > 2 * half
    assert large.sum() > 500
    assert np.quantile(kept[large], [0.05, 0.95]) == pytest.approx(half, rel=0.15)
    small = written < 0.8 * half
    assert kept[small] == pytest.approx(written[small], rel=0.02, abs=2000)
