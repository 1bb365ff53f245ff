"""The GPU acceptance, as far as that goes without a GPU: closed forms, tolerances, results put together."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from cpp_project import BUILD

import roofprof

GPU = Path(__file__).resolve().parents[2] / "gpu"
SITE = Path(roofprof.__file__).resolve().parents[1]
sys.path.insert(0, str(GPU))

from acceptance import checks, machine, models, traffic  # noqa: E402

MIB, GIB = 1 << 20, 1 << 30


def test_arrays_dwarf_the_l2_as_far_as_memory_goes():
    assert machine.array_bytes(50 * MIB, 78 * GIB) == 2 * GIB  # H100: 32 x 50 MiB = 1.6 GiB
    assert machine.array_bytes(4 * MIB, 15 * GIB) == GIB  # never less where there is room
    assert machine.array_bytes(72 * MIB, 23 * GIB) == 2 * GIB  # RTX 4090: 4 GiB would fit less than eight times


@pytest.mark.parametrize(
    ("excess", "status", "words"),
    [
        (3 * 1024 * 1024, "pass", "3 FLOPs for each element of the result: the kernel's epilogue"),
        (100 * 1024 * 1024, "fail", "no epilogue"),
        (-1, "fail", "no epilogue"),  # counters that miss work are never explained away
        (None, "fail", "not measured"),
    ],
)
def test_executed_flops_are_2mnk_or_explained(excess, status, words):
    gemm = traffic.Gemm(1024, 1024, 1024, 4)
    assert gemm.flops == 2 * 1024**3
    found, why = traffic.executed(None if excess is None else gemm.flops + excess, gemm)
    assert found == status
    assert words in why


def test_what_ran_on_a_device_by_a_trace_of_torch():
    """The time in which it is busy is a union; the driver's fills in a graph are no kernels."""
    spans = [
        (0, 10, "kernel", "add"),
        (5, 10, "kernel", "memset32"),
        (20, 5, "gpu_memcpy", "Memcpy HtoD"),
        (21, 1, "gpu_memset", "Memset"),
        (2, 90, "cpu_op", "aten::add"),
    ]
    events = [{"ph": "X", "cat": c, "name": name, "ts": ts, "dur": dur} for ts, dur, c, name in reversed(spans)]
    found = machine.on_device({"traceEvents": [*events, {"ph": "f", "cat": "ac2g", "name": "flow"}]})
    assert found == {"kernels": 1, "seconds": pytest.approx(26e-6), "busy": pytest.approx(20e-6)}


def test_resnet50_is_the_published_one():
    with torch.device("meta"):
        report = roofprof.count(models.resnet50(), torch.rand(1, 3, 224, 224))
    assert report.total.params == 25_557_032  # torchvision's documentation
    assert report.total.macs == 4_089_184_256  # fvcore on torchvision's resnet50


# ---- a part's results, and all together


def test_a_tolerance_is_a_share_of_what_is_expected_and_limits_are_included(tmp_path):
    part = checks.Part("traffic", tmp_path)
    for measured in (95.0, 105.0, 94.9, 105.1, None):
        part.near("bytes", measured, 100, 0.05)
    for measured in (0.5, 1.0, 0.49, None):
        part.between("ratio", measured, 0.5, 1.0)
    found = checks.merged(tmp_path, {"traffic": (0, 1)})["parts"]["traffic"]["checks"]
    expected = ["pass", "pass", "fail", "fail", "fail", "pass", "pass", "fail", "fail"]
    assert [check["status"] for check in found] == expected
    assert traffic.near("bytes", 205.0, 100, 200).status == "pass"
    assert traffic.near("bytes", None, 100).status == "fail"


