"""What `roofprof explain` says is what the tables and pages have; each page that is named is there."""

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from given_roofs import profiler
from kinds_of_reports import REPORTS
from torch import nn

import roofprof
from roofprof import _report, manual
from roofprof.cli import main

ROOT = Path(__file__).resolve().parents[3]
FIGURES = {(field.of, field.name): field for field in _report.fields()}


@pytest.fixture(name="shell")
def _shell(capsys):
    def run(*arguments):
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.mark.parametrize("kind", ["row", "group", "kernel", "rank", "collective", "memory"])
def test_every_figure_is_defined_by_a_page_that_names_it(kind):
    undefined = []
    for (of, name), field in FIGURES.items():
        if of != kind:
            continue
        parts = [one for one in roofprof.explain(name) if one.name == name and kind in one.of]
        assert len(parts) == 1, (kind, name)
        assert parts[0].unit, name
        text = manual.page(parts[0].page)
        defined = [
            quoted for line in parts[0].definition.split("\n") if (quoted := line[:30]) and quoted != field.legend[:30]
        ]
        if not defined or name.removeprefix("self_") not in text:
            undefined.append(name)
    assert undefined == []


def test_a_definition_is_quoted_from_its_page():
    (row, *_) = roofprof.explain("%roof")
    assert (row.name, row.unit, row.page) == ("percent_of_roof", "percent", "definitions#roofline")
    assert row.definition.startswith("percent_of_roof = 100 x lower bound / time.")
    assert row.formula == _report.fields()[[f.name for f in _report.fields()].index("percent_of_roof")].legend
    page = (ROOT / "docs" / "definitions.md").read_text()
    assert " ".join(row.definition.split()).removeprefix("percent_of_roof") in " ".join(page.replace("**", "").split())


@pytest.mark.parametrize(
    ("called", "name"),
    [
        ("time_ns", "time"),
        ("AI", "intensity"),
        ("Lower Bound", "lower_bound_time"),
        ("flops/s", "achieved_flops"),
        ("self_macs", "self_macs"),
        ("bus bw", "bus_bandwidth"),
        ("most waste", "most waste"),
    ],
)
def test_names_are_those_of_python_files_and_headings(called, name):
    assert roofprof.explain(called)[0].name == name


@pytest.mark.parametrize("code", _report.note_kinds())
def test_every_note_has_a_page_that_is_there(code):
    (note,) = [one for one in roofprof.explain(code) if one.kind == "note"]
    assert (note.of, note.definition) == _report.note_kinds()[code]
    assert manual.page(note.page)
    assert f"`{code}`" in manual.page(dict(note.further)["in"].removeprefix("roofprof docs "))


def test_every_operator_says_its_formula_and_source():
    for cost in _report.op_costs():
        found = {one.name: one for one in roofprof.explain(cost["op"]) if one.kind == "operator"}
        assert found[cost["op"]].formula == " ".join(cost["formula"].split())
        assert found[cost["op"]].source == (cost["source"] or "plain arithmetic")


@pytest.mark.parametrize("name", ["add", "add_", "aten::add", "aten::add_", "add.Tensor", "aten::add_.Tensor"])
def test_operators_have_their_other_forms(name):
    assert "aten::add" in [one.name for one in roofprof.explain(name)]


def test_every_rule_of_findings_is_explained():
    sources = [path.read_text() for path in (ROOT / "csrc" / "analysis" / "findings").glob("*.cpp")]
    named = r'(?:\{\.name|finding\.rule) = "([a-z-]+)"'
    rules = {rule for text in sources for rule in re.findall(named, text)}
    assert rules > {"never-used", "double-precision", "fusion", "copies"}
    for rule in rules:
        (one,) = [one for one in roofprof.explain(rule) if one.kind == "rule"]
        assert one.definition.startswith("Holds where: ")
        assert dict(one.further)["says"]
        assert f"`{rule}`" in manual.page(one.page)


# ---- every word that a report prints

