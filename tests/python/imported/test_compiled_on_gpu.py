"""Kernels that torch.compile generated, in a trace of a compiled resnet18 (batch 32, bf16) that an H100 recorded."""

import gzip
import json
from pathlib import Path

import pytest

import roofprof

RECORDED = Path(__file__).resolve().parents[2] / "data" / "gpu" / "h100"
NORM = "triton_poi_fused__native_batch_norm_legit_no_training"
STEPS = 2  # that the trace has
BF16 = 2  # bytes
BATCH = 32


@pytest.fixture(scope="module")
def report():
    return roofprof.from_trace(RECORDED / "resnet18_compiled.trace.json.gz")


@pytest.fixture(scope="module")
def kernels(report):
    return {kernel.name: kernel for kernel in report.kernels if kernel.name.startswith("triton_")}


def test_their_names_tell_the_ops(kernels):
    norm = "aten::_native_batch_norm_legit_no_training"
    assert kernels[f"{NORM}_relu_5"].fused == f"{norm}, aten::relu"
    assert (
        kernels[f"{NORM}_max_pool2d_with_indices_relu_3"].fused == f"{norm}, aten::max_pool2d_with_indices, aten::relu"
    )
    assert kernels["triton_poi_fused_convolution_0"].fused == "aten::convolution"
    assert all(kernel.fused.startswith("aten::") for kernel in kernels.values())


@pytest.mark.parametrize(("kernel", "channels", "size", "calls"), [(2, 64, 112, 1), (5, 64, 56, 2), (18, 512, 7, 2)])
def test_a_norm_and_a_relu_in_place_move_the_activation_twice(kernels, kernel, channels, size, calls):
    row = kernels[f"{NORM}_relu_{kernel}"]
    assert row.instances == STEPS * calls
    activation = BATCH * channels * size * size
    assert row.bytes == row.instances * BF16 * (2 * activation + 4 * channels)
    assert row.incomplete


def test_a_pool_reads_all_of_its_input(kernels):
    row = kernels[f"{NORM}_max_pool2d_with_indices_relu_3"]
    assert row.bytes == STEPS * BF16 * BATCH * 64 * (112 * 112 + 56 * 56)


def test_none_is_above_its_roof(kernels):
    """What fits in the L2 is held against it, the kernel of the pool (64 MB) against the DRAM's 3.35 TB/s."""
    for kernel in kernels.values():
        assert 0 < kernel.percent_of_roof < 100, kernel.name
    fast = kernels[f"{NORM}_max_pool2d_with_indices_relu_3"]
    assert str(fast.bound) == "memory DRAM"
    assert fast.percent_of_roof == pytest.approx(100 * fast.bytes / 3.35e12 / fast.total, rel=1e-3)


def test_what_half_of_the_l2_does_not_hold_comes_from_dram(kernels):
    # It updates 51.4 MB in place, and the L2 of 52.4 MB was seen to hold half of what is nominal.
    row = kernels[f"{NORM}_relu_2"]
    assert str(row.bound) == "memory DRAM"
    assert row.percent_of_roof == pytest.approx(100 * row.bytes / 3.35e12 / row.total, rel=0.04)
    counted = json.loads((RECORDED / "resnet18_compiled_counters.json").read_text())[row.name]["dram_bytes"]
    assert 100 * counted / 3.35e12 / (row.total / STEPS) == pytest.approx(52.5, abs=0.5)


def test_no_more_bytes_than_the_hardware_counted(kernels):
    """In another run of the same model on that H100: each byte passed the L2, and what is larger than it the DRAM."""
    counted = json.loads((RECORDED / "resnet18_compiled_counters.json").read_text())
    assert set(counted) == set(kernels)
    for name, counters in counted.items():
        own = kernels[name].bytes / kernels[name].instances
        assert own <= counters["l2_bytes"] / counters["instances"], name
    large = counted[f"{NORM}_relu_2"]["dram_bytes"]
    assert kernels[f"{NORM}_relu_2"].bytes / STEPS == pytest.approx(large, rel=0.06)


def test_the_file_of_the_code_and_what_is_not_known(report, kernels):
    for kernel in kernels.values():
        assert kernel.code.startswith("/tmp/torchinductor_root/")
        assert kernel.code.endswith(".py")
        assert kernel.modules == ""
        assert kernel.flops is None
    (note,) = [note.text for note in report.coverage.notes if note.code == "compiled-kernels"]
    assert note.startswith("22 generated kernels of compiled code: the ops in them are by their names")
    assert "no trace says which modules their ops are of" in note
    table = report.table(by="kernel", width=300)
    assert "ops: in it, by its name" in table
    assert ">=206MB" in table


