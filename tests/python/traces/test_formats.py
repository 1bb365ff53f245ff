"""Traces in the formats of Perfetto and speedscope."""

import json

import pytest
import torch
from given_roofs import LEVELS, PEAKS, profiler
from hypothesis import given
from hypothesis import strategies as st
from simulated_gpu import simulated
from torch import nn
from trace_formats import check_speedscope, check_trace_events, slices

import roofprof
from roofprof import Report
from roofprof.render.traces.formats import speedscope
from roofprof.render.traces.timeline import Slice, Timeline, nested, timeline

HOSTILE = 'a"b\\c</script>;d 7\n\t\x00\u2028é😀'


@pytest.fixture(scope="module")
def report():
    net = nn.Sequential(nn.Linear(8, 8), nn.ModuleDict({"key": nn.ReLU()})["key"], nn.Linear(8, 2))

    def step(x):
        with roofprof.scope(HOSTILE):
            y = net(x)
        y.sum().backward()

    return profiler(net, keep_events=True).run_step(step, torch.rand(4, 8))


@pytest.fixture(scope="module")
def on_gpu():
    return Report.from_dict(simulated("kept_events")["shared layer"])


def chrome(report, folder):
    report.to_chrome_trace(folder / "t.json")
    return json.loads((folder / "t.json").read_bytes())


def test_a_chrome_trace_has_what_the_format_demands(report, tmp_path):
    file = chrome(report, tmp_path)
    check_trace_events(file)
    names = {e["args"]["name"] for e in file["traceEvents"] if e["name"] in {"thread_name", "process_name"}}
    assert names == {"host", "thread 1: modules", "thread 1: ops"}
    assert [e["name"] for e in slices(file, "region")] == [HOSTILE]
    # Microseconds, to the nanosecond.
    assert [round(e["ts"] * 1000) for e in slices(file, "op")] == [
        op.begin_ns for op in timeline(report._compiled).ops[0]
    ]
    linear = next(e for e in slices(file, "op") if e["name"] == "aten::linear")
    assert linear["args"]["module"] == "0"
    assert linear["args"]["shapes"] == "4x8, 8x8, 8"


def test_slices_have_the_figures_of_their_rows(report, on_gpu, tmp_path):
    file = chrome(report, tmp_path)
    op = next(e for e in slices(file, "op") if e["name"] == "aten::linear")
    row = op["args"]["row"]
    # Products and sums of 4x8 by 8x8 and the bias; what is read and written, four bytes each.
    flops, moved = 2 * 4 * 8 * 8 + 4 * 8, 4 * (4 * 8 + 8 * 8 + 8 + 4 * 8)
    assert (row["calls"], row["flops"], row["bytes"]) == (1, flops, moved)
    # The given roofs take the same time for both, which is kept in whole nanoseconds.
    at_roof_ns = max(flops / PEAKS["fp32"], moved / LEVELS["L2"][0]) * 1e9
    assert row["percent_of_roof"] * op["dur"] * 10 == pytest.approx(at_roof_ns, abs=0.6)
    assert row["bound"] == "latency/code"
    # Every op found its row: these add up to all that was observed.
    keys = ("module", "phase", "shapes", "dtype")
    rows = {(e["name"], *map(e["args"].get, keys)): e["args"]["row"] for e in slices(file, "op")}
    assert sum(one["flops"] for one in rows.values()) == report.total.flops
    assert sum(one["bytes"] for one in rows.values()) == report.total.bytes
    # A module's row has those of the modules inside; a region has none of its own.
    ahead = chrome(ran(nn.Sequential(nn.Linear(8, 8), nn.ReLU())), tmp_path)
    assert {e["name"]: e["args"]["row"]["flops"] for e in slices(ahead, "module")} == {
        "Sequential": flops + 4 * 8,
        "0": flops,
        "1": 4 * 8,
    }
    assert "row" not in slices(file, "region")[0]["args"]
    # A kernel has its op's; the layer is called twice.
    assert [e["args"]["row"]["calls"] for e in slices(chrome(on_gpu, tmp_path), "kernel")] == [2, 2]


