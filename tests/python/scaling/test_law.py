"""The fitted law against data of a known law: exact, and with noise."""

from __future__ import annotations

import random

import pytest

from roofprof.report.scaling.law import fit
from roofprof.report.scaling.measured import standard_error


def gunther(n, sigma, kappa):
    return 1000 * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


@pytest.mark.parametrize(
    ("ranks", "sigma", "kappa"),
    [((1, 2, 4, 8), 0.05, 0.002), ((1, 2, 4), 0.3, 0.01), ((2, 4, 8, 64), 0.02, 1e-4), ((1, 3, 7), 0.0, 0.05)],
)
def test_exact_data_give_their_law_back(ranks, sigma, kappa):
    law = fit(ranks, [gunther(n, sigma, kappa) for n in ranks], [None] * len(ranks))
    assert law.single == pytest.approx(1000)
    assert law.sigma == pytest.approx(sigma, abs=1e-9)
    assert law.kappa == pytest.approx(kappa)
    assert law.peak == pytest.approx(((1 - sigma) / kappa) ** 0.5)
    assert law.throughput(100) == pytest.approx(gunther(100, sigma, kappa))
    # The peak is one: fewer and more ranks have less.
    assert law.throughput(law.peak) > max(law.throughput(0.9 * law.peak), law.throughput(1.1 * law.peak))


@pytest.mark.parametrize("ranks", [(1, 2), (1, 2, 4, 8)])
def test_amdahls_law_is_the_special_case(ranks):
    serial = 0.1
    amdahl = [1 / (serial + (1 - serial) / n) for n in ranks]
    law = fit(ranks, amdahl, [0.01] * len(ranks))
    assert law.sigma == pytest.approx(serial)
    assert law.kappa == pytest.approx(0, abs=1e-9)
    assert law.throughput(1e9) == pytest.approx(1 / serial, rel=1e-5)


def test_coefficients_are_never_negative():
    law = fit([1, 2, 4, 8], [1, 2.2, 4.6, 9.5], [None] * 4)  # faster than linear
    assert (law.sigma, law.kappa) == (0, 0)
    assert law.peak is None
    assert law.throughput(16) / law.throughput(8) == pytest.approx(2)


def test_two_points_hold_both_extremes():
    law = fit([1, 2], [1.0, 1.6], [0.0, 0.0])
    value, low, high = law.interval(8)
    assert (value, high) == pytest.approx((8 / (1 + 7 * 0.25),) * 2)  # all of the loss is sigma: 2 / 1.6 = 1 + sigma
    assert low == pytest.approx(8 / (1 + 56 * 0.125))  # all of it is kappa: 2 / 1.6 = 1 + 2 kappa


def test_without_spread_or_residuals_there_is_no_interval():
    assert fit([1, 2, 4], [1, 1.8, 3], [None, 0.01, 0.01]).interval(8)[1:] == (None, None)


@pytest.mark.parametrize(
    ("ranks", "sigma", "kappa", "noise", "known"),
    [
        ((1, 2, 4, 8, 16, 32), 0.02, 0.002, 0.02, False),
        ((1, 2, 4, 8), 0.05, 0.0, 0.02, False),
        ((1, 2, 4, 8), 0.0, 0.0, 0.02, False),
        ((1, 2, 4, 8), 0.05, 0.001, 0.01, True),
        ((1, 2, 4), 0.2, 0.0, 0.01, True),
        ((1, 2), 0.1, 0.0, 0.01, True),
        ((1, 2), 0.0, 0.05, 0.01, True),
    ],
)
def test_the_interval_holds_the_truth_as_often_as_it_says(ranks, sigma, kappa, noise, known):
    """80%, or more where it holds several forms of the law; 150 trials have a deviation of 3.3%."""
    chance, trials, held = random.Random(3), 150, 0
    for _ in range(trials):
        rates = [gunther(n, sigma, kappa) * (1 + chance.gauss(0, noise)) for n in ranks]
        _, low, high = fit(ranks, rates, [noise if known else None] * len(ranks)).interval(4 * ranks[-1])
        held += low <= gunther(4 * ranks[-1], sigma, kappa) <= high
    assert held / trials >= 0.72


@pytest.mark.parametrize("count", [5, 20, 100])
def test_the_error_of_a_median_from_its_spread(count):
    """Against medians of simulated steps."""
    chance, medians, errors = random.Random(1), [], []
    for _ in range(1500):
        steps = sorted(1 + chance.gauss(0, 0.02) for _ in range(count))
        medians.append((steps[count // 2] + steps[(count - 1) // 2]) / 2)
        errors.append(standard_error((steps[-1] - steps[0]) / medians[-1], count))
    mean = sum(medians) / len(medians)
    deviation = (sum((value - mean) ** 2 for value in medians) / len(medians)) ** 0.5
    assert sum(errors) / len(errors) == pytest.approx(deviation, rel=0.15)
