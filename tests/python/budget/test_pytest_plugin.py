"""The pytest fixture: what it checks, what a failed test shows, and that it costs nothing where nobody asks for it."""

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

# As installed, the plugin comes by its entry point; here it is named, whether or not that is installed.
PLUGIN = ("-p", "no:roofprof", "-p", "roofprof.pytest_plugin", "-p", "no:cacheprovider")

MODEL = """
    import torch
    from torch import nn

    model = nn.Linear(16, 8)
    x = torch.rand(4, 16)
"""


def test_a_budget_in_a_test(pytester):
    pytester.makefile(".toml", budget='[total]\nmacs = "<= 512"\n')
    pytester.makepyfile(
        MODEL
        + """
    def test_kept(roofprof):
        report = roofprof.check(roofprof.count(model, x), budget="budget.toml")
        assert report.total.macs == 512

    def test_broken(roofprof):
        roofprof.check(roofprof.count(model, x), budget={"total": {"macs": "<= 500", "params": "<= 10"}})

    def test_baseline(roofprof, tmp_path):
        counted = roofprof.count(model, x)
        counted.to_json(tmp_path / "base.json")
        budget = {"total": {"macs": "<= 1 base"}}
        roofprof.check(counted, budget=budget, baseline=tmp_path / "base.json")
        roofprof.check(counted, budget=budget, baseline=counted)

    def test_wrong(roofprof):
        roofprof.check(model, x, budget="none.toml")
    """
    )
    result = pytester.runpytest_subprocess(*PLUGIN)
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*AssertionError: total: macs <= 500: it is 512, 12 too much (+2.4%)",
            "*total: params <= 10: it is 136, 126 too much (13.6 x)",
            "*2 of 2 figures break the budget",
            "*FileNotFoundError*none.toml*",
        ]
    )


def test_nothing_is_loaded_until_the_fixture_is_used(pytester):
    pytester.makepyfile(
        """
        import sys

        def test_quick():
            assert "torch" not in sys.modules
            assert "roofprof._api" not in sys.modules

        def test_fixture(roofprof):
            assert "torch" not in sys.modules
        """
    )
    pytester.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=2)


def test_the_plugin_is_an_entry_point():
    if sys.version_info < (3, 11):
        pytest.skip("the file is read with tomllib")
    from pathlib import Path

    import tomllib

    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"roofprof": "roofprof.pytest_plugin"}
    loaded = "import sys, roofprof.pytest_plugin; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loaded], check=False).returncode == 0
