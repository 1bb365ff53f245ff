"""The report of a C++ program beside Python's of the same model: the same keys and counts, and `show` reads it."""

import json
import os
import subprocess
from pathlib import Path

import given_roofs
import pytest
import torch
from torch import nn

from roofprof import cli

PROGRAM = Path(__file__).resolve().parents[3] / "build" / "cmake" / "tests" / "cpp" / "test_profiler"
COUNTS = ("macs", "flops", "int_ops", "read_bytes", "write_bytes", "params", "param_bytes")


@pytest.fixture(scope="module")
def cpp_report(tmp_path_factory):
    program = Path(os.environ.get("ROOFPROF_TEST_PROFILER", PROGRAM))
    assert program.exists(), f"{program} is not built: run `make build` first"
    path = tmp_path_factory.mktemp("cpp") / "report.json"
    subprocess.run(
        [program, "--gtest_filter=RooflineProfiler.WritesTheReport*"],
        env=os.environ | {"ROOFPROF_WRITE_REPORT": str(path)},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return path


@pytest.fixture
def python_report():
    model = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 2))
    return json.loads(given_roofs.profiler(model, repeat=3).run(torch.rand(4, 16)).to_json())


def keys(value, place=""):
    """Every key at every level; what stands in lists, and under the names of dtypes, is one level each."""
    if isinstance(value, dict):
        below = {key: keys(item, f"{place}.{key}") for key, item in value.items()}
        return {f"{place}.{key}" for key in value}.union(*below.values())
    if place == ".findings":  # the times of a run decide whether there are any
        return set()
    if isinstance(value, list):
        return set().union(*(keys(item, f"{place}[]") for item in value))
    return set()


# C++ does not see them; what no row has is left out of the JSON.
SEEN_BY_PYTHON_ALONE = {".modules[].forward_of_torch", ".modules[].parameters_read"}


def test_both_have_the_same_keys_at_every_level(cpp_report, python_report):
    assert keys(python_report) - keys(json.loads(cpp_report.read_text())) == SEEN_BY_PYTHON_ALONE
    assert keys(json.loads(cpp_report.read_text())) <= keys(python_report)


def test_both_tell_what_goes_in_and_comes_out(cpp_report, python_report):
    from_cpp = json.loads(cpp_report.read_text())
    told = ("input_shapes", "output_shapes", "output_bytes", "kept_memory", "calls")
    rows = [{row["path"]: [row[c] for c in told] for row in report["rows"]} for report in (from_cpp, python_report)]
    assert rows[0] == rows[1]
    assert rows[0][""][:3] == [[[4, 16]], [[4, 2]], 4 * 2 * 4]


def test_both_count_the_same(cpp_report, python_report):
    from_cpp = json.loads(cpp_report.read_text())
    rows = [{row["path"]: [row[c] for c in COUNTS] for row in report["rows"]} for report in (from_cpp, python_report)]
    assert rows[0] == rows[1]
    assert from_cpp["total"]["macs"] == 4 * 16 * 8 + 4 * 8 * 2
    assert from_cpp["schema_version"] == python_report["schema_version"]


def test_show_reads_it(cpp_report, capsys):
    assert cli.main(["show", str(cpp_report)]) == 0
    assert "Sequential" in capsys.readouterr().out
