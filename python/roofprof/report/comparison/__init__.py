"""The comparison of two reports: all that changed, and the times that changed beyond the noise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from roofprof import _report
from roofprof.figures import fields
from roofprof.render.files import write_whole
from roofprof.render.results import Result
from roofprof.report.comparison.differences import Difference, differences
from roofprof.report.comparison.matching import match
from roofprof.report.comparison.noise import ALPHA, GUARD, TEST, Finding, Runs, judge
from roofprof.report.report import Report

COUNTS = ("params", "macs", "flops", "int_ops", "bytes")  # exact: any difference is a change
FIGURES = (*COUNTS, "time", "bound", "wasted_time", "percent_of_roof")
_OF_ROOFS = {"bound", "wasted_time", "percent_of_roof"}
_TOTAL = "total"


@dataclass(frozen=True)
class Change:
    """One figure, before and after; None where it was not measured or is not defined."""

    before: Any
    after: Any
    comparable: bool = True  # False: change and ratio would mean nothing

    @property
    def change(self) -> Any:
        """The difference after - before, of numbers."""
        return self.after - self.before if self._numbers else None

    @property
    def ratio(self) -> float | None:
        """The quotient after / before, of numbers; None where `before` is 0."""
        return self.after / self.before if self._numbers and self.before else None

    @property
    def _numbers(self) -> bool:
        return self.comparable and all(isinstance(value, int | float) for value in (self.before, self.after))


@dataclass(frozen=True)
class ComparedRow:
    """One module in both reports, or the total. Figures are those of its subtree."""

    path: str  # in the second report
    before: _report.Row
    after: _report.Row
    finding: Finding
    ambiguous: bool = False  # renamed, and another module would match as well
    roofs_differ: bool = False

    @property
    def verdict(self) -> str:
        """The verdict on its time: "faster", "slower", "same" (no change beyond the noise) or "not tested"."""
        return self.finding.verdict

    @property
    def p(self) -> float | None:
        """The p-value of its time, adjusted for all rows; None where it was not tested."""
        return self.finding.p

    @property
    def reason(self) -> str:
        """Why its time was not tested; else ""."""
        return self.finding.reason

    @property
    def figures(self) -> dict[str, Change]:
        """Each compared figure by its name."""
        return {name: self.figure(name) for name in FIGURES}

    def figure(self, name: str) -> Change:
        """Return any figure of a row: ``row.figure("time").ratio``. Raises AttributeError for a name that none has."""
        comparable = not (self.roofs_differ and name in _OF_ROOFS)
        return Change(getattr(self.before, name), getattr(self.after, name), comparable)

    @property
    def counts_changed(self) -> bool:
        """Return True when the row does other work, or was counted in another way."""
        counted = (*COUNTS, "type", "incomplete")
        return any(getattr(self.before, name) != getattr(self.after, name) for name in counted)

    @property
    def changed(self) -> bool:
        """Return True for a change of the work, of the time beyond the noise, or of the bound by the same roofs."""
        bound = self.figure("bound")
        other_bound = bound.comparable and self.verdict != "same" and bound.before != bound.after
        return self.counts_changed or self.verdict in {"faster", "slower"} or (other_bound and self.p is not None)


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """The result of :func:`compare`.

    Its JSON is not read again: keep the two reports, and compare them again. ``docs/compare.md`` lists the keys.
    """

    SCHEMA: ClassVar[str] = "roofprof.comparison"

    before: Report
    after: Report
    names: tuple[str, str]
    differences: tuple[Difference, ...]
    total: ComparedRow
    modules: tuple[ComparedRow, ...]  # in the second report's order, the renamed ones among them
    added: tuple[_report.Row, ...]
    removed: tuple[_report.Row, ...]
    renamed: tuple[ComparedRow, ...]

    @property
    def changed(self) -> bool:
        """Return True when any work changed, any module came or went, or any time changed beyond the noise."""
        return bool(self.added or self.removed or any(row.changed for row in (self.total, *self.modules)))

    def row(self, path: str) -> ComparedRow:
        """Return the row by its path in the second report; "" is the model. Raises KeyError for other paths."""
        for row in self.modules:
            if row.path == path:
                return row
        raise KeyError(f"no module '{path}' is in both reports")

    def table(self, width: int = 120, limit: int = 0, *, every: bool = False) -> str:
        """Return the text: what else differs, the total, the modules that changed, how times were tested.

        limit: most modules shown, the largest changes of time first, 0 for all; every: unchanged ones too.
        """
        from roofprof.report.comparison.text import as_text

        return as_text(self, width, limit, every=every)

    def _about(self) -> str:
        return f"{self.before.model} ({self.names[0]}) and {self.after.model} ({self.names[1]})"

    def to_html(self, path: str | Path | None = None) -> str:
        """Return one page without scripts. With a path, write it there as well. Raises OSError where it cannot be."""
        from roofprof.report.comparison.page import as_page

        text = as_page(self)
        if path is not None:
            write_whole(path, text.encode())
        return text

    def _content(self) -> dict[str, Any]:
        table = fields.of("row")
        return {
            "generator": "roofprof compare",
            "units": {table[name].key: "nanoseconds" if _is_time(name) else table[name].unit for name in FIGURES},
            "before": _about(self.before, self.names[0]),
            "after": _about(self.after, self.names[1]),
            "test": {"name": TEST, "guard": GUARD, "alpha": ALPHA},
            "changed": self.changed,
            "differences": self.differences,
            "total": _row(self.total),
            "modules": [_row(row) for row in self.modules],
            "added": [_side(row) for row in self.added],
            "removed": [_side(row) for row in self.removed],
            "renamed": [{"before": r.before.path, "after": r.path, "ambiguous": r.ambiguous} for r in self.renamed],
        }


def compare(before: Report, after: Report, *, names: tuple[str, str] = ("before", "after")) -> Comparison:
    """Compare total and modules of two reports: time, work, bound and wasted time, before and after.

    Counts are exact, so any difference is a change. A time changed where it did so beyond the noise of the repeats
    (``docs/compare.md`` has the test and its guard). names: the reports' names in the printed text.
    """
    rows = before.rows, after.rows
    matched = match(before._compiled, after._compiled)
    total, first = before._compiled.row_run_times_ns()
    other_total, second = after._compiled.row_run_times_ns()
    # The key is the row's place in the second report: a module and a region may have the same path.
    own = {str(index): first[other] for index, other in matched.pairs.items() if first[other]}
    others = {str(index): runs for index, runs in enumerate(second) if runs}
    found = _judged({**own, **_total(total)}, {**others, **_total(other_total)}, before, after, names)
    differing = differences(before, after)
    roofs_differ = any(difference.what == "roofs" for difference in differing)

    def compared(key: str, old: _report.Row, new: _report.Row, *, ambiguous: bool = False) -> ComparedRow:
        finding = found.get(key, Finding("not tested", reason="its time is not known"))
        return ComparedRow(new.path, old, new, finding, ambiguous, roofs_differ)

    kept = set(matched.pairs.values())
    modules = {
        index: compared(str(index), rows[0][matched.pairs[index]], new, ambiguous=index in matched.ambiguous)
        for index, new in enumerate(rows[1])
        if index in matched.pairs
    }
    return Comparison(
        before,
        after,
        names,
        differing,
        compared(_TOTAL, before.total, after.total),
        tuple(modules.values()),
        tuple(row for index, row in enumerate(rows[1]) if index not in matched.pairs),
        tuple(row for index, row in enumerate(rows[0]) if index not in kept),
        tuple(modules[index] for index in matched.renamed),
    )


def _total(times: Runs) -> dict[str, Runs]:
    return {_TOTAL: times} if times else {}


def _judged(
    first: dict[str, Runs], second: dict[str, Runs], before: Report, after: Report, names: tuple[str, str]
) -> dict[str, Finding]:
    for report, name in zip((before, after), names, strict=True):
        # A neighbour that stays for a whole process looks like a slower model, and no repeat tells them apart.
        if any(note.code == "machine-busy" for note in report.coverage.notes):
            reason = f"other programs used the processors while {name} was timed"
            return dict.fromkeys(first.keys() & second.keys(), Finding("not tested", reason=reason))
    return judge(first, second)


# ---- as data


def _is_time(name: str) -> bool:
    return fields.of("row")[name].key.endswith("_ns")


def _value(name: str, value: Any) -> Any:
    return round(value * 1e9) if value is not None and _is_time(name) else value


def _row(row: ComparedRow) -> dict[str, Any]:
    table = fields.of("row")
    noise = row.finding.noise
    return {
        "path": row.path,
        "path_before": row.before.path,
        "type": row.after.type,
        "depth": row.after.depth,
        "verdict": row.verdict,
        "p": row.p,
        "noise_ns": None if noise is None else round(noise * 1e9),
        "reason": row.reason,
        "counts_changed": row.counts_changed,
        **{
            table[name].key: {
                "before": _value(name, figure.before),
                "after": _value(name, figure.after),
                "change": _value(name, figure.change),
                "ratio": figure.ratio,
            }
            for name, figure in row.figures.items()
        },
    }


def _side(row: _report.Row) -> dict[str, Any]:
    table = fields.of("row")
    facts = {"path": row.path, "type": row.type, "depth": row.depth}
    return facts | {table[name].key: _value(name, getattr(row, name)) for name in FIGURES}


def _about(report: Report, name: str) -> dict[str, Any]:
    about = {"name": name, "model": report.model, "device": report.device, "scope": report._compiled.scope}
    return about | {"runs": len(report.run_times), "environment": report.environment}