WORDS = [
    *("bare", "warmup", "spread", "siblings", "roofs", "coverage", "n/a", ">=", "<=", "~", "most waste", "total"),
    *("(model)", "(outside)", "(optimizer)", "(data loading)", "(no region)", "(no operator)", "(outside ops)"),
    *("(outside kernels)", "(exposed communication)", "(idle device)", "(graph replay)", "(other names)"),
    *("compiled region", "AOTInductor package", "region", "forward", "backward", "recompute", "optimizer"),
    *("compute", "memory", "overhead", "latency/code", "network", "unknown"),
    *("parameters", "buffers", "gradients", "optimizer state", "activations", "temporaries", "inputs", "outputs"),
    *("--by", "--depth", "--sort", "--limit", "--columns", "--expand", "--no-legend", "--brief", "--format"),
    *("--warmup", "--repeat", "--counters", "--compiled-kernels", "--train", "--count", "--device", "--input"),
]


def words_of_findings() -> set[str]:
    """Return the words for basis and confidence, and the names of evidence, from the rules' own code."""
    folder = ROOT / "csrc" / "analysis" / "findings"
    text = "\n".join(path.read_text() for path in folder.glob("*.[ch]*"))
    gains = re.findall(r'{[\d.]+, [\d.]+, ("[^"]+"|k\w+), Confidence', text)
    gains += re.findall(r'all_ns, ("[^"]+"), Confidence', text)
    named = dict(re.findall(r'std::string_view (k\w+) = "([^"]+)";', text))
    basis = {named[word] if word in named else word.strip('"') for word in gains}
    assert {"lower bound", "the device's idle time", "fused bound"} < basis
    evidence = set(re.findall(r'{"([a-z_]+)", [\w*]', text)) | set(re.findall(r'evidence\["([a-z_]+)"\]', text))
    assert {"percent_of_time", "ratio_of_roofs", "percent_fusible", "by_hand"} < evidence | {"percent_of_time"}
    return basis | evidence | {"low", "medium", "high"}


def keys_of_reports() -> set[str]:
    """Return the keys of each kind of report's file, and those that only other reports have."""
    found: set[str] = set()

    def look(part):
        if isinstance(part, dict):
            found.update(key for key in part if re.fullmatch(r"[a-z][a-z0-9_]*", key))
        for inside in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            look(inside)

    for kind in REPORTS.values():
        look(kind())
    of_traces = {"DeviceTrace", "KernelRecord", "OthersWork", "CounterTrace", "CounterRecord"}  # recordings: own files
    lists = (ROOT / "csrc" / "core" / "members.h").read_text()
    for of, members in re.findall(r"^ROOFPROF_MEMBERS\((\w+),(.*?)\)\)$", lists, re.DOTALL | re.MULTILINE):
        for names in re.findall(r"(?:ALWAYS|UNLESS_DEFAULT)\(([^()]*)", members) if of not in of_traces else ():
            found.update(re.findall(r"\w+", names))
        found.update(re.findall(r'visit\("(\w+)"', members))
    return found


# ---- what the texts of a report hold besides figures and names


def signs_in(document: _report.Document) -> set[str]:
    """Return the labels, headings and marks of a document."""
    found: set[str] = set()
    for block in document.blocks:
        if isinstance(block, _report.Paragraph):
            found.add(block.label)
        elif isinstance(block, _report.Table):
            found.update(column.heading for column in block.columns)
            for cell in (cell for row in block.rows for cell in row):
                found.update([cell.mark] if cell.mark.isalpha() else re.findall(r"[<>]=|.", cell.mark))
                found.update(re.findall(r" (x\d+)\b", cell.text))
                found.update(re.findall(r"^\d\S*(op/s)$", cell.text))
    return found - {"", "roofprof"}


def with_all_marks() -> dict[str, Any]:
    """Return a report of equal layers, one of which has an op without a cost, and one of which was inferred."""
    data = profiler(nn.Sequential(*(nn.Linear(64, 64) for _ in range(6)))).run(torch.rand(32, 64)).to_dict()
    data["ops"][0]["costed"] = False
    data["modules"][-1]["inferred"] = True
    return data


