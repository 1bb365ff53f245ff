"""A comparison as text, laid out as the report's tables are."""

from __future__ import annotations

from roofprof import _report
from roofprof.figures import fields
from roofprof.report.comparison import ComparedRow, Comparison
from roofprof.report.comparison.noise import ALPHA, GUARD, TEST

_LEAST_NAME = 12
# Heading, left, rank in which it is dropped where the width is too small (0: never).
COLUMNS = (
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
_FIGURES = ("macs", "flops", "bytes", "bound", "wasted_time")


def as_text(comparison: Comparison, width: int, limit: int, *, every: bool) -> str:
    """Return all of the comparison; see Comparison.table."""
    shown, left_out = chosen_rows(comparison, limit, every=every)
    base = min((row.after.depth for row in shown), default=0)
    rows = [[(name_of(row), row.after.depth - base), *((cell, 0) for cell in cells_of(row))] for row in shown]
    rows.append([("total", 0), *((cell, 0) for cell in cells_of(comparison.total))])
    columns = [("module", True, _LEAST_NAME, 0), *((text, left, 0, rank) for text, left, rank in COLUMNS)]
    table, dropped = _report.text_table(columns, rows, len(rows) - 1, width)
    if left_out:
        tested = not limit and all(row.p is not None for row in comparison.modules)
        table += f"{left_out} more modules {'without a change ' if tested else ''}are not shown\n"
    if dropped:
        table += f"left out for the width: {', '.join(dropped)}\n"
    labels = _report.labelled_paragraph
    head = labels("roofprof", f"compares {heading(comparison)}", width)
    differing = [labels("differs" if not n else "", text, width) for n, text in enumerate(said_first(comparison))]
    paragraphs = [*moved(comparison), ("time", how_tested(comparison)), ("cells", _CELLS)]
    return f"{head}{''.join(differing)}\n{table}\n{''.join(labels(*pair, width) for pair in paragraphs)}".rstrip("\n")


_CELLS = (
    "a row includes the modules below it; before, after and change are times; counts are exact, and 'a -> b' where "
    "they changed; same: no change beyond the noise"
)


def heading(comparison: Comparison) -> str:
    """Return the names of the two sides, with model, device and number of runs."""
    sides = [
        f"{name} ({report.model} on {report.device}, {len(report.run_times)} timed runs)"
        for report, name in zip((comparison.before, comparison.after), comparison.names, strict=True)
    ]
    return " with ".join(sides)


def said_first(comparison: Comparison) -> list[str]:
    """Return the other differences; one sentence where there are none."""
    return [str(difference) for difference in comparison.differences] or [
        "nothing: machine, torch, threads, device, dtype, inputs and roofs are the same"
    ]


def chosen_rows(comparison: Comparison, limit: int, *, every: bool) -> tuple[list[ComparedRow], int]:
    """Return the modules that are shown, in the model's order, and the number of others.

    Without `every` only the changed modules; where none changed, the model and the modules right below it.
    """
    rows = list(comparison.modules)
    if not every:
        changed = [row for row in rows if row.changed]
        rows = changed or [row for row in rows if row.after.depth <= 1]
    if limit:
        largest = sorted(range(len(rows)), key=lambda index: -abs(rows[index].figure("time").change or 0))
        rows = [rows[index] for index in sorted(largest[:limit])]
    return rows, len(comparison.modules) - len(rows)


def name_of(row: ComparedRow) -> str:
    """Return the module's path, and the former one where it was renamed."""
    path = row.path or "(model)"
    return path if row.path == row.before.path else f"{path} (was {row.before.path or '(model)'})"


def cells_of(row: ComparedRow) -> list[str]:
    """Return one cell for each column after the name."""
    time = fields.of("row")["time"]
    ratio = row.figure("time").ratio
    percent = "n/a" if ratio is None else f"{100 * (ratio - 1):+.1f}%"
    p = "n/a" if row.p is None else f"{row.p:.2g}"
    work = [_figure(row, name) for name in _FIGURES]
    return [time.cell(row.before), time.cell(row.after), percent, row.verdict, p, *work]


def _figure(row: ComparedRow, name: str) -> str:
    """Return one value where both show as the same text, with the difference of counts; else both."""
    figure = row.figure(name)
    if not figure.comparable and name == "wasted_time":
        return "n/a"
    field = fields.of("row")[name]
    before, after = field.cell(row.before), field.cell(row.after)
    if figure.before == figure.after:
        return after
    if before != after:
        return f"{before} -> {after}"
    return f"{after} ({figure.change:+,})" if isinstance(figure.change, int) else after


def moved(comparison: Comparison) -> list[tuple[str, str]]:
    """Return modules that came, went or were renamed: a label and a text for each kind."""
    renamed = [
        f"{row.before.path or '(model)'} -> {row.path or '(model)'}{' (others would match as well)' * row.ambiguous}"
        for row in comparison.renamed
    ]
    kinds = [("added", [row.path for row in comparison.added]), ("removed", [row.path for row in comparison.removed])]
    lists = [*kinds, ("renamed", renamed)]
    return [(label, f"{len(names)}: {', '.join(_few(names))}") for label, names in lists if names]


def _few(names: list[str], most: int = 12) -> list[str]:
    return names if len(names) <= most else [*names[:most], f"and {len(names) - most} more"]


def how_tested(comparison: Comparison) -> str:
    """Return the test by its name and its guard, or why there was none."""
    reasons = {row.reason: row for row in (comparison.total, *comparison.modules) if row.verdict == "not tested"}
    tested = sum(row.p is not None for row in (comparison.total, *comparison.modules))
    text = f"{TEST}, at {ALPHA:.0%}, over {tested} rows; besides, {GUARD}" if tested else ""
    untested = "; ".join(f"not tested, because {reason}" for reason in reasons)
    return ". ".join(part for part in (text, untested) if part)
