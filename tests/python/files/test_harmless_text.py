"""No text of a file reaches a terminal with what it would act on: every text of every kind, in every command."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import re
import sys
import unicodedata
from pathlib import Path

import pytest
from given_latencies import MS, latency
from given_roofs import roofs
from kinds_of_reports import REPORTS, a_run
from poisoned_texts import ACTED_ON, DERIVED, NAME, check_harmless, places, poisoned

import roofprof
from roofprof import _C, Report, cli
from roofprof._report import printable, printable_lines
from roofprof.budget import Budget
from roofprof.cli import main
from roofprof.latency.measured import Latency


def given_out(*arguments: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        main(arguments)
    return out.getvalue()


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


@pytest.mark.parametrize("kind", REPORTS)
def test_a_report_in_every_command(kind, kinds, folder):
    good, new = kinds[kind]
    Path("good.json").write_text(json.dumps(good))
    for place in sorted(new, key=str):
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


@pytest.mark.parametrize(
    "name",
    [
        "Ne\u0301t \u6f22\u5b57 \U0001f600 \u05d0\u05d1",
        "\u0627\u0644\u0646\u0645\u0648\u0630\u062c \u0928\u092e\u0942\u0928\u093e \u0e19\u0e49\u0e33",
        "\u05d1\u05bc\u05b0\u05e8\u05b5\u05d0\u05e9\u05c1\u05b4\u0596\u05d9\u05ea Vi\u1ec7t Tie\u0302\u0301ng",
        "\u2764\ufe0f\u200d\U0001f525 \U0001f469\U0001f3fd\u200d\U0001f4bb \u00a9\ufe0f 1\ufe0f\u20e3",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int, float*&)",
    ],
)
def test_names_stay_legible(name):
    assert printable(name) == name


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
        for given in (name, f"no{name}", f"\udcff{name}"):
            check_harmless(given_out(*(given if part == "r.json" else part for part in command)), command)


def test_every_character():
    for start in range(0, sys.maxunicode + 1, 2048):
        for char in map(chr, range(start, start + 2048)):
            here = printable(char)
            if char in ACTED_ON or 0xD800 <= ord(char) < 0xE000:
                assert here in {" ", "\ufffd"}, hex(ord(char))
            elif unicodedata.category(char) not in {"Cn", "Co"}:
                assert here == char, hex(ord(char))
            assert printable_lines(char) == (char if char in "\n\t" else here)


def test_commands_print_through_one_piece():
    """A print of its own would forget it."""
    for path in Path(cli.__file__).parent.glob("*.py"):
        if path.name not in {"shared.py", "__init__.py"}:
            assert not re.search(r"\bprint\(|\bsys\.std", path.read_text()), path.name
