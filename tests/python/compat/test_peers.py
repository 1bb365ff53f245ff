"""`benchmarks/peers.py`: how it judges, with tools made for it; and that no cell of ours is wrong beside real ones."""

import json
import sys
from pathlib import Path

import fake_peers
import pytest
import torch
from torch import nn

pytestmark = pytest.mark.integration

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(BENCHMARKS)])


def tool(count, original="json", **options):
    from peer_runs.tools import Tool

    return Tool("fake", original, "fake_peers", ("params",), count, distribution="torch", **options)


# ---- the verdict

FACTS = {
    "params": 7,
    "reasons": {"fake": {"MACs": [["no rule for it", 30], ["counts twice", -10], ["not in this model", 0]]}},
    "expected": {"fake": {"MACs": 120}},
}


@pytest.mark.parametrize(
    ("figure", "original", "ours", "words", "is_fault"),
    [
        ("MACs", 100, 100, "equal", False),
        ("MACs", 100, 120, "no rule for it (-30 MACs); counts twice (+10 MACs)", False),
        ("MACs", 100, 121, "UNEXPLAINED: +1 of MACs", True),
        ("flops", 100, 99, "UNEXPLAINED: -1 of flops", True),
        ("MACs", None, 120, "ours is the closed form", False),
        ("params", None, 8, "UNEXPLAINED: params should be 7", True),
        ("flops", None, 5, "UNEXPLAINED: flops has neither an original nor a closed form", True),
        ("MACs", 100, None, "UNEXPLAINED: ours has no figure", True),
    ],
)
def test_a_difference_is_explained_to_the_last_digit_or_a_fault(figure, original, ours, words, is_fault):
    from peer_runs.judging import Verdict, judge

    assert judge("fake", figure, original, ours, FACTS) == Verdict(words, is_fault)


def test_a_record_has_the_closed_forms_of_what_ran():
    from peer_runs import reasons, recorded

    model = nn.Sequential(nn.Conv2d(3, 8, 3, groups=1), nn.ReLU6(), nn.Flatten(2), nn.Linear(36, 5, bias=False))
    record = recorded.record(model, (torch.randn(2, 3, 8, 8),), {})
    assert record.macs() == 2 * 8 * 36 * 27 + 2 * 8 * 36 * 5
    assert reasons.relu6(record) == 2 * 8 * 36
    assert reasons.linear_by_parameters(record) == 2 * 8 * 36 * 5 - 2 * 36 * 5
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    record = recorded.record(attention, (torch.randn(1, 4, 8),) * 3, {"need_weights": False})
    assert record.macs() == reasons.multihead_macs(record) == 4 * 8 * 8 * 4 + 2 * 4 * 4 * 8


# ---- a whole run with a fake tool

OURS = "ours is the closed form"


@pytest.mark.parametrize(
    ("count", "original", "cells"),
    [
        (fake_peers.honest, "json", "| resnet18 | 11,689,512 | = | equal |"),
        (fake_peers.one_more, "json", "| resnet18 | 11,689,513 | 11,689,512 | UNEXPLAINED: -1 of params |"),
        (fake_peers.ours_one_more, "json", "refused: `ValueError: this one`; UNEXPLAINED: params should be 11,689,512"),
        (fake_peers.crashes, "json", f"| resnet18 | - | 11,689,512 | refused: `crashed: SIGSEGV`; {OURS} |"),
        (fake_peers.honest, "no_such_tool", f"| resnet18 | - | 11,689,512 | not installed; {OURS} |"),
    ],
)
def test_a_run_with_one_tool(count, original, cells, tmp_path, capsys):
    """A difference that is not explained ends with 1; an original that fails is a cell and not the end."""
    import peers

    page, data = tmp_path / "peers.md", tmp_path / "peers.json"
    options = ["--only", "figures", "--models", "resnet18"]
    code = peers.main(["--write", str(page), "--json", str(data), *options], [tool(count, original)])
    is_fault = "UNEXPLAINED" in cells
    assert cells in page.read_text()
    assert code == is_fault
    assert ("FAULT fake, resnet18: UNEXPLAINED" in capsys.readouterr().err) == is_fault
    assert json.loads(data.read_text())["figures"]["truths"][0]["macs"] == 1_814_073_344  # torchvision: 1.814 G


def test_answers_about_inputs():
    from peer_runs.inputs import FORMS, Answer, Inputs

    unknown = Answer(None, 0, "TypeError: f() got an unexpected keyword argument 'x'")
    words = [answer.words() for answer in (Answer(4, 4), Answer(2, 4), Answer(3999, 4000), unknown)]
    assert words == ["yes", "wrong: 0.5 times", "wrong: 1 too few", "refused: it has no parameter for it"]
    right = [Answer(4, 4)] * (len(FORMS) - 1)
    faults = [len(Inputs({("fake", side): [Answer(2, 4), *right]}).faults) for side in ("original", "ours")]
    assert faults == [0, 1]


@pytest.mark.slow
def test_no_cell_of_ours_is_wrong_beside_the_installed_tools(capsys):
    import peers

    assert peers.main(["--models", "resnet18,mobilenet_v2", "--only", "figures,inputs,effects"]) == 0
    captured = capsys.readouterr()
    assert "FAULT" not in captured.err
    assert "UNEXPLAINED" not in captured.out
