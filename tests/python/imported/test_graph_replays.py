"""Replays of CUDA and HIP graphs: kernels get the operators of the trace of the graph's capture."""

import json
import shutil

import pytest
from gpu_traces import FOLDER, ON_DEVICE, event, events_of, needs_traces, write_trace

import roofprof
from roofprof.cli import main
from roofprof.profiling.captures import captures_beside

# Of one decode step with 32 requests: MACs of the linears in the graph, from the models' published sizes.
# Qwen3-8B: hidden 4096, 32 heads and 8 of keys and values of 128, 12288 in the MLP, 36 layers.
# GPT-OSS-20B: hidden 2880, 64 heads and 8 of 64, a router of 32 experts, 24 layers; its experts are Triton's.
SGLANG = {
    "trace": "tracelens/sglang_decode/sglang_Qwen3-8B_decode.json.gz",
    "capture": "capture_traces/bs_32_rank0.json.gz",
    "root": "Qwen3Model_0",
    "macs": 32 * 36 * (4096 * (32 + 8 + 8) * 128 + 32 * 128 * 4096 + 4096 * 2 * 12288 + 12288 * 4096),
    # The step's annotation: 32 queries, one a request, that see 32785 keys together; keys and values of 128 each.
    "attention": 36 * 32 * (128 + 128) * 32785,
    # Outside of that module, in the graph too: the head, 151936 words.
    "head": ("LogitsProcessor_0", 32 * 4096 * 151936),
}
VLLM = {
    "trace": "tracelens/vllm_decode/graph_execution.json.gz",
    "capture": "capture_traces/graph_capture_rank_0.1773709742341309550.pt.trace.json.gz",
    "root": "GptOssForCausalLM_0",
    "macs": 32 * 24 * (2880 * (64 + 8 + 8) * 64 + 64 * 64 * 2880 + 2880 * 32),
    "attention": 24 * 64 * (64 + 64) * 55086,
    "head": ("LogitsProcessor_0", 32 * 2880 * 201088),  # it ran outside of the graph
}


def replayed_ns(path):
    """The kernel time of the file's one replay, by its correlation."""
    (launch,) = [event for event in events_of(path) if event["name"] == "hipGraphLaunch"]
    ran = [event for event in events_of(path) if event.get("cat") in ON_DEVICE]
    of_replay = [event for event in ran if event["args"]["correlation"] == launch["args"]["correlation"]]
    return sum(round(event["dur"] * 1000) for event in of_replay)


def time_by_op(report):
    times = {}
    for kernel in report.to_dict()["kernel_buckets"]:
        times[kernel.get("op")] = times.get(kernel.get("op"), 0) + kernel["total_ns"]
    return times


def notes(report, code):
    return [note.text for note in report.coverage.notes if note.code == code]


@needs_traces
@pytest.mark.parametrize("engine", [SGLANG, VLLM], ids=["sglang", "vllm"])
def test_replays_of_serving_engines(engine):
    """All of the replay's time has an operator and a module; MACs are those of the model's sizes and the step."""
    path = FOLDER / engine["trace"]
    whole = replayed_ns(path)
    without = roofprof.from_trace(path, capture="none")
    report = roofprof.from_trace(path)
    assert time_by_op(without)["(graph replay)"] == pytest.approx(whole, abs=1000)
    assert report.total.time == pytest.approx(without.total.time, rel=1e-9)
    bare = ("(graph replay)", "(no operator)", None)
    lacking = sum(time_by_op(report).get(op, 0) for op in bare)
    lacked_elsewhere = sum(time_by_op(without).get(op, 0) for op in bare) - time_by_op(without)["(graph replay)"]
    assert (lacking - lacked_elsewhere) / whole < 0.05  # it is 0
    in_modules = sum(row.self_time or 0 for row in report.rows if "_" in row.path and "(outside)" not in row.path)
    before = sum(row.self_time or 0 for row in without.rows if "_" in row.path and "(outside)" not in row.path)
    assert (in_modules - before) * 1e9 > 0.95 * whole
    head, macs = engine["head"]
    assert report.row(engine["root"]).macs == engine["macs"] + engine["attention"]
    assert report.row(head).macs == macs
    (note,) = notes(report, "graph-captures")
    assert engine["capture"] in note
    assert "--capture none" in note
    assert not notes(report, "graph-replays")
    assert report.to_dict()["runs"] == without.to_dict()["runs"]  # the capture adds no time of the host


@needs_traces
def test_a_capture_of_another_model_is_refused():
    with pytest.raises(ValueError, match=r"captured 421 launches, the replay ran 544 .* first differ at number 1,"):
        roofprof.from_trace(FOLDER / SGLANG["trace"], capture=FOLDER / "tracelens/vllm_decode" / VLLM["capture"])


@needs_traces
def test_real_cuda_graphs_without_a_capture():
    """12 replays, of 339 and of 502 kernels, as the file's correlations say."""
    report = roofprof.from_trace(FOLDER / "hta/test.json.gz")
    (note,) = notes(report, "graph-replays")
    assert note.startswith("12 replays of graphs ran 5046 kernels, copies and fills (")
    rows = [kernel for kernel in report.to_dict()["kernel_buckets"] if kernel.get("op") == "(graph replay)"]
    assert sum(kernel["instances"] for kernel in rows) == 6 * (339 + 502)


# ---- traces by hand


def product(rows):
    return {"Input Dims": [[rows, 64], [64, 16]], "Input type": ["float", "float"], "Concrete Inputs": ["", ""]}


