"""Scaling as one HTML page: no scripts, nothing loaded, names as text."""

from __future__ import annotations

import base64
import importlib.util
from html import escape

from roofprof.render.plain_page import line, plain_page, table
from roofprof.render.plots.plot import content
from roofprof.report.scaling.scaling import Scaling
from roofprof.report.scaling.text import explained, heading, loss_table, speed_table


def as_page(scaling: Scaling) -> str:
    """Return the page: tables, picture, and their explanation."""
    warnings = "\n".join(f'<p class="warning">{escape(text)}</p>' for text in scaling.warnings)
    tables = "\n".join(
        [
            _table("Speed-up and efficiency", *speed_table(scaling)),
            _table("What the loss consists of", *loss_table(scaling)),
        ]
    )
    words = "\n".join(f"<dt>{escape(label)}</dt><dd>{escape(text)}</dd>" for label, text in explained(scaling))
    body = f"""{warnings}
{tables}
{_picture(scaling)}
<h2>What it means</h2>
<dl>
{words}
</dl>"""
    return plain_page("roofprof scaling", f"roofprof scaling: {heading(scaling)}", body, pictures=True)


def _picture(scaling: Scaling) -> str:
    if importlib.util.find_spec("matplotlib") is None:
        return "<p>The picture is left out: it needs matplotlib (<code>pip install roofprof[plot]</code>).</p>"
    drawn = base64.b64encode(content(scaling.plot(), "svg")).decode()
    return f'<img alt="speed-up over ranks, and the parts of the loss" src="data:image/svg+xml;base64,{drawn}">'


def _table(title: str, columns: list[str], rows: list[list[str]], total_from: int | None = None) -> str:
    first = len(rows) if total_from is None else total_from
    lines = [line(row, kind="" if at < first else "total") for at, row in enumerate(rows)]
    return table(title, columns, lines)
