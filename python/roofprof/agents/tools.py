"""The questions that an agent asks of a folder of reports, each with a short text as the answer.

Answers are the same for the same files. Errors are ValueError, one sentence.
"""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from roofprof import _report, manual
from roofprof._report import printable
from roofprof.agents.folder import Folder
from roofprof.agents.quoting import NAME, SENTENCE, SHORT, cell, in_quotes, one_line, quoted
from roofprof.agents.runs import Runs
from roofprof.figures import fields
from roofprof.report.comparison import Comparison, compare
from roofprof.report.report import Report
from roofprof.roofs.published_peaks import names as names_of_cards

MOST_CHARACTERS = 6000  # of an answer, some 2,000 tokens
_MOST_REPORTS = 50  # described in one list
_MOST_ROWS = 200
_MOST_DEVICES = 12  # of a ranking
_MOST_URGENT = 3  # notes that stand behind a total
_ROOM_OF_REPORTS = 5500  # characters

_FIGURES = ("time", "percent_of_roof", "bound", "wasted_time", "macs", "bytes")
_OF_KERNELS = ("total", "instances", "percent_of_time", "percent_of_roof", "bound")
_OF_TOTAL = ("time", "percent_of_roof", "bound", "wasted_time", "macs", "flops", "bytes", "peak_memory")

Name = Annotated[str, "a report, as the tool reports names it"]


