"""Notes: what a reader must know beside the figures, as data."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

import roofprof
from roofprof import _C

ROOT = Path(__file__).resolve().parents[3]


class Remembering(nn.Module):
    """Does other work in each call."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        for _ in range(self.calls):
            x = x + 1
        return x


@pytest.fixture
def report():
    return roofprof.RooflineProfiler(Remembering(), ceilings=_C.Ceilings()).run(torch.rand(3))


def failing(x):
    raise ValueError("no idea")


def test_a_note_is_data_and_reads_as_its_text():
    note = _C.Note("timing-stopped", "no more", ["a", "b"])
    assert (note.level, note.code, note.text, note.where, note.count) == (
        "warning",
        "timing-stopped",
        "no more",
        ["a", "b"],
        1,
    )
    assert str(note) == f"{note}" == "no more"
    assert "more" in note
    assert "less" not in note
    assert note == "no more"
    assert note != "more"
    assert note == _C.Note("timing-stopped", "no more", ["a", "b"])
    assert note != _C.Note("timing-stopped", "no more")
    assert {note} == {"no more"}
    assert repr(note) == "<Note timing-stopped: no more>"
    with pytest.raises(ValueError, match="no note with the code 'nonesuch'"):
        _C.Note("nonesuch", "no more")


def test_a_report_has_notes_with_their_codes(report):
    (note,) = (note for note in report.coverage.notes if note.code == "timing-stopped")
    assert note.level == "warning"
    assert "timing stopped after 0 repeats" in note
    assert f"note: {note.text}"[:60] in report.table(width=300)


def test_they_come_back_from_a_file(report, tmp_path):
    report.to_json(tmp_path / "report.json")
    again = roofprof.Report.from_json(tmp_path / "report.json")
    assert again.coverage.notes == report.coverage.notes
    data = report.to_dict()
    assert {"level": "warning", "count": 1, "where": []}.items() <= data["notes"][0].items()
    data["notes"][0]["level"] = "loud"
    with pytest.raises(ValueError, match=r"'notes\[0\].level' cannot be 'loud'"):
        roofprof.Report.from_dict(data)


def test_a_note_says_where():
    roofprof.op_cost("aten::relu")(failing)
    try:
        (note,) = roofprof.count(torch.relu, torch.rand(3)).coverage.notes
    finally:
        _C.remove_op_cost("aten::relu")
    assert (note.code, note.where) == ("cost-failed", ["aten::relu"])


def test_the_documentation_lists_every_code():
    rows = re.findall(
        r"^\| `([a-z-]+)` \| (\w+) \| (.*) \| \[[\w-]+\]\(.*\) \|$", (ROOT / "docs/notes.md").read_text(), re.MULTILINE
    )
    assert {code: (level, meaning) for code, level, meaning in rows} == _C.note_kinds()


def test_every_code_is_used():
    sources = [*(ROOT / "csrc").rglob("*.cpp"), *(ROOT / "python/roofprof").rglob("*.py")]
    text = "".join(path.read_text() for path in sources)
    assert [code for code in _C.note_kinds() if f'"{code}"' not in text] == []
