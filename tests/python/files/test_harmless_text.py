"""No text of a file reaches a terminal with what it would act on: every text of every kind, in every command."""

from __future__ import annotations

import ast
import contextlib
import copy
import io
import json
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from given_latencies import MS, latency
from given_roofs import roofs
from kinds_of_reports import REPORTS, a_run

import roofprof
from roofprof import _C, Report, cli
from roofprof.budget import Budget
from roofprof.cli import main
from roofprof.latency.measured import Latency
from roofprof.render.printable import printable, printable_lines

# Colours, the clipboard (OSC 52), C1, the end of a line, Unicode's separators, and what turns a line around.
POISON = "\x1b[31m\x1b]52;c;eA==\x07\x9b1m\x85\x7f\r\n\u2028\u202e\u2066\x00"
NAME = f"b\u00e9{POISON}\u6f22"
# By Unicode's own tables: control characters, separators of lines and paragraphs, and directions that are forced.
ACTED_ON = {
    chr(code)
    for code in range(sys.maxunicode + 1)
    if unicodedata.category(chr(code)) in {"Cc", "Zl", "Zp"}
    or unicodedata.bidirectional(chr(code)) in {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
}


DERIVED = {
    "rows",
    "total",
    "kernels",
    "memory_at_peak",
    "coverage",
    "units",
    "generator",
    "findings",
}  # written, never read


def places(value: Any, path: tuple[Any, ...] = ()) -> set[tuple[Any, ...]]:
    """Where texts stand: the values and the keys; of a list all items are one place."""
    if isinstance(value, str):
        return {path}
    if isinstance(value, list):
        return set().union(*(places(item, (*path, None)) for item in value))
    if isinstance(value, dict):
        inside = set().union(*(places(item, (*path, key)) for key, item in value.items()))
        return inside | {(*path, "environment of which a key")} if path[-1:] == ("environment",) else inside
    return set()


def poisoned(value: Any, path: tuple[Any, ...]) -> Any:
    """The same with poison at that place."""
    if not path:
        return f"{value}{NAME}"
    if isinstance(value, list):
        return [poisoned(item, path[1:]) for item in value]
    if not isinstance(value, dict):
        return value
    if path[0] == "environment of which a key":
        return value | {NAME: NAME}
    return {key: poisoned(item, path[1:]) if key == path[0] else item for key, item in value.items()}


def given_out(*arguments: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        main(arguments)
    return out.getvalue()


def check_harmless(text: str, where: Any) -> None:
    for line in text.split("\n"):
        assert not ACTED_ON & set(line), (where, line)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("budget.toml").write_text('[total]\nflops = "<= 1 base"\n[modules."*"]\npercent_of_roof = ">= 100 %"\n')
    return tmp_path


COMMANDS = (
    ("show", "r.json"),
    ("show", "r.json", "--by", "scope"),
    ("show", "r.json", "--by", "op"),
    ("show", "r.json", "--by", "kernel"),
    ("show", "r.json", "--by", "rank"),
    ("show", "r.json", "--sort", "flops", "--expand", "--columns", "type,bound,flops,slowest_rank"),
    ("check", "r.json", "--budget", "budget.toml", "--baseline", "good.json"),
    ("compare", "good.json", "r.json", "--all"),
    ("compare", "r.json", "good.json"),
    ("merge", "r.json"),
    ("scaling", "r.json"),
    ("predict", "r.json", "--device", "RTX 4090"),
    ("trace", "r.json", "-o", "t.json"),
    ("predict", "r.json", "--all", "--limit", "2"),
    ("predict", "r.json", "--device", "A100", "--what-if"),
    ("predict", "good.json", "--device", "r.json"),
)


@pytest.fixture(scope="module")
def kinds():
    """A good report of each kind, and the places of its texts that no kind before it has."""
    found, known = {}, set()
    for kind, make in REPORTS.items():
        good = {key: value for key, value in make().items() if key not in DERIVED}
        assert Report.from_dict(good).rows
        found[kind] = good, places(good) - known
        known |= places(good)
    return found


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["new places", "all"])
@pytest.mark.parametrize("kind", REPORTS)
def test_a_report_in_every_command(kind, every, kinds, folder):
    good, new = kinds[kind]
    Path("good.json").write_text(json.dumps(good))
    for place in sorted(places(good) if every else new, key=str):
        Path("r.json").write_text(json.dumps(poisoned(good, place)))
        for command in COMMANDS:
            check_harmless(given_out(*command), (place, command))
        try:
            report = Report.from_json("r.json")
        except ValueError as error:
            check_harmless(str(error), place)
            continue
        shown = [report, *report.rows, *report.group("module", "op"), *report.kernels, *report.ranks, *report.siblings]
        for one in [*shown, *report.regions, *report.findings, *report.coverage.notes, *report.collectives]:
            check_harmless(repr(one), (place, type(one)))


def test_names_stay_legible(folder):
    report = a_run()
    report["model"] = "Ne\u0301t \u6f22\u5b57 \U0001f600 \u05d0\u05d1"
    Path("r.json").write_text(json.dumps(report))
    assert report["model"] in given_out("show", "r.json")


def test_roofs(folder):
    Path("r.json").write_text(json.dumps(a_run()))
    roofprof.Ceilings.save(roofs(), "roofs.json")
    good = json.loads(Path("roofs.json").read_text()) | {"notes": ["a note"]}
    for place in sorted(places(good), key=str):
        Path("roofs.json").write_text(json.dumps(poisoned(good, place)))
        check_harmless(given_out("predict", "r.json", "--device", "roofs.json"), place)
        check_harmless(given_out("predict", "r.json", "--device", "roofs.json", "--what-if"), place)
        with contextlib.suppress(ValueError):
            check_harmless(roofprof.Ceilings.load("roofs.json").table(100, None), place)


def test_latencies():
    note = _C.Note("timing-stopped", "stopped")
    good = latency([2 * MS, 3 * MS], notes=(note,)).to_dict()
    for place in sorted(places(good), key=str):
        try:
            check_harmless(str(Latency.from_dict(poisoned(good, place))), place)
        except ValueError as error:
            check_harmless(printable_lines(str(error)), place)


@pytest.mark.parametrize(
    "budget",
    [
        f"# {NAME}",
        f"[{json.dumps(NAME)}]\nflops = '<= 1'",
        f"[total]\n{json.dumps(NAME)} = '<= 1'",
        f"[total]\nflops = {json.dumps('<= 1 ' + NAME)}",
        f"[total]\nflops = {json.dumps(NAME)}",
        f"[total]\nflops = [{json.dumps(NAME)}]",
        f"[modules.{json.dumps(NAME)}]\nflops = '<= 1'",
        "[total]\nflops = \x1b",
        "[total]\n\x1b = '<= 1'",
        "\x1b",
    ],
)
def test_budgets(budget, folder):
    budget = budget.replace("\\u007f", "\\u007F").replace("\\r\\n", "\\r")
    Path("r.json").write_text(json.dumps(a_run()))
    Path("b.toml").write_bytes(budget.encode("utf-8", "surrogatepass"))
    check_harmless(given_out("check", "r.json", "--budget", "b.toml"), budget)
    with contextlib.suppress(ValueError):
        check_harmless(str(Budget.load("b.toml").check(Report.from_json("r.json"))), budget)


def test_a_budget_of_poisoned_names_is_one(folder):
    report = a_run()
    for module in report["modules"][3:]:
        module["path"] += NAME.replace("\n", "")
    report |= {"device": f"cpu{NAME}\n[total", "model": NAME}
    report["environment"]["device"] = f"{NAME}\n[total"
    Path("r.json").write_text(json.dumps(report))
    assert "written" in given_out("check", "r.json", "--budget", "b.toml", "--write")
    check_harmless(Path("b.toml").read_bytes().decode(), "b.toml")
    assert "within the budget" in given_out("check", "r.json", "--budget", "b.toml")


def test_comparisons_and_other_files(folder):
    Path("good.json").write_text(json.dumps(a_run()))
    given_out("compare", "good.json", "good.json", "--json", "c.json")
    good = json.loads(Path("c.json").read_text())
    for content in (
        {**good, "before": {**copy.deepcopy(good["before"]), "model": NAME}},
        {"schema": NAME},
        {"schema_version": NAME},
        {NAME: 1},
        [NAME],
        NAME,
    ):
        Path("r.json").write_text(json.dumps(content))
        for command in COMMANDS:
            check_harmless(given_out(*command), (content, command))


def test_names_of_files(folder):
    name = f"r{NAME}.json".replace("\x00", "")
    Path(name).write_text(json.dumps(a_run()))
    Path("good.json").write_text(json.dumps(a_run()))
    for command in COMMANDS:
        check_harmless(given_out(*(name if part == "r.json" else part for part in command)), command)
        check_harmless(given_out(*(f"no{name}" if part == "r.json" else part for part in command)), command)
        check_harmless(given_out(*(f"\udcff{name}" if part == "r.json" else part for part in command)), command)


def test_python_and_cpp_agree_on_every_character():
    for start in range(0, sys.maxunicode + 1, 2048):
        text = "".join(map(chr, range(start, start + 2048)))
        here = printable(text)
        if not 0xD800 <= start < 0xE000:  # C++ sees three bytes in a surrogate
            assert here == _C.printable(text)
        assert not ACTED_ON & set(here)
        assert printable_lines(text) == "".join(c if c in "\n\t" else printable(c) for c in text)


def test_commands_print_through_one_piece():
    """A print of its own would forget it."""
    for path in Path(cli.__file__).parent.glob("*.py"):
        called = {node.func.id for node in ast.walk(ast.parse(path.read_text())) if _is_named_call(node)}
        if path.name not in {"shared.py", "__init__.py"}:
            assert "print" not in called, path.name
            assert "sys.std" not in path.read_text(), path.name


def _is_named_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