def test_an_error_or_a_crash_loses_nothing_and_names_its_stage(tmp_path):
    part = checks.Part("traffic", tmp_path)
    with part.stage("broken"):
        raise ValueError("no such device")
    with part.stage("elsewhere"):
        raise checks.NotOnThisMachineError("needs two GPUs")
    part.fact("table", float("nan"))
    part.equal("bytes", 2, 3, "half of it was in the L2")
    with pytest.raises(KeyboardInterrupt), part.stage("GEMM"):
        raise KeyboardInterrupt
    checks.Part("roofs", tmp_path).equal("bytes", 4, 4)
    ran = {"traffic": (139, 60), "roofs": (0, 1), "calls": (None, 0)}
    assert checks.put_together(tmp_path, ran) == 1
    result = json.loads((tmp_path / "results.json").read_text())
    assert result["totals"] == {"pass": 1, "fail": 1, "skipped": 1, "error": 3}
    assert result["parts"]["traffic"]["facts"] == {"table": "nan"}
    found = [check["measured"] or check["explanation"] for check in result["parts"]["traffic"]["checks"]]
    assert found[:2] == ["ValueError: no such device", "needs two GPUs"]
    text = checks.table(result)
    assert "fail     traffic: bytes: 2 (expected 3); half of it was in the L2" in text
    assert "traffic comes to its end: 139 (expected 0); ended with exit code 139 in 'GEMM'" in text
    assert "calls comes to its end: ran out of time before it wrote anything" in text
    assert checks.put_together(tmp_path, {"roofs": (0, 1)}) == 0
    assert checks.put_together(tmp_path, {}) == 1, "nothing at all is a failure"


# ---- the command


def run(folder, **variables):
    hidden = {"ROOFPROF_CUDA_LIB", "ROOFPROF_CUPTI_LIB", "ROOFPROF_NVML_LIB"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {"PYTHONPATH": f"{SITE}{os.pathsep}{GPU}"} | variables
    command = [sys.executable, "-m", "acceptance", str(folder)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=1800)


def on_stand_ins(folder, parts, **variables):
    """The results of some parts, with NVIDIA's libraries played by tests/fakes."""
    fakes = BUILD / "tests" / "fakes" / "lib" / "all"
    if not fakes.is_dir():
        pytest.skip("the fakes of NVIDIA's libraries are not built: cmake -DROOFPROF_TESTS=ON")
    libraries = {"CUDA": "libcuda.so.1", "CUPTI": "libcupti.so.13", "NVML": "libnvidia-ml.so.1"}
    variables |= {f"ROOFPROF_{name}_LIB": str(fakes / file) for name, file in libraries.items()}
    done = run(folder, ONLY=f"^({parts})$", **variables)
    assert "SIMULATED" in done.stdout, done.stdout + done.stderr
    result = json.loads((folder / "results.json").read_text())
    assert list(result["parts"]) == parts.split("|")
    for part in result["parts"].values():
        assert not [check for check in part["checks"] if check["status"] in {"error", "fail"}]
    return result


def test_known_work_of_the_stand_ins_is_found_again(tmp_path):
    """What the stand-ins are told to move and compute comes out of the reports."""
    result = on_stand_ins(tmp_path / "out", "traffic")
    passed = {check["name"] for check in result["parts"]["traffic"]["checks"] if check["status"] == "pass"}
    assert {"triad a = b + 3c: DRAM bytes", "sum: DRAM bytes", "bf16 GEMM 64: executed FLOPs"} <= passed
    assert (tmp_path / "out" / "recorded" / "simulated_traffic_sum.json").exists()


@pytest.mark.slow
def test_every_part_runs_on_the_stand_ins(tmp_path):
    """torch.profiler sees nothing of the stand-ins, and what needs a GPU is skipped; the rest holds there too."""
    on_stand_ins(tmp_path / "out", "calls|roofs|training|graphs", DEADLINE="1500")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_it_says_so_and_all_is_well(tmp_path):
    done = run(tmp_path / "out")
    assert done.returncode == 0
    assert "there is no GPU here" in done.stdout
    assert list(tmp_path.iterdir()) == []
