"""Collectives of recorded traces: against TraceLens's tables, the traces' own events, and closed forms."""

import copy
import csv
import json
import math
import re
from collections import defaultdict

import pytest
from gpu_traces import FOLDER, document, events_of, needs_traces

import roofprof

pytestmark = needs_traces

RESNET = FOLDER / "tracelens/mi300/resnet_act_checkpoint.json.gz"
NCCL = FOLDER / "hta/nccl_data.json.gz"
CONTROL = FOLDER / "hta/control.json.gz"


def sums(report):
    """Of each collective, by kind and size of a call: calls, bytes and seconds."""
    found = defaultdict(lambda: [0, 0, 0.0])
    for row in report.collectives:
        assert row.bytes % row.calls == 0
        one = found[row.name, row.bytes // row.calls]
        one[0] += row.calls
        one[1] += row.bytes
        one[2] += row.time
    return dict(found)


def microseconds(intervals):
    """The length of their union."""
    length, until = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        length += max(end - max(begin, until), 0)
        until = max(until, end)
    return length


def test_the_collectives_of_a_resnet_are_those_of_tracelens():
    """Sizes, calls and times of its table are the same; the table has MiB in a column of MB."""
    table = RESNET.with_name("resnet_act_checkpoint.reference") / "coll_analysis.csv"
    theirs = {}
    for line in csv.DictReader(table.open()):
        kind = {"allreduce": "all_reduce"}.get(line["Collective name"], line["Collective name"])
        size = float(line["In msg size (MB)_first"]) * 2**20
        calls = int(line["operation_count"])
        theirs[kind, round(size)] = [calls, round(size) * calls, pytest.approx(float(line["dur_sum"]) / 1e6, abs=1e-9)]
    report = roofprof.from_trace(RESNET)
    assert sums(report) == theirs
    for row in report.collectives:
        assert (row.group, row.ranks, row.backend, row.algorithm) == ("0", 8, "nccl", None)  # a kernel for all of RCCL
        factor = 2 * 7 / 8 if row.name == "all_reduce" else 1
        assert row.wire_bytes == row.bytes * factor
        assert row.bus_bandwidth == pytest.approx(row.bytes / row.time * factor)


def test_a_resnet_exposes_what_its_kernels_leave():
    """Time in which no kernel computes, by the events. All other kernels together are those of TraceLens's two tables.

    It says 38.34 ms, as it holds collectives against the kernels of its first table alone, which leaves out what was
    recomputed: those kernels hide the difference, and ours is right.
    """
    kernels = [event for event in events_of(RESNET) if event["cat"] == "kernel" and "External id" in event["args"]]

    def interval(event):
        return event["ts"], event["ts"] + event["dur"]

    ours = [interval(event) for event in kernels if "Collective name" in event["args"]]
    computing = [interval(event) for event in kernels if not event["name"].startswith("nccl")]
    exposed = microseconds(ours + computing) - microseconds(computing)
    data = roofprof.from_trace(RESNET).to_dict()["collectives"]
    assert data["time_ns"] / 1e3 == pytest.approx(microseconds(ours), abs=0.1)
    assert data["exposed_ns"] / 1e3 == pytest.approx(exposed, abs=0.5)
    theirs = defaultdict(dict)
    timeline = csv.DictReader((RESNET.with_name("resnet_act_checkpoint.reference") / "gpu_timeline.csv").open())
    for line in timeline:
        theirs[line["is_recompute"]][line["type"]] = float(line["time ms"]) * 1000
    recomputing = theirs["True"]["computation_time"]
    assert data["time_ns"] / 1e3 == pytest.approx(theirs["False"]["total_comm_time"], abs=2)
    assert microseconds(computing) == pytest.approx(theirs["False"]["computation_time"] + recomputing, abs=2)
    assert 0 < theirs["False"]["exposed_comm_time"] - data["exposed_ns"] / 1e3 < recomputing


def test_nccl_kernels_have_the_bytes_of_their_arguments():
    """An A100's: elements x 4 bytes for each size, and the kernels' own times."""
    theirs = defaultdict(lambda: [0, 0, 0.0])
    for event in kernels_of(events_of(NCCL)):
        args = event["args"]
        size = args["In msg nelems"] * {"Float": 4, "Int": 4, "Long": 8}[args["dtype"]]
        one = theirs[{"allreduce": "all_reduce"}.get(args["Collective name"], args["Collective name"]), size]
        one[0] += 1
        one[1] += size
        one[2] += event["dur"] / 1e6
    report = roofprof.from_trace(NCCL)
    assert sums(report) == {
        key: [calls, size, pytest.approx(time, abs=1e-8)] for key, (calls, size, time) in theirs.items()
    }
    assert sum(row.calls for row in report.collectives) == 21
    assert {row.algorithm for row in report.collectives} == {"RING LL"}
    assert {(row.group, row.ranks) for row in report.collectives} == {("0", 2)}
    for row in report.collectives:  # of two ranks, both factors are 1
        assert row.bus_bandwidth == row.algorithm_bandwidth == pytest.approx(row.bytes / row.time)


def test_an_old_trace_tells_sizes_but_no_group():
    """Of 2022: 42 all_to_all and 18 all_reduce of the sizes that NCCL's ranges have."""
    theirs = defaultdict(int)
    for event in events_of(CONTROL):
        if event["cat"] == "user_annotation" and event["name"].startswith("nccl:"):
            (dims,) = event["args"]["Input Dims"]
            width = {"float": 4, "c10::Half": 2, "long int": 8, "int": 4}[event["args"]["Input type"][0]]
            theirs[event["name"].removeprefix("nccl:"), width * math.prod(dims)] += 1
    report = roofprof.from_trace(CONTROL)
    assert {key: calls for key, (calls, _, _) in sums(report).items()} == dict(theirs)
    assert sum(theirs.values()) == 60
    assert all(row.bus_bandwidth is None and row.wire_bytes is None for row in report.collectives)
    assert any("in which group" in note.text for note in report.coverage.notes)


# ---- several ranks, made of one trace by an edit

WAITS = (40.0, 15.0, 0.0, 7.0)  # microseconds that rank 1 comes later to each collective, in turn
AHEAD = 123_456.789  # microseconds that rank 1's clock is ahead


def kernels_of(events):
    """The kernels of collectives, in the order of their begin."""
    kernels = [event for event in events if event.get("cat") == "kernel" and "Collective name" in event["args"]]
    return sorted(kernels, key=lambda event: event["ts"])


def of_rank(path, rank, folder, ahead=0.0, late=(0.0,)):
    """The trace with another rank of two, another clock, and collectives that begin later and end at the same time."""
    whole = copy.deepcopy(document(path))
    whole["distributedInfo"] |= {"rank": rank, "world_size": 2}
    for event in whole["traceEvents"]:
        if "ts" in event:
            event["ts"] = event["ts"] + ahead
    for turn, event in enumerate(kernels_of(whole["traceEvents"])):
        wait = min(late[turn % len(late)], event["dur"])
        event["ts"] += wait
        event["dur"] -= wait
    written = folder / f"trace.rank{rank}.json"
    written.write_text(json.dumps(whole))
    return written


def test_two_ranks_of_one_trace_wait_as_long_as_was_written(tmp_path):
    first = of_rank(NCCL, 0, tmp_path)
    second = of_rank(NCCL, 1, tmp_path, AHEAD, WAITS)
    merged = roofprof.from_trace([first, second])
    waited = sum(
        min(WAITS[turn % len(WAITS)], kernel["dur"]) for turn, kernel in enumerate(kernels_of(events_of(NCCL)))
    )
    ranks = merged.ranks
    # Broadcasts do not align clocks, but wait.
    assert ranks[0].waiting * 1e6 == pytest.approx(waited, abs=0.1)
    assert ranks[1].waiting * 1e6 == pytest.approx(0, abs=0.1)
    (note,) = (note.text for note in merged.coverage.notes if note.code == "ranks-clocks")
    assert "rank 1 is 123457 µs ahead" in note
    assert int(re.search(r"within (\d+) µs", note)[1]) == 0
