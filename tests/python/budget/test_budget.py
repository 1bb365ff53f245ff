"""Budgets: what they may hold, which reports break them, the command and its exit codes."""

import json
import textwrap

import pytest
import torch
from given_roofs import profiler
from torch import nn

import roofprof
from roofprof import _report
from roofprof.budget import Budget, budget_of
from roofprof.budget.quantities import parsed
from roofprof.cli import main
from roofprof.errors import BudgetError

X = torch.rand(4, 16)
# 4 samples, 16 x 8 weights: 512 MACs; with the bias 32 operations more.
MACS, FLOPS, PARAMS = 512, 2 * 512 + 32, 16 * 8 + 8


@pytest.fixture(scope="module")
def report():
    return profiler(nn.Sequential(nn.Linear(16, 8), nn.Softplus()), repeat=4).run(X)


@pytest.fixture(scope="module")
def counted():
    return roofprof.count(nn.Sequential(nn.Linear(16, 8), nn.Tanh()), X)


def checked(report, text, baseline=None):
    return Budget.parse(textwrap.dedent(text)).check(report, baseline)


@pytest.mark.parametrize(
    ("figure", "text", "value"),
    [
        ("time", "20 ms", 0.02),
        ("time", "2 \u00b5s", 2e-6),
        ("flops", "8.2 G", 8.2e9),
        ("macs", "1_000", 1000),
        ("bytes", "1 MiB", 2**20),
        ("achieved_flops", "300 GFLOP/s", 3e11),
        ("percent_of_roof", "40 %", 40),
        ("time_spread", "10 %", 0.1),
    ],
)
def test_amounts(figure, text, value):
    assert parsed(text, roofprof.fields.of("row")[figure]) == pytest.approx(value)


def test_a_budget_that_is_kept(counted):
    outcome = checked(
        counted,
        f"""
        [total]
        macs = "== {MACS}"
        params = "<= {PARAMS}"
        uncosted_ops = "<= 0"
        [modules."0"]
        flops = ["<= {FLOPS}", ">= {FLOPS}"]
        """,
    )
    assert outcome.kept
    assert outcome.checked == 5
    assert str(outcome) == "5 figures are within the budget"
    assert str(checked(counted, '[total]\nmacs = ">= 1"')) == "1 figure is within the budget"
    assert str(checked(counted, '[total]\nmacs = "<= 1"')).endswith("1 of 1 figure breaks the budget")


def test_a_broken_limit_says_which_and_by_how_much(counted):
    outcome = checked(counted, '[modules."0"]\nmacs = "<= 500"\n[total]\nparams = ">= 1 k"')
    assert [(broken.path, broken.limit.figure) for broken in outcome.broken] == [(None, "params"), ("0", "macs")]
    assert str(outcome).splitlines() == [
        "total: params >= 1 k: it is 136, 864 too little (-86.4%)",
        "0: macs <= 500: it is 512, 12 too much (+2.4%)",
        "2 of 2 figures break the budget",
    ]


def test_a_figure_that_the_report_lacks_breaks_its_limit(counted, report):
    outcome = checked(counted, '[total]\ntime = "<= 1 s"\npercent_of_roof = ">= 0 %"')
    assert [broken.reason for broken in outcome.broken] == [
        "the report has no time here: it needs time",
        "the report has no percent_of_roof here: it needs time, roofs",
    ]
    assert not checked(report, '[total]\ndram_bytes = "<= 1 GB"').kept
    assert checked(report, '[total]\ntime = "<= 100 s"\nwasted_time = "<= 100 s"\npercent_of_roof = ">= 0"').kept


def test_peak_memory_is_limited_where_it_was_measured(counted):
    # Of Linear(16, 8) on a batch it is what the layer returns, at least.
    assert checked(counted, '[total]\npeak_memory = "<= 1 GB"').kept
    assert not checked(counted, '[total]\npeak_memory = "<= 1 B"').kept
    data = counted.to_dict()
    del data["peak_memory"]
    outcome = checked(roofprof.Report.from_dict(data), '[total]\npeak_memory = "<= 1 GB"')
    reason = "the counting call of run() and count() measures it"
    assert [broken.reason for broken in outcome.broken] == [f"the report has no peak_memory here: {reason}"]


def test_a_lower_limit_is_no_proof(counted):
    data = counted.to_dict()
    data["ops"][0]["costed"] = False
    unknown = roofprof.Report.from_dict(data)
    assert unknown.total.incomplete
    outcome = checked(unknown, '[total]\nmacs = "<= 1 G"\nuncosted_ops = "<= 0"')
    assert "not known: macs is at least what is shown" in outcome.broken[0].reason
    assert outcome.broken[1].reason == "it is 1, 1 too much"
    assert checked(unknown, '[total]\nflops = ">= 1"').kept


def test_limits_relative_to_a_baseline(counted):
    double = roofprof.count(nn.Sequential(nn.Linear(16, 16), nn.Tanh()), X)
    text = '[total]\nmacs = "<= 1.5 base"\n[modules."0"]\nparams = "<= 2 x base"'
    assert checked(counted, text, counted).kept
    outcome = checked(double, text, counted)
    assert [str(broken) for broken in outcome.broken] == [
        "total: macs <= 1.5 base: it is 1.02k, 256 too much (+33.3%), which is 1.5 x 512"
    ]
    other = roofprof.count(nn.Linear(16, 8), X)
    assert checked(counted, '[modules."0"]\nmacs = "<= 1 base"', other).broken[0].reason == (
        "the baseline has no module '0'"
    )
    with pytest.raises(BudgetError, match=r"line 2: '<= 1.5 base' is relative to a baseline, and none was given"):
        checked(counted, text)


