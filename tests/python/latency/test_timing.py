"""Calls timed without an observer: how long, how often, and what they leave behind."""

import functools
import itertools
import resource
import time
from types import SimpleNamespace

import pytest
import torch
from leavers import CASES, state_after
from sameness import assert_nothing_observes, difference
from torch import nn

import roofprof
from roofprof import _C, RooflineProfiler

QUICK = {"warmup": 2, "repeat": 3}


def timed(model, *args, **kwargs):
    return RooflineProfiler(model).time(*args, **{"warmup": 1, "repeat": 12} | kwargs)


class CountsCalls(nn.Module):
    calls = 0

    def forward(self, value, **more):
        type(self).calls += 1
        return value


class Machine:
    """Clocks that stand still but where a test moves them: nothing depends on how fast this machine is."""

    def __init__(self, monkeypatch):
        self.wall_ns = self.user_ns = self.system_ns = 0
        monkeypatch.setattr(time, "perf_counter_ns", lambda: self.wall_ns)
        monkeypatch.setattr(time, "perf_counter", lambda: self.wall_ns * 1e-9)
        monkeypatch.setattr(resource, "getrusage", self.used)

    def used(self, who):
        assert who == resource.RUSAGE_SELF
        return SimpleNamespace(ru_utime=self.user_ns * 1e-9, ru_stime=self.system_ns * 1e-9)

    def takes(self, wall_ns, user_ns=0, system_ns=0):
        """A model whose calls take so much."""

        class Takes(nn.Module):
            def forward(_, value):  # noqa: N805
                self.wall_ns += wall_ns
                self.user_ns += user_ns
                self.system_ns += system_ns
                return value

        return Takes()


@pytest.fixture
def machine(monkeypatch):
    return Machine(monkeypatch)


@pytest.fixture
def counted(monkeypatch, machine):
    monkeypatch.setattr(CountsCalls, "calls", 0)
    return CountsCalls


# ---- times


def test_times_are_those_of_the_clock(monkeypatch):
    """Each call moves the clock by the next of these; all else takes no time."""
    clock = [0]
    took = itertools.chain([5, 7], range(1_000, 2_000_001, 1_000))  # first call, warm-up; 1 to 2,000 us

    class Moves(nn.Module):
        def forward(self, value):
            clock[0] += next(took)
            return value

    monkeypatch.setattr(time, "perf_counter_ns", lambda: clock[0])
    model = Moves()
    latency = RooflineProfiler(model).time(torch.zeros(2, 1), warmup=1, repeat=200)
    assert latency.times_ns == tuple(range(1_000, 200_001, 1_000))
    assert latency.warmup == 2
    assert latency.median == pytest.approx(100.5e-6)
    assert latency.p10 == pytest.approx(20.9e-6)
    assert latency.p90 == pytest.approx(180.1e-6)
    assert latency.p99 == pytest.approx(198.01e-6)
    assert latency.samples_per_second == pytest.approx(2 / 100.5e-6)


def test_the_processors_time_is_that_of_the_timed_calls(machine):
    asleep = timed(machine.takes(20_000_000), torch.zeros(1))
    assert asleep.real_time == pytest.approx(12 * 0.02)
    assert asleep.user_time == asleep.system_time == asleep.cpu_utilization == 0
    latency = timed(machine.takes(20_000_000, user_ns=12_000_000, system_ns=3_000_000), torch.zeros(1))
    assert latency.user_time == pytest.approx(12 * 0.012)
    assert latency.system_time == pytest.approx(12 * 0.003)
    assert latency.processors == _C.usable_processors()
    assert latency.cpu_utilization == pytest.approx(100 * (12 + 3) / (20 * latency.processors))


# ---- how often


def test_fifty_calls_warm_up_and_two_hundred_are_timed(counted):
    latency = roofprof.time(counted(), torch.zeros(3))
    assert counted.calls == 1 + 50 + 200
    assert len(latency.times_ns) == 200
    assert latency.warmup == 51
    assert latency.p99 is not None
    assert not latency.notes


def test_a_slow_model_is_stopped_with_a_sentence(machine):
    latency = RooflineProfiler(machine.takes(60_000_000)).time(torch.zeros(1), seconds=0.5)
    # A fifth of the time is for the warm-up: 50 of 250 calls. Timed calls begin while the clock is at most at 500 ms.
    assert (latency.warmup, len(latency.times_ns)) == (1 + 1, 8)
    (note,) = latency.notes
    assert note.code == "timing-stopped"
    calls = f"after {latency.warmup} calls for warm-up and {len(latency.times_ns)} of 200 timed ones"
    assert f"0.5 seconds were over {calls}" in note
    assert calls in " ".join(str(latency).split())


