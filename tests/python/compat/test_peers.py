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


def run(tmp_path, given, *options):
    """(exit code, Markdown, JSON) of a run with one tool on resnet18."""
    import peers

    page, data = tmp_path / "peers.md", tmp_path / "peers.json"
    code = peers.main(["--write", str(page), "--json", str(data), "--models", "resnet18", *options], [given])
    return code, page.read_text(), json.loads(data.read_text())


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
        ("params", None, 7, "ours is the closed form", False),
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


def test_an_unexplained_difference_ends_with_1(tmp_path, capsys):
    code, page, _ = run(tmp_path, tool(fake_peers.one_more), "--only", "figures")
    assert code == 1
    assert "| resnet18 | 11,689,513 | 11,689,512 | UNEXPLAINED: -1 of params |" in page
    assert "FAULT fake, resnet18: UNEXPLAINED" in capsys.readouterr().err


def test_ours_is_held_against_the_closed_form_where_the_original_refuses(tmp_path):
    code, page, _ = run(tmp_path, tool(fake_peers.ours_one_more), "--only", "figures")
    assert code == 1
    assert "refused: `ValueError: this one`; UNEXPLAINED: params should be 11,689,512" in page


@pytest.mark.parametrize(
    ("count", "says"),
    [
        (fake_peers.crashes, "crashed: SIGSEGV"),
        (fake_peers.hangs, "no answer in 8 s"),
        (fake_peers.eats_memory, "MemoryError"),
        (fake_peers.exits, "SystemExit: 3"),
    ],
)
def test_a_failing_original_is_a_cell_and_not_the_end(count, says, tmp_path):
    code, page, data = run(tmp_path, tool(count), "--only", "figures", "--seconds", "8", "--megabytes", "2000")
    assert code == 0
    assert f"| resnet18 | - | 11,689,512 | refused: `{says}`; ours is the closed form |" in page
    assert data["figures"]["comparisons"][0]["original_error"] == says


def test_a_missing_original_is_said_to_be_missing(tmp_path):
    code, page, _ = run(tmp_path, tool(fake_peers.honest, original="no_such_tool"), "--only", "figures,time")
    assert code == 0
    assert "| resnet18 | - | 11,689,512 | not installed; ours is the closed form |" in page
    assert "| fake | not installed | " in page


def test_equal_figures_are_equal(tmp_path):
    code, page, data = run(tmp_path, tool(fake_peers.honest), "--only", "figures")
    assert code == 0
    assert "| resnet18 | 11,689,512 | = | equal |" in page
    assert data["figures"]["truths"][0]["macs"] == 1_814_073_344  # torchvision: 1.814 G


# ---- side effects and inputs


def test_what_is_left_behind_is_named():
    from peer_runs import isolated, side_effects

    given = tool(fake_peers.careless)
    found = [isolated.run(side_effects.left_by, given, "ours", when) for when in side_effects.PROCESSES]
    assert [one.error for one in found] == ["", ""]
    for left in (one.value for one in found):
        assert {"hooks on modules", "mode", "`requires_grad`", "grad mode", "torch's random numbers", "prints"} <= set(
            left
        )
        assert {"attributes: `counted`", "buffers: `total`", "`state_dict` keys: `total`"} <= set(left)
        assert {"patched: `F.linear`", "Python's and NumPy's random numbers"} <= set(left)
    assert "the model's exception is lost" in found[1].value
    assert "the model's exception is lost" not in found[0].value
    result = side_effects.SideEffects({("fake", "ours", "after a call"): found[0].value})
    assert len(result.faults) == 1


def test_a_tool_that_leaves_nothing_has_no_fault():
    from peer_runs import isolated, side_effects

    given = tool(fake_peers.honest, is_block=True)
    found = [isolated.run(side_effects.left_by, given, "ours", when).value for when in side_effects.PROCESSES]
    assert found == [[], []]


def test_answers_about_inputs():
    from peer_runs.inputs import FORMS, Answer, Inputs

    assert Answer(4, 4).words() == "yes"
    assert Answer(2, 4).words() == "wrong: 0.5 times"
    assert Answer(3999, 4000).words() == "wrong: 1 too few"
    assert (
        Answer(None, 0, "TypeError: f() got an unexpected keyword argument 'x'").words()
        == "refused: it has no parameter for it"
    )
    right = [Answer(4, 4)] * (len(FORMS) - 1)
    assert Inputs({("fake", "original"): [Answer(2, 4), *right]}).faults == []
    assert len(Inputs({("fake", "ours"): [Answer(2, 4), *right]}).faults) == 1


def test_unknown_names_are_refused(capsys):
    import peers

    with pytest.raises(SystemExit):
        peers.main(["--models", "resnet19"])
    assert "'resnet19' is none of resnet18, resnet50" in capsys.readouterr().err


@pytest.mark.slow
def test_no_cell_of_ours_is_wrong_beside_the_installed_tools(capsys):
    import peers

    assert peers.main(["--models", "resnet18,mobilenet_v2", "--only", "figures,inputs,effects"]) == 0
    captured = capsys.readouterr()
    assert "FAULT" not in captured.err
    assert "UNEXPLAINED" not in captured.out
