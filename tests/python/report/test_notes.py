"""Notes: what a reader must know beside the figures, as data."""

import re
from pathlib import Path

import pytest
import torch

import roofprof
from roofprof import _C

ROOT = Path(__file__).resolve().parents[3]


def failing(x):
    raise ValueError("no idea")


def test_a_note_is_data_and_reads_as_its_text():
    note = _C.Note("timing-stopped", "no more", ["a", "b"])
    assert (note.level, note.code, note.text) == ("warning", "timing-stopped", "no more")
    assert (note.where, note.count) == (["a", "b"], 1)
    assert str(note) == f"{note}" == note == "no more"
    assert "more" in note
    assert note != "more"
    assert note == _C.Note("timing-stopped", "no more", ["a", "b"]) != _C.Note("timing-stopped", "no more")
    assert {note} == {"no more"}
    assert repr(note) == "<Note timing-stopped: no more>"
    with pytest.raises(ValueError, match="no note with the code 'nonesuch'"):
        _C.Note("nonesuch", "no more")


def test_a_report_has_notes_that_come_back_from_a_file():
    roofprof.op_cost("aten::relu")(failing)
    try:
        report = roofprof.count(torch.relu, torch.rand(3))
    finally:
        _C.remove_op_cost("aten::relu")
    (note,) = report.coverage.notes
    assert (note.code, note.where) == ("cost-failed", ["aten::relu"])
    assert f"note: {note.text}"[:60] in report.table(width=300)
    data = report.to_dict()
    assert roofprof.Report.from_dict(data).coverage.notes == [note]
    assert data["notes"] == [
        {"level": note.level, "code": note.code, "where": note.where, "text": note.text, "count": note.count}
    ]
    data["notes"][0]["level"] = "loud"
    with pytest.raises(ValueError, match=r"'notes\[0\].level' cannot be 'loud'"):
        roofprof.Report.from_dict(data)


def test_the_documentation_lists_every_code():
    rows = re.findall(
        r"^\| `([a-z-]+)` \| (\w+) \| (.*) \| \[[\w-]+\]\(.*\) \|$", (ROOT / "docs/notes.md").read_text(), re.MULTILINE
    )
    assert {code: (level, meaning) for code, level, meaning in rows} == _C.note_kinds()


def test_every_code_is_used():
    sources = [*(ROOT / "csrc").rglob("*.cpp"), *(ROOT / "python/roofprof").rglob("*.py")]
    text = "".join(path.read_text() for path in sources)
    assert [code for code in _C.note_kinds() if f'"{code}"' not in text] == []