# ---- how much is in a call


@pytest.mark.parametrize(
    ("args", "kwargs", "samples"),
    [
        ((torch.zeros(8, 3),), {}, 8),
        (({"image": torch.zeros(4, 3), "boxes": [torch.zeros(4)], "scale": torch.tensor(2.0), "name": "x"},), {}, 4),
        ((), {"ids": torch.zeros(2, 16, dtype=torch.int64), "mask": torch.zeros(2, 16)}, 2),
        ((torch.zeros(1, 128, requires_grad=True),), {}, 1),
    ],
)
def test_samples_are_the_leading_dimension_of_all_inputs(args, kwargs, samples):
    latency = roofprof.RooflineProfiler(lambda *_, **__: None).time(*args, **QUICK, **kwargs)
    assert latency.samples == samples
    assert latency.samples_from == "the leading dimension of the inputs"


@pytest.mark.parametrize(
    ("inputs", "why"),
    [
        ((torch.zeros(8, 3), torch.zeros(5, 3)), "the inputs' leading dimensions are 5, 8"),
        ((3, torch.tensor(1.0)), "no input is a tensor with dimensions"),
        ((torch.zeros(0, 3),), "the inputs are empty"),
    ],
)
def test_samples_that_are_not_clear_are_requested(inputs, why):
    prof = RooflineProfiler(lambda *_: None)
    latency = prof.time(*inputs, **QUICK)
    assert latency.samples is None
    assert latency.samples_per_second is None
    assert why in latency.not_available["samples_per_second"]
    assert prof.time(*inputs, **QUICK, samples=5).samples == 5


# ---- what is left behind


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("case", CASES)
def test_all_is_as_one_plain_call_leaves_it(case):
    def all_after(call):
        return state_after(case, call) | {"grad mode": torch.is_grad_enabled()}

    grad_mode = torch.is_grad_enabled()
    after_time = all_after(lambda model, args, kwargs: RooflineProfiler(model).time(*args, **QUICK, **kwargs))
    torch.set_grad_enabled(grad_mode)
    after_call = all_after(lambda model, args, kwargs: model(*args, **kwargs))
    torch.set_grad_enabled(grad_mode)
    assert difference(after_time, after_call) is None


class RaisesAt(nn.Module):
    """Raises in its k-th call, after it changed what is within its reach."""

    calls = 0

    def __init__(self, at):
        super().__init__()
        self.at = at
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, batch):
        type(self).calls += 1
        self.seen += 1
        batch.pop("image")
        if type(self).calls == self.at:
            raise ERROR
        return self.seen


ERROR = KeyError("lost agent")


@pytest.mark.parametrize("at", [1, 2, 4, 6], ids=["first", "warm-up", "timed", "last timed"])
def test_an_exception_of_any_call_comes_through_and_leaves_one_call_behind(at, monkeypatch):
    monkeypatch.setattr(RaisesAt, "calls", 0)
    model, batch = RaisesAt(at), {"image": torch.zeros(1, 3)}
    prof = RooflineProfiler(model)
    with pytest.raises(KeyError) as raised:
        prof.time(batch, **QUICK)
    assert raised.value is ERROR
    assert model.calls == at
    assert model.seen == 1
    assert not batch
    assert_nothing_observes()
    RaisesAt.at = 0
    model.at = 0
    assert prof.time({"image": torch.zeros(1, 3)}, **QUICK).samples == 1  # it can be used again


def test_nothing_observes_what_is_timed():
    tables = nn.modules.module._global_forward_pre_hooks
    seen = []

    class Looks(nn.Module):
        def forward(self, value):
            seen.append(len(tables))
            return value

    timed(Looks(), torch.zeros(1))
    assert set(seen) == {0}


# ---- what cannot be timed


