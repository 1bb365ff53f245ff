"""The questions that an agent asks of a folder of reports, each with a short text as the answer.

Answers are the same for the same files. Errors are ValueError, one sentence.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

from roofprof import _report, manual
from roofprof.agents.folder import Folder
from roofprof.figures import fields
from roofprof.render.printable import printable, printable_lines
from roofprof.report.comparison import compare
from roofprof.report.report import Report
from roofprof.roofs.published_peaks import names as names_of_cards

MOST_CHARACTERS = 6000  # of an answer, some 2,000 tokens
_MOST_REPORTS = 50  # described in one list
_MOST_ROWS = 200
_MOST_DEVICES = 12  # of a ranking
_PATIENCE = 600  # seconds that a model may run

_FIGURES = ("time", "percent_of_roof", "bound", "wasted_time", "macs", "bytes")
_OF_KERNELS = ("total", "instances", "percent_of_time", "percent_of_roof", "bound")
_OF_TOTAL = ("time", "percent_of_roof", "bound", "wasted_time", "macs", "flops", "bytes", "peak_memory")

Name = Annotated[str, "a report, as the tool reports names it"]


class Tools:
    """The tools over one folder; ``allowed`` are the words after ``roofprof profile`` of models that may run."""

    def __init__(self, folder: Folder, allowed: Iterable[str] = ()) -> None:
        self.folder = folder
        self.allowed = {words[0]: words for words in map(shlex.split, allowed) if words}

    def all(self) -> list[Callable[..., str]]:
        """Return the tools, ten at most; ``profile`` only where a model may run."""
        tools: list[Callable[..., str]] = [self.reports, self.brief, self.findings, self.rows, self.kernels]
        tools += [self.compare, self.predict, self.explain, self.docs]
        return [*tools, self.profile] if self.allowed else tools

    def reports(self) -> str:
        """List the reports: name, model, device, time and MACs of the whole."""
        lines, others = [], 0
        files = self.folder.files()
        for name in files[:_MOST_REPORTS]:
            try:
                report = self.folder.report(name)
            except ValueError:
                others += 1
                continue
            total = ", ".join(f"{fields[key].heading} {fields[key].cell(report.total)}" for key in ("time", "macs"))
            lines.append(f"{name}: {report.model} on {report.device}; {total}{_urgent(report)}")
        if others:
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
        lines = [" | ".join(re.split(r"  +", line.strip())) for line in found.table(width=0).splitlines()]
        return _short([line for line in lines if line.strip("\u2500")], "the tool rows has each report's figures")

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
        notes = [f"note: {note.text}" for note in predicted.coverage.notes if note.level != "info"]
        return _short([head, *rows.splitlines(), *notes], "")

    def explain(
        self,
        name: Annotated[
            str, "a figure, the code of a note, an operator, a rule of findings, a key of files, an option, a word"
        ],
        report: Annotated[str, "a report: adds what it has of this"] = "",
    ) -> str:
        """Say what a figure, note, operator, rule, key, option or word means: definition, formula, unit, source."""
        found = self.folder.report(report).explain(name) if report else manual.explain(name)
        return _short(str(found).splitlines(), "the tool docs prints the pages")

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
            raise ValueError(f"'{target}' may not run; allowed are {', '.join(self.allowed)}")
        path = self.folder.new_file(name)
        words = [*self.allowed[target], *(f"--input={shape}" for shape in input), "--json", str(path)]
        command = [sys.executable, "-m", "roofprof", "profile", *words]
        try:
            ran = subprocess.run(  # noqa: S603 - what the user named at the start
                command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=_PATIENCE, check=False
            )
        except subprocess.TimeoutExpired:
            raise ValueError(f"'{target}' ran for more than {_PATIENCE} seconds and was ended") from None
        if ran.returncode or not path.exists():
            said = ran.stderr.strip().splitlines() or [f"it ended with code {ran.returncode}"]
            raise ValueError(f"'{target}' was not profiled: {said[-1].removeprefix('roofprof: ')}")
        return _short([f"{name} is written.", _total(self.folder.report(name))], "")


def one_sentence(error: BaseException) -> str:
    """Return what an error says, in one line."""
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    return printable(" ".join(str(text).split())) or type(error).__name__


def _finding(place: int, one: _report.Finding, report: Report) -> list[str]:
    """Return the lines of a finding; its text says the module and the op."""
    total = report.total.time or 0.0
    low, high = (f"{100 * gain / total:.0f}%" if total else "n/a" for gain in (one.gain_low, one.gain_high))
    gain = f"{_seconds(one.gain_low)} to {_seconds(one.gain_high)} of {_seconds(total)} ({low} to {high})"
    where = ", ".join(filter(None, [one.module or "(model)", one.op, one.source]))
    lines = [
        f"{place}. {one.rule}: {one.text}",
        f"   where: {where}; bound: {one.bound}",
        f"   do: {one.action}",
        f"   gain: {gain}; basis: {one.basis}; confidence {one.confidence}: {one.because}",
    ]
    if one.try_it:
        lines.append(f"   try: {one.try_it}")
    evidence = ", ".join(f"{name} {value:.4g}" for name, value in one.evidence.items())
    return [*lines, f"   evidence: {evidence}", f"   id: {one.id}"]


def _modules(report: Report, under: str) -> list[_report.Row]:
    """Return the rows of the tree, equal siblings as one."""
    report.row(under)  # raises KeyError, naming the nearest
    rows = [line.mean for line in report.folded_rows] if not under else report.rows
    return [row for row in rows if not under or row.path == under or row.path.startswith(f"{under}.")]


def _total(report: Report) -> str:
    figures = [f"{fields[name].heading} {fields[name].cell(report.total)}" for name in _OF_TOTAL]
    shown = [figure for figure in figures if not figure.endswith("n/a")]
    return f"total: {', '.join(shown)}{_urgent(report)}"


def _urgent(report: Report) -> str:
    """Return the notes that a reader must see before any figure."""
    return "".join(f"; ATTENTION: {note.text}" for note in report.coverage.notes if note.level == "attention")


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
    cells += [[*_names(row, kind), *(figure.cell(row) for figure in chosen)] for row in shown]
    lines = [" | ".join(printable(cell) for cell in line) for line in cells]
    left = len(ordered) - len(shown)
    more = [f"({left} more of {len(ordered)}: a larger limit, or another sort or under)"] if left else []
    return _short([*lines, *more, *([last] if last else [])], "a smaller limit, or fewer columns")


def _heads(kind: str) -> list[str]:
    return {"row": ["module", "type"], "group": ["group"]}.get(kind, ["kernel", "module", "op"])


def _names(row: Any, kind: str) -> list[str]:
    if kind == "row":
        return [row.path or "(model)", row.type]
    if kind == "group":
        return [", ".join(key or "(model)" for key in row.keys)]
    most = 60
    return [
        row.name if len(row.name) <= most else f"{row.name[: most - 3]}...",
        row.module or "(model)",
        row.op or row.fused,
    ]


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
    text = printable_lines("\n".join(lines)).replace("\u00b5s", "us")
    if len(text) <= MOST_CHARACTERS:
        return text
    more = f"; {more})" if more else ")"
    breaks = text.count("\n")
    room = MOST_CHARACTERS - len(f"\n({breaks} more lines{more}")
    kept = text[:room].rpartition("\n")[0]
    left = breaks - kept.count("\n")
    return f"{kept}\n({_counted(left, 'more line')}{more}"
