"""Builds beside a torch whose CUPTI headers are missing, too old or incomplete: all but kernel times and counters is
there, and that is said. And beside torch's CUDA wheel, as on a machine without a CUDA toolkit: nothing is left out."""

import subprocess
from pathlib import Path

import pytest
import torch
from cpp_project import ROOT, build, configure, environment, run, tool

TORCH = Path(torch.__file__).parent
LEFT_OUT = "roofprof: built without kernel times and counters of GPUs: "
NO_FOLDER_CAN_BE_HIDDEN = 77


def configured(folder, headers):
    """What CMake says to that folder of headers."""
    options = ["-DROOFPROF_PYTHON=OFF", "-DROOFPROF_TESTS=ON", f"-DROOFPROF_TORCH_DIR={TORCH}"]
    return configure(ROOT, folder, folder, f"-DROOFPROF_CUPTI_INCLUDE_DIR={headers}", *options).stdout


def headers_with(folder, **contents):
    """A folder of CUPTI's headers with that text in them."""
    folder.mkdir()
    for name in ("cuda", "cupti", "cupti_version", "cupti_profiler_host", "cupti_range_profiler"):
        (folder / f"{name}.h").write_text(contents.get(name, ""))
    return folder


def last_message(folder):
    """What a build prints when everything else is done."""
    return run(tool("ninja"), "-C", folder, "-t", "commands", "roofprof_package").stdout.splitlines()[-1]


@pytest.mark.parametrize("version", [None, 26])
def test_headers_that_are_missing_or_too_old_are_named(tmp_path, version):
    headers = tmp_path / "include"
    if version:
        headers_with(headers, cupti_version=f"#define CUPTI_API_VERSION {version}\n")
    message = configured(tmp_path / "build", headers)
    sentence = (
        f"{LEFT_OUT}there are no CUPTI headers (13.0 or newer) in {headers}; build it beside a CUDA form of torch, "
        "or set ROOFPROF_CUPTI_INCLUDE_DIR"
    )
    assert sentence in message
    assert sentence in last_message(tmp_path / "build")


def test_headers_that_do_not_compile_are_named_with_the_compilers_reason(tmp_path):
    headers = headers_with(
        tmp_path / "include",
        cupti_version="#define CUPTI_API_VERSION 130000\n",
        cupti='#include "crt/nowhere.h"\n',
    )
    message = configured(tmp_path / "build", headers)
    assert f"{LEFT_OUT}CUPTI's headers in {headers} do not compile (" in message
    assert "crt/nowhere.h" in message
    assert "; pip install nvidia-cuda-crt and build again, or set ROOFPROF_CUPTI_INCLUDE_DIR" in message
    assert "do not compile (" in last_message(tmp_path / "build")


@pytest.mark.skipif(not torch.version.cuda, reason="torch is no CUDA wheel, and brings no headers of CUPTI's")
def test_torchs_cuda_wheel_is_enough_where_there_is_no_toolkit(tmp_path):
    hidden = [ROOT / ".ci" / "without_toolkit", tool("cmake"), "-S", ROOT, "-B", tmp_path, "-G", "Ninja"]
    options = [f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}", "-DROOFPROF_PYTHON=OFF", f"-DROOFPROF_TORCH_DIR={TORCH}"]
    done = subprocess.run([*hidden, *options], env=environment(), capture_output=True, text=True, check=False)
    if done.returncode == NO_FOLDER_CAN_BE_HIDDEN:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    assert LEFT_OUT not in done.stdout
    assert "roofprof: CUPTI's headers (" in done.stdout


@pytest.mark.slow
def test_what_is_built_says_so_too(tmp_path):
    configured(tmp_path, "/nonexistent")
    build(tmp_path, "test_device")
    test = [tmp_path / "tests" / "cpp" / "test_device", "--gtest_filter=MakeCollector.*:Doctor.Without*"]
    done = subprocess.run(test, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "MakeCollector.WithoutCuptisHeadersSaysSo" in done.stdout
    assert "Doctor.WithoutCuptisHeadersSaysSoFirst" in done.stdout
