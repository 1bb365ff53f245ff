"""Budgets: limits for a report's total and modules, read from TOML or made from a report, and which of them break."""

from __future__ import annotations

import difflib
import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, ClassVar

from roofprof import _report
from roofprof._report import printable
from roofprof.budget.lines import Keys, TomlError, read
from roofprof.budget.quantities import example, parsed, readable, split_amount
from roofprof.errors import BudgetError as BudgetError
from roofprof.figures import fields
from roofprof.render.files import read_whole
from roofprof.render.results import Result
from roofprof.report.comparison.differences import differences
from roofprof.report.comparison.matching import REGION
from roofprof.report.report import Report

_LARGEST = 2**20  # bytes of a budget
# The figure of the whole report, which rows do not have.
_UNCOSTED = "uncosted_ops"
# Why a report lacks figures for which it gives no reason itself.
_WITHOUT = dict.fromkeys(("peak_memory", "kept_memory"), "the counting call of run() and count() measures it")
_HOLDS = {
    "<=": lambda value, bound: value <= bound,
    ">=": lambda value, bound: value >= bound,
    "<": lambda value, bound: value < bound,
    ">": lambda value, bound: value > bound,
    "==": lambda value, bound: value == bound,
}


@dataclass(frozen=True)
class Limit:
    """One limit of a budget."""

    where: str | None  # which modules, as a glob on paths; None: the total
    figure: str
    sign: str  # "<=", ">=", "<", ">", "=="
    amount: float  # in the unit of the row's attribute; of a relative limit the factor
    relative: bool  # to the same figure of the baseline
    text: str  # as the budget has it
    line: int = 0


@dataclass(frozen=True)
class Broken:
    """A limit that a report does not keep."""

    limit: Limit
    path: str | None  # of the row; None: the total
    reason: str  # which figure it has and by how much that is too much, or why there is none

    def __str__(self) -> str:
        where = "total" if self.path is None else self.path or "(model)"
        return printable(f"{where}: {self.limit.figure} {self.limit.text}: {self.reason}")


@dataclass(frozen=True, repr=False)
class Outcome(Result):
    """The result of checking a report against a budget. Its JSON is not read again: check the report again."""

    SCHEMA: ClassVar[str] = "roofprof.check"

    checked: int  # how many figures
    broken: tuple[Broken, ...]
    remarks: tuple[str, ...] = ()  # what the reader of relative limits must know

    @property
    def kept(self) -> bool:
        """Return True when no limit is broken."""
        return not self.broken

    def document(self) -> _report.Document:
        """Return what is shown, as data: what the reader must know, the broken limits, and how many there are."""
        document = _report.Document()
        for text in (*self.remarks, *map(str, self.broken), self._about()):
            document.add_paragraph("", text)
        return document

    def __str__(self) -> str:
        return self.table(width=0)  # a limit is a line, however long

    def _about(self) -> str:
        if self.kept:
            return f"{'1 figure is' if self.checked == 1 else f'{self.checked} figures are'} within the budget"
        breaking = "figure breaks" if self.checked == 1 else "figures break"
        return f"{len(self.broken)} of {self.checked} {breaking} the budget"

    def _content(self) -> dict[str, Any]:
        return {
            "kept": self.kept,
            "checked": self.checked,
            "broken": [
                {
                    "path": broken.path,  # null: the total
                    "figure": broken.limit.figure,
                    "limit": broken.limit.text,
                    "line": broken.limit.line,
                    "reason": broken.reason,
                }
                for broken in self.broken
            ],
            "remarks": self.remarks,
        }


