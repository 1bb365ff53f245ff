"""The installed C++ headers: each compiles alone, without torch, and with the warnings that people turn on."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

INCLUDE = Path(__file__).resolve().parents[2] / "csrc" / "include"
HEADERS = sorted(str(path.relative_to(INCLUDE)) for path in INCLUDE.rglob("*.h"))
COMPILER = os.environ.get("CXX") or shutil.which("c++") or "g++"
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{INCLUDE}"]


@pytest.fixture
def fmt_alone(tmp_path):
    """A folder with fmt and nothing else of what torch brings."""
    (tmp_path / "fmt").symlink_to(Path(torch.__file__).parent / "include" / "fmt")
    return ["-isystem", str(tmp_path), "-DFMT_HEADER_ONLY=1"]


def compiler(source: str, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [COMPILER, *FLAGS, *flags, "-x", "c++", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("header", HEADERS)
def test_each_compiles_alone(header, fmt_alone):
    flags = fmt_alone if header == "roofprof/fmt.h" else []
    done = compiler(f'#include "{header}"\n', "-fsyntax-only", *flags)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("header", [header for header in HEADERS if header != "roofprof/fmt.h"])
def test_none_reads_more_than_the_standard_library(header):
    # The folders of torch are there to be found: what is read is what the header asks for.
    torchs = Path(torch.__file__).parent / "include"
    done = compiler(f'#include "{header}"\n', "-M", f"-I{torchs}", f"-I{torchs}/torch/csrc/api/include")
    assert done.returncode == 0, done.stderr
    read = [Path(word) for word in done.stdout.replace("\\\n", " ").split()[1:]]
    assert INCLUDE / header in read
    assert not [path for path in read if path.is_relative_to(torchs)]


def test_options_can_be_designated_in_part():
    source = """#include "roofprof/profiler.h"
        roofprof::ProfilerOptions options() { return {.warmup = 1, .counters = roofprof::Counters::off}; }
        roofprof::TableOptions table() { return {.depth = 2}; }"""
    done = compiler(source, "-fsyntax-only")
    assert done.returncode == 0, done.stderr
