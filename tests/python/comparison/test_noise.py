"""Changes of time: false alarms and power on simulated pairs of reports, exact values of the test."""

import math
import random

import pytest

from roofprof.report.comparison.noise import judge

ROWS = 8
PAIRS = 1_000


def noisy(kind, rng, runs, noise):
    """Relative times of one row in the runs of one process."""
    if kind == "normal":
        return [max(1 + noise * rng.gauss(0, 1), 0.01) for _ in range(runs)]
    if kind == "lognormal":
        return [math.exp(noise * rng.gauss(0, 1)) for _ in range(runs)]
    if kind == "heavy-tailed":  # Pareto: some runs take several times as long
        return [1 + noise * (rng.paretovariate(1.5) - 1) for _ in range(runs)]
    if kind == "drifting":  # the clock falls while the process gets warm
        slope = rng.uniform(-2, 2) * noise
        return [1 + slope * run / runs + noise * rng.gauss(0, 1) for run in range(runs)]
    assert kind == "quantised"
    return [round((1 + noise * rng.gauss(0, 1)) * 20) / 20 for _ in range(runs)]


def process(kind, rng, runs, noise, slower=()):
    """Rows with their times in ns: a process has an offset of its own, and so has each row in it."""
    offset = math.exp(noise / 2 * rng.gauss(0, 1))
    times = {}
    for row in range(ROWS):
        own = offset * math.exp(noise / 4 * rng.gauss(0, 1)) * (1.2 if row in slower else 1)
        if kind == "quantised":  # offsets would leave the clock's grid
            own = 1.2 if row in slower else 1
        scale = 1_000_000 * (row + 1)
        times[f"row{row}"] = [round(scale * own * time) for time in noisy(kind, rng, runs, noise)]
    return times


@pytest.mark.parametrize("kind", ["normal", "lognormal", "heavy-tailed", "drifting", "quantised"])
def test_where_nothing_changed_fewer_than_one_comparison_in_twenty_calls_a_change(kind, one_thread):
    rng = random.Random(kind)
    alarms = tested = 0
    for pair in range(PAIRS // 5):
        runs = 2 + pair % 9, 2 + (pair // 9) % 9
        noise = rng.choice([0.01, 0.03, 0.1])
        found = judge(*(process(kind, rng, n, noise) for n in runs))
        tested += any(finding.p is not None for finding in found.values())
        alarms += any(finding.verdict in {"faster", "slower"} for finding in found.values())
    assert tested > PAIRS / 5 / 2
    assert alarms < 0.05 * tested


@pytest.mark.parametrize(("runs", "noise"), [(10, 0.01), (10, 0.02), (5, 0.005)])
def test_a_module_that_got_a_fifth_slower_is_found_where_noise_is_low(runs, noise, one_thread):
    rng = random.Random(runs)
    found = [judge(process("normal", rng, runs, noise), process("normal", rng, runs, noise, {3})) for _ in range(40)]
    assert sum(pair["row3"].verdict == "slower" for pair in found) > 0.75 * len(found)
    assert sum(any(pair[f"row{row}"].verdict != "same" for row in range(ROWS) if row != 3) for pair in found) < 4


def test_p_of_one_row_is_the_share_of_arrangements_that_are_as_far_apart():
    """Of the 70 ways to take four runs of eight, only the observed one and its mirror image are."""
    low, high = [100, 101, 102, 103], [200, 201, 202, 203]
    found = judge({"": low}, {"": high})[""]
    assert (found.p, found.verdict) == (pytest.approx(2 / 70), "slower")
    assert found.noise == pytest.approx(10 / 4 * (3 + 3 * 1.0 + 2) * 1e-9, rel=0.03)
    assert judge({"": high}, {"": low})[""].verdict == "faster"
    within_the_spreads = judge({"": [100, 110, 120, 130]}, {"": [131, 141, 151, 161]})[""]
    assert (within_the_spreads.p, within_the_spreads.verdict) == (pytest.approx(2 / 70), "same")


def test_the_clocks_step_is_noise():
    before, after = {"a": [5_000] * 10}, {"a": [6_000] * 10}  # by a clock of 1 us
    assert judge(before | {"b": [1_000] * 10}, after | {"b": [1_000] * 10})["a"].verdict == "same"
    assert judge({"a": [5_001, 5_000] * 5}, {"a": [6_001, 6_000] * 5})["a"].verdict == "slower"


def test_rows_without_enough_runs_say_why():
    assert judge({"": [1]}, {"": [2, 3]})[""] == ("not tested", None, None, "one run")
    few = judge({"": [1, 2, 3]}, {"": [7, 8, 9]})[""]
    assert few.verdict == "not tested"
    assert few.reason.startswith("too few runs (3 and 3)")
    some = judge({"a": [1, 2, 3, 4], "b": [1, 2, 3]}, {"a": [1, 2, 3, 4], "b": [1, 2, 3, 4]})
    assert some["b"].reason == "it ran in some of the runs only"
    assert some["a"].verdict == "same"
    assert judge({"": [0] * 4}, {"": [0] * 4})[""].reason == "it took no time"
    assert judge({}, {}) == {}
