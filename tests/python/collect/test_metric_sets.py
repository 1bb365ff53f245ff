"""The metric sets against the real libcupti 13.0, whose host profiler needs no device: every chip that it knows.

What is expected was picked by hand from the names that the library lists for each chip. It is never loaded here: a
program of ours opens it, as torch has another one loaded.
"""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / "build"
PROGRAM = BUILD / "cmake" / "tests" / "cpp" / "metric_sets_of"
# What `make test-integrations` fetches; ROOFPROF_TEST_CUPTI names another copy of CUPTI 13.0.
FETCHED = BUILD / "cupti-13.0" / "nvidia" / "cu13" / "lib" / "libcupti.so.13"
LIBRARY = Path(os.environ.get("ROOFPROF_TEST_CUPTI", FETCHED))

TURING = ["TU102", "TU104", "TU106"]
TURING_WITHOUT_TENSOR_CORES = ["TU116", "TU117"]
AMPERE = ["GA100", "GA102", "GA103", "GA104", "GA106", "GA107"]
ADA = ["AD102", "AD103", "AD104", "AD106", "AD107"]
HOPPER = ["GH100"]
BLACKWELL_DATA_CENTER = ["GB100", "GB102", "GB110"]
BLACKWELL = ["GB202", "GB203", "GB205", "GB206", "GB207"]
DISCRETE = TURING + TURING_WITHOUT_TENSOR_CORES + AMPERE + ADA + HOPPER + BLACKWELL_DATA_CENTER + BLACKWELL
INTEGRATED = ["GA10B", "GB10B", "GB20B"]
BEFORE_TURING = ["GV100", "GV11B"]

MEMORY = ["dram_read_bytes", "dram_write_bytes", "dram_bytes", "l2_bytes", "l1_bytes", "time_ns"]
SASS = ["fp16_flops", "fp32_flops", "fp64_flops"]


def tensor_types(chip):
    """By input type, the ends of the names of the chip's tensor metrics."""
    if chip in TURING:
        return {"fp16": ["fp16_dst_fp16", "fp16_bf16_tf32_dst_fp32"], "int8": ["int8"]}
    if chip in TURING_WITHOUT_TENSOR_CORES:
        return {}
    types = {
        "fp16": ["fp16_dst_fp16", "fp16_dst_fp32"],
        "bf16": ["bf16_dst_fp32"],
        "tf32": ["tf32_dst_fp32"],
        "int8": ["int8"],
        "fp64": ["fp64"],
    }
    if chip in HOPPER:
        types["fp16"] = ["fp16"]
    if chip in ADA + HOPPER:
        types["fp8"] = ["fp8"]
    if chip in {"GB100", "GB102", "GB10B"}:
        types["fp8"] = ["fp4_fp6_fp8_dst_fp16", "fp4_fp6_fp8_dst_fp32"]
        types["fp4"] = ["fp4_dst_fp32"]
    if chip in {"GB110", *BLACKWELL, "GB20B"}:
        types["fp8"] = ["fp8_dst_fp16", "fp8_dst_fp32", "fp4_fp6_dst_fp16", "fp4_fp6_dst_fp32"]
        types["fp4"] = ["fp4_dst_fp32"]
    return types


@pytest.fixture(scope="module")
def resolved():
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM.name} is not built: `make test` does, where CUPTI's headers are")
    if not LIBRARY.exists():
        pytest.skip(
            f"there is no CUPTI 13.0 in {LIBRARY.parent}: `make test-integrations` fetches it, where there is a network"
        )
    # The address sanitizer and the library do not go together; nothing of the caller's is to be loaded with it.
    environment = {name: value for name, value in os.environ.items() if name not in {"LD_PRELOAD", "LD_LIBRARY_PATH"}}
    ran = subprocess.run([PROGRAM, LIBRARY], capture_output=True, text=True, check=False, timeout=1200, env=environment)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def passes(chip, counters):
    """How many passes the groups with metrics of these counters take, for one chip."""
    metrics = {metric for counter in counters for metric in chip["counters"][counter]["metrics"]}
    groups = [group for group in chip["groups"] if metrics & set(group["metrics"])]
    assert {metric for group in groups for metric in group["metrics"]} == metrics, "sets share no passes"
    return [group["passes"] for group in groups]


def test_the_functions_that_launch_are_known_by_the_names_that_it_gives(resolved):
    # Numbers of cupti_runtime_cbid.h and cupti_driver_cbid.h.
    launches = {
        "runtime": {
            "cudaLaunchKernel": 211,
            "__cudaLaunchKernel": 505,  # that nvcc 13 makes launches of
            "cudaLaunchKernelExC": 430,
            "cudaMemcpyAsync": 41,
            "cudaMemsetAsync": 51,
            "cudaGraphLaunch": 311,
        },
        "driver": {
            "cuLaunchKernel": 307,
            "cuLaunchKernelEx": 652,
            "cuMemcpyDtoDAsync": 281,
            "cuMemsetD8Async": 216,
            "cuGraphLaunch": 514,
        },
    }
    others = {
        "runtime": {"cudaGetDevice": 17, "cudaMalloc": 20, "cudaEventRecord": 135, "cudaStreamWaitEvent": 147},
        "driver": {"cuCtxSynchronize": 17, "cuEventRecord": 119, "cuMemAlloc": 243},
    }
    for api, numbers in resolved["launches"].items():
        assert set(launches[api].values()) <= set(numbers)
        assert not set(others[api].values()) & set(numbers)