@dataclass(frozen=True)
class Budget:
    """Limits, as a TOML file has them; ``docs/budgets.md`` shows one."""

    limits: tuple[Limit, ...]
    name: str = "budget"
    _lines: Mapping[Keys, int] = field(default_factory=dict, repr=False)

    @staticmethod
    def load(path: str | Path) -> Budget:
        """Return the budget in a file. Raises OSError, or BudgetError that names the file and the line."""
        try:
            return Budget.parse(read_whole(path, _LARGEST).decode(), str(path))
        except UnicodeDecodeError:
            raise _error(str(path), 1, "a budget is TOML, which is text in UTF-8") from None

    @staticmethod
    def parse(text: str, name: str = "budget") -> Budget:
        """Return the budget in the text of such a file."""
        try:
            values, lines = read(text)
        except TomlError as error:
            raise _error(name, 0, str(error)) from None
        return Budget(tuple(_limits(values, lines, name)), name, lines)

    @staticmethod
    def of(values: Mapping[str, Any]) -> Budget:
        """Return the budget in a dict: ``{"total": {"time": "<= 20 ms"}}``."""
        return Budget(tuple(_limits(dict(values), {}, "budget")))

    def check(self, report: Report, baseline: Report | None = None) -> Outcome:
        """Check a report against the budget.

        A figure that the report does not have breaks its limit. Raises BudgetError for a glob that matches no module,
        and for limits relative to a baseline without one.
        """
        checked, broken = 0, list[Broken]()
        for limit in self.limits:
            if limit.relative and baseline is None:
                raise self._error(limit, f"'{limit.text}' is relative to a baseline, and none was given")
            for path, row in self._rows(limit, report):
                checked += 1
                if reason := _reason(limit, path, row, report, baseline):
                    broken.append(Broken(limit, path, reason))
        remarks = [f"ATTENTION: {doubt}" for doubt in doubts_about(report)]
        if baseline and any(limit.relative for limit in self.limits):
            remarks += (f"ATTENTION: {doubt}" for doubt in doubts_about(baseline, "the baseline"))
            remarks += (f"the baseline differs in {d}" for d in differences(baseline, report))
        return Outcome(checked, tuple(broken), tuple(remarks))

    def _rows(self, limit: Limit, report: Report) -> Iterator[tuple[str | None, _report.Row]]:
        if limit.where is None:
            yield None, report.total
            return
        named = named_rows(report)
        rows = [row for row in named if fnmatchcase(row.path, limit.where)]
        if not rows:
            close = difflib.get_close_matches(limit.where, [row.path for row in named], n=3, cutoff=0)
            raise self._error(
                limit, f"no module matches '{limit.where}'; the closest are {', '.join(map(repr, close))}"
            )
        for row in rows:
            yield row.path, row

    def _error(self, limit: Limit, sentence: str) -> BudgetError:
        return _error(self.name, limit.line, sentence)


def _error(name: str, line: int, sentence: str) -> BudgetError:
    place = f"{name}: line {line}" if line else name
    return BudgetError(printable(f"{place}: {sentence} (roofprof docs budgets)"))


# ---- reading


def _limits(values: dict[str, Any], lines: Mapping[Keys, int], name: str) -> Iterator[Limit]:
    def line(*keys: str) -> int:
        return next((lines[keys[:n]] for n in range(len(keys), 0, -1) if keys[:n] in lines), 0)

    def table(value: Any, *keys: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _error(name, line(*keys), f"'{'.'.join(keys)}' must be a table of limits")
        return value

    if unknown := [key for key in values if key not in {"total", "modules"}]:
        raise _error(name, line(unknown[0]), f"no table '{unknown[0]}': there are [total] and [modules.\"GLOB\"]")
    for figure, value in table(values.get("total", {}), "total").items():
        yield from _read(None, figure, value, name, line("total", figure))
    for where, limits in table(values.get("modules", {}), "modules").items():
        for figure, value in table(limits, "modules", where).items():
            yield from _read(where, figure, value, name, line("modules", where, figure))
    if not any(table(limits) for limits in [values.get("total", {}), *values.get("modules", {}).values()]):
        raise _error(name, 1, "a budget needs a limit, such as [total] time = '<= 20 ms'")


def _read(where: str | None, figure: str, value: Any, name: str, line: int) -> Iterator[Limit]:
    known = _figure(figure, where, name, line)
    for text in value if isinstance(value, list) and value else [value]:
        found = re.match(r"\s*(<=|>=|==|<|>)", text) if isinstance(text, str) else None
        amount = text[found.end() :].strip() if found else ""
        if not found or not amount:
            wanted = "'<= 0'" if known is None else f"'<= {example(known)}' or '<= 1.05 base'"
            raise _error(name, line, f"{figure} = {_short(repr(text))} is no limit; write it as in {figure} = {wanted}")
        number, unit = split_amount(amount)
        relative = number is not None and re.fullmatch(r"(x\s*)?base", unit) is not None
        try:
            if relative:
                assert number is not None
                bound = number
            else:
                bound = float(amount) if known is None else parsed(amount, known)
        except ValueError as error:
            sentence = f"'{_short(amount)}' is not a number" if known is None else str(error)
            raise _error(name, line, f"{figure} = '{_short(text)}': {sentence}") from None
        if not math.isfinite(bound):
            raise _error(name, line, f"{figure} = '{_short(text)}': {_short(amount)} is beyond every number")
        yield Limit(where, figure, found[1], bound, relative, text.strip(), line)


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[:most]}..."