def test_globs_match_paths(counted):
    outcome = checked(counted, '[modules."*"]\nmacs = "< 0"\n[modules.""]\nmacs = "< 0"')
    assert [broken.path for broken in outcome.broken] == ["", "0", "1", ""]
    with pytest.raises(BudgetError, match=r"budget: line 4: no module matches 'layer\*'; the closest are"):
        checked(counted, '[total]\nmacs = "< 0"\n[modules."layer*"]\nmacs = "< 0"')


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("[total\n", 1, "Expected"),
        ('[total]\nmacs = "<= 1\n', 2, ""),
        ('[total]\n\nmac = "<= 1"', 3, "'mac' is no figure that can be limited; the closest are macs"),
        ('[total]\nmacs = "<= 1"\nbound = "<= 1"', 3, "'bound' is no number"),
        ('[total]\nmacs = "<= 1"\ntime = "<= 20"', 3, "time needs a unit; write it as in '20 ms'"),
        ("# one\n[total]\nmacs = 5", 3, "is no limit; write it as in macs = '<= 8.2 G'"),
        ('[total]\nmacs = "<= 1e999"', 2, "is beyond every number"),
        ('[totals]\nmacs = "<= 1"', 1, "no table 'totals'"),
        ('[total]\nmacs = "<= 1"\n[modules]\nlayer = "<= 1"', 4, "must be a table"),
        ('[modules."a.b"]\n"time" = "<= 1 h"', 2, "'h' is no unit of time"),
        ('[modules."a"]\nuncosted_ops = "<= 1"', 2, "in [total] only"),
        ("", 1, "a budget needs a limit"),
    ],
)
def test_what_is_wrong_with_a_budget_names_its_line(text, line, sentence, tmp_path, capsys):
    path = tmp_path / "budget.toml"
    path.write_text(text)
    with pytest.raises(BudgetError) as error:
        Budget.load(path)
    assert str(error.value).startswith(f"{path}: line {line}: ")
    assert sentence in str(error.value)


def test_a_written_budget_is_kept_by_its_report(report, counted):
    for one in (report, counted):
        text = budget_of(one)
        outcome = Budget.parse(text).check(one)
        assert outcome.kept, str(outcome)
        assert "#" in text
    assert "time" in budget_of(report)
    assert 'time = "' not in budget_of(counted)
    doubled = report.to_dict()
    for time in doubled["times"]:
        time["self_ns"] = [2 * ns for ns in time["self_ns"]]
    outcome = Budget.parse(budget_of(report)).check(roofprof.Report.from_dict(doubled))
    assert {broken.limit.figure for broken in outcome.broken} == {"time", "percent_of_roof"}


def test_the_command(counted, tmp_path, capsys):
    report, budget = tmp_path / "r.json", tmp_path / "budget.toml"
    counted.to_json(report)
    call = ["check", str(report), "--budget", str(budget)]
    assert main([*call, "--write"]) == 0
    assert main(call) == 0
    assert "within the budget" in capsys.readouterr().out
    assert main([*call, "--write"]) == 2
    assert "is there already" in capsys.readouterr().err
    budget.write_text('[total]\nmacs = "<= 500"\n')
    assert main(call) == 1
    assert "total: macs <= 500: it is 512, 12 too much (+2.4%)" in capsys.readouterr().out
    budget.write_text('[total]\nmacs = "<= 1 base"\n')
    assert main(call) == 2
    assert "line 2" in capsys.readouterr().err
    assert main([*call, "--baseline", str(report)]) == 0
    budget.write_text("[total]\nmacs = 1\n")
    assert main(call) == 2
    error = capsys.readouterr().err
    assert f"{budget}: line 2: " in error
    assert error.count("\n") == 1
    assert main(["check", str(report), "--budget", str(tmp_path / "none.toml")]) == 2


# ---- reports whose figures are in doubt


def doubtful(counted):
    """The report with a note that asks for attention."""
    note = {"level": "attention", "code": "machine-busy", "where": [""], "text": "a doubt", "count": 1}
    written = json.loads(counted.to_json())
    return roofprof.Report(_report.report_from_json(json.dumps(written | {"notes": [note]}).encode()))


def test_a_budget_of_a_report_with_a_doubt_says_so_in_its_comment_and_beside(counted, tmp_path, capsys):
    path = tmp_path / "r.json"
    doubtful(counted).to_json(path)
    budget = tmp_path / "budget.toml"
    assert main(["check", str(path), "--budget", str(budget), "--write"]) == 0
    assert "ATTENTION: the report: a doubt" in capsys.readouterr().err
    assert "# ATTENTION: the report: a doubt\n" in budget.read_text()
    assert main(["check", str(path), "--budget", str(budget)]) == 0  # it is a budget, and a check says it as well
    assert "ATTENTION: the report: a doubt" in capsys.readouterr().out


def test_and_a_check_against_a_baseline_in_doubt(counted):
    limits = Budget.of({"total": {"macs": "<= 1 base"}})
    outcome = limits.check(counted, doubtful(counted))
    assert outcome.kept
    assert "ATTENTION: the baseline: a doubt" in outcome.remarks
    assert not limits.check(counted, counted).remarks
