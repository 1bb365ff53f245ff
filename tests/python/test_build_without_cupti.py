"""A build beside a torch without CUPTI's headers: all but kernel times and counters is there, and that is said."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import torch
from cpp_project import ROOT, build, configure


def configured(folder, headers):
    """What CMake says to that folder of headers."""
    options = ["-DROOFPROF_PYTHON=OFF", "-DROOFPROF_TESTS=ON", f"-DROOFPROF_TORCH_DIR={Path(torch.__file__).parent}"]
    return configure(ROOT, folder, folder, f"-DROOFPROF_CUPTI_INCLUDE_DIR={headers}", *options).stdout


@pytest.mark.parametrize("version", [None, 26])
def test_configuring_says_what_is_left_out(tmp_path, version):
    headers = tmp_path / "include"
    headers.mkdir()
    if version:  # those of CUDA 12 are too old
        for name in ("cuda.h", "cupti_range_profiler.h"):
            (headers / name).touch()
        (headers / "cupti_version.h").write_text(f"#define CUPTI_API_VERSION {version}\n")
    said = configured(tmp_path / "build", headers)
    expected = f"roofprof: no CUPTI headers (13.0 or newer) in {headers}: built without GPU kernel times and counters"
    assert expected in said


@pytest.mark.slow
def test_what_is_built_says_so_too(tmp_path):
    configured(tmp_path, "/nonexistent")
    build(tmp_path, "test_cuda")
    test = [tmp_path / "tests" / "cpp" / "test_cuda", "--gtest_filter=MakeCollector.*:OpenDriver.*"]
    done = subprocess.run(test, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "MakeCollector.WithoutCuptisHeadersSaysSo" in done.stdout