def _figure(figure: str, where: str | None, name: str, line: int) -> _report.Field | None:
    """Return the figure's entry in `roofprof.fields`; None for the plain number of the report as a whole."""
    if figure == _UNCOSTED:
        if where is not None:
            raise _error(name, line, f"{_UNCOSTED} can be limited in [total] only")
        return None
    numbers = {one.name: one for one in fields.of("row").values() if _is_number(one)}
    if figure in numbers:
        return numbers[figure]
    names = [*numbers, _UNCOSTED]
    close = difflib.get_close_matches(figure, names, n=3, cutoff=0.3) or ["time", "flops", "bytes"]
    kind = "is no number" if figure in fields.of("row") else "is no figure"
    raise _error(name, line, f"'{figure}' {kind} that can be limited; the closest are {', '.join(close)}")


def _is_number(one: _report.Field) -> bool:
    return not one.is_text and one.type.removesuffix(" | None") in {"int", "float"}


# ---- holding a report against it


def _reason(limit: Limit, path: str | None, row: _report.Row, report: Report, baseline: Report | None) -> str:
    """Return why the limit is broken; "" if it is kept."""
    value, missing = _value(limit, row, report)
    if value is None:
        return missing
    bound = limit.amount
    if limit.relative:
        assert baseline is not None
        base, missing = _of_baseline(limit, path, baseline)
        if base is None:
            return missing
        bound *= base
    if _HOLDS[limit.sign](value, bound):
        side = _side_known(limit, row)
        at_least = side == ">=" and limit.sign != ">="
        at_most = side == "<=" and limit.sign not in {"<=", "<"}
        if not (at_least or at_most):
            return ""
        how = "at least" if at_least else "at most"
        return f"not known: {limit.figure} is {how} what is shown, because an op without a known cost is in it"
    known = fields.of("row").get(limit.figure)
    text = known.text if known else "{:g}".format
    apart = value - bound
    percent = f" ({100 * apart / abs(bound):+.3g}%)" if bound else ""
    if bound > 0 and value > 10 * bound:
        percent = f" ({value / bound:,.1f} x)"
    of = f", which is {limit.amount:g} x {text(bound / limit.amount)}" if limit.relative and limit.amount else ""
    much = f"{text(abs(apart))} too {'much' if apart > 0 else 'little'}" if apart else "which is the limit itself"
    return f"it is {text(value)}, {much}{percent}{of}"


def _side_known(limit: Limit, row: _report.Row) -> str:
    """Return ">=" or "<=" where the row's figure is a limit itself, as an op without a known cost is in it; else ""."""
    known = fields.of("row").get(limit.figure)
    return known.limit if known is not None and row.incomplete else ""


def _value(limit: Limit, row: _report.Row, report: Report) -> tuple[float | None, str]:
    """Return the figure, or why there is none."""
    if limit.figure == _UNCOSTED:
        return float(len(report.coverage.uncosted)), ""
    value = getattr(row, limit.figure)
    if value is not None and not math.isnan(value):
        return float(value), ""
    if limit.figure in _WITHOUT:
        return None, f"the report has no {limit.figure} here: {_WITHOUT[limit.figure]}"
    needs = ", ".join(fields.of("row")[limit.figure].needs)
    return None, f"the report has no {limit.figure} here" + (f": it needs {needs}" if needs else "")


