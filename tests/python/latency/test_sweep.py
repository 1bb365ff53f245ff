"""Sweeps over batch sizes: inputs of any batch, when they end, the knee, the picture."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace

import pytest
import torch
from given_latencies import MS, latency
from leavers import state_after
from sameness import difference
from torch import nn

from roofprof import LatencySweep, Note, RooflineProfiler
from roofprof.latency import sweeping
from roofprof.latency.batches import ScaledInputs

QUICK = {"warmup": 1, "repeat": 10}
POWERS = [1 << power for power in range(11)]


def swept(times: dict[int, float], **given) -> LatencySweep:
    """Of median latencies in seconds, by batch."""
    points = (latency([round(t * 1e9)] * 100, samples=batch, **given) for batch, t in times.items())
    return LatencySweep(tuple(points), "all of the batch sizes are measured")


# ---- the knee


@pytest.mark.parametrize("overhead", [0.5, 3.0, 20.0, 100.0])
def test_the_knee_of_a_saturating_curve_has_a_closed_form(overhead):
    # t(b) = a + b / c: throughput b / t = c b / (k + b), k = a c. Nine tenths of that at the largest batch B are
    # reached where b / (k + b) = 0.9 B / (k + B), that is at b = 0.9 k B / (k + 0.1 B).
    rate, largest = 1000.0, POWERS[-1]
    first = 0.9 * overhead * largest / (overhead + 0.1 * largest)
    curve = swept({batch: overhead / rate + batch / rate for batch in POWERS})
    assert curve.knee.samples == next(batch for batch in POWERS if batch >= first)
    assert curve.best.samples == largest


def test_a_knee_that_was_not_reached_is_not_claimed():
    rising = swept(dict.fromkeys(POWERS, 0.01))  # all batches take as long
    assert rising.knee is None
    assert rising.knee_text == "none up to batch 1024: throughput still rises"
    assert "<- knee" not in str(rising)
    alone = swept({4: 0.01})
    assert alone.knee is None
    assert "one batch size alone" in alone.knee_text


def test_a_knee_of_too_few_calls_is_not_claimed():
    few = [
        replace(point, times_ns=point.times_ns[:calls])
        for calls, point in zip((9, 10), SATURATING.points, strict=False)
    ]
    sweep = LatencySweep((*few, *SATURATING.points[2:]), "")
    assert sweep.knee is None
    assert sweep.knee_text == "n/a: it needs 10 timed calls of each batch, and batch 1 had time for 9"


# ---- inputs


def test_tensors_are_repeated_and_cut_wherever_they_are():
    image = torch.arange(6.0).reshape(2, 3)
    batch = {"image": image, "list": [torch.tensor([5, 6])], "scale": torch.tensor(2.0), "name": "scene"}
    make = ScaledInputs((batch,), {"mask": torch.tensor([True, False])})
    (given,), keywords = make(5)
    assert given["image"].tolist() == image[[0, 1, 0, 1, 0]].tolist()
    assert given["list"][0].tolist() == [5, 6, 5, 6, 5]
    assert given["scale"] is batch["scale"]
    assert given["name"] == "scene"
    assert keywords["mask"].tolist() == [True, False, True, False, True]
    (given,), _ = make(1)
    assert given["image"].tolist() == image[:1].tolist()
    assert batch["image"] is image


@dataclass
class Held:
    value: torch.Tensor


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((torch.zeros(8, 3), torch.zeros(5, 3)), "leading dimensions are 5, 8; give inputs="),
        ((3,), "no input is a tensor with dimensions; give inputs="),
        ((Held(torch.zeros(2, 3)),), "inside of an object, out of reach; give inputs="),
        ((torch.zeros(2, 3).to_sparse(),), "cannot be given another batch; give inputs="),
    ],
)
def test_inputs_that_are_not_clear_are_refused(args, words):
    called = []
    with pytest.raises(ValueError, match=words):
        RooflineProfiler(called.append).time_sweep(*args)
    assert not called


# ---- sweeps


class Sees(nn.Module):
    """Takes a millisecond, and as much for sixteen samples; notes what it is given."""

    def forward(self, value):
        SEEN.append(len(value))
        CLOCK[0] += round(1e6 * (1 + len(value) / 16))
        return value


SEEN: list[int] = []
CLOCK = [0]  # ns


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Only these calls take time."""
    SEEN.clear()
    monkeypatch.setattr(time, "perf_counter_ns", lambda: CLOCK[0])
    monkeypatch.setattr(time, "perf_counter", lambda: CLOCK[0] * 1e-9)


