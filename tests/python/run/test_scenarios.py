"""One table of scenarios through Python's front end and C++'s: the same calls, reports and things left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import scenarios
from cpp_project import BUILD, ROOT
from scenarios import Scenario, read_scenarios
from simulated_gpu import FAKES, libraries

import roofprof

CPP = BUILD / "tests" / "cpp" / "test_run"
EACH = pytest.mark.parametrize("scenario", read_scenarios(), ids=lambda scenario: scenario.name)

# What one thing is called in the other front end.
OF_CPP = {
    "std::runtime_error: no": "RuntimeError: no",
    "an argument can only be moved, and further calls would find it empty": (
        "further ones would use up an iterator among its inputs"
    ),
}


@pytest.fixture(scope="module")
def python() -> dict[str, Any]:
    folders = (Path(roofprof.__file__).parents[1], Path(scenarios.__file__).parent, ROOT / "tests" / "fakes")
    path = os.pathsep.join(map(str, folders))
    environment = os.environ | libraries("all", "all/libcupti.so.13") | {"PYTHONPATH": path}
    command = [sys.executable, scenarios.__file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def cpp(tmp_path_factory) -> dict[str, Any]:
    if not CPP.is_file():
        pytest.skip("the C++ tests are not built")
    file = tmp_path_factory.mktemp("scenarios") / "cpp.json"
    command = [str(CPP), "--gtest_filter=*CppFrontEnd*", "--gtest_brief=1"]
    environment = os.environ | {"ROOFPROF_SCENARIOS": str(file)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return json.loads(file.read_text())


def notes_of_the_loop(report: dict[str, Any]) -> list[str]:
    codes = {"timing-stopped", "timed-once", "state-not-restored", "first-call"}
    notes = [note["text"] for note in report["notes"] if note["code"] in codes]
    for theirs, ours in OF_CPP.items():
        notes = [note.replace(theirs, ours) for note in notes]
    return notes


def needs_fakes(scenario: Scenario) -> None:
    if scenario.model == "lost" and not FAKES.is_dir():
        pytest.skip("the fake libraries are not built (no CUPTI headers)")


@EACH
def test_pythons_front_end_does_what_the_table_says(scenario, python):
    needs_fakes(scenario)
    found = python[scenario.name]
    report = found["report"]
    assert found["calls"] == scenario.calls
    assert found["raised"] == (scenario.ends != "well")
    assert report["partial"] == (scenario.ends == "partial")
    assert report["runs"]["warmup"] == scenario.warmed_up
    assert len(report["runs"]["total_ns"]) == scenario.timed
    assert len(report["runs"]["bare_ns"]) == scenario.bare
    assert report["total"]["macs"] == 2 * 8 * 4 + (2 * 4 * 2 if scenario.model == "grows" else 0)
    note = scenario.note.format(
        error="RuntimeError: no", front_end="further ones would use up an iterator among its inputs"
    )
    assert notes_of_the_loop(report) == ([note] if note else [])
    assert (found["seen"], found["input"]) == (1, 1), "as one call leaves it"


@EACH
def test_both_front_ends_report_the_same(scenario, python, cpp):
    needs_fakes(scenario)
    if scenario.model == "interrupts":
        pytest.skip("only Python has errors that end a program")
    ours, theirs = python[scenario.name], cpp[scenario.name]
    for fact in ("calls", "raised", "seen", "input"):
        assert ours[fact] == theirs[fact], fact
    reports = [found["report"] for found in (ours, theirs)]
    for fact in (
        lambda report: report["partial"],
        lambda report: report["device"],
        lambda report: report["scope"],
        lambda report: report["runs"]["warmup"],
        lambda report: [len(report["runs"][times]) for times in ("total_ns", "bare_ns")],
        lambda report: {row["path"]: (row["macs"], row["flops"], row["calls"]) for row in report["rows"]},
        notes_of_the_loop,
    ):
        assert fact(reports[0]) == fact(reports[1])
