"""The installed C++ headers: each compiles alone, without torch, and with the warnings that people turn on, for g++ and
for every clang on this machine that the README names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

INCLUDE = Path(__file__).resolve().parents[3] / "csrc" / "include"
HEADERS = sorted(str(path.relative_to(INCLUDE)) for path in INCLUDE.rglob("*.h"))
TORCH = Path(torch.__file__).parent / "include"
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{INCLUDE}"]
CLANGS = range(14, 20)  # from the oldest to the newest that the README names


def compilers() -> list[str]:
    """The one that the tests were built with, g++, and each clang that can be had here."""
    clangs = [f"clang++-{version}" for version in CLANGS]
    named = [os.environ.get("CXX"), "g++", *clangs, *([] if any(map(shutil.which, clangs)) else ["clang++"])]
    return list(dict.fromkeys(name for name in named if name and shutil.which(name)))


# `make clang` compiles all of the library with one clang.
first, *others = compilers()
every_compiler = pytest.mark.parametrize(
    "compiler", [first, *(pytest.param(c, marks=pytest.mark.slow) for c in others)]
)


@pytest.fixture
def fmt_alone(tmp_path):
    """A folder with fmt and nothing else of what torch brings."""
    (tmp_path / "fmt").symlink_to(TORCH / "fmt")
    return ["-isystem", str(tmp_path), "-DFMT_HEADER_ONLY=1"]


def run(compiler: str, source: str, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [compiler, *FLAGS, *flags, "-x", "c++", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=False)


def test_the_readme_names_these_clangs():
    readme = (INCLUDE.parents[1] / "README.md").read_text()
    assert re.search(rf"`clang`\s+\({CLANGS[0]}\s+to\s+{CLANGS[-1]}\)", readme)


@every_compiler
@pytest.mark.parametrize("header", HEADERS)
def test_each_compiles_alone(compiler, header, fmt_alone):
    flags = fmt_alone if header == "roofprof/fmt.h" else []
    done = run(compiler, f'#include "{header}"\n', "-fsyntax-only", *flags)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("header", [header for header in HEADERS if header != "roofprof/fmt.h"])
def test_none_reads_more_than_the_standard_library(header):
    # The folders of torch are there to be found: what is read is what the header asks for.
    done = run(first, f'#include "{header}"\n', "-M", f"-I{TORCH}", f"-I{TORCH}/torch/csrc/api/include")
    assert done.returncode == 0, done.stderr
    read = [Path(word) for word in done.stdout.replace("\\\n", " ").split()[1:]]
    assert INCLUDE / header in read
    assert not [path for path in read if path.is_relative_to(TORCH)]


@every_compiler
def test_options_can_be_designated_in_part(compiler):
    source = """#include "roofprof/profiler.h"
        roofprof::ProfilerOptions options() { return {.warmup = 1, .counters = roofprof::Counters::off}; }
        roofprof::TableOptions table() { return {.depth = 2}; }"""
    done = run(compiler, source, "-fsyntax-only")
    assert done.returncode == 0, done.stderr