def test_a_saved_report_says_the_same(report, tmp_path):
    report.to_json(tmp_path / "r.json")
    again = roofprof.Report.from_json(tmp_path / "r.json")
    assert [(k.name, k.fused, k.code, k.bytes) for k in again.kernels] == [
        (k.name, k.fused, k.code, k.bytes) for k in report.kernels
    ]


def test_in_a_module_that_was_compiled_they_are_of_it(tmp_path):
    args = {"kernel_backend": "triton", "Input Dims": [[4, 8]], "Input type": ["float"], "kernel_file": "/tmp/c.py"}
    events = [
        {"cat": "python_function", "name": "nn.Module: Net_0", "ts": 1, "dur": 90},
        {"cat": "python_function", "name": "nn.Module: Block_0", "ts": 2, "dur": 80},
        {"cat": "cpu_op", "name": "triton_poi_fused_relu_0", "ts": 10, "dur": 9, "args": args},
        {"cat": "cuda_driver", "name": "cuLaunchKernel", "ts": 12, "dur": 1, "args": {"correlation": 1}},
        {
            "cat": "kernel",
            "name": "triton_poi_fused_relu_0",
            "ts": 14,
            "dur": 5,
            "args": {"correlation": 1, "device": 0, "stream": 7},
        },
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [{"ph": "X", "pid": 1, "tid": 1, **event} for event in events]}))
    (kernel,) = roofprof.from_trace(path).kernels
    assert kernel.modules == kernel.module
    assert kernel.module.endswith("Block_0")


def test_what_the_hardware_found_in_the_l2_is_held_against_it(kernels):
    """A tenth of the bytes at most passed the DRAM."""
    counted = json.loads((RECORDED / "resnet18_compiled_counters.json").read_text())
    in_l2 = {
        name
        for name, counters in counted.items()
        if counters["dram_bytes"] / counters["instances"] < 0.1 * kernels[name].bytes / kernels[name].instances
    }
    assert f"{NORM}_relu_5" in in_l2
    assert {str(kernels[name].bound) for name in in_l2} <= {"memory L2", "unknown"}


def test_what_the_hardware_found_in_the_dram_is_held_against_that(kernels):
    """The norm of 51.4 MB moved 97.6 MB of DRAM, though it would fit the 52.4 MB of the L2 by its data sheet."""
    assert str(kernels[f"{NORM}_relu_2"].bound) == "memory DRAM"


# ---- Idle time. That of the trace is 5.13 ms: 1.33 before the first kernel, 3.79 between kernels.


def waited_between_kernels():
    """Return the seconds between the first and the last kernel in which none ran, by the trace's own events."""
    with gzip.open(RECORDED / "resnet18_compiled.trace.json.gz") as file:
        events = json.load(file)["traceEvents"]
    on_device = [event for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    waited, busy_until = 0.0, None
    for event in sorted(on_device, key=lambda event: event["ts"]):
        waited += max(0.0, event["ts"] - busy_until) if busy_until is not None else 0.0
        busy_until = max(busy_until or 0.0, event["ts"] + event["dur"])
    return waited / 1e6


def test_no_finding_sells_time_outside_of_the_kernels_span(report):
    waited = waited_between_kernels()
    assert waited == pytest.approx(3.79e-3, rel=0.01)
    assert [finding.id for finding in report.findings if finding.gain_high > waited] == []


def test_no_finding_sells_what_the_recording_itself_waited_for(report):
    """Launches are 42 us apart under torch.profiler; that host took 22 us for one without, in a compiled resnet50."""
    steps = [json.loads(line) for line in (RECORDED / "models.jsonl").read_text().splitlines()]
    (bare,) = [step for step in steps if step["mode"] == "compiled" and step["model"] == "resnet50"]
    launches = sum(kernel.instances for kernel in report.kernels)
    idle = launches * bare["back_to_back"] / bare["kernels"] - report.total.busy  # 1.4 ms
    assert 0 < idle < 0.5 * waited_between_kernels()
    found = {finding.id: finding.gain_high for finding in report.findings if finding.rule == "idle-device"}
    assert {name: gain for name, gain in found.items() if gain > idle} == {}
