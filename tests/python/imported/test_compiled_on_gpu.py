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
    assert all(kernel.fused.startswith("aten::") for kernel in kernels.values())


@pytest.mark.parametrize(("kernel", "channels", "size", "calls"), [(2, 64, 112, 1), (5, 64, 56, 2), (18, 512, 7, 2)])
def test_a_norm_and_a_relu_in_place_move_the_activation_twice(kernels, kernel, channels, size, calls):
    row = kernels[f"{NORM}_relu_{kernel}"]
    assert row.instances == STEPS * calls
    activation = BATCH * channels * size * size
    assert row.bytes == row.instances * BF16 * (2 * activation + 4 * channels)
    assert row.incomplete
    pool = kernels[f"{NORM}_max_pool2d_with_indices_relu_3"]  # reads all of its input
    assert pool.bytes == STEPS * BF16 * BATCH * 64 * (112 * 112 + 56 * 56)


def test_what_the_hardware_counted_in_another_run_of_the_model(kernels):
    """Each byte passed the L2; what passed the DRAM is held against it, what did not against the L2 (3.35 TB/s).

    The norm of 51.4 MB moved 97.6 MB of DRAM, though it would fit the 52.4 MB of the L2 by its data sheet.
    """
    counted = json.loads((RECORDED / "resnet18_compiled_counters.json").read_text())
    assert set(counted) == set(kernels)
    in_l2 = set()
    for name, counters in counted.items():
        own = kernels[name].bytes / kernels[name].instances
        assert own <= counters["l2_bytes"] / counters["instances"], name
        assert 0 < kernels[name].percent_of_roof < 100, name
        if counters["dram_bytes"] / counters["instances"] < 0.1 * own:
            in_l2.add(name)
    assert f"{NORM}_relu_5" in in_l2
    assert {str(kernels[name].bound) for name in in_l2} <= {"memory L2", "unknown"}
    large, pool = kernels[f"{NORM}_relu_2"], kernels[f"{NORM}_max_pool2d_with_indices_relu_3"]
    assert str(large.bound) == str(pool.bound) == "memory DRAM"
    assert large.bytes / STEPS == pytest.approx(counted[large.name]["dram_bytes"], rel=0.06)
    assert pool.percent_of_roof == pytest.approx(100 * pool.bytes / 3.35e12 / pool.total, rel=1e-3)


def test_the_file_of_the_code_and_what_is_not_known(report, kernels):
    for kernel in kernels.values():
        assert kernel.code.startswith("/tmp/torchinductor_root/")
        assert kernel.code.endswith(".py")
        assert kernel.modules == ""
        assert kernel.flops is None
    (note,) = [note.text for note in report.coverage.notes if note.code == "compiled-kernels"]
    assert note.startswith("22 generated kernels of compiled code: the ops in them are by their names")
    assert "no trace says which modules their ops are of" in note
    assert ">=206MB" in report.table(by="kernel", width=300)


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


def test_no_finding_sells_what_the_recording_itself_waited_for(report):
    """Launches are 42 us apart under torch.profiler; that host took 22 us for one without, in a compiled resnet50."""
    steps = [json.loads(line) for line in (RECORDED / "models.jsonl").read_text().splitlines()]
    (bare,) = [step for step in steps if step["mode"] == "compiled" and step["model"] == "resnet50"]
    waited = waited_between_kernels()
    assert waited == pytest.approx(3.79e-3, rel=0.01)
    assert [finding.id for finding in report.findings if finding.gain_high > waited] == []
    launches = sum(kernel.instances for kernel in report.kernels)
    idle = launches * bare["back_to_back"] / bare["kernels"] - report.total.busy  # 1.4 ms
    assert 0 < idle < 0.5 * waited
    found = {finding.id: finding.gain_high for finding in report.findings if finding.rule == "idle-device"}
    assert {name: gain for name, gain in found.items() if gain > idle} == {}
