"""`roofprof ops` and the page that tells how to add a line: both are held to the tables themselves."""

import json
import re
from pathlib import Path

import roofprof
from roofprof import _C

ROOT = Path(__file__).resolve().parents[3]


def lines_in_the_tables():
    """Family by operator, read from the sources."""
    return {
        op: path.stem
        for path in (ROOT / "csrc" / "ops").glob("*.cpp")
        for names in re.findall(r'^    \{((?:"[\w: ]+"\s*)+),', path.read_text(), re.MULTILINE)
        for op in names.replace('"', " ").split()
    }


def test_every_line_is_listed(shell):
    code, out, _ = shell("ops", "--json")
    costs = json.loads(out)
    assert code == 0
    # Beside them there may be costs of the user's own.
    assert lines_in_the_tables().items() <= {cost["op"]: cost["family"] for cost in costs}.items()
    assert all(cost["formula"] for cost in costs if cost["family"] != "own")
    assert {cost["family"] for cost in costs if cost["source"]} >= {"linalg", "spectral"}


def test_the_table_says_what_a_line_says(shell):
    code, out, _ = shell("ops", "linalg_qr", "--family", "linalg")
    assert code == 0
    first, *notes = out.splitlines()
    assert first.split()[:2] == ["linalg", "aten::linalg_qr"]
    assert "geqrf + orgqr" in first
    assert [note.split(":")[0].strip() for note in notes] == ["reads", "source"]
    assert "mode" in notes[0]
    assert "LAPACK Working Note 41" in notes[1]


def test_costs_of_the_users_own_are_listed(shell):
    @roofprof.op_cost("own_listed::op")
    def cost(x):
        """Three for each
        element.
        """
        return roofprof.Work(flops=3 * x.numel())

    try:
        code, out, _ = shell("ops", "--family", "own", "own_listed")
        assert code == 0
        assert out.split() == ["own", "own_listed::op", "Three", "for", "each", "element.", "reads:", "*"]
    finally:
        _C.remove_op_cost("own_listed::op")
    assert shell("ops", "own_listed")[0] == 2


def test_the_example_of_how_to_add_an_op_stands_in_the_tables():
    page = (ROOT / "CONTRIBUTING.md").read_text().partition("## Adding an op")[2].partition("\n## ")[0]
    quoted = re.findall(r"In\s+`([\w/.]+)`:\n\n((?:    .+\n)+)", page)
    assert [path for path, _ in quoted] == ["csrc/ops/activation.cpp", "tests/cpp/ops/activation_test.cpp"]
    for path, lines in quoted:
        code = [line.partition("//")[0].strip() for line in lines.splitlines()]
        source = (ROOT / path).read_text()
        assert code, path
        assert all(line in source for line in code), path