class Tools:
    """The tools over one folder; ``allowed`` are the words after ``roofprof profile`` of models that may run."""

    def __init__(self, folder: Folder, allowed: Iterable[str] = ()) -> None:
        self.folder = folder
        self.allowed = {words[0]: words for words in map(shlex.split, allowed) if words}
        self.runs = Runs()

    def all(self) -> list[Callable[..., str]]:
        """Return the tools, ten at most; ``profile`` only where a model may run."""
        tools: list[Callable[..., str]] = [self.reports, self.brief, self.findings, self.rows, self.kernels]
        tools += [self.compare, self.predict, self.explain, self.docs]
        return [*tools, self.profile] if self.allowed else tools

    def reports(self) -> str:
        """List the reports: name, model, device, time and MACs of the whole."""
        files = self.folder.files()
        described = {name: self.folder.summary(name, _summary) for name in files[:_MOST_REPORTS]}
        known = {name: summary for name, summary in described.items() if summary}
        lines = [f"{quoted(name)}: {summary.line(NAME)}" for name, summary in known.items()]
        if sum(map(len, lines)) > _ROOM_OF_REPORTS:  # each has as much room, so that none hides another
            lines = [f"{quoted(name, SHORT)}: {summary.line(SHORT // 2)}" for name, summary in known.items()]
        if others := len(described) - len(lines):
            lines.append(f"({_counted(others, 'JSON file')} besides that is no report)")
        if len(files) > _MOST_REPORTS:
            lines.append(
                f"({len(files) - _MOST_REPORTS} more files: name them, or start the server on a folder inside)"
            )
        return _short(lines or ["there is no report: `roofprof profile ... --json FILE` makes one"], "")

    def brief(self, report: Name) -> str:
        """Sum a report up: what ran where, the total, the findings, what was not counted."""
        lines = self.folder.report(report).brief().splitlines()
        commands = next((place for place, line in enumerate(lines) if line.startswith("more: ")), len(lines))
        more = "the tools findings, rows and explain have more"
        return _short([*lines[:commands], f"({more})"], more)

    def findings(
        self,
        report: Name,
        limit: Annotated[int, "how many, most gain first"] = 5,
    ) -> str:
        """Say what wastes time, most gain first: where, why, what to do, the gain as an interval, how to try it."""
        given = self.folder.report(report)
        found = given.findings
        if limit < 1:
            raise ValueError(f"limit must be 1 or more, not {limit}")
        if not found:
            return f"no finding: nothing that a rule knows wastes a twentieth of the time; {_total(given)}"
        lines = [f"({_report.GAINS_OVERLAP})"] if len(found) > 1 else []
        lines += [line for place, one in enumerate(found[:limit], 1) for line in _finding(place, one, given)]
        left = len(found) - limit
        return _short([*lines, *([f"({left} more: a larger limit)"] if left > 0 else [])], "a smaller limit")

    def rows(
        self,
        report: Name,
        by: Annotated[str, "module, or a group: op, phase, dtype, shapes, scope, or several: 'module,op'"] = "module",
        under: Annotated[str, "only the module of this path and those below it"] = "",
        sort: Annotated[str, "a figure, largest first; '' keeps the model's order"] = "wasted_time",
        limit: Annotated[int, "how many rows"] = 15,
        columns: Annotated[str, "figures, comma-separated, such as 'time,flops'; '' takes the usual ones"] = "",
    ) -> str:
        """List modules or groups of ops with their figures; a module's row includes those below it."""
        given = self.folder.report(report)
        keys = [key.strip() for key in by.split(",")]
        kind = "row" if keys == ["module"] else "group"
        rows: Sequence[Any] = _modules(given, under) if kind == "row" else given.group(*keys)
        if kind == "group" and under:
            raise ValueError("under is for by='module': for a group leave it out")
        return _table(rows, kind, columns, _FIGURES, sort, limit, _total(given))

    def kernels(
        self,
        report: Name,
        sort: Annotated[str, "a figure, largest first"] = "total",
        limit: Annotated[int, "how many kernels"] = 10,
        columns: Annotated[str, "figures, comma-separated; '' takes the usual ones"] = "",
    ) -> str:
        """List the kernels of a device or of compiled code: name, module, op, time, launches, share of its roof."""
        given = self.folder.report(report)
        if given.why_no_kernels:
            return f"the report has {given.why_no_kernels}"
        return _table(given.kernels, "kernel", columns, _OF_KERNELS, sort, limit, "")

    def compare(self, before: Name, after: Name) -> str:
        """Say what changed from one report to another: totals, modules, and whether times differ beyond noise."""
        found = compare(self.folder.report(before), self.folder.report(after), names=(before, after))
        return _short([_compared(found), *_lines(found.document())], "the tool rows has each report's figures")

    def predict(
        self,
        report: Name,
        device: Annotated[str, "a card such as 'RTX 4090'; '' ranks all that are known"] = "",
        precision: Annotated[str, "fp16, bf16, fp32, ...: in place of the one that was counted"] = "",
        batch: Annotated[int, "samples of a call, in place of those that were counted; 0: as counted"] = 0,
    ) -> str:
        """Predict the times of a report on another device, with an interval of 80%; nothing runs."""
        given = self.folder.report(report)
        options: dict[str, Any] = {"precision": precision or None, "batch": batch or None}
        if not device:
            ranking = given.predict_all(**options)
            lines = [
                f"{one.device}: {_seconds(one.time)} ({_seconds(one.time_low)} to {_seconds(one.time_high)})"
                for one in ranking.devices[:_MOST_DEVICES]
            ]
            left = len(ranking) - len(lines)
            return _short([*lines, f"({left} slower devices; name one for its rows)"], "")
        if Path(device).suffix == ".json":
            raise ValueError(f"'{device}' is a file: name a card, such as {names_of_cards()[0]}")
        predicted = given.predict(device, **options)
        total = predicted.total
        low, high = (fields[name].cell(total) for name in ("time_low", "time_high"))
        head = f"on {device}: {fields['time'].cell(total)}, 80% interval {low} to {high}; predicted, nothing ran"
        rows = _table(_modules(predicted, ""), "row", "", ("time", "bound", "percent_of_roof"), "time", 8, "")
        notes = [f"note: {in_quotes(note.text)}" for note in predicted.coverage.notes if note.level != "info"]
        return _short([head, *rows.split("\n"), *notes], "")

    def explain(
        self,
        name: Annotated[
            str, "a figure, the code of a note, an operator, a rule of findings, a key of files, an option, a word"
        ],
        report: Annotated[str, "a report: adds what it has of this"] = "",
    ) -> str:
        """Say what a figure, note, operator, rule, key, option or word means: definition, formula, unit, source."""
        found = self.folder.report(report).explain(name) if report else manual.explain(name)
        lines = [line for one in found for line in ("", *_explained(one))][1:]
        return _short(lines, "the tool docs prints the pages")

    def docs(
        self,
        page: Annotated[str, "such as 'findings' or 'definitions#roofline'; '' lists the pages"] = "agents",
    ) -> str:
        """Print a page of roofprof's documentation; 'agents' says how to profile, read, act and verify."""
        if not page:
            return _short([f"{name}: {manual.title(name)}" for name in manual.pages()], "")
        return _short(manual.page(page).splitlines(), f"sections: {', '.join(manual.sections(page))}")

    def profile(
        self,
        target: Annotated[str, "one that the server was started with"],
        name: Annotated[str, "of the new report in the folder, such as 'after.json'"],
        input: Annotated[list[str], "shapes of the inputs, such as ['8x3x224x224']"] = [],  # noqa: A002, B006
    ) -> str:
        """Run an allowed model, write its report into the folder, and say its total."""
        if target not in self.allowed:
            raise ValueError(f"'{one_line(target, NAME)}' may not run; allowed are {', '.join(self.allowed)}")
        path = self.folder.new_file(name)
        words = [*self.allowed[target], *(f"--input={shape}" for shape in input), "--json", str(path)]
        code, printed = self.runs.run(target, [sys.executable, "-m", "roofprof", "profile", *words])
        if code or not path.exists():
            lines = printed.strip().splitlines()
            why = in_quotes(lines[-1].removeprefix("roofprof: ")) if lines else f"it ended with code {code}"
            raise ValueError(f"'{target}' was not profiled: {why}")
        return _short([f"{quoted(name)} is written.", _total(self.folder.report(name))], "")


