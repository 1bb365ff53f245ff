"""The comparison of two reports: all that changed, and the times that changed beyond the noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from roofprof import _report
from roofprof.figures import fields
from roofprof.render.results import Result
from roofprof.report.comparison.differences import Difference, differences
from roofprof.report.comparison.matching import match
from roofprof.report.comparison.noise import ALPHA, GUARD, TEST, Finding, Runs, judge
from roofprof.report.report import Report

COUNTS = ("params", "macs", "flops", "int_ops", "bytes")  # exact: any difference is a change
FIGURES = (*COUNTS, "time", "bound", "wasted_time", "percent_of_roof")
_OF_ROOFS = {"bound", "wasted_time", "percent_of_roof"}
_TOTAL = "total"

# The table's columns after the name: heading, left, rank in which they are dropped for the width (0: never).
_COLUMNS = (
    ("before", False, 0),
    ("after", False, 0),
    ("change", False, 0),
    ("verdict", True, 0),
    ("p", False, 4),
    ("MACs", False, 6),
    ("FLOPs", False, 1),
    ("bytes", False, 3),
    ("bound", True, 5),
    ("wasted", False, 2),
)
_NOTHING = "nothing: machine, torch, threads, device, dtype, inputs and roofs are the same"
_CELLS = (
    "a row includes the modules below it; before, after and change are times; counts are exact, and 'a -> b' where "
    "they changed; same: no change beyond the noise"
)


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
        """The reason why its time was not tested; else ""."""
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

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the two reports: all else follows from them."""
        return partial(compare, names=self.names), (self.before, self.after)

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

    def document(self, limit: int = 0, *, every: bool = False) -> _report.Document:
        """Return what is shown, as data: what else differs, the total, the modules that changed, how times were tested.

        limit: most modules shown, the largest changes of time first, 0 for all; every: unchanged ones too.
        """
        document = _report.Document()
        document.add_title(f"compares {self._sides()}")
        for place, text in enumerate(map(str, self.differences or [_NOTHING])):
            document.add_paragraph("" if place else "differs", text)
        shown = self._shown(limit, every=every)
        base = min((row.after.depth for row in shown), default=0)
        rows = [[_report.Cell(_name_of(row), level=row.after.depth - base), *_cells_of(row)] for row in shown]
        hidden = len(self.modules) - len(shown)
        tested = not limit and all(row.p is not None for row in self.modules)
        remark = f"{hidden} more modules {'without a change ' if tested else ''}are not shown"
        document.add_table(
            [
                _report.TableColumn("module", left=True, min_width=12),
                *(_report.TableColumn(name, left, 0, rank) for name, left, rank in _COLUMNS),
            ],
            [*rows, [_report.Cell("total"), *_cells_of(self.total)]],
            rules=[len(rows)],
            marks=[*(_mark_of(row) for row in shown), "total"],
            remarks=[remark] if hidden else [],
            title="Modules",
        )
        for label, text in (*self._moved(), ("time", self._how_tested()), ("cells", _CELLS)):
            document.add_paragraph(label, text)
        return document

    def table(self, width: int = 120, limit: int = 0, *, every: bool = False) -> str:
        """Return the :meth:`document` as text, in lines that are no longer than ``width``."""
        return self.document(limit, every=every).text(width).rstrip("\n")

    def _document_of_page(self) -> _report.Document:
        return self.document(every=True)

    def _sides(self) -> str:
        """Return the names of the two sides, with model, device and number of runs."""
        sides = [
            f"{name} ({report.model} on {report.device}, {len(report.run_times)} timed runs)"
            for report, name in zip((self.before, self.after), self.names, strict=True)
        ]
        return " with ".join(sides)

    def _shown(self, limit: int, *, every: bool) -> list[ComparedRow]:
        """Return the modules that are shown, in the model's order.

        Without `every` only the changed modules; where none changed, the model and the modules right below it.
        """
        rows = list(self.modules)
        if not every:
            changed = [row for row in rows if row.changed]
            rows = changed or [row for row in rows if row.after.depth <= 1]
        if limit:
            largest = sorted(range(len(rows)), key=lambda index: -abs(rows[index].figure("time").change or 0))
            rows = [rows[index] for index in sorted(largest[:limit])]
        return rows

    def _moved(self) -> list[tuple[str, str]]:
        """Return modules that came, went or were renamed: a label and a text for each kind."""
        others = " (others would match as well)"
        lists = {
            "added": [row.path for row in self.added],
            "removed": [row.path for row in self.removed],
            "renamed": [
                f"{row.before.path or '(model)'} -> {row.path or '(model)'}{others * row.ambiguous}"
                for row in self.renamed
            ],
        }
        return [(label, f"{len(names)}: {', '.join(_few(names))}") for label, names in lists.items() if names]

    def _how_tested(self) -> str:
        """Return the test by its name and its guard, or why there was none."""
        rows = (self.total, *self.modules)
        reasons = dict.fromkeys(row.reason for row in rows if row.verdict == "not tested")
        tested = sum(row.p is not None for row in rows)
        text = f"{TEST}, at {ALPHA:.0%}, over {tested} rows; besides, {GUARD}" if tested else ""
        untested = "; ".join(f"not tested, because {reason}" for reason in reasons)
        return ". ".join(part for part in (text, untested) if part)

    def _about(self) -> str:
        return f"{self.before.model} ({self.names[0]}) and {self.after.model} ({self.names[1]})"

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
    for name, report in (("before", before), ("after", after)):
        if not isinstance(report, Report):
            raise TypeError(
                f"{name} is a report, not {type(report).__name__}: roofprof.Report.from_json(path) reads one"
            )
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


