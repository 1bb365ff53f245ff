"""The GPU acceptance, as far as that goes without a GPU: closed forms, tolerances, results put together."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import torch
from cpp_project import BUILD

import roofprof

GPU = Path(__file__).resolve().parents[2] / "gpu"
SITE = Path(roofprof.__file__).resolve().parents[1]
sys.path.insert(0, str(GPU))

from acceptance import checks, machine, models, traffic  # noqa: E402
from acceptance.traffic import Gemm  # noqa: E402

MIB, GIB = 1 << 20, 1 << 30


# ---- sizes and closed forms


@pytest.mark.parametrize(
    ("l2", "free", "expected"),
    [
        (50 * MIB, 78 * GIB, 2 * GIB),  # H100: 32 x 50 MiB = 1.6 GiB
        (126 * MIB, 180 * GIB, 4 * GIB),
        (4 * MIB, 15 * GIB, GIB),  # never less than 1 GiB where there is room
        (72 * MIB, 23 * GIB, 2 * GIB),  # RTX 4090: 2.25 GiB would be 4, of which there are not eight
        (72 * MIB, 7 * GIB, GIB // 2),
    ],
)
def test_arrays_dwarf_the_l2_as_far_as_memory_goes(l2, free, expected):
    assert machine.array_bytes(l2, free) == expected


def test_work_by_closed_form():
    assert Gemm(4096, 4096, 4096, 2).flops == 137_438_953_472
    assert Gemm(3, 5, 7, 2).least_bytes == 2 * (21 + 35 + 15)


@pytest.mark.parametrize(
    ("excess", "status", "words"),
    [
        (0, "pass", "2MNK and 0 FLOPs"),
        (3 * 1024 * 1024, "pass", "3 FLOPs for each element of the result: the kernel's epilogue"),
        (100 * 1024 * 1024, "fail", "no epilogue"),
        (-1, "fail", "no epilogue"),  # counters that miss work are never explained away
        (None, "fail", "not measured"),
    ],
)
def test_executed_flops_are_2mnk_or_explained(excess, status, words):
    gemm = Gemm(1024, 1024, 1024, 4)
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
        (2, 90, "gpu_user_annotation", "step"),
    ]
    events = [{"ph": "X", "cat": c, "name": name, "ts": ts, "dur": dur} for ts, dur, c, name in reversed(spans)]
    found = machine.on_device({"traceEvents": [*events, {"ph": "f", "cat": "ac2g", "name": "flow"}]})
    assert found == {"kernels": 1, "seconds": pytest.approx(26e-6), "busy": pytest.approx(20e-6)}
    assert machine.on_device({"traceEvents": []}) == {"kernels": 0, "seconds": 0, "busy": 0}


NVRM = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build\nGCC version: 12.3.0\n"


@pytest.mark.parametrize(
    ("params", "driver", "mask", "may"),
    [
        ("RmProfilingAdminOnly: 0\n", "580.159.04", "0000000000000000", True),  # the driver was told so
        ("RmProfilingAdminOnly: 1\n", "580.159.04", "0000000000200000", True),  # CAP_SYS_ADMIN
        ("RmProfilingAdminOnly: 1\n", "580.159.04", "0000004000000000", True),  # CAP_PERFMON
        ("RmProfilingAdminOnly: 1\n", "550.54.15", "0000004000000000", False),  # older than 565
        ("RmProfilingAdminOnly: 1\n", "580.159.04", "00000000a80425fb", False),  # root in a container
        ("", "", "0000004000000000", False),  # the driver does not say what it is
    ],
)
def test_counters_are_given_in_three_ways(params, driver, mask, may):
    version = NVRM.format(driver) if driver else ""
    assert machine.may_read_counters(params, version, f"Name:\tpython\nCapEff:\t{mask}\n") is may


def test_resnet50_is_the_published_one():
    with torch.device("meta"):
        report = roofprof.count(models.resnet50(), torch.rand(1, 3, 224, 224))
    assert report.total.params == 25_557_032  # torchvision's documentation
    assert report.total.macs == 4_089_184_256  # fvcore on torchvision's resnet50
    assert report.coverage.uncosted == {}


# ---- a part's results, and all together


def test_a_tolerance_is_a_share_of_what_is_expected_and_limits_are_included(tmp_path):
    part = checks.Part("traffic", tmp_path)
    for measured in (95.0, 105.0, 94.9, 105.1, None):
        part.near("bytes", measured, 100, 0.05)
    for measured in (0.5, 1.0, 0.49, None):
        part.between("ratio", measured, 0.5, 1.0)
    statuses = [check.status for check in part.checks]
    assert statuses == ["pass", "pass", "fail", "fail", "fail", "pass", "pass", "fail", "fail"]
    assert traffic.near("bytes", 205.0, 100, 200).status == "pass"
    assert traffic.near("bytes", None, 100).status == "fail"


def test_a_part_keeps_going_after_an_error_and_what_was_found_is_on_disk(tmp_path):
    part = checks.Part("traffic", tmp_path)
    with part.stage("broken"):
        raise ValueError("no such device")
    with part.stage("elsewhere"):
        raise checks.NotOnThisMachineError("needs two GPUs")
    part.near("bytes", 100.0, 100, 0.05)
    part.fact("table", float("nan"))
    with part.stage("second"):
        found = json.loads((tmp_path / "traffic.json").read_text())  # what a crash here would leave
    assert (found["at"], found["finished"]) == ("second", False)
    assert [check["status"] for check in found["checks"]] == ["error", "skipped", "pass"]
    assert found["checks"][0]["measured"] == "ValueError: no such device"
    assert found["facts"] == {"table": "nan"}


def index(folder, *lines):
    (folder / "index").write_text("".join(f"{line}\n" for line in lines))


def test_parts_are_put_together(tmp_path):
    for name in ("traffic", "sums"):
        part = checks.Part(name, tmp_path)
        part.equal("bytes", 4, 4)
        part.finish()
    index(tmp_path, "traffic 0 12", "sums 0 3")
    assert checks.put_together(tmp_path, tmp_path / "results.json") == 0
    result = json.loads((tmp_path / "results.json").read_text())
    assert list(result["parts"]) == ["traffic", "sums"]
    assert result["totals"] == {"pass": 2, "fail": 0, "skipped": 0, "error": 0}


@pytest.mark.parametrize(
    ("code", "finished", "words"),
    [
        (124, False, "ran out of time in 'GEMM'"),
        (139, False, "ended with exit code 139 in 'GEMM'"),
        (139, True, "ended with exit code 139 after its last check"),
    ],
)
def test_a_hang_or_crash_is_an_error_that_names_its_stage_and_loses_nothing(tmp_path, code, finished, words):
    part = checks.Part("traffic", tmp_path)
    part.equal("bytes", 4, 4)
    with pytest.raises(KeyboardInterrupt), part.stage("GEMM"):
        raise KeyboardInterrupt
    if finished:
        part.finish()
    (tmp_path / "traffic.log").write_text("Segmentation fault")
    index(tmp_path, f"traffic {code} 60", "sums 1 0")
    result = checks.merged(tmp_path)
    assert [check["status"] for check in result["parts"]["traffic"]["checks"]] == ["pass", "error"]
    assert result["parts"]["traffic"]["checks"][1]["explanation"] == words
    assert result["parts"]["traffic"]["log_end"] == "Segmentation fault"
    assert "before it wrote anything" in result["parts"]["sums"]["checks"][0]["explanation"]
    assert checks.put_together(tmp_path, tmp_path / "results.json") == 1


def test_nothing_at_all_is_a_failure(tmp_path):
    assert checks.put_together(tmp_path, tmp_path / "results.json") == 1


def test_the_table_names_what_is_no_pass_and_says_simulated(tmp_path):
    part = checks.Part("traffic", tmp_path)
    part.fact("simulated", value=True)
    part.near("triad: DRAM bytes", 2.0, 3, 0.05, "half of it was in the L2")
    part.finish()
    index(tmp_path, "traffic 0 12")
    text = checks.table(checks.merged(tmp_path))
    assert "fail     traffic: triad: DRAM bytes: 2 (expected 3); half of it was in the L2" in text
    assert "SIMULATED" in text


# ---- the command


def run_script(folder, **variables):
    hidden = {"ROOFPROF_CUDA_LIB", "ROOFPROF_CUPTI_LIB", "ROOFPROF_NVML_LIB"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    folder.mkdir(exist_ok=True)
    environment |= {"OUT": str(folder), "BUILD": f"{folder}_build", "PYTHON": sys.executable, "INSTALLED": str(SITE)}
    return subprocess.run(
        [str(GPU / "run.sh")], env=environment | variables, capture_output=True, text=True, check=False, timeout=1800
    )


def on_stand_ins(folder, parts, **variables):
    """The results of some parts, with NVIDIA's libraries played by tests/fakes."""
    fakes = BUILD / "tests" / "fakes" / "lib" / "all"
    if not fakes.is_dir():
        pytest.skip("the fakes of NVIDIA's libraries are not built: cmake -DROOFPROF_TESTS=ON")
    libraries = {"CUDA": "libcuda.so.1", "CUPTI": "libcupti.so.13", "NVML": "libnvidia-ml.so.1"}
    variables |= {f"ROOFPROF_{name}_LIB": str(fakes / file) for name, file in libraries.items()}
    done = run_script(folder, ONLY=f"^({parts})$", **variables)
    assert "SIMULATED" in done.stdout, done.stdout + done.stderr
    result = json.loads((folder / "results.json").read_text())
    assert result["simulated"]
    assert list(result["parts"]) == parts.split("|")
    for part in result["parts"].values():
        assert not [check for check in part["checks"] if check["status"] in {"error", "fail"}]
    return result


