"""``roofprof doctor``: on any machine, and on a simulated one, in processes of their own as users start it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from cpp_project import BUILD

import roofprof
from roofprof.cli import doctor

FAKES = BUILD / "tests" / "fakes" / "lib"
needs_fakes = pytest.mark.skipif(not FAKES.is_dir(), reason="built without CUPTI's headers, so without fake libraries")
OURS = ("ROOFPROF_", "NSYS_", "NV_NSIGHT_", "CUDA_INJECTION", "NVPROF_")


def run(*arguments, **variables):
    """The command's output, where nothing of NVIDIA's is set up but what the variables say."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    folder = {"PYTHONPATH": str(Path(roofprof.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-m", "roofprof", "doctor", *arguments],
        env=plain | folder | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def examined(**variables):
    """What was found, and the advice, by name."""
    found = json.loads(run("--json", **variables))
    return {finding["what"]: (finding["found"], finding["advice"]) for finding in found}


def simulated(fake=""):
    return {
        "ROOFPROF_CUDA_LIB": str(FAKES / "all" / "libcuda.so.1"),
        "ROOFPROF_CUPTI_LIB": str(FAKES / "all" / "libcupti.so.13"),
        "ROOFPROF_NVML_LIB": str(FAKES / "all" / "libnvidia-ml.so.1"),
        "ROOFPROF_FAKE": fake,
    }


# ---- any machine


def test_without_a_driver_it_says_so_and_what_to_do():
    text = run(ROOFPROF_CUDA_LIB="/nowhere/libcuda.so.1")
    lines = text.splitlines()
    version = f"roofprof {roofprof.__version__}, built with torch {torch.__version__.partition('+')[0]}"
    assert " ".join(lines[0].split()) == version
    assert lines[1].startswith(f"torch            {torch.__version__}, ")
    assert lines[2] == "this build       has kernel times and counters of GPUs"
    assert lines[3].startswith("driver           ROOFPROF_CUDA_LIB cannot be loaded (/nowhere/libcuda.so.1: ")
    assert "-> unset it, or name the driver's libcuda.so.1" in text
    assert lines[-1] == "CPU              profiles of it need nothing more"
    assert "CUPTI" not in text
    assert len(lines) < 10


def test_this_machine_as_it_is():
    found = {finding.what: finding.advice for finding in doctor.findings()}
    assert {"roofprof", "torch", "driver", "other profilers"} <= found.keys()
    assert "torch.profiler" not in found
    if "cuda:0" not in found:
        assert found["driver"], "nothing there, and no advice"
        assert "CPU" in found
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        during = {finding.what: finding.advice for finding in doctor.findings()}
    assert during["torch.profiler"]


# ---- simulated


@needs_fakes
def test_all_that_is_there():
    found = examined(**simulated("devices=2,device_name=NVIDIA H100"))
    looked_at = ["driver", "cuda:0", "cuda:1", "NVML", "CUPTI", "kernel times", "counters", "other profilers"]
    assert list(found) == ["roofprof", "torch", "this build", *looked_at]
    assert found["driver"] == (f"CUDA 13.2 ({FAKES}/all/libcuda.so.1), simulated", "")
    assert found["cuda:1"] == ("NVIDIA H100, compute capability 9.0, 80.0 GiB", "")
    assert found["CUPTI"] == (f"13.2.2, ROOFPROF_CUPTI_LIB ({FAKES}/all/libcupti.so.13), simulated", "")
    assert found["kernel times"] == ("available", "")
    assert found["counters"] == ("available on cuda:0 (chip GH100)", "")
    assert found["other profilers"] == ("none", "")


@needs_fakes
def test_no_permission_under_nsys():
    found = examined(**simulated("permitted=0"), NSYS_PROFILING_SESSION_ID="17")
    assert found["kernel times"] == ("available", "")
    assert "NVreg_RestrictProfilingToAdminUsers=0" in found["counters"][1]
    assert "Nsight Systems" in found["other profilers"][0]
    assert found["other profilers"][1]


@needs_fakes
def test_a_real_library_is_never_called_behind_a_simulated_driver():
    # torch's own copy, where it has one; it would crash without a real driver.
    variables = simulated()
    del variables["ROOFPROF_CUPTI_LIB"]
    found, advice = examined(**variables)["CUPTI"]
    assert "simulated" in found or "there is no CUPTI here" in found
    assert advice
