"""The events that are kept of a run: whose they are, and that they add up to the report's times."""

from __future__ import annotations

import itertools
import threading
from collections import Counter, defaultdict

import pytest
import torch
from given_roofs import profiler
from hypothesis import given
from hypothesis import strategies as st
from simulated_gpu import GEMM_NS, simulated
from torch import nn
from torch.utils.checkpoint import checkpoint

import roofprof
from roofprof import Report
from roofprof.render.traces.timeline import Slice, nested, side_by_side, timeline


class Net(nn.Module):
    """Modules below modules, ops below ops (einsum is looked through), a region, and checkpointing."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(16, 32), nn.GELU())
        self.last = nn.Linear(32, 8)

    def forward(self, x):
        with roofprof.scope("features"):
            x = checkpoint(self.first, x, use_reentrant=False)
        x = torch.einsum("bi,bj->bij", x, x).sum(1)
        return self.last(x)


@pytest.fixture(name="report", scope="module")
def _report():
    net = Net()
    prof = profiler(net, repeat=3, keep_events=True)
    return prof.run_step(lambda x: net(x).sum().backward(), torch.rand(4, 16))


def own_times(slices):
    """What each slice took without those inside of it. ``slices`` nest, outer ones first."""
    own = {}
    stack = []
    for i, slice_ in enumerate(slices):
        while stack and slices[stack[-1]].end_ns <= slice_.begin_ns:
            stack.pop()
        own[i] = slice_.end_ns - slice_.begin_ns
        if stack:
            own[stack[-1]] -= own[i]
        stack.append(i)
    return [(slices[i], ns) for i, ns in own.items()]


def test_ops_and_modules_add_up_to_the_rows_they_come_from(report):
    every = timeline(report._compiled)
    path_of = {report.model: ""}
    times, calls = defaultdict(int), Counter()
    for track in every.ops:
        for op, ns in own_times(track):
            assert op.kind == "op"
            key = path_of.get(op.facts["module"], op.facts["module"]), op.name
            times[key] += ns
            calls[key] += 1
    groups = {key: group for key, group in report.by_module_and_operator().items() if group.time}
    assert groups.keys() == times.keys()
    for key, group in groups.items():
        assert calls[key] == group.calls, key
        # Each end of an event is rounded to a nanosecond, and so are those inside of it.
        assert times[key] == pytest.approx(group.time * 1e9, abs=4 * group.calls + 4), key

    called = Counter()
    for track in every.scopes:
        called.update(s.facts["module"] for s in track if s.facts["phase"] in {"forward", "recompute"})
    for row in report.rows:
        if row.calls:
            assert called[row.path or report.model] == row.calls, row.path
    # They are those of the run that the rows come from.
    last = max(s.end_ns for track in (*every.scopes, *every.ops) for s in track)
    runs = report.to_dict()["runs"]
    assert 0 < last <= runs["total_ns"][runs["chosen"]]


def test_ops_lie_in_the_modules_and_regions_that_ran_them(report):
    every = timeline(report._compiled)
    scopes = [s for s in every.scopes[0] if s.kind == "module" and s.facts["phase"] == "forward"]
    (region,) = [s for s in every.scopes[0] if s.kind == "region"]
    assert region.name == "features"
    for op in every.ops[0]:
        if op.facts["phase"] == "forward" and op.facts["module"] != "(outside)":
            inside = [s for s in scopes if s.begin_ns <= op.begin_ns and op.end_ns <= s.end_ns]
            assert inside[-1].facts["module"] == op.facts["module"]
        within = region.begin_ns <= op.begin_ns and op.end_ns <= region.end_ns
        assert ("region" in op.facts) >= within
    # A part of a report has the events of that part, and one that is read again all of them.
    part = timeline(report.within("features")._compiled)
    names = Counter(op.name for op in every.ops[0] if op.facts.get("region") == "features")
    assert Counter(op.name for track in part.ops for op in track) == names
    assert names
    assert timeline(Report.from_dict(report.to_dict())._compiled) == every


def test_each_thread_has_its_own():
    net = Net()

    def on_threads(x):
        threads = [threading.Thread(target=lambda: net.last(torch.rand(4, 32))) for _ in range(2)]
        for thread in threads:
            thread.start()
            thread.join()
        net(x)

    prof = profiler(net, keep_events=True)
    with prof:
        on_threads(torch.rand(4, 16))
    every = timeline(prof.report()._compiled)
    assert len(every.ops) == 3
    linear = Counter(thread for thread, track in enumerate(every.ops) for op in track if op.facts["module"] == "last")
    assert set(linear) == {0, 1, 2}


def test_what_raised_leaves_what_ran_before_and_nothing_behind():
    class Raises(nn.Module):
        def forward(self, x):
            torch.mm(x, x)
            raise KeyError("the user's own")

    net = nn.Sequential(nn.Linear(4, 4), Raises())
    prof = profiler(net, keep_events=True)
    with pytest.raises(KeyError, match="the user's own"), prof:
        net(torch.rand(4, 4))
    every = timeline(prof.report()._compiled)
    assert [op.name for op in every.ops[0]] == ["aten::rand", "aten::linear", "aten::mm"]
    assert {s.name for s in every.scopes[0]} == {"Sequential", "0", "1"}
    # The next run begins anew.
    net[1] = nn.Identity()
    again = timeline(prof.run(torch.rand(4, 4))._compiled)
    assert [op.name for op in again.ops[0]] == ["aten::linear"]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("module", 99, "belongs to no module"),
        ("region", 99, "ran in no region"),
        ("name", 999, "has a name that the profile has not"),
        ("bucket", 999, "belongs to no op"),
        ("end_ns", -1, "ends before it begins"),
        ("begin_ns", -5, "begins before the run"),
        ("thread", 10**12, "is on no thread"),
        ("kind", "thing", "cannot be 'thing'"),
    ],
)
def test_a_file_with_events_that_do_not_fit_is_refused(report, column, value, message):
    written = report.to_dict()
    host = written["events"]["host"]
    host["rows"][0][host["columns"].index(column)] = value
    with pytest.raises(ValueError, match=message):
        Report.from_dict(written)


# ---- slices


def slice_of(name, begin, end, kind="op"):
    return Slice(0, kind, name, begin, end)


def test_what_ends_after_the_slice_around_it_is_cut_there():
    slices = nested([slice_of("op", 5, 15), slice_of("module", 0, 10, "module"), slice_of("inside", 12, 14)])
    shown = [(s.name, s.begin_ns, s.end_ns) for s in slices]
    assert shown == [("module", 0, 10), ("op", 5, 10), ("op", 10, 15), ("inside", 12, 14)]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=20))
def test_launches_that_run_side_by_side_get_lanes(times):
    launches = [slice_of(str(i), begin, begin + ns, "kernel") for i, (begin, ns) in enumerate(sorted(times))]
    lanes = side_by_side(launches)
    assert sorted(int(s.name) for lane in lanes for s in lane) == list(range(len(times)))
    for lane in lanes:
        assert all(before.end_ns <= after.begin_ns for before, after in itertools.pairwise(lane))
    # No more lanes than launches that run at one moment; one that takes no time runs at its beginning.
    at_once = [sum(s.begin_ns <= at < max(s.end_ns, s.begin_ns + 1) for s in launches) for at in range(50)]
    assert len(lanes) <= max(at_once)


# ---- on a simulated GPU


@pytest.fixture(scope="module")
def on_gpu():
    return {name: Report.from_dict(report) for name, report in simulated("kept_events").items()}


def test_kernels_are_those_of_the_rows(on_gpu):
    report = on_gpu["run"]
    every = timeline(report._compiled)
    times = defaultdict(int)
    for lane in every.lanes.values():
        for launch in lane:
            times[launch.facts["module"]] += launch.end_ns - launch.begin_ns
    assert times == {"0": GEMM_NS, "2": GEMM_NS}
    assert {row.path: round(row.self_time * 1e9) for row in report.rows if row.self_time} == times


def test_each_kernel_knows_the_call_that_launched_it(on_gpu):
    # One layer, called twice with equal inputs: the calls differ, the bucket does not.
    every = timeline(on_gpu["shared layer"]._compiled)
    calls = {op.id: op for op in every.ops[0] if op.name == "simulated::gemm"}
    # It is looked through: the product that it calls counts.
    assert {op.kind for op in calls.values()} == {"transparent"}
    launches = [launch for lane in every.lanes.values() for launch in lane]
    assert len(calls) == len(launches) == 2
    assert [launch.launched_by for launch in launches] == sorted(calls)
