"""A comparison as one HTML page: no scripts, nothing loaded, names as text."""

from __future__ import annotations

import base64
import hashlib
from html import escape

from roofprof.comparison import ComparedRow, Comparison
from roofprof.comparison.printed import COLUMNS, cells_of, heading, how_tested, moved, name_of, said_first

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem auto; max-width: 80rem; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .15rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #8884; }
th:first-child, td:first-child, .text { text-align: left; }
thead th { position: sticky; top: 0; background: Canvas; }
tfoot td { border-top: 2px solid; font-weight: 600; }
.slower { background: #d5570033; } .faster { background: #0072b233; } .work { font-weight: 600; }
@media print { .scroll { overflow: visible; } }
""".strip()


def as_page(comparison: Comparison) -> str:
    """All modules, changed or not; those that changed are marked by colour and by word."""
    allowed = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    headings = "".join(f"<th{_left(left)}>{escape(text)}</th>" for text, left, _ in COLUMNS)
    body = "\n".join(_line(row, name_of(row), row.after.depth) for row in comparison.modules)
    notes = "\n".join(f"<h2>{escape(label)}</h2>\n<p>{escape(text)}</p>" for label, text in moved(comparison))
    differing = "\n".join(f"<li>{escape(text)}</li>" for text in said_first(comparison))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-{allowed}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>roofprof compare</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>roofprof compares {escape(heading(comparison))}</h1>
<h2>What else differs</h2>
<ul>
{differing}
</ul>
<h2>Modules</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Modules">
<table>
<thead><tr><th scope="col">module</th>{headings}</tr></thead>
<tbody>
{body}
</tbody>
<tfoot>{_line(comparison.total, "total", 0)}</tfoot>
</table>
</div>
{notes}
<h2>How times were tested</h2>
<p>{escape(how_tested(comparison))}</p>
</body>
</html>
"""


def _line(row: ComparedRow, name: str, depth: int) -> str:
    kind = row.verdict if row.verdict in {"faster", "slower"} else "work" if row.counts_changed else ""
    cells = "".join(
        f"<td{_left(left)}>{escape(cell)}</td>" for cell, (_, left, _) in zip(cells_of(row), COLUMNS, strict=True)
    )
    mark = f' class="{kind}"' if kind else ""
    return f"<tr{mark}><td>{'&emsp;' * depth}{escape(name)}</td>{cells}</tr>"


def _left(left: bool) -> str:
    return ' class="text"' if left else ""