def test_every_chip_is_one_that_is_expected(resolved):
    assert sorted(resolved["chips"]) == sorted(DISCRETE + INTEGRATED + BEFORE_TURING)
    # Xavier's GPU is listed and not supported; Volta is, though CUDA 13 runs on neither.
    assert resolved["chips"]["GV11B"] == {"error": 27}


@pytest.mark.parametrize("name", DISCRETE)
def test_memory_counters_of_discrete_chips_are_one_pass(resolved, name):
    chip = resolved["chips"][name]
    infix = "op_" if name in BLACKWELL else ""
    expected = {
        "dram_read_bytes": {f"dram__bytes_{infix}read.sum": "byte"},
        "dram_write_bytes": {f"dram__bytes_{infix}write.sum": "byte"},
        "dram_bytes": {"dram__bytes.sum": "byte"},
        "l2_bytes": {"lts__t_bytes.sum": "byte"},
        "l1_bytes": {"l1tex__t_bytes.sum": "byte"},
        "time_ns": {"gpu__time_duration.sum": "nanosecond"},
    }
    assert {counter: chip["counters"][counter]["metrics"] for counter in MEMORY} == expected
    assert all(not chip["counters"][counter]["missing"] for counter in MEMORY)
    assert passes(chip, MEMORY) == [1]


@pytest.mark.parametrize("name", DISCRETE + INTEGRATED)
def test_executed_flops_are_one_pass_more(resolved, name):
    chip = resolved["chips"][name]
    kinds = {"fp16": ["hadd", "hmul", "hfma"], "fp32": ["fadd", "fmul", "ffma"], "fp64": ["dadd", "dmul", "dfma"]}
    if name in BLACKWELL_DATA_CENTER:
        kinds["fp32"] += ["fadd2", "fmul2", "ffma2"]
    for dtype, operations in kinds.items():
        names = [f"smsp__sass_thread_inst_executed_op_{operation}_pred_on.sum" for operation in operations]
        metrics = dict.fromkeys(names, "instruction")
        assert chip["counters"][f"{dtype}_flops"]["metrics"] == metrics
    assert passes(chip, SASS) == [1]


@pytest.mark.parametrize("name", DISCRETE + INTEGRATED)
def test_tensor_counters_are_those_of_the_chip(resolved, name):
    chip = resolved["chips"][name]
    counters = {
        dtype: chip["counters"][f"tensor_{dtype}_{'ops' if dtype == 'int8' else 'flops'}"]
        for dtype in ("fp16", "bf16", "tf32", "fp8", "fp4", "int8", "fp64")
    }
    assert {dtype: counter["metrics"] for dtype, counter in counters.items() if counter["metrics"]} == {
        dtype: {f"sm__ops_path_tensor_src_{end}.sum": "math_op" for end in ends}
        for dtype, ends in tensor_types(name).items()
    }
    for dtype, counter in counters.items():
        integrated = ", integrated" if name in INTEGRATED else ""
        missing = f"this chip ({name}{integrated}) has no tensor-core {dtype} counter"
        assert counter["missing"] == ("" if dtype in tensor_types(name) else missing)


@pytest.mark.parametrize("name", DISCRETE + INTEGRATED)
def test_only_metrics_that_need_two_passes_by_themselves_are_repeated(resolved, name):
    """A pass more means that each kernel is repeated, and the memory that it wrote put back."""
    for group in resolved["chips"][name]["groups"]:
        assert group["passes"] == 1 or (group["passes"] == 2 and len(group["metrics"]) == 1), group


@pytest.mark.parametrize("name", INTEGRATED)
def test_integrated_chips_have_no_dram_counter(resolved, name):
    chip = resolved["chips"][name]
    for counter, what in (("dram_bytes", "DRAM"), ("dram_read_bytes", "DRAM read"), ("dram_write_bytes", "DRAM write")):
        assert chip["counters"][counter]["missing"] == f"this chip ({name}, integrated) has no {what} counter"
        assert not chip["counters"][counter]["metrics"]
    assert chip["counters"]["l2_bytes"]["metrics"] == {"lts__t_bytes.sum": "byte"}
    assert passes(chip, MEMORY) == [1]


def test_the_page_names_every_counter_and_metric(resolved):
    page = (ROOT / "docs" / "counters.md").read_text()
    words = set(re.findall(r"\w+", page))
    for chip in resolved["chips"].values():
        for name, counter in chip.get("counters", {}).items():
            assert name in words
            for metric in counter["metrics"]:
                base = metric.removesuffix(".sum").removeprefix("sm__ops_path_tensor_src_")
                kind = base.removeprefix("smsp__sass_thread_inst_executed_op_").removesuffix("_pred_on")
                assert kind in words, metric


RUNS = {"TU102": 3, "TU116": 2, "GA100": 7, "GH100": 7, "AD102": 8, "GB100": 10, "GB110": 12, "GB202": 12}


@pytest.mark.parametrize("name", RUNS)
def test_the_page_tells_how_often_the_code_runs(resolved, name):
    """Once for each group: by kernel, a pass more of a group repeats kernels, not the code."""
    assert len(resolved["chips"][name]["groups"]) == RUNS[name]
