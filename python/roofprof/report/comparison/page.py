"""A comparison as one HTML page: no scripts, nothing loaded, names as text."""

from __future__ import annotations

from html import escape

from roofprof.render.plain_page import line, plain_page, table
from roofprof.report.comparison import ComparedRow, Comparison
from roofprof.report.comparison.text import COLUMNS, cells_of, heading, how_tested, moved, name_of, said_first

_KINDS = {"slower": "worse", "faster": "better"}  # of a verdict
_KEY = (
    '<p class="key"><span class="worse">slower</span><span class="better">faster</span>'
    '<span class="other">other work</span>a row without a colour did not change beyond the noise, or was not tested</p>'
)
_TEXT = (0, *(place for place, (_, left, _) in enumerate(COLUMNS, 1) if left))


def as_page(comparison: Comparison) -> str:
    """Return the page: the total, then all modules; those that changed are marked by colour and by word."""
    differing = "\n".join(f"<li>{escape(text)}</li>" for text in said_first(comparison))
    total = line(["total", *cells_of(comparison.total)], _TEXT, f"total {_kind(comparison.total)}".strip())
    lines = [total, *(_line(row) for row in comparison.modules)]
    notes = "\n".join(f"<h2>{escape(label)}</h2>\n<p>{escape(text)}</p>" for label, text in moved(comparison))
    body = f"""<h2>What else differs</h2>
<ul>
{differing}
</ul>
{table("Modules", ["module", *(name for name, _, _ in COLUMNS)], lines, _TEXT)}
{_KEY}
{notes}
<h2>How times were tested</h2>
<p>{escape(how_tested(comparison))}</p>"""
    return plain_page("roofprof compare", f"roofprof compares {heading(comparison)}", body)


def _line(row: ComparedRow) -> str:
    return line([name_of(row), *cells_of(row)], _TEXT, _kind(row), row.after.depth)


def _kind(row: ComparedRow) -> str:
    return _KINDS.get(row.verdict, "other" if row.counts_changed else "")
