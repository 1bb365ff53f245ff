"""The report of a C++ program beside Python's of the same model: the same keys, counts, inputs and outputs."""

import json
import os
import subprocess
from pathlib import Path

import given_roofs
import torch
from torch import nn

PROGRAM = Path(__file__).resolve().parents[3] / "build" / "cmake" / "tests" / "cpp" / "test_profiler"
COUNTS = ("macs", "flops", "int_ops", "read_bytes", "write_bytes", "params", "param_bytes")
RECORDED = ("input_shapes", "output_shapes", "output_bytes", "kept_memory", "calls")
# C++ does not see them; what no row has is left out of the JSON.
SEEN_BY_PYTHON_ALONE = {".modules[].forward_of_torch", ".modules[].parameters_read"}


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


def test_both_have_the_same_keys_and_counts(tmp_path):
    program = Path(os.environ.get("ROOFPROF_TEST_PROFILER", PROGRAM))
    assert program.exists(), f"{program} is not built: run `make build` first"
    path = tmp_path / "report.json"
    environment = os.environ | {"ROOFPROF_WRITE_REPORT": str(path)}
    command = [program, "--gtest_filter=RooflineProfiler.WritesTheReport*"]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    theirs = json.loads(path.read_text())
    model = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 2))
    ours = given_roofs.profiler(model, repeat=3).run(torch.rand(4, 16)).to_dict()
    assert keys(ours) - keys(theirs) == SEEN_BY_PYTHON_ALONE
    assert keys(theirs) <= keys(ours)
    for names in (COUNTS, RECORDED):
        rows = [{row["path"]: [row[name] for name in names] for row in report["rows"]} for report in (theirs, ours)]
        assert rows[0] == rows[1]
    assert rows[0][""][:3] == [[[4, 16]], [[4, 2]], 4 * 2 * 4]
    assert theirs["total"]["macs"] == 4 * 16 * 8 + 4 * 8 * 2
    assert theirs["schema_version"] == ours["schema_version"]