def _of_baseline(limit: Limit, path: str | None, baseline: Report) -> tuple[float | None, str]:
    row = baseline.total
    if path is not None:
        found = [row for row in named_rows(baseline) if row.path == path]
        if not found:
            return None, f"the baseline has no module '{path}'"
        row = found[0]
    value, missing = _value(limit, row, baseline)
    if value is not None and _side_known(limit, row) == ">=":
        why = f"not known: the baseline's {limit.figure} is a lower limit, as an op without a known cost is in it"
        return None, why
    return value, missing and f"in the baseline, {missing}"


def named_rows(report: Report) -> list[_report.Row]:
    """Return a row for each path; where a module and a region have the same, the module's."""
    by_path: dict[str, _report.Row] = {}
    for row in report.rows:
        known = by_path.setdefault(row.path, row)
        if known.type == REGION and row.type != REGION:
            by_path[row.path] = row
    return list(by_path.values())


# ---- a budget made from a report, to begin with

_EXACT = ("params", "macs", "flops", "bytes")
_LARGEST_MODULES = 5


def doubts_about(report: Report, of: str = "the report") -> tuple[str, ...]:
    """Return what a reader must know before any figure of the report: that it is partial, its notes of that level."""
    notes = report.coverage.notes
    urgent = [f"{of}: {note.text}" for note in notes if note.level == "attention" or note.code == "partial"]
    if report.partial and not any(note.code == "partial" for note in notes):
        urgent.insert(0, f"{of} is partial: an exception ended what was profiled")
    return tuple(printable(text) for text in urgent)


def budget_of(report: Report, margin: float = 0.1) -> str:
    """Return a budget as TOML, for the total and the slowest modules: exact counts, and times with that margin.

    Comments say what a reader must know before any figure of the report.
    """
    device, machine = printable(report.device), printable(str(report.environment.get("device", "this machine")))
    lines = [
        f"# Limits of {_quoted(report.model)} on {device}, made from a report by roofprof check --write.",
        "# Counts are exact, rounded up to four digits: they change with the model alone.",
        f"# Times have a margin of {margin:.0%}; they hold on {machine}.",
        "# Relative to a baseline report: time = '<= 1.05 base'.",
        *(f"# ATTENTION: {doubt}" for doubt in doubts_about(report)),
        "",
        "[total]",
        *_limits_of(report.total, margin),
        f'uncosted_ops = "<= {len(report.coverage.uncosted)}"',
    ]
    rows = [row for row in named_rows(report) if row.path and row.depth == 1 and (row.time or row.flops)]
    rows.sort(key=lambda row: (row.time or 0, row.flops), reverse=True)
    for row in rows[:_LARGEST_MODULES]:
        lines += ["", f"[modules.{_quoted(_literal(row.path))}]", *_limits_of(row, margin)]
    return "\n".join(lines) + "\n"


def _literal(path: str) -> str:
    """Return a glob that matches that path alone."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in path)


def _quoted(text: str) -> str:
    """Return a text in TOML's quotes, as JSON, with all characters escaped that a terminal would act on."""
    return "".join(
        f"\\U{ord(c):08x}" if printable(c) != c or unicodedata.combining(c) else c
        for c in json.dumps(text, ensure_ascii=False)
    )


def _limits_of(row: _report.Row, margin: float) -> list[str]:
    table = fields.of("row")
    limits = [
        f'{name} = "<= {readable(value, table[name], up=True)}"'
        for name in _EXACT
        if (value := getattr(row, name)) and not (row.incomplete and table[name].limit)
    ]
    if row.incomplete:
        limits.append("# macs, flops and bytes are lower limits here, because an op without a known cost is in it")
    if row.time is not None:
        limits.append(f'time = "<= {readable(row.time * (1 + margin), table["time"], up=True)}"')
    if row.percent_of_roof is not None:
        least = row.percent_of_roof / (1 + margin)
        limits.append(f'percent_of_roof = ">= {readable(least, table["percent_of_roof"], up=False)}"')
    return limits
