"""What must hold of every trace that others recorded: one total for all groupings, and no gain that is not there.

The truths are the trace's own events: the durations of what ran on the device, and the gaps between them.
"""

import re
from collections import defaultdict
from pathlib import Path

import gpu_traces
import pytest
from bare_speed import BUSY, SAME, broken_promises
from gpu_traces import FOLDER, ON_DEVICE
from report.test_recorded_with_roofs import cells_of_total

import roofprof

pytestmark = gpu_traces.needs_traces

TIMES = ("time", "lower_bound_time", "wasted_time")
VIEWS = ("module", "phase", "op", "dtype", "scope", "module,op")


def all_traces():
    return sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.json.gz")) if FOLDER.is_dir() else []


def read(name):
    return gpu_traces.read(FOLDER / name)


def events_of(name):
    return gpu_traces.events_of(FOLDER / name)


@pytest.fixture(params=all_traces(), scope="module")
def name(request):
    return request.param


@pytest.fixture
def report(name):
    return read(name)


CALLS = {"cuda_runtime", "cuda_driver", "Runtime"}


def gaps_of_devices(name):
    """Seconds in which devices ran something, and nothing between their first and their last launch."""
    intervals = defaultdict(list)
    for event in events_of(name):
        if event.get("cat") in ON_DEVICE:
            begin = float(event["ts"])
            intervals[event.get("args", {}).get("device")].append((begin, begin + float(event["dur"])))
    busy = idle = 0.0
    for of_device in intervals.values():
        until = min(begin for begin, _ in of_device)
        for begin, end in sorted(of_device):
            idle += max(begin - until, 0)
            busy += max(end - max(begin, until), 0)
            until = max(until, end)
    return busy / 1e6, idle / 1e6


def approximately(seconds):
    return None if seconds is None else pytest.approx(seconds * 1e9, abs=1)


def test_every_trace_is_read_written_and_shown(report):
    assert roofprof.Report.from_dict(report.to_dict()).to_dict() == report.to_dict()
    for by in ("module", "op", "kernel", "scope"):
        assert report.table(by=by)
    for figure in ("macs", "flops", "bytes", "time"):
        own = [getattr(row, f"self_{figure}") or 0 for row in report.rows]
        assert sum(own) == pytest.approx(getattr(report.total, figure) or 0, rel=1e-9), figure


@pytest.mark.integration
def test_every_trace_has_a_page(report, tmp_path):
    report.to_html(tmp_path / "r.html")


def test_calls_that_launched_are_known_to_launch(name):
    """CUPTI tells of functions with these words in their names; a kernel of another one would belong to no module."""
    source = (Path(__file__).parents[3] / "csrc/device/cupti/launch_calls.cpp").read_text()
    words = re.findall(r'"(\w+)"', re.search(r"kWords = \{(.*?)\}", source)[1])
    assert len(words) == 3
    ran = {event["args"].get("correlation") for event in events_of(name) if event.get("cat") in ON_DEVICE}
    calls = [event for event in events_of(name) if event.get("cat") in CALLS]
    launching = {event["name"] for event in calls if event.get("args", {}).get("correlation", -1) in ran}
    of_cuda = [call for call in launching if call.startswith("cu")]  # AMD's are not recorded by CUPTI
    assert not [call for call in of_cuda if not any(word in call for word in words)]


def test_every_grouping_has_the_same_total(report):
    alone = {"scope"} if not report.regions else set()
    alone |= {"module"} if len(report.rows) == 1 else set()  # such tables have no line for the total
    for by in set(VIEWS) - alone:
        cells = cells_of_total(report, by, ("bound", "percent_of_roof", *TIMES))
        in_total = {figure: cells[figure].value for figure in TIMES}
        assert in_total == {figure: approximately(getattr(report.total, figure)) for figure in TIMES}, by
        assert cells["bound"].text.lstrip("?") in (report.total.bound, "n/a", ""), by
        assert cells["percent_of_roof"].value == report.total.percent_of_roof, by
    if report.kernels:
        assert cells_of_total(report, "kernel", ("total",))["total"].value == approximately(report.total.time)


def test_groups_add_up_to_the_total(report):
    for keys in ([], ["phase"], ["op"], ["dtype"], ["module", "op"]):
        groups = report.group(*keys)
        times = [group.time for group in groups]
        if None not in times and report.total.op_time is not None:
            assert sum(times) == pytest.approx(report.total.op_time, abs=SAME), keys
        bounds = [group.lower_bound_time for group in groups]
        if None not in bounds and report.total.lower_bound_time is not None:
            assert sum(bounds) == pytest.approx(report.total.lower_bound_time, abs=SAME), keys


def test_no_finding_gains_what_is_not_there(name, report):
    busy, idle = gaps_of_devices(name)
    call = (report.total.time or 0) + idle
    assert broken_promises(report, call, busy if busy >= BUSY * (busy + idle) else 0, idle) == []


def test_what_launched_nothing_is_held_against_no_roof(report):
    """It ran on the host, or was captured: none of the device's time is its."""
    for group in report.group("module", "op", "shapes"):
        if group.time == 0 and group.kernel_count == 0:
            assert not group.lower_bound_time, group.keys
            assert group.percent_of_roof is None, group.keys


def test_what_a_loader_did_on_the_host_is_held_against_no_roof_of_the_gpu():
    """A V100's trace of 2021: 192 divisions of images, 1.2 MB each time read and written, and no kernel among them."""
    loading = read("kineto/resnet50_2021.json.gz").row("(outside).(data loading)")
    assert loading.bytes > 200e6
    assert loading.kernel_count == loading.time == 0
    assert loading.lower_bound_time is loading.attainable is loading.wasted_time is None
    assert loading.bound == "unknown"


def test_a_capture_needs_none_of_the_time_that_passed_meanwhile():
    """SGLang's capture of a decode step: 11 us of fills ran, and 485 GFLOP were captured for later."""
    (name,) = [name for name in all_traces() if "bs_32_rank0" in name]
    total = read(name).total
    assert total.flops > 400e9
    assert total.lower_bound_time <= total.time < 20e-6
    assert total.wasted_time >= 0


def test_a_device_that_had_not_begun_is_nobodys_gain():
    """TimeSformer: busy for 99.0% of the time between its first kernel and its last, its softmax for 43% of that."""
    (name,) = [name for name in all_traces() if "facebook_timesformer" in name]
    busy, idle = gaps_of_devices(name)
    assert busy / (busy + idle) > 0.98
    findings = read(name).findings
    assert "softmax" in findings[0].op
    (outside,) = [finding for finding in findings if finding.rule == "idle-outside"]
    assert outside.gain_high == 0
    assert outside is findings[-1]
