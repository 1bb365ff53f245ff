"""What needs no torch does not load it, and what was listed for it at build time is what the tables say."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import roofprof
from roofprof import _C
from roofprof.cli import ops

PROGRAM = """
import runpy, sys
sys.argv = ["roofprof", *sys.argv[1:]]
try:
    runpy.run_module("roofprof", run_name="__main__")
except SystemExit as end:
    code = end.code or 0
assert "torch" not in sys.modules, "torch was loaded"
sys.exit(code)
"""


def shell(*arguments):
    return subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("--version",),
        ("profile", "--help"),
        ("show", "--help"),
        ("trace", "--help"),
        ("ceilings", "--help"),
        ("doctor", "--help"),
        ("ops", "--help"),
        ("ops", "conv"),
    ],
)
def test_without_torch(arguments):
    run = shell(*arguments)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout


def test_errors_of_options_come_without_torch_too():
    run = shell("profile")
    assert run.returncode == 2
    assert "target" in run.stderr
    run = shell("ops", "no_such_op")
    assert run.returncode == 2
    assert run.stderr.startswith("roofprof: no operator")


def test_the_list_of_costs_is_that_of_the_tables():
    assert json.loads(ops.LIST.read_text()) == [cost for cost in _C.op_costs() if cost["family"] != "own"]


@pytest.mark.parametrize(
    "program",
    [
        "import roofprof.profiler",
        "import roofprof.report",
        "import roofprof.compat.thop",
        "from roofprof import ceilings",
        "import roofprof; roofprof.ceilings.cache_dir()",
        "from roofprof import *; assert Report and profile",
        "import torch, roofprof; assert 'profile' in vars(roofprof)",
        "import roofprof; assert set(roofprof.__all__) <= set(dir(roofprof))",
    ],
)
def test_any_import_may_be_the_first(program):
    subprocess.run([sys.executable, "-c", program], check=True)


def test_names_that_are_not_there_are_said_as_python_does():
    with pytest.raises(AttributeError, match="module 'roofprof' has no attribute 'profil'"):
        _ = roofprof.profil