def test_batches_that_are_requested_are_measured_smallest_first():
    sweep = RooflineProfiler(Sees()).time_sweep(torch.zeros(4, 2), batches=[8, 2, 2, 3], **QUICK)
    assert sweep.batches == [2, 3, 8]
    calls = 1 + 1 + 10  # the first, to warm up, timed
    assert [4] + [2] * calls + [3] * calls + [8] * calls == SEEN
    assert sweep.ended == "all of the batch sizes are measured"
    assert sweep.point(3).samples_per_second == pytest.approx(3 / sweep.point(3).median)
    with pytest.raises(KeyError, match="no batch 5, but 2, 3, 8"):
        sweep.point(5)


def test_default_batches_double_until_throughput_rises_no_more():
    sweep = RooflineProfiler(Sees()).time_sweep(torch.zeros(4, 2), **QUICK)
    # Throughput is 16,000 b / (16 + b) per second. From b to 4 b it rises by less than 5% where 64 + 4 b < 1.05 (16 +
    # 4 b), that is from 236 on; nine tenths of that at 1024 are reached at 0.9 x 16 x 1024 / (16 + 102.4) = 124.5.
    assert sweep.batches == POWERS
    assert sweep.ended == "throughput rose by less than 5% over the last two doublings"
    assert sweep.knee.samples == 128
    assert sweep.best.samples_per_second == pytest.approx(16_000 * 1024 / 1040)


def test_a_callable_may_make_the_inputs():
    def make(batch):
        return (torch.zeros(batch, 2),), {}

    sweep = RooflineProfiler(Sees()).time_sweep(inputs=make, batches=[2, 4], tokens=32, **QUICK)
    assert sweep.batches == [2, 4]
    assert [point.tokens for point in sweep.points] == [32, 64]
    assert SEEN[0] == 2
    with pytest.raises(TypeError, match="not both"):
        RooflineProfiler(Sees()).time_sweep(torch.zeros(1), inputs=make)


def test_the_time_limit_ends_a_sweep():
    class Slow(nn.Module):
        def forward(self, value):
            CLOCK[0] += 20_000_000

    sweep = RooflineProfiler(Slow()).time_sweep(torch.zeros(1, 1), seconds=1.0)
    assert 1 <= len(sweep.batches) < 7
    assert sweep.ended.startswith("at the time limit: 10 calls with batch")
    assert "of 1 seconds" in sweep.ended


def test_the_memory_that_is_left_ends_a_sweep(monkeypatch):
    monkeypatch.setattr(sweeping._C, "available_memory_bytes", lambda: 1000)
    monkeypatch.setattr(sweeping, "_resident_bytes", lambda: 0)
    monkeypatch.setattr(sweeping, "_highest_resident_bytes", lambda: 130 * SEEN[-1])
    sweep = RooflineProfiler(Sees()).time_sweep(torch.zeros(1, 1), **QUICK)
    assert sweep.batches == [1, 2, 4]  # eight may need 1,040 bytes, and 800 are taken at most
    assert sweep.ended.startswith("at the memory limit: batch 8 may need")


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("no room"), MemoryError("no room")])
def test_an_allocation_that_fails_ends_a_sweep(error):
    class Large(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, value):
            self.calls += 1
            CLOCK[0] += 1000
            if len(value) > 2:
                raise error

    model = Large()
    sweep = RooflineProfiler(model).time_sweep(torch.zeros(1, 1), **QUICK)
    assert sweep.batches == [1, 2]
    assert sweep.ended == "at the memory's end, with batch 4: no room"
    assert model.calls == 1
    with pytest.raises(type(error)):
        RooflineProfiler(model).time_sweep(torch.zeros(4, 1), batches=[4], **QUICK)


def test_other_errors_come_through_and_say_at_which_batch():
    error = RuntimeError("sizes do not match")

    class Fixed(nn.Module):
        def forward(self, value):
            CLOCK[0] += 1000
            if len(value) == 4:
                raise error

    with pytest.raises(RuntimeError) as raised:
        RooflineProfiler(Fixed()).time_sweep(torch.zeros(1, 1), **QUICK)
    assert raised.value is error
    if hasattr(error, "__notes__"):
        assert error.__notes__ == ["roofprof: that was at batch 4 of a sweep over batch sizes"]