def test_every_label_heading_and_mark_of_a_printed_report_is_explained():
    unknown, seen = set(), set()
    for make in (*REPORTS.values(), with_all_marks):
        report = _report.report_from_json(json.dumps(make()))
        for by in ("module", "op", "phase,op", "scope", "kernel", "rank", "collective", "memory"):
            seen |= signs_in(report.document(by=by))
        seen |= {row.bound for row in report.rows} | {"compute fp32", "memory DRAM"}  # times decide which rows have
        seen |= set(
            re.findall(
                r"^total|^own time|^findings|^more|^one call|basis|confidence|gain|try", report.brief(), re.MULTILINE
            )
        )
    for sign in seen:
        try:
            assert all(one.definition or one.formula for one in roofprof.explain(sign))
        except ValueError:
            unknown.add(sign)
    assert unknown == set()
    assert {">=", "<=", "~", "columns", "roofs", "siblings", "coverage", "most waste in", "own time", "basis"} < seen
    assert any(re.fullmatch(r"x\d+", sign) for sign in seen)


def test_no_paragraph_stands_twice_in_an_explanation():
    for name in (*WORDS, *(field.heading for field in FIGURES.values())):
        said = [one.definition for one in roofprof.explain(name) if one.definition and one.kind in {"term", "figure"}]
        terms = [one.definition for one in roofprof.explain(name) if one.kind == "term"]
        assert all(sum(text in other for other in said) == 1 for text in terms), name


def is_about(name: str, one: manual.Explanation) -> bool:
    """Whether the answer is about that name: its heading, and a text that the page has of it."""
    plain = manual._plain(name)
    if one.kind == "figure":
        fields = [field for field in FIGURES.values() if field.name == one.name]
        return plain in {manual._plain(called) for f in fields for called in (f.name, f.key, f.heading, *f.aliases)}
    if one.kind == "term":
        stem = one.page.partition("#")[0]
        defines = [entry for entry in manual._entries(stem) if plain in entry.names and entry.page == one.page]
        return one.name == name and any(one.definition.endswith(entry.text) for entry in defines)
    return plain in manual._plain(one.name) if one.kind == "operator" else plain == manual._plain(one.name)


def test_every_word_that_a_report_prints_is_explained():
    headings = {name for field in FIGURES.values() for name in (field.name, field.key, field.heading)}
    unknown, wrong = [], []
    for name in sorted({*WORDS, *keys_of_reports(), *words_of_findings(), *headings}):
        try:
            found = roofprof.explain(name)
        except ValueError:
            unknown.append(name)
            continue
        if not all(is_about(name, one) and (one.definition or one.formula) for one in found):
            wrong.append(name)
    assert (unknown, wrong) == ([], [])


def test_names_in_brackets_differ():
    texts = {str(roofprof.explain(name)) for name in WORDS if name.startswith("(")}
    assert len(texts) == sum(name.startswith("(") for name in WORDS)