def one_sentence(error: BaseException) -> str:
    """Return what an error says, in one line."""
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    return one_line(" ".join(str(text).split())) or type(error).__name__


@dataclasses.dataclass(frozen=True)
class _Summary:
    """The parts of a report's line in the list of reports."""

    model: str
    device: str
    total: str
    urgent: list[str]

    def line(self, most: int) -> str:
        """Return the line, names cut to ``most`` characters; below NAME, "ATTENTION" replaces the urgent notes."""
        urgent = _notes(self.urgent) if most == NAME else "; ATTENTION" * bool(self.urgent)
        return f"{quoted(self.model, most)} on {quoted(self.device, most)}; {self.total}{urgent}"


def _summary(report: Report) -> _Summary:
    total = ", ".join(f"{fields[key].heading} {fields[key].cell(report.total)}" for key in ("time", "macs"))
    return _Summary(one_line(report.model), one_line(report.device), total, _urgent(report))


def _compared(found: Comparison) -> str:
    """Return which reports are compared."""
    sides = (
        f"{quoted(name)} ({quoted(report.model)} on {quoted(report.device)}, {len(report.run_times)} timed runs)"
        for name, report in zip(found.names, (found.before, found.after), strict=True)
    )
    return f"compares {' with '.join(sides)}"


def _lines(document: _report.Document) -> Iterator[str]:
    """Return the lines of a comparison without its title: cells between bars, names and what differs quoted."""
    for block in document.blocks:
        if isinstance(block, _report.Table):
            yield " | ".join(column.heading for column in block.columns)
            for name, *figures in block.rows:
                yield " | ".join([quoted(name.text), *(cell(figure.text) for figure in figures)])
            yield from block.remarks
        elif isinstance(block, _report.Paragraph) and block.role != "title":
            of_ours = block.label in {"time", "cells"}
            yield f"{block.label} | {one_line(block.text) if of_ours else in_quotes(block.text)}".removeprefix(" | ")


def _explained(one: manual.Explanation) -> list[str]:
    """Return the lines of an explanation; each note or finding of a report is one line."""
    texts = [text for label, text in one.further if label == "here"] if one.kind in {"note", "rule"} else []
    shown = dataclasses.replace(one, further=tuple(item for item in one.further if item[1] not in texts))
    return [*str(shown).split("\n"), *(f"  here     {in_quotes(text)}" for text in texts)]


def _finding(place: int, one: _report.Finding, report: Report) -> list[str]:
    """Return the lines of a finding; its text says the module and the op."""
    total = report.total.time or 0.0
    low, high = (f"{100 * gain / total:.0f}%" if total else "n/a" for gain in (one.gain_low, one.gain_high))
    gain = f"{_seconds(one.gain_low)} to {_seconds(one.gain_high)} of {_seconds(total)} ({low} to {high})"
    where = ", ".join(quoted(part) for part in (one.module or "(model)", one.op, one.source) if part)
    lines = [
        f"{place}. {one.rule}: {one_line(one.text)}",
        f"   where: {where}; bound: {cell(one.bound)}",
        f"   do: {one_line(one.action)}",
        f"   gain: {gain}; basis: {one_line(one.basis)}; confidence {one.confidence}: {one_line(one.because)}",
    ]
    if one.try_it:
        lines.append(f"   try: {one_line(one.try_it)}")
    evidence = ", ".join(f"{quoted(name)} {value:.4g}" for name, value in one.evidence.items())
    return [*lines, f"   evidence: {evidence}", f"   id: {quoted(one.id, SENTENCE)}"]


