"""Scaling as one HTML page: no scripts, nothing loaded, names as text."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
from html import escape

from roofprof._plots.plot import content
from roofprof._scaling.printed import explained, heading, loss_table, speed_table
from roofprof._scaling.scaling import Scaling

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem auto; max-width: 64rem; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .15rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; }
.whole td { border-top: 2px solid; font-weight: 600; }
.predicted td { font-style: italic; background: #0072b21a; }
.warning { border-left: 4px solid #d55e00; padding-left: .6rem; }
img { max-width: 100%; background: white; }
dt { font-weight: 600; } dd { margin: 0 0 .6rem 0; }
@media print { .scroll { overflow: visible; } }
""".strip()


def as_page(scaling: Scaling) -> str:
    """Tables, picture, and what they mean."""
    allowed = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    warnings = "\n".join(f'<p class="warning">{escape(text)}</p>' for text in scaling.warnings)
    tables = "\n".join(
        [
            _table("Speed-up and efficiency", "predicted", *speed_table(scaling)),
            _table("What the loss consists of", "whole", *loss_table(scaling)),
        ]
    )
    words = "\n".join(f"<dt>{escape(label)}</dt><dd>{escape(text)}</dd>" for label, text in explained(scaling))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'sha256-{allowed}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>roofprof scaling</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>roofprof scaling: {escape(heading(scaling))}</h1>
{warnings}
{_picture(scaling)}
{tables}
<h2>What it means</h2>
<dl>
{words}
</dl>
</body>
</html>
"""


def _picture(scaling: Scaling) -> str:
    if importlib.util.find_spec("matplotlib") is None:
        return "<p>The picture is left out: it needs matplotlib (<code>pip install roofprof[plot]</code>).</p>"
    drawn = base64.b64encode(content(scaling.plot(), "svg")).decode()
    return f'<img alt="speed-up over ranks, and the parts of the loss" src="data:image/svg+xml;base64,{drawn}">'


def _table(title: str, kind: str, columns: list[str], rows: list[list[str]], marked_from: int) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    marks = ["" if at < marked_from else f' class="{kind}"' for at in range(len(rows))]
    cells = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    lines = "\n".join(f"<tr{mark}>{line}</tr>" for mark, line in zip(marks, cells, strict=True))
    return f"""<h2>{escape(title)}</h2>
<div class="scroll" tabindex="0" role="region" aria-label="{escape(title)}">
<table>
<thead><tr>{head}</tr></thead>
<tbody>
{lines}
</tbody>
</table>
</div>"""