def test_one_unknown_name_does_not_hide_the_others(shell):
    code, out, err = shell("explain", "no-roof", "nosuch", "aten::softmax", "no such either")
    assert (code, err.count("\n")) == (2, 1)
    assert [line.partition(":")[0] for line in out.splitlines() if line and not line.startswith(" ")] == [
        "no-roof",
        "aten",
    ]
    assert "'nosuch'" in err
    assert "'no such either'" in err
    code, out, _ = shell("explain", "no-roof", "nosuch", "--json")
    assert (code, [one["name"] for one in json.loads(out)]) == (2, ["no-roof"])


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("percent_of_rof", "percent_of_roof"),
        ("no-rooof", "no-roof"),
        ("softmx", "softmax"),
        ("fusoin", "fusion"),
        ("dept", "depth"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(shell, name, near):
    code, out, err = shell("explain", name)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"is called '{name}'; the nearest are " in err
    assert near in err


def test_several_names_and_json(shell):
    code, out, _ = shell("explain", "no-roof", "aten::softmax", "--json")
    found = json.loads(out)
    assert (code, [one["name"] for one in found]) == (0, ["no-roof", "aten::softmax"])
    assert found[0]["further"] == {"in": "roofprof docs notes#roofs-and-figures"}
    code, out, _ = shell("explain", "no-roof", "aten::softmax")
    assert out.count("\n\n") == 1
    assert "5 per element: max, subtract, exp, add, divide" in out
    assert max(map(len, out.splitlines())) <= 100


def test_a_report_adds_what_it_has():
    report = profiler(nn.Linear(64, 32)).run(torch.rand(8, 64))
    (macs,) = [one for one in report.explain("macs") if "row" in one.of]
    assert dict(macs.further)["here"] == f"{roofprof.fields['macs'].cell(report.total)} in total"
    (linear,) = [one for one in report.explain("linear") if one.name == "aten::linear"]
    assert dict(linear.further)["here"].startswith("calls 1, MACs 16.4k, ")
    assert "here" not in dict(report.explain("aten::softmax")[0].further)
    for note in report.coverage.notes:
        assert dict(report.explain(note)[0].further)["here"] == note.text


def test_findings_are_explained_by_their_rule():
    net = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).double()
    x = torch.rand(64, 256, dtype=torch.float64)
    reports = (profiler(net).run(x) for _ in range(5))  # on a busy machine other time may hide it
    report, finding = next(
        (report, finding) for report in reports for finding in report.findings if finding.rule == "double-precision"
    )
    for name in (finding, finding.rule, finding.id):
        (one,) = report.explain(name)
        assert (one.name, one.kind, one.page) == ("double-precision", "rule", "findings")
        assert dict(one.further)["here"] == finding.text


def test_tables_say_how_their_notes_are_explained():
    prof = roofprof.RooflineProfiler(nn.Linear(3, 4))
    with contextlib.suppress(KeyError), prof:
        raise KeyError
    report = prof.report()
    (line,) = [line.strip() for line in report.table(width=300).splitlines() if "roofprof explain" in line]
    codes = line.partition("roofprof explain ")[2].split()
    assert "partial" in codes
    for code in codes:
        assert "note" in [one.kind for one in roofprof.explain(code)]


# ---- pages


def test_pages_are_listed_and_printed(shell):
    code, out, _ = shell("docs")
    names = [line.split()[0] for line in out.splitlines()]
    assert code == 0
    assert set(names) == {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert shell("docs", "budgets")[1] == (ROOT / "docs" / "budgets.md").read_text()
    assert json.loads(shell("docs", "budgets", "--json")[1])["page"] == "budgets"
    assert list(json.loads(shell("docs", "--json")[1])) == names


def test_a_section_ends_where_the_next_one_begins(shell):
    _, out, _ = shell("docs", "definitions#on-a-device")
    assert out.startswith("## On a device\n")
    assert "### Kernels" in out
    assert "## Roofline" not in out


@pytest.mark.parametrize(("page", "near"), [("budget", "budgets"), ("definitions#rooflin", "roofline")])
def test_an_unknown_page_is_refused_with_the_nearest(shell, page, near):
    code, out, err = shell("docs", page)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert near in err


def test_pages_are_installed():
    folder = Path(roofprof.__file__).parent / "share" / "doc" / "roofprof"
    assert {path.name for path in folder.iterdir()} >= {path.name for path in (ROOT / "docs").glob("*.md")}


def test_pages_that_messages_name_are_there():
    sources = [*(ROOT / "csrc").rglob("*.cpp"), *(ROOT / "python" / "roofprof").rglob("*.py")]
    named = {
        page for path in sources for page in re.findall(r"roofprof docs ([a-z][\w-]*(?:#[\w-]+)?)", path.read_text())
    }
    assert named
    for page in named:
        assert manual.page(page), page


def test_each_part_of_idle_time_has_a_text_of_its_own(shell):
    texts = {}
    for part in ("before", "between", "after"):
        code, out, _ = shell("explain", f"idle_{part}")
        assert code == 0
        texts[part] = " ".join(out.split())
        assert "What helps: " in texts[part]
    assert "until a device's first launch began" in texts["before"]
    assert "gaps between two launches" in texts["between"]
    assert "from the end of a device's last launch" in texts["after"]
    assert "idle-outside" in texts["before"]
    assert "torch.compile" in texts["between"]
    assert "torch.compile" not in texts["before"] + texts["after"]
