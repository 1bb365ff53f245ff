"""The brief report, and the one for pull requests."""

from __future__ import annotations

import json
import re
from pathlib import Path

import kinds_of_reports
import pytest
import torch
from given_roofs import profiler
from planted_waste import PLANTED
from torch import nn

import roofprof
from roofprof.cli import main
from roofprof.report.report import Report, parsed

LINES, TOKENS = 40, 2000


def tokens_at_most(text: str) -> int:
    """Return more tokens than usual tokenizers make: one for four letters of a word, one for each other sign."""
    words = re.findall(r"[A-Za-z]+", text)
    return sum(-(-len(word) // 4) for word in words) + len(re.findall(r"[0-9]{1,3}|[^A-Za-z0-9\s]", text))


@pytest.fixture(scope="module")
def report() -> Report:
    planted = PLANTED["dead branch"]
    with torch.no_grad():
        return roofprof.profile(planted.model().eval(), planted.example())


def check_brief(text: str) -> None:
    assert text.isascii()
    assert text.count("\n") <= LINES
    assert text.endswith("\n")
    assert tokens_at_most(text) <= TOKENS


def test_it_says_what_matters(report):
    text = report.brief()
    check_brief(text)
    lines = text.splitlines()
    assert lines[0].startswith("roofprof: DeadBranch on cpu")
    for number, finding in enumerate(report.findings, 1):
        assert any(line.startswith(f"{number}. [{finding.rule}] {finding.text[:60]}") for line in lines)
    assert any(line.startswith("coverage: ") for line in lines)
    assert "roofprof show FILE" in lines[-1]


@pytest.mark.parametrize("kind", ["a_block", "a_prediction", "of_a_rank"])
def test_of_each_kind_of_report(kind):
    check_brief(parsed(json.dumps(getattr(kinds_of_reports, kind)())).brief())


# Those that a rule names where they take a tenth of the time.
FAULTS = {
    name: planted for name, planted in PLANTED.items() if not {"outside-ops", "weights-read-again"} & {*planted.rules}
}


class Many(nn.Module):
    """Has most of the planted faults below a long path."""

    def __init__(self) -> None:
        super().__init__()
        self.vision_language_tower = nn.Module()
        self.vision_language_tower.multimodal_encoder = nn.Module()
        layers = self.vision_language_tower.multimodal_encoder.transformer_layers_with_rotary = nn.Module()
        for name, planted in FAULTS.items():
            layers.add_module(f"relative_attention_block_of_{name.replace(' ', '_')}", planted.model())
        self.layers = [layers]

    def forward(self, given: list[torch.Tensor]) -> list[torch.Tensor]:
        return [layer(x) for layer, x in zip(self.layers[0].children(), given, strict=True)]


@pytest.fixture(scope="module")
def largest() -> Report:
    """Return a report with many findings and notes, all below paths of 90 characters and more."""
    with torch.no_grad():
        made = (
            profiler(Many().eval(), warmup=0, repeat=1)
            .run([planted.example() for planted in FAULTS.values()])
            .to_dict()
        )
    # Each fault takes the same time, shared by its modules, and their ops take nearly all of that, by their bytes.
    faults = [module["path"].split(".")[:4] for module in made["modules"]]
    with_ops = [any(op.get("module", 0) == place for op in made["ops"]) for place in range(len(faults))]
    for place, fault in enumerate(faults):
        shared = sum(has for has, other in zip(with_ops, faults, strict=True) if other == fault)
        each = 10**8 // shared if with_ops[place] and len(fault) == 4 else 0
        ops = [op for op in made["ops"] if op.get("module", 0) == place]
        moved = [op["work"]["read_bytes"] + op["work"]["write_bytes"] + 1 for op in ops]
        for op, bytes_ in zip(ops, moved, strict=True):
            op["time_ns"] = bytes_ * each * 95 // (100 * sum(moved))
        for time in made["times"]:
            if time["module"] == place:
                time["self_ns"] = [each] * len(time["self_ns"])
    message = (
        "a note that says in one sentence what a reader must know besides the figures, 12% of which are in a place"
    )
    made["notes"] += [
        {"level": "warning", "code": code, "where": ["a" * 20], "text": ", and ".join([message] * 12), "count": 3}
        for code in list(roofprof._report.note_kinds())[:12]
    ]
    return parsed(json.dumps(made))


def test_of_many_findings_and_notes_no_gain_and_no_action_is_cut(largest):
    text = largest.brief()
    check_brief(text)
    assert len(text) <= 5000
    found = largest.findings
    assert len(found) >= 6
    for one, line in zip(found, re.findall(r"^   -> .*$", text, re.MULTILINE), strict=True):
        assert line.startswith(f"   -> {one.action}; gain ")
        assert re.search(r"; gain .+ \(.+% to .+% of the total\)|; gain none", line)
        assert f"; confidence {one.confidence}" in line
    for number, one in enumerate(found, 1):
        (line,) = re.findall(rf"^{number}\. \[{one.rule}\] .*$", text, re.MULTILINE)
        assert re.search(r"\([\d.]+% of the time\)", line), line


def test_lines_are_cut_behind_words_and_gains_do_not_add_up(largest):
    full = {word for finding in largest.findings for word in finding.text.split()}
    full |= {word for note in largest.coverage.notes for word in note.text.split()}
    cut = [line for line in largest.brief().splitlines() if line.endswith("...")]
    assert cut
    for line in cut:
        assert line.endswith(" ...")
        assert line.split()[-2] in {word.rstrip(",;:") for word in full}, line
    message = "gains do not add up: findings may be about the same time"
    assert largest.brief().count(message) == largest.markdown().count(message) == 1


# ---- Markdown


def tables_of(text: str) -> list[list[list[str]]]:
    """The tables that a reader of GitHub's Markdown finds, as texts of cells."""
    markdown_it = pytest.importorskip("markdown_it")
    tables: list[list[list[str]]] = []
    for token in markdown_it.MarkdownIt("gfm-like", {"linkify": False}).parse(text):
        if token.type == "table_open":
            tables.append([])
        elif token.type == "tr_open":
            tables[-1].append([])
        elif token.type == "inline" and tables and token.level > 3:
            tables[-1][-1].append(
                "".join(child.content for child in token.children or [] if child.type != "html_inline")
            )
    return tables


def test_markdown_has_tables_that_github_shows(report):
    findings, rows = tables_of(report.markdown())
    assert [row[0] for row in findings[1:]] == [f"{one.text} ({one.source})" for one in report.findings]
    assert [row[1] for row in findings[1:]] == [finding.action for finding in report.findings]
    assert [cell.replace("\u00a0", "") for cell, *_ in rows[1:-1]] == [
        row.path.rpartition(".")[2] or "DeadBranch" for row in report.rows
    ]


@pytest.mark.parametrize(
    "name",
    [
        *("a@b.cc", "x @all/team", "o/r#12", "gh-12", "HTTP://x.org", "www.x.org", "$$x$$", "[a](https://x.org)"),
        *("![i](j)", "&#64;octocat", "&commat;octocat", "\\@octocat", "<a href=x>", "```x```", "- [ ] a | b"),
        *("~~a~~ **b** __c__ \ue000", "a|b_*c*_<i>`d`"),
    ],
)
def test_names_mention_nobody_and_link_to_nothing(name):
    """GitHub looks for these forms in each text node of what Markdown gives (its pages on autolinks, mentions)."""
    markdown_it = pytest.importorskip("markdown_it")
    report = json.loads(roofprof.count(nn.Linear(8, 8), torch.randn(1, 8)).to_json())
    for key in ("total", "rows", "findings", "coverage", "kernels", "memory_at_peak"):
        report.pop(key, None)
    note = {"level": "attention", "code": "machine-busy", "where": [], "text": f"{name} is it", "count": 1}
    report = roofprof.Report.from_dict(report | {"model": name, "device": name, "notes": [note]})
    nodes, shown = [], []
    for token in markdown_it.MarkdownIt("gfm-like", {"linkify": False}).parse(report.markdown()):
        children = token.children or []
        nodes += [child.content for child in children if child.type == "text"]
        shown.append("".join(child.content for child in children if child.type != "html_inline"))
        plain = {"text", "text_special", "html_inline", "strong_open", "strong_close", "softbreak"}
        assert {child.type for child in children} <= plain
        assert {child.content for child in children if child.type == "html_inline"} <= {"<span>", "</span>"}
    looked_for = r"@\w|\w@|#\d|gh-\d|\w://|www\.\w|\$\S"
    assert not [node for node in nodes if re.search(looked_for, node, re.IGNORECASE)]
    assert sum(name in line for line in shown) >= 2  # and a reader sees the name


def test_the_command_prints_it(report, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    report.to_json("r.json")
    assert main(["show", "r.json", "--brief"]) == 0
    assert capsys.readouterr().out.strip() == report.brief().strip()
    assert main(["show", "r.json", "--brief", "--budget", "b.toml"]) == 2
    for limit, verdict in (("<= 1000 s", "kept"), ("<= 1 ns", "broken")):
        Path("b.toml").write_text(f'[total]\ntime = "{limit}"\n')
        assert main(["show", "r.json", "--format", "md", "--budget", "b.toml"]) == 0
        assert capsys.readouterr().out.startswith(f"### Budget: {verdict}\n")
