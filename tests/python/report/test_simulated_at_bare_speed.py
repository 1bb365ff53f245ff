"""What findings may promise of runs on a simulated device: gaps, dense kernels, copies, two streams.

Nothing in here is measured. Truths are made of the durations that the simulated device was given, by arithmetic.
"""

import copy

import pytest
from bare_speed import BUSY, SAME, broken_promises
from simulated_gpu import FAKES, PATTERNS, simulated

import roofprof

pytestmark = pytest.mark.skipif(not FAKES.is_dir(), reason="the fake libraries are not built (no CUPTI headers)")


@pytest.fixture(scope="module")
def recorded():
    return simulated("patterns")


@pytest.fixture(params=PATTERNS)
def pattern(request):
    return request.param


def busy_and_between(pattern):
    """Seconds in which a device with these launches runs something, and nothing between the first and the last.

    A launch takes the host a fixed time, and its work begins when the host is through and its stream is free.
    """
    launch_ns, passes = PATTERNS[pattern]
    host = until = busy = between = 0
    first = None
    free = {}
    for kernel_ns, stream, copy_ns in passes:
        for duration in filter(None, (kernel_ns, copy_ns)):
            host += launch_ns
            begin = max(host, free.get(stream, 0))
            end = free[stream] = begin + duration
            if first is None:
                first = until = begin
            between += max(begin - until, 0)
            busy += max(end - max(begin, until), 0)
            until = max(until, end)
    return busy / 1e9, between / 1e9


def without_the_simulation(recorded, bare):
    """Return the report that a device with these records would give: its calls take so many seconds each without a
    profiler; None: nobody timed such calls.
    """
    report = copy.deepcopy(recorded)
    report["notes"] = [note for note in report["notes"] if note["code"] != "simulated-device"]
    report["runs"]["bare_ns"] = [] if bare is None else [round(bare * 1e9)] * 3
    if bare is not None:
        report.pop("idle_basis")  # as an older roofprof left it: it is settled by the bare calls
    return roofprof.Report.from_dict(report)


def test_the_device_is_idle_as_its_launches_say(recorded, pattern):
    busy, between = busy_and_between(pattern)
    total = roofprof.Report.from_dict(recorded[pattern]).total
    assert total.busy == pytest.approx(busy, abs=SAME)
    assert total.idle_between == pytest.approx(between, abs=SAME)


def test_some_patterns_are_busy_and_some_are_not():
    shares = [busy / (busy + between) for busy, between in map(busy_and_between, PATTERNS)]
    assert min(shares) < 0.2
    assert sum(share >= BUSY for share in shares) >= 3


def test_what_was_seen_promises_no_more_than_is_there(recorded, pattern):
    busy, between = busy_and_between(pattern)
    report = without_the_simulation(recorded[pattern], None)
    assert broken_promises(report, busy + between, busy, between) == []


@pytest.mark.parametrize("slower", [1, 1.02, 1.3, 2, 10])
def test_a_bare_call_bounds_every_promise(recorded, pattern, slower):
    """The call takes so many times its busy time without a profiler, whatever gaps the observed one had."""
    busy, _ = busy_and_between(pattern)
    call = slower * busy
    report = without_the_simulation(recorded[pattern], call)
    assert report.total.idle == pytest.approx(call - busy, abs=SAME)
    assert broken_promises(report, call, busy, call - busy) == []


def test_waiting_is_found_where_there_is_any(recorded):
    """Else the promises above would be kept by silence."""
    busy, between = busy_and_between("gaps")
    report = without_the_simulation(recorded["gaps"], busy + between)
    [finding] = [finding for finding in report.findings if finding.rule == "idle-device"]
    assert 0 < finding.gain_high <= between + SAME
    assert report.total.bound == "overhead"