def _modules(report: Report, under: str) -> list[_report.Row]:
    """Return the rows of the tree, equal siblings as one."""
    report.row(under)  # raises KeyError, naming the nearest
    rows = [line.mean for line in report.folded_rows] if not under else report.rows
    return [row for row in rows if not under or row.path == under or row.path.startswith(f"{under}.")]


def _total(report: Report) -> str:
    figures = [f"{fields[name].heading} {fields[name].cell(report.total)}" for name in _OF_TOTAL]
    shown = [figure for figure in figures if not figure.endswith("n/a")]
    return f"total: {', '.join(shown)}{_notes(_urgent(report))}"


def _urgent(report: Report) -> list[str]:
    """Return the notes that a reader must see before any figure."""
    urgent = [in_quotes(note.text) for note in report.coverage.notes if note.level == "attention"]
    left = len(urgent) - _MOST_URGENT
    return [*urgent[:_MOST_URGENT], *([_counted(left, "more note")] if left > 0 else [])]


def _notes(urgent: list[str]) -> str:
    return "".join(f"; ATTENTION: {text}" for text in urgent)


def _table(
    rows: Sequence[Any], kind: str, columns: str, usual: tuple[str, ...], sort: str, limit: int, last: str
) -> str:
    """Return a line for each row, cells in columns, and a line that says how to get more."""
    known = fields.of(kind)
    chosen = [_figure(name, kind) for name in columns.split(",")] if columns else [known[name] for name in usual]
    if not columns:
        chosen = [figure for figure in chosen if any(figure.cell(row) != "n/a" for row in rows)]
    if limit < 1:
        raise ValueError(f"limit must be 1 or more, not {limit}")
    ordered = list(rows)
    if sort:
        by = _figure(sort, kind)
        ordered.sort(key=lambda row: _value(row, by), reverse=not by.is_text)
    shown = ordered[: min(limit, _MOST_ROWS)]
    cells = [[*_heads(kind), *(figure.heading for figure in chosen)]]
    cells += [[*_names(row, kind), *(cell(figure.cell(row)) for figure in chosen)] for row in shown]
    lines = [" | ".join(line) for line in cells]
    left = len(ordered) - len(shown)
    more = [f"({left} more of {len(ordered)}: a larger limit, or another sort or under)"] if left else []
    return _short([*lines, *more, *([last] if last else [])], "a smaller limit, or fewer columns")


def _heads(kind: str) -> list[str]:
    return {"row": ["module", "type"], "group": ["group"]}.get(kind, ["kernel", "module", "op"])


def _names(row: Any, kind: str) -> list[str]:
    if kind == "group":
        return [", ".join(quoted(key or "(model)") for key in row.keys)]
    named = [row.path or "(model)", row.type] if kind == "row" else _names_of_kernel(row)
    return [quoted(name) if name else "" for name in named]


def _names_of_kernel(row: Any) -> list[str]:
    return [row.name, row.module or "(model)", row.op or row.fused]


def _figure(name: str, kind: str) -> _report.Field:
    """Return the figure of that name, heading or key. Raises ValueError, naming the nearest."""
    wanted = name.strip().lower()
    for figure in fields.of(kind).values():
        if wanted in {figure.name, figure.key, figure.heading.lower(), *figure.aliases}:
            return figure
    raise ValueError(f"there is no figure '{name.strip()}' here{manual.nearest(wanted, list(fields.of(kind)))}")


def _value(row: Any, figure: _report.Field) -> Any:
    value = getattr(row, figure.name, None)
    if figure.is_text:
        return str(value)
    return value if isinstance(value, (int, float)) else -1.0


def _seconds(time: float) -> str:
    return fields["time"].text(time)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _short(lines: list[str], more: str) -> str:
    """Return the lines as one text of at most so many characters; the last line says that there is more, and where."""
    text = "\n".join(map(printable, lines)).replace("\u00b5s", "us")
    if len(text) <= MOST_CHARACTERS:
        return text
    more = f"; {more})" if more else ")"
    breaks = text.count("\n")
    room = MOST_CHARACTERS - len(f"\n({breaks} more lines{more}")
    kept = text[:room].rpartition("\n")[0]
    left = breaks - kept.count("\n")
    return f"{kept}\n({_counted(left, 'more line')}{more}"