def test_known_work_of_the_stand_ins_is_found_again(tmp_path):
    """What the stand-ins are told to move and compute comes out of the reports."""
    result = on_stand_ins(tmp_path, "traffic")
    passed = {check["name"] for check in result["parts"]["traffic"]["checks"] if check["status"] == "pass"}
    assert {"triad a = b + 3c: DRAM bytes", "sum: DRAM bytes", "bf16 GEMM 64: executed FLOPs"} <= passed
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["log.txt", "recorded.tar.gz", "results.json"]
    with tarfile.open(tmp_path / "recorded.tar.gz") as packed:
        assert "recorded/simulated_traffic_sum.json" in packed.getnames()


@pytest.mark.slow
def test_every_part_runs_on_the_stand_ins(tmp_path):
    """torch.profiler sees nothing of the stand-ins, and what needs a GPU is skipped; the rest holds there too."""
    on_stand_ins(tmp_path, "calls|roofs|training|graphs|cpp|overhead", DEADLINE="1500")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_it_says_so_and_all_is_well(tmp_path):
    done = run_script(tmp_path)
    assert done.returncode == 0
    assert "there is no GPU here" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_what_is_built_is_no_result(tmp_path):
    done = run_script(tmp_path, BUILD=str(tmp_path / "build"))
    assert done.returncode == 1
    assert "BUILD lies in OUT" in done.stdout
