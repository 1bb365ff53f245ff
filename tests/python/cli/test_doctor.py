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
from roofprof.cli.doctor import Finding

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


def simulated(fake="", cuda="all", cupti="all"):
    return {
        "ROOFPROF_CUDA_LIB": str(FAKES / cuda / "libcuda.so.1"),
        "ROOFPROF_CUPTI_LIB": str(FAKES / cupti / "libcupti.so.13"),
        "ROOFPROF_NVML_LIB": str(FAKES / "all" / "libnvidia-ml.so.1"),
        "ROOFPROF_FAKE": fake,
    }


# ---- any machine


def test_without_a_driver_it_says_so_and_what_to_do():
    text = run(ROOFPROF_CUDA_LIB="/nowhere/libcuda.so.1")
    lines = text.splitlines()
    assert lines[0].split() == [
        "roofprof",
        f"{roofprof.__version__},",
        "built",
        "with",
        "torch",
        torch.__version__.split("+")[0],
    ]
    assert lines[1].startswith(f"torch            {torch.__version__}, ")
    assert lines[2] == "this build       has kernel times and counters of GPUs"
    assert lines[3].startswith("driver           ROOFPROF_CUDA_LIB cannot be loaded (/nowhere/libcuda.so.1: ")
    assert "-> unset it, or name the driver's libcuda.so.1" in text
    assert lines[-1] == "CPU              profiles of it need nothing more"
    assert "CUPTI" not in text
    assert len(lines) < 10


def test_this_machine_as_it_is():
    found = examined()
    assert {"roofprof", "torch", "driver", "other profilers"} <= found.keys()
    if "cuda:0" not in found:
        assert found["driver"][1], "nothing there, and no advice"
        assert "CPU" in found


def test_torch_without_cuda_is_a_reason_only_beside_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", None)
    assert doctor._torch(has_gpu=False) == Finding("torch", f"{torch.__version__}, built without CUDA")
    assert "pip install torch" in doctor._torch(has_gpu=True).advice


def test_torchs_profiler_at_work_is_named():
    assert "torch.profiler" not in {finding.what for finding in doctor.findings()}
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        during = {finding.what: finding.advice for finding in doctor.findings()}
    assert during["torch.profiler"]


def test_lines_are_wrapped_under_their_column():
    found = [Finding("a", "one"), Finding("longer", "word " * 20, "advice " * 20)]
    found[1] = found[1]._replace(what="other profilers")
    lines = doctor.document_of(found).text(60).splitlines()
    assert lines[0] == "a                one"
    assert lines[1].startswith("other profilers  word")
    assert lines[4].startswith("                 -> advice")
    assert lines[5].startswith("                 advice")
    assert max(map(len, lines)) <= 60
    assert " ".join(lines).count("word") == " ".join(lines).count("advice") == 20


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
def test_the_stub_is_no_driver():
    found, advice = examined(**simulated("fail:cuInit=34"))["driver"]
    assert found.endswith("libcuda.so.1 is the CUDA toolkit's stub, not a driver")
    assert "LD_LIBRARY_PATH" in advice


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
