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

ROOT = Path(__file__).resolve().parents[3]
GPU = ROOT / "tests" / "gpu"
sys.path.insert(0, str(GPU))

from acceptance import checks, closed_forms, machine, models, ncu_table, summary  # noqa: E402
from acceptance.closed_forms import Gemm  # noqa: E402

MIB, GIB = 1 << 20, 1 << 30


# ---- sizes and closed forms


@pytest.mark.parametrize(
    ("l2", "free", "expected"),
    [
        (50 * MIB, 78 * GIB, 2 * GIB),  # H100: 32 x 50 MiB = 1.6 GiB
        (60 * MIB, 139 * GIB, 2 * GIB),
        (126 * MIB, 180 * GIB, 4 * GIB),
        (4 * MIB, 15 * GIB, GIB),  # never less than 1 GiB where there is room
        (72 * MIB, 23 * GIB, 2 * GIB),  # RTX 4090: 2.25 GiB would be 4, of which there are not eight
        (72 * MIB, 7 * GIB, GIB // 2),
    ],
)
def test_arrays_dwarf_the_l2_as_far_as_memory_goes(l2, free, expected):
    assert closed_forms.array_bytes(l2, free) == expected


def test_work_by_closed_form():
    product = Gemm(600 * 200 * 8, 1, 64, 4)
    assert product.flops == 122_880_000
    assert Gemm(4096, 4096, 4096, 2).flops == 137_438_953_472
    assert Gemm(3, 5, 7, 2).least_bytes == 2 * (21 + 35 + 15)
    assert closed_forms.hand_written(2, 256, 10, 2) == 2 * 256 * 10 * 16 * 2


@pytest.mark.parametrize("size", [2, 4])
def test_a_tall_gemm_has_two_matrices_of_the_wanted_size(size):
    gemm = closed_forms.tall_gemm(GIB, size)
    assert gemm.m * gemm.k * size == gemm.m * gemm.n * size == GIB
    assert gemm.least_bytes == 2 * GIB + 256 * 256 * size


@pytest.mark.parametrize(
    ("excess", "status", "words"),
    [
        (0, "pass", "exactly 2MNK"),
        (1024 * 1024, "pass", "1 FLOPs for each element"),
        (3 * 1024 * 1024, "pass", "epilogue"),
        (100 * 1024 * 1024, "fail", "no epilogue"),
        (-1, "fail", "no epilogue"),  # counters that miss work are never explained away
    ],
)
def test_executed_flops_are_2mnk_or_explained(excess, status, words):
    gemm = Gemm(1024, 1024, 1024, 4)
    found, why = closed_forms.executed(gemm.flops + excess, gemm)
    assert found == status
    assert words in why


def test_flops_that_were_not_measured_are_no_pass():
    assert closed_forms.executed(None, Gemm(8, 8, 8, 4)) == ("fail", "not measured")


def test_the_time_in_which_a_device_is_busy_is_a_union():
    spans = [(0, 10, "kernel"), (5, 10, "kernel"), (20, 5, "gpu_memcpy"), (21, 1, "gpu_memset"), (2, 90, "cpu_op")]
    events = [{"ph": "X", "cat": cat, "name": "it", "ts": ts, "dur": dur} for ts, dur, cat in reversed(spans)]
    assert closed_forms.busy_seconds({"traceEvents": events}) == pytest.approx(20e-6)
    assert closed_forms.busy_seconds({"traceEvents": []}) == 0


def test_rates_of_the_first_moments_and_of_the_last():
    durations = [1.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 3.0]
    ends = [1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 13.0, 16.0]
    assert closed_forms.rates_of(ends, durations, 3.0, 6.5) == (1.0, 3.0)
    assert closed_forms.rates_of([4.0], [4.0], 1.0, 1.0) == (4.0, 4.0)  # one at least


def test_kernels_copies_and_fills_of_a_trace_of_torch():
    events = [
        {"ph": "X", "cat": "kernel", "name": "add", "dur": 2.5},
        {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "dur": 1.0},
        {"ph": "X", "cat": "gpu_memset", "name": "Memset", "dur": 0.5},
        {"ph": "X", "cat": "kernel", "name": "memset32", "dur": 1.5},  # of a graph
        {"ph": "X", "cat": "cpu_op", "name": "aten::add", "dur": 9.0},
        {"ph": "X", "cat": "gpu_user_annotation", "name": "step", "dur": 9.0},
        {"ph": "f", "cat": "ac2g", "name": "flow"},
    ]
    count, seconds = closed_forms.device_work({"traceEvents": events})
    assert count == 1
    assert seconds == pytest.approx(5.5e-6)


# ---- tolerances


@pytest.mark.parametrize(
    ("measured", "status"), [(95.0, "pass"), (105.0, "pass"), (94.9, "fail"), (105.1, "fail"), (None, "fail")]
)
def test_a_tolerance_is_a_share_of_what_is_expected(measured, status):
    assert checks.compared("bytes", measured, 100, 0.05).status == status


@pytest.mark.parametrize(("measured", "status"), [(0.5, "pass"), (1.0, "pass"), (0.49, "fail"), (None, "fail")])
def test_limits_are_included(measured, status):
    assert checks.between("ratio", measured, 0.5, 1.0).status == status


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


# ---- a part's results


def part_json(folder, name):
    return json.loads((folder / f"{name}.json").read_text())


def test_a_part_keeps_going_after_an_error_and_names_it(tmp_path):
    part = checks.Part("traffic", tmp_path)
    with part.stage("broken"):
        raise ValueError("no such device")
    with part.stage("elsewhere"):
        raise checks.NotOnThisMachineError("needs two GPUs")
    part.near("bytes", 100.0, 100, 0.05)
    part.finish()
    found = part_json(tmp_path, "traffic")
    assert [check["status"] for check in found["checks"]] == ["error", "skipped", "pass"]
    assert found["checks"][0]["measured"] == "ValueError: no such device"
    assert found["finished"]


def test_what_was_found_before_a_crash_is_on_disk(tmp_path):
    part = checks.Part("traffic", tmp_path)
    with part.stage("first"):
        part.equal("bytes", 4, 4)
    part.fact("table", float("nan"))
    with part.stage("second"):
        found = part_json(tmp_path, "traffic")  # what a crash here would leave
    assert (found["stage"], found["finished"]) == ("second", False)
    assert [check["status"] for check in found["checks"]] == ["pass"]
    assert found["facts"] == {"table": "nan"}


# ---- results put together


def parts(folder, *lines):
    (folder / "index").write_text("".join(f"{line}\n" for line in lines))


def test_parts_are_put_together(tmp_path):
    for name in ("traffic", "sums"):
        part = checks.Part(name, tmp_path)
        part.equal("bytes", 4, 4)
        part.finish()
    parts(tmp_path, "traffic 0 12", "sums 0 3")
    result = summary.merged(tmp_path)
    assert list(result["parts"]) == ["traffic", "sums"]
    assert result["totals"] == {"pass": 2, "fail": 0, "skipped": 0, "error": 0}
    assert not summary.failed(result)


@pytest.mark.parametrize(("code", "words"), [(124, "ran out of time in 'GEMM'"), (139, "exit code 139 in 'GEMM'")])
def test_a_hang_or_crash_is_an_error_that_names_its_stage_and_loses_nothing(tmp_path, code, words):
    part = checks.Part("traffic", tmp_path)
    part.equal("bytes", 4, 4)
    with pytest.raises(KeyboardInterrupt), part.stage("GEMM"):
        raise KeyboardInterrupt
    (tmp_path / "traffic.log").write_text("Segmentation fault")
    parts(tmp_path, f"traffic {code} 60", "sums 1 0")
    result = summary.merged(tmp_path)
    assert [check["status"] for check in result["parts"]["traffic"]["checks"]] == ["pass", "error"]
    assert words in result["parts"]["traffic"]["checks"][1]["explanation"]
    assert result["parts"]["traffic"]["log_end"] == "Segmentation fault"
    assert "before it wrote anything" in result["parts"]["sums"]["checks"][0]["explanation"]
    assert summary.failed(result)


def test_a_crash_at_the_very_end_is_an_error_too(tmp_path):
    part = checks.Part("traffic", tmp_path)
    part.equal("bytes", 4, 4)
    part.finish()
    parts(tmp_path, "traffic 139 60")
    last = summary.merged(tmp_path)["parts"]["traffic"]["checks"][-1]
    assert (last["status"], last["explanation"]) == ("error", "ended with exit code 139 after its last check")


def test_nothing_at_all_is_a_failure(tmp_path):
    assert summary.failed(summary.merged(tmp_path))


def test_the_table_names_what_is_no_pass_and_says_simulated(tmp_path):
    part = checks.Part("traffic", tmp_path)
    part.fact("simulated", value=True)
    part.near("triad: DRAM bytes", 2.0, 3, 0.05, "half of it was in the L2")
    part.finish()
    parts(tmp_path, "traffic 0 12")
    text = summary.table(summary.merged(tmp_path))
    assert "fail     traffic: triad: DRAM bytes: 2 (expected 3); half of it was in the L2" in text
    assert "SIMULATED" in text


# ---- ncu's table

NCU = """==PROF== Connected to process 7
"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","7","triad","dram__bytes.sum","byte","3,221,225,472"
"0","7","triad","lts__t_bytes.sum","byte","3221225480"
"1","7","reduce","dram__bytes.sum","byte","1073741824"
"1","7","reduce","lts__t_bytes.sum","byte","n/a"
"2","7","reduce","dram__bytes.sum","byte","1000"
"2","7","reduce","lts__t_bytes.sum","byte","1000"
"""


def test_the_table_of_ncu_is_read_by_launch():
    launches = ncu_table.kernels(NCU)
    assert [launch["name"] for launch in launches] == ["triad", "reduce", "reduce"]
    assert ncu_table.grouped(launches, [1, 2], "dram__bytes.sum") == [3221225472, 1073742824]
    assert ncu_table.number("n/a") != ncu_table.number("n/a")


def test_ncu_that_saw_other_kernels_is_told():
    with pytest.raises(ValueError, match="ncu saw 3 kernels and roofprof 2"):
        ncu_table.grouped(ncu_table.kernels(NCU), [1, 1], "dram__bytes.sum")
    with pytest.raises(ValueError, match="ERR_NVGPUCTRPERM"):
        ncu_table.kernels("==ERROR== ERR_NVGPUCTRPERM - no permission")


# ---- models


def test_resnet50_is_the_published_one():
    with torch.device("meta"):
        report = roofprof.count(models.resnet50().eval(), torch.rand(1, 3, 224, 224))
    assert report.total.params == 25_557_032  # torchvision's documentation
    assert report.total.macs == 4_089_184_256  # fvcore on torchvision's resnet50
    assert report.coverage.uncosted == {}


def test_a_call_with_its_backward_leaves_gradients_and_no_graph():
    training = models.WithBackward(models.Training(32, 1))
    with torch.no_grad():
        loss = training(torch.rand(2, 3, 32), torch.randint(0, 1000, (2, 3)))
    assert loss.ndim == 0 and not loss.requires_grad
    assert all(parameter.grad is not None for parameter in training.parameters())


# ---- the command


def run_script(folder, **variables):
    hidden = {"ROOFPROF_CUDA_LIB", "ROOFPROF_CUPTI_LIB", "ROOFPROF_NVML_LIB"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    folder.mkdir(exist_ok=True)
    environment |= {"OUT": str(folder), "BUILD": f"{folder}_build", "PYTHON": sys.executable} | variables
    return subprocess.run(
        [str(GPU / "run.sh")], env=environment, capture_output=True, text=True, check=False, timeout=1800
    )


def on_stand_ins(folder, parts, **variables):
    """The results of some parts, with NVIDIA's libraries played by tests/fakes."""
    fakes = BUILD / "tests" / "fakes" / "lib" / "all"
    if not fakes.is_dir():
        pytest.skip("the fakes of NVIDIA's libraries are not built: cmake -DROOFPROF_TESTS=ON")
    libraries = {"CUDA": "libcuda.so.1", "CUPTI": "libcupti.so.13", "NVML": "libnvidia-ml.so.1"}
    variables |= {f"ROOFPROF_{name}_LIB": str(fakes / file) for name, file in libraries.items()}
    site = str(Path(roofprof.__file__).resolve().parents[1])
    done = run_script(folder, ONLY=f"^({parts})$", INSTALLED=site, **variables)
    assert "SIMULATED" in done.stdout, done.stdout + done.stderr
    result = json.loads((folder / "results.json").read_text())
    assert result["simulated"]
    assert list(result["parts"]) == parts.split("|")
    return result


def by_status(result, part, status):
    return [check for check in result["parts"][part]["checks"] if check["status"] == status]


def test_known_work_of_the_stand_ins_is_found_again(tmp_path):
    """What the stand-ins are told to move and compute comes out of the reports: no check of these parts fails."""
    result = on_stand_ins(tmp_path, "environment|traffic")
    for part in result["parts"]:
        assert not by_status(result, part, "error") + by_status(result, part, "fail")
    passed = {check["name"] for check in by_status(result, "traffic", "pass")}
    assert {"triad a = b + 3c: DRAM bytes", "sum: DRAM bytes", "bf16 GEMM 64: executed FLOPs"} <= passed
    assert (tmp_path / "recorded.tar.gz").stat().st_size > 0
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["log.txt", "recorded.tar.gz", "results.json"]


@pytest.mark.slow
def test_what_observing_costs_is_asked_of_the_stand_ins(tmp_path):
    """Reports with roofs are kept, and each kind of record comes where it was asked for."""
    result = on_stand_ins(tmp_path, "bare|observing")
    for part in result["parts"]:
        assert not by_status(result, part, "error") + by_status(result, part, "fail")
    came = result["parts"]["observing"]["facts"]["20 additions: records that came"]
    kernels, calls, ids = "10", "5", "39"
    assert set(came["nothing"]) == set()
    assert set(came["kernels"]) == {kernels}
    assert set(came["calls of the runtime"]) == {kernels, calls}
    assert ids not in came["calls of the driver"]
    assert set(came["copies and fills, and told of launches"]) == {kernels}
    with tarfile.open(tmp_path / "recorded.tar.gz") as packed:
        kept = {Path(name).name for name in packed.getnames()}
        member = packed.extractfile("recorded/simulated_bare_resnet50.json")
        assert {peak["dtype"] for peak in json.load(member)["ceilings"]["compute"]} >= {"fp32", "bf16"}
    assert {"simulated_bare_max_pool.json", "simulated_bare_chain.json"} <= kept


@pytest.mark.slow
def test_every_part_runs_on_the_stand_ins(tmp_path):
    """Figures may be wrong there (torch.profiler sees nothing of the stand-ins), but no script is."""
    parts = "sustained|training|replays|ncu|times|sums|roofs|cpp|overhead"
    result = on_stand_ins(tmp_path, parts, DEADLINE="1500")
    for part in result["parts"]:
        assert not by_status(result, part, "error")
    for part in ("training", "times", "sums"):
        assert not by_status(result, part, "fail")


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