def test_what_cannot_be_timed_is_refused_in_a_sentence():
    linear = nn.Linear(4, 2)
    with pytest.raises(ValueError, match=r"cannot be timed: tensors on the meta device hold no data"):
        roofprof.time(linear.to("meta"), torch.zeros(1, 4, device="meta"))
    with pytest.raises(ValueError, match="use up an iterator among its inputs; give it a list"):
        roofprof.time(sum, iter([1, 2]))
    with pytest.raises(TypeError, match="has no model to run"):
        RooflineProfiler(None).time()
    prof = RooflineProfiler(nn.Identity())
    with prof, pytest.raises(RuntimeError, match="block is open"):
        prof.time(torch.zeros(1))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"warmup": -1}, ValueError, "warmup must be 0 or more, not -1"),
        ({"repeat": 0}, ValueError, "repeat must be 1 or more, not 0"),
        ({"repeat": 2.5}, TypeError, "repeat must be a whole number, not 2.5"),
        ({"seconds": 0}, ValueError, "seconds must be more than 0, not 0"),
        ({"samples": 0}, ValueError, "samples must be 1 or more, not 0"),
        (
            {"tokens": torch.zeros(40, 40)},
            TypeError,
            "of type Tensor; to hand a keyword of that name to the",
        ),
    ],
)
def test_wrong_options_are_refused_before_the_model_is_called(options, error, words, counted):
    with pytest.raises(error, match=words):
        RooflineProfiler(counted()).time(torch.zeros(1), **options)
    assert counted.calls == 0


# ---- a GPU, imitated: no GPU has run this


class FakeDevice:
    """A stream on which each call takes 3 ms, begun at once; the host's part takes 1 ms."""

    def __init__(self):
        self.host = 0  # ns
        self.done = 0
        self.waits = 0

    def launch(self):
        self.host += 1_000_000
        self.done = max(self.done, self.host) + 3_000_000

    def synchronize(self, device=None):
        self.waits += 1
        self.host = max(self.host, self.done)


@pytest.fixture
def device(monkeypatch):
    fake = FakeDevice()

    class Event:
        def __init__(self, enable_timing=False):
            assert enable_timing

        def record(self, stream):
            assert stream == "stream"
            self.at = max(fake.host, fake.done)

        def elapsed_time(self, end):
            return (end.at - self.at) / 1e6

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: "stream")
    monkeypatch.setattr(torch.cuda, "synchronize", fake.synchronize)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: fake.host)
    return fake


def test_a_gpus_calls_are_timed_by_events_and_queued_ones_overlap(device):
    class Launches(nn.Module):
        def forward(self, value):
            device.launch()
            return value

    latency = RooflineProfiler(Launches(), device="cuda").time(torch.zeros(8, 1), warmup=5, repeat=100)
    assert latency.clock == "device events"
    assert set(latency.times_ns) == {4_000_000}  # 1 ms until it begins, 3 ms of work
    assert set(latency.wall_times_ns) == {4_000_000}
    assert latency.samples_per_second == pytest.approx(8 / 4e-3)
    # 50 calls back to back: the host's parts of all but the first hide behind the device's work.
    assert latency.queued_calls == 50
    assert latency.queued_ns == 1_000_000 + 50 * 3_000_000
    assert latency.queued_samples_per_second == pytest.approx(50 * 8 / 0.151)
    assert latency.not_available["gpu_utilization"]
    assert device.waits == 2 * (1 + 5 + 100) + 2


# ---- options and the model's own arguments


class Named(nn.Module):
    """A model whose forward has arguments named as options are."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.seen = []

    def forward(self, x, tokens=None, samples=1, repeat=1, batches=None, *, seconds=0):
        self.seen.append((tokens, samples, repeat, batches, seconds))
        return self.linear(x)


@pytest.mark.parametrize("option", ["tokens", "samples", "repeat", "seconds"])
def test_an_option_that_the_model_takes_too_is_refused_before_it_runs(option):
    model = Named()
    with pytest.raises(TypeError, match=f"^{option}= is an option of time\\(\\) and an argument of the model: "):
        RooflineProfiler(model).time(torch.rand(2, 4), **{option: 3})
    assert model.seen == []


def test_given_by_position_or_bound_the_models_argument_leaves_the_option_free():
    model = Named()
    latency = RooflineProfiler(model).time(torch.rand(2, 4), "mine", 5, 7, warmup=0, repeat=2, tokens=64)
    assert latency.tokens == 64
    assert set(model.seen) == {("mine", 5, 7, None, 0)}
    model.seen.clear()
    bound = functools.partial(model, repeat=9, seconds=1)
    RooflineProfiler(bound).time(torch.rand(2, 4), warmup=0, repeat=2)
    assert {(repeat, seconds) for _, _, repeat, _, seconds in model.seen} == {(9, 1)}