# ---- the cells of the printed table


def _name_of(row: ComparedRow) -> str:
    """Return the module's path, and the former one where it was renamed."""
    path = row.path or "(model)"
    return path if row.path == row.before.path else f"{path} (was {row.before.path or '(model)'})"


def _mark_of(row: ComparedRow) -> str:
    """Return "slower", "faster" or "changed", by which pages colour; "" for a row that did not change."""
    return row.verdict if row.verdict in {"slower", "faster"} else "changed" if row.counts_changed else ""


def _cells_of(row: ComparedRow) -> list[_report.Cell]:
    """Return one cell for each column after the name."""
    time = fields.of("row")["time"]
    ratio = row.figure("time").ratio
    percent = "n/a" if ratio is None else f"{100 * (ratio - 1):+.1f}%"
    p = "n/a" if row.p is None else f"{row.p:.2g}"
    work = [_both(row, name) for name in ("macs", "flops", "bytes", "bound", "wasted_time")]
    return [
        _report.Cell(time.cell(row.before), row.before.time),
        _report.Cell(time.cell(row.after), row.after.time),
        _report.Cell(percent, ratio and 100 * (ratio - 1)),
        _report.Cell(row.verdict, mark=_mark_of(row)),
        _report.Cell(p, row.p),
        *work,
    ]


def _both(row: ComparedRow, name: str) -> _report.Cell:
    """Return one value where both show as the same text, with the difference of counts; else both."""
    figure = row.figure(name)
    if not figure.comparable and name == "wasted_time":
        return _report.Cell("n/a")
    field = fields.of("row")[name]
    before, after = field.cell(row.before), field.cell(row.after)
    if before != after and figure.before != figure.after:
        return _report.Cell(f"{before} -> {after}")
    difference = f" ({figure.change:+,})" if isinstance(figure.change, int) and figure.change else ""
    return _report.Cell(after + difference, None if field.is_text else figure.after)


def _few(names: list[str], most: int = 12) -> list[str]:
    return names if len(names) <= most else [*names[:most], f"and {len(names) - most} more"]


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
    about = {"name": name, "model": report.model, "device": report.device, "scope": report._compiled.mode}
    return about | {"runs": len(report.run_times), "environment": report.environment}
