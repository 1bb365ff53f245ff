"""What follows from given times: quantiles, rates, shares; and the files that keep them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from given_latencies import MS, latency

from roofprof import Latency, Note
from roofprof.latency.measured import quantile

HUNDRED = latency(range(1 * MS, 101 * MS, MS))  # 1 ms to 100 ms


@pytest.mark.parametrize("count", [1, 2, 11, 200])
@pytest.mark.parametrize("percent", [0, 10, 50, 99, 100])
def test_quantiles_are_numpys(count, percent):
    values = np.random.default_rng(count).lognormal(size=count).tolist()
    assert quantile(values, percent) == pytest.approx(np.percentile(values, percent, method="linear"))


def test_figures_of_a_hundred_calls():
    # 100 values, 1 to 100 ms: the quantile p lies at place p/100 * 99, whose value is one more, in ms.
    assert pytest.approx(50.5e-3) == HUNDRED.median
    assert pytest.approx(10.9e-3) == HUNDRED.p10
    assert pytest.approx(90.1e-3) == HUNDRED.p90
    assert pytest.approx(99.01e-3) == HUNDRED.p99
    assert pytest.approx(1e-3) == HUNDRED.min
    assert pytest.approx(100e-3) == HUNDRED.max
    assert pytest.approx(50.5e-3) == HUNDRED.mean
    assert pytest.approx(8 / 50.5e-3) == HUNDRED.samples_per_second
    assert HUNDRED.tokens_per_second is None
    assert latency([2 * MS] * 10, tokens=512).tokens_per_second == pytest.approx(512 / 2e-3)


@pytest.mark.parametrize(("calls", "missing"), [(9, {"p10", "p90", "p99"}), (10, {"p99"}), (99, {"p99"}), (100, set())])
def test_a_quantile_needs_a_call_beyond_it(calls, missing):
    timed = latency(range(MS, MS + calls))
    assert {name for name in ("p10", "p90", "p99") if getattr(timed, name) is None} == missing
    assert {name for name in timed.not_available if name.startswith("p")} == missing
    if missing:
        assert timed.not_available["p99"] == f"needs 100 timed calls, and there are {calls}"
        assert "n/a" in str(timed)
    assert timed.median > 0


def test_what_is_not_known_says_why():
    timed = latency([MS] * 10, samples=None, samples_from="the inputs are two tables; say samples=")
    assert timed.samples_per_second is None
    assert timed.not_available["samples_per_second"] == "the inputs are two tables; say samples="
    assert "throughput  n/a: the inputs are two tables; say samples=" in str(timed)


def test_on_a_gpu_the_wall_stands_beside_the_events_and_utilization_is_not_claimed():
    timed = latency(
        [2 * MS] * 20,
        clock="device events",
        device="cuda",
        wall_times_ns=(3 * MS,) * 20,
        queued_calls=20,
        queued_ns=30 * MS,
    )
    assert timed.samples_per_second == pytest.approx(8 / 2e-3)
    assert timed.queued_samples_per_second == pytest.approx(20 * 8 / 30e-3)
    assert "traced" in timed.not_available["gpu_utilization"]
    text = str(timed)
    assert "2.00ms" in text
    assert "3.00ms" in text
    assert "4.00k samples/s, one call after the other; 5.33k samples/s back to back (20 calls without waiting)" in text
    assert "GPU         busy n/a" in text


def test_text():
    assert (
        str(HUNDRED)
        == """\
roofprof    Net on cpu (a machine on paper, 2 threads, torch 2.15.0)
            100 timed calls after 51 for warm-up; 8 samples in each (the leading dimension of the inputs)

latency       median     p10     p90     p99     min    max    mean
───────────────────────────────────────────────────────────────────
perf_counter  50.5ms  10.9ms  90.1ms  99.0ms  1.00ms  100ms  50.5ms

throughput  158 samples/s, one call after the other
process     real 5.05s, user 0ns, system 0ns: 0% of 2 processors
terms       latency: the time of one call; throughput: samples of a call / the median latency; pN: N% of the calls took
            no longer, interpolated between the two nearest"""
    )


def test_json_gives_the_same_again(tmp_path):
    note = Note("timing-stopped", "30 seconds were over", ["cpu"])
    timed = replace(HUNDRED, tokens=64, notes=(note,), user_ns=3 * MS)
    timed.to_json(tmp_path / "latency.json")
    assert Latency.from_json(tmp_path / "latency.json") == timed
    assert Latency.from_dict(timed.to_dict()) == timed
    stored = json.loads((tmp_path / "latency.json").read_text())
    assert stored["latency"]["median_ns"] == 50_500_000
    assert stored["latency"]["p99_ns"] == 99_010_000
    assert stored["throughput"]["samples_per_second"] == timed.samples_per_second
    assert stored["process"]["real_time_ns"] == 5_050_000_000
    assert stored["notes"] == [
        {"level": "warning", "code": "timing-stopped", "where": ["cpu"], "text": "30 seconds were over"}
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["latency.json"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": "roofprof.sweep"}, "no roofprof.latency"),
        ({"schema_version": 9}, "version 9"),
        ({"notes": [{}]}, r"invalid roofprof.latency file: notes\[0\] lacks code, text, where"),
        ({"model": None}, "invalid roofprof.latency file: model is no text"),
        ({"times_ns": [1, "2"]}, r"times_ns\[1\] is no whole number"),
        ({"times_ns": 3}, "times_ns is no list"),
        ({"samples": 1.5}, "samples is no whole number"),
        ({"environment": {"torch": []}}, "environment.torch is no text or whole number or number"),
    ],
)
def test_what_is_no_latency_is_refused(change, words, tmp_path):
    file = tmp_path / "other.json"
    file.write_text(json.dumps(HUNDRED.to_dict() | change))
    with pytest.raises(ValueError, match=words) as raised:
        Latency.from_json(file)
    assert str(file) in str(raised.value)
    with pytest.raises(ValueError, match="lacks times_ns"):
        Latency.from_dict({key: value for key, value in HUNDRED.to_dict().items() if key != "times_ns"})
    file.write_text("{")
    with pytest.raises(ValueError, match=r"other\.json: this is not JSON: "):
        Latency.from_json(file)
    file.write_text("[]")
    with pytest.raises(ValueError, match=r"other\.json: this is no roofprof\.latency"):
        Latency.from_json(file)