@pytest.mark.parametrize(
    ("batches", "error", "words"),
    [
        ("all", TypeError, "'auto' or a list of whole numbers, not 'all'"),
        ([], ValueError, "at least one"),
        ([1, 0], ValueError, "1 or more, not 0"),
        ([1.5], TypeError, "whole number, not 1.5"),
    ],
)
def test_batches_that_cannot_be_meant_are_refused(batches, error, words):
    with pytest.raises(error, match=words):
        RooflineProfiler(Sees()).time_sweep(torch.zeros(1), batches=batches)
    assert not SEEN


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("case", ["batch norm and dropout", "plain attributes", "caches", "buffers", "own optimizer"])
def test_all_is_as_one_plain_call_leaves_it(case, monkeypatch):
    monkeypatch.undo()  # the clock

    def sweep(model, args, kwargs):
        RooflineProfiler(model).time_sweep(*args, batches=[2, 3], warmup=1, repeat=2, **kwargs)

    assert (
        difference(state_after(case, sweep), state_after(case, lambda model, args, kwargs: model(*args, **kwargs)))
        is None
    )


# ---- shown and written


SATURATING = swept({batch: 0.02 + batch / 1000 for batch in POWERS[:9]}, user_ns=5000 * MS)


def test_text():
    assert (
        str(LatencySweep(SATURATING.points[5:], SATURATING.ended))
        == """\
roofprof  Net on cpu (a machine on paper, 2 threads, torch 2.15.0)
          4 batch sizes, 100 timed calls each; clock: perf_counter

batch  median latency     p10     p90  samples/s    CPU  calls
───────────────────────────────────────────────────────────────────────
   32          52.0ms  52.0ms  52.0ms        615  48.1%    100
   64          84.0ms  84.0ms  84.0ms        762  29.8%    100
  128           148ms   148ms   148ms        865  16.9%    100  <- knee
  256           276ms   276ms   276ms        928   9.1%    100

knee      batch 128: 93.2% of the highest throughput (928 samples/s at batch 256), with a latency of 148ms in place of
          276ms
ended     all of the batch sizes are measured
terms     latency: the time of one call with that batch; throughput: its samples / the median latency; CPU: 100 x (user
          + system time) / (real time x processors); knee: the smallest batch whose throughput is within 10% of the
          highest"""
    )


def test_notes_of_one_code_are_reported_once_with_their_batches():
    busy = [Note("machine-busy", f"others used {share}% of the processors") for share in (20, 30)]
    stopped = Note("timing-stopped", "5 seconds were over")
    one, two, three = SATURATING.points[:3]
    points = (replace(one, notes=(busy[0], stopped)), replace(two, notes=(busy[1],)), three)
    text = str(LatencySweep(points, ""))
    assert text.startswith("ATTENTION batch 1, 2: others used 20% of the processors\n")
    assert text.count("others") == 1
    assert "5 seconds" not in text  # the table has the number of calls


def test_json_gives_the_same_again(tmp_path):
    SATURATING.to_json(tmp_path / "sweep.json")
    assert LatencySweep.from_json(tmp_path / "sweep.json") == SATURATING
    stored = json.loads((tmp_path / "sweep.json").read_text())
    assert stored["schema"] == "roofprof.sweep"
    assert stored["batches"] == POWERS[:9]
    assert stored["knee_batch"] == 128
    assert stored["points"][0]["latency"]["median_ns"] == 21 * MS
    with pytest.raises(ValueError, match=r"no roofprof\.sweep"):
        LatencySweep.from_dict(stored["points"][0])


@pytest.mark.integration
def test_the_picture_has_latency_and_throughput_in_panels_of_their_own(tmp_path):
    figure = SATURATING.plot(tmp_path / "sweep.png")
    above, below = figure.axes
    assert "throughput" in above.get_ylabel()
    assert "latency" in below.get_ylabel()
    assert above.lines[0].get_xydata().tolist() == [
        [point.samples, point.samples_per_second] for point in SATURATING.points
    ]
    assert below.lines[0].get_xydata().tolist() == [[point.samples, point.median] for point in SATURATING.points]
    assert [line.get_xdata()[0] for line in (above.lines[1], below.lines[1])] == [128, 128]
    for name in ("sweep.svg", "sweep.pdf"):
        SATURATING.plot(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sweep.pdf", "sweep.png", "sweep.svg"]