def test_arrows_lead_from_ops_to_kernels(on_gpu, tmp_path):
    file = chrome(on_gpu, tmp_path)
    check_trace_events(file)
    kernels = slices(file, "kernel")
    starts = [e for e in file["traceEvents"] if e["ph"] == "s"]
    ends = [e for e in file["traceEvents"] if e["ph"] == "f"]
    assert [(e["pid"], e["tid"], e["ts"]) for e in ends] == [(k["pid"], k["tid"], k["ts"]) for k in kernels]
    begins = [e["ts"] for e in slices(file, "transparent") if e["name"] == "simulated::gemm"]
    assert [e["ts"] for e in starts] == begins
    processes = [e["args"]["name"] for e in file["traceEvents"] if e["name"] == "process_name"]
    assert processes == ["host", "device 0"]


def test_a_speedscope_file_has_ops_inside_of_their_modules(report, on_gpu, tmp_path):
    for one, profiles in ((on_gpu, ["thread 1", "device 0, stream 0"]), (report, ["thread 1"])):
        one.to_speedscope(tmp_path / "t.json")
        file = json.loads((tmp_path / "t.json").read_bytes())
        check_speedscope(file)
        assert [profile["name"] for profile in file["profiles"]] == profiles
    frames = [frame["name"] for frame in file["shared"]["frames"]]
    stack, stacks = [], set()
    for event in file["profiles"][0]["events"]:
        if event["type"] == "O":
            stack.append(frames[event["frame"]])
            stacks.add(tuple(stack))
        else:
            stack.pop()
    assert (HOSTILE, "Sequential", "0", "aten::linear") in stacks


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)
        self.b = nn.Linear(8, 8)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


def trained():
    net = Two()
    optimizer = torch.optim.Adam(net.parameters())
    prof = profiler(net, keep_events=True)
    with prof:
        for _ in range(2):
            net(torch.rand(4, 8)).sum().backward()
            optimizer.step()
            prof.step()
    return prof.report()


def ran(model):
    return profiler(model, keep_events=True).run(torch.rand(4, 8))


@pytest.mark.parametrize(
    ("make", "modules"),
    [
        (lambda: ran(torch.jit.script(Two())), {"Two", "a", "b"}),
        (lambda: ran(torch.compile(Two(), backend="aot_eager")), {"Two"}),
        (trained, {"Two", "a", "b", "(optimizer)", "a (backward)", "b (backward)"}),
    ],
    ids=["scripted", "compiled", "trained"],
)
def test_all_kinds_of_models_have_traces(make, modules, tmp_path):
    report = make()
    file = chrome(report, tmp_path)
    check_trace_events(file)
    assert modules <= {e["name"] for e in slices(file, "module")}
    assert slices(file, "op")
    report.to_speedscope(tmp_path / "s.json")
    check_speedscope(json.loads((tmp_path / "s.json").read_bytes()))
    assert Report.from_dict(report.to_dict()) == report


def test_a_file_that_cannot_be_written_leaves_nothing(report, tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        report.to_chrome_trace(tmp_path / "nowhere" / "t.json")
    counted = roofprof.count(nn.Linear(2, 2), torch.rand(1, 2))
    with pytest.raises(ValueError, match="no times to make a trace of"):
        counted.to_chrome_trace(tmp_path / "t.json")
    with pytest.raises(ValueError, match="keeps no events"):
        profiler(nn.Linear(2, 2)).run(torch.rand(1, 2)).to_speedscope(tmp_path / "t.json")
    with pytest.raises(ValueError, match=r"t.svg': this trace's file ends in .json or .json.gz"):
        report.to_chrome_trace(tmp_path / "t.svg")
    assert not list(tmp_path.iterdir())


SLICES = st.lists(
    st.builds(
        lambda name, begin, length, kind: Slice(0, kind, name, begin, begin + length),
        st.text(max_size=3),
        st.integers(0, 20),
        st.integers(0, 12),
        st.sampled_from(["module", "op"]),
    ),
    max_size=12,
)


@given(SLICES)
def test_any_slices_nest_and_keep_their_time(given_slices):
    every = Timeline([nested(s for s in given_slices if s.kind == "module")], [[]], {}, 0)
    every.ops = [nested(s for s in given_slices if s.kind == "op")]
    check_speedscope(json.loads(speedscope(every, "any", "test")))
    together = nested(given_slices)
    assert sum(s.end_ns - s.begin_ns for s in together) == sum(s.end_ns - s.begin_ns for s in given_slices)
