"""Results as one HTML page without scripts: the head, the colours and the tables that such pages share."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape

# Colours as those of a report's page: text at 7:1 or more on its ground, in both schemes.
_STYLE = """
:root {
  color-scheme: light dark;
  --ground: #ffffff; --panel: #f6f7f9; --text: #1b2330; --soft: #5a6473; --line: #dfe3e8;
  --worse: #fbe0cf; --better: #d3e7f8; --other: #fff1d6; --warn: #c2410c;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #12161c; --panel: #1a2028; --text: #e6e9ee; --soft: #9aa5b4; --line: #2c3540;
    --worse: #4d2a16; --better: #16344f; --other: #3d3115; --warn: #ff9d5c;
  }
}
@media print { :root { color-scheme: light; } .scroll { overflow: visible; } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem auto; max-width: 80rem; padding: 0 1rem;
  color: var(--text); background: var(--ground); overflow-wrap: anywhere; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: separate; border-spacing: 0; width: 100%; font-variant-numeric: tabular-nums; font-size: .9rem;
  overflow-wrap: normal; }
th, td { padding: .2rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: var(--ground); }
.text { text-align: left; }
thead th { background: var(--panel); }
thead th:first-child { background: var(--panel); }
.total td { font-weight: 600; background: var(--panel); }
.worse td, .better td, .key .better { background: var(--better); }
.other td, .key .other { background: var(--other); }
.warning { border-left: 4px solid var(--warn); padding-left: .6rem; }
.key span { padding: 0 .4rem; margin-right: .6rem; border-radius: 3px; color: var(--text); }
.key { color: var(--soft); }
img { max-width: 100%; background: white; border-radius: 6px; }
dt { font-weight: 600; } dd { margin: 0 0 .6rem 0; }
""".strip()


def plain_page(title: str, heading: str, body: str, *, pictures: bool = False) -> str:
    """Return the file's text. The body is HTML; nothing outside of the page is loaded: pictures are data in it."""
    allowed = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    sources = "img-src data:; " if pictures else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; {sources}style-src 'sha256-{allowed}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{escape(heading)}</h1>
{body}
</body>
</html>
"""


def table(title: str, columns: Sequence[str], lines: Iterable[str], text: Iterable[int] = (0,)) -> str:
    """Return a table under its title, of lines that :func:`line` made; text: the columns of text, not of numbers."""
    of_text = set(text)
    head = "".join(
        f'<th scope="col"{_text(place in of_text)}>{escape(name)}</th>' for place, name in enumerate(columns)
    )
    body = "\n".join(lines)
    return f"""<h2>{escape(title)}</h2>
<div class="scroll" tabindex="0" role="region" aria-label="{escape(title)}">
<table>
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table>
</div>"""


def line(cells: Sequence[str], text: Iterable[int] = (0,), kind: str = "", depth: int = 0) -> str:
    """Return a table's row.

    kind: "total", "worse", "better", "other" or nothing; depth: by how many steps its name is indented.
    """
    of_text = set(text)
    inside = "".join(
        f"<td{_text(place in of_text)}>{'&emsp;' * depth if not place else ''}{escape(cell)}</td>"
        for place, cell in enumerate(cells)
    )
    return f'<tr class="{kind}">{inside}</tr>' if kind else f"<tr>{inside}</tr>"


def _text(is_text: bool) -> str:
    return ' class="text"' if is_text else ""