def capture_of(rows, kernel="gemm"):
    """The capture of a product in a Linear."""
    return [
        event("user_annotation", f"capture_{rows}_FULL", 0, 100),
        event("cuda_runtime", "hipStreamBeginCapture", 5, 1, correlation=1),
        event("python_function", "nn.Module: Linear_0", 10, 50),
        event("cpu_op", "aten::mm", 20, 20, **product(rows)),
        event("cuda_runtime", "hipLaunchKernel", 25, 2, correlation=2, kernel=kernel, grid=[8, 1, 1]),
        event("cuda_runtime", "hipStreamEndCapture", 70, 1, correlation=3),
    ]


def replays_of(*batches, kernel="gemm"):
    events = []
    for i, batch in enumerate(batches):
        begin = 1000 * i
        if batch:
            events.append(event("user_annotation", f"step[DECODE bs={batch}]", begin, 100))
        events.append(event("cuda_runtime", "hipGraphLaunch", begin + 10, 5, correlation=10 + i))
        events.append(event("kernel", kernel, begin + 20, 7, correlation=10 + i, device=0, stream=1))
    return events


@pytest.fixture(name="beside")
def _beside(tmp_path):
    """A trace with replays of batches 2 and 3, and captures beside it for 2, 4 and 8."""
    for rows in (2, 4, 8):
        write_trace(tmp_path / "capture_traces" / f"bs_{rows}_rank0.json", capture_of(rows))
    write_details(tmp_path, {f"bs_{rows}_rank0.json": rows for rows in (2, 4, 8)})
    return write_trace(tmp_path / "t.json", replays_of(2, 3))


def write_details(folder, files):
    details = [{"file": file, "batch_size": batch, "mode": "FULL"} for file, batch in files.items()]
    (folder / "capture_traces" / "execution_details.json").write_text(json.dumps(details))


def test_captures_beside_are_chosen_by_batch(beside):
    report = roofprof.from_trace(beside)
    assert report.total.macs == (2 + 4) * 64 * 16
    assert report.row("").time == pytest.approx(14e-6)  # the Linear is the model
    assert time_by_op(report) == {"aten::mm": 14_000}
    *_, larger = notes(report, "graph-captures")
    assert larger == "1 replay ran a graph of a larger batch than the step had: its work is the graph's"
    unknown = roofprof.from_trace(write_trace(beside.parent / "u.json", replays_of(None)))
    assert unknown.total.macs == 0
    assert any("whose operators differ" in text for text in notes(unknown, "graph-replays"))
    (beside.parent / "capture_traces" / "execution_details.json").unlink()
    assert roofprof.from_trace(beside).total.macs == (2 + 4) * 64 * 16  # by their ranges
    shutil.rmtree(beside.parent / "capture_traces")
    assert roofprof.from_trace(beside).total.macs == 0


@pytest.mark.parametrize("listed", [False, True])
def test_a_rank_takes_its_own_captures_else_those_of_the_lowest_rank(tmp_path, listed):
    names = [f"bs_{batch}_rank{rank}.json" for batch in (2, 4) for rank in (1, 2)]
    for name in names:
        write_trace(tmp_path / "capture_traces" / name, capture_of(4))
    if listed:
        write_details(tmp_path, dict.fromkeys(names, 4))
    for rank, taken in ((1, 1), (2, 2), (5, 1)):
        found = captures_beside(tmp_path / "trace.json", [4], rank)
        assert {file.path.name for file in found} == {f"bs_2_rank{taken}.json", f"bs_4_rank{taken}.json"}


def test_what_is_wrong_beside_a_trace_is_reported(beside):
    details = beside.parent / "capture_traces" / "execution_details.json"
    write_details(beside.parent, {"gone.json": 4})
    with pytest.raises(ValueError, match=r"it names the capture 'gone\.json', which is not there: give the captures"):
        roofprof.from_trace(beside)
    for text in ("{", "[3]", '[{"batch_size": 3}]'):
        details.write_text(text)
        with pytest.raises(ValueError, match="it is not a list of captures"):
            roofprof.from_trace(beside)
    write_trace(beside, [event("cpu_op", "aten::mm", 20, 20, **product(3))])  # nothing is replayed: nobody looks
    assert roofprof.from_trace(beside).total.macs == 3 * 64 * 16


def test_the_command(beside, capsys, monkeypatch):
    """--capture FILE, several times, none; what is wrong is one sentence."""
    monkeypatch.chdir(beside.parent)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words):
        code = main(["import", "t.json", *words])
        out, err = capsys.readouterr()
        return code, out, err

    code, out, _ = call("--by", "op")
    assert code == 0
    assert "(--capture none: without)" in out
    code, out, _ = call("--by", "kernel", "--capture", "none")
    assert code == 0
    assert "(graph replay)" in out
    assert "--capture FILE" in out
    given = [word for rows in (2, 8) for word in ("--capture", f"capture_traces/bs_{rows}_rank0.json")]
    assert call(*given, "-o", "r.json")[0] == 0
    assert roofprof.Report.from_json("r.json").total.macs == (2 + 8) * 64 * 16
    write_trace(beside.parent / "other.json", capture_of(4, kernel="softmax"))
    for words, sentence in {
        ("--capture", "other.json"): "they first differ at number 1, where it captured 'softmax' and 'gemm' ran",
        ("--capture", "t.json"): "the capture t.json has no launch that a graph captured",
        ("--capture", "gone.json"): "gone.json",
        ("--capture", "none", "--capture", "other.json"): "captures are files, or 'none' alone",
        ("--capture", "capture_traces"): "it is a folder",
    }.items():
        code, out, err = call(*words)
        assert code == 2, words
        assert sentence in err, err
        assert not out
