"""A document as one HTML page without scripts, which loads nothing: headings, paragraphs, tables and a picture."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html import escape
from itertools import groupby

from roofprof import _report

# The colours are those of a report's page: text has a contrast of 7:1 or more, in both schemes. The marks of rows and
# cells are their classes: slower, faster and changed ones are coloured.
_STYLE = """
:root {
  color-scheme: light dark;
  --ground: #ffffff; --panel: #f6f7f9; --text: #1b2330; --soft: #5a6473; --line: #dfe3e8;
  --slower: #fbe0cf; --faster: #d3e7f8; --changed: #fff1d6; --warn: #c2410c;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #12161c; --panel: #1a2028; --text: #e6e9ee; --soft: #9aa5b4; --line: #2c3540;
    --slower: #4d2a16; --faster: #16344f; --changed: #3d3115; --warn: #ff9d5c;
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
th:first-child, td:first-child { position: sticky; left: 0; background: var(--ground); }
.text { text-align: left; }
thead th, thead th:first-child { background: var(--panel); }
.total td { font-weight: 600; background: var(--panel); }
.slower td, td.slower, .key .slower { background: var(--slower); }
.faster td, td.faster, .key .faster { background: var(--faster); }
.changed td, td.changed, .key .changed { background: var(--changed); }
.key { color: var(--soft); }
.key span { padding: 0 .4rem; margin-right: .6rem; border-radius: 3px; color: var(--text); }
.warning { border-left: 4px solid var(--warn); padding-left: .6rem; }
img { max-width: 100%; background: white; border-radius: 6px; }
dt { font-weight: 600; } dd { margin: 0 0 .6rem 0; }
""".strip()
_COLOURED = ("slower", "faster", "changed")
_WARNING = ("ATTENTION", "PARTIAL", "warning")  # labels of what must be read first


def page_of(document: _report.Document, about: str, picture: str = "") -> str:
    """Return the file's text.

    about: the title of a document without a paragraph labelled "roofprof". picture: HTML that stands below the last
    table; its images are data within it.
    """
    blocks = document.blocks
    titles = (of.text for of in blocks if isinstance(of, _report.Paragraph) and of.label == "roofprof")
    title = next(titles, about)
    allowed = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    sources = "img-src data:; " if picture else ""
    last = max((place for place, block in enumerate(blocks) if isinstance(block, _report.Table)), default=-1)
    body = [*_shown(blocks[: last + 1]), picture, *_shown(blocks[last + 1 :])]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; {sources}style-src 'sha256-{allowed}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>roofprof: {escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>roofprof: {escape(title)}</h1>
{chr(10).join(filter(None, body))}
</body>
</html>
"""


_Block = _report.Heading | _report.Paragraph | _report.Table


def _shown(blocks: Iterable[_Block]) -> Iterable[str]:
    for kind, group in groupby(blocks, type):
        if kind is _report.Paragraph:
            yield _paragraphs([of for of in group if isinstance(of, _report.Paragraph)])
            continue
        for block in group:
            yield _table(block) if isinstance(block, _report.Table) else f"<h2>{escape(block.text)}</h2>"


def _paragraphs(paragraphs: Iterable[_report.Paragraph]) -> str:
    lines = []
    for of in paragraphs:
        if of.label == "roofprof" or of.role == "hint":  # the title; what a reader of text can do
            continue
        kind = ' class="warning"' if of.label in _WARNING else ""
        lines += [f"<dt{kind}>{escape(of.label)}</dt>"] if of.label else []
        lines += [f"<dd{kind}>{escape(text)}</dd>" for text in of.items or [of.text]]
    return "\n".join(["<dl>", *lines, "</dl>"]) if lines else ""


def _table(table: _report.Table) -> str:
    left = [' class="text"' if column.left else "" for column in table.columns]
    head = "".join(
        f'<th scope="col"{kind}>{escape(column.heading)}</th>' for column, kind in zip(table.columns, left, strict=True)
    )
    rows, marks = table.rows, table.marks
    body = "\n".join(_row(cells, mark, table.columns) for cells, mark in zip(rows, marks, strict=True))
    used = {*marks, *(cell.mark for cells in rows for cell in cells)}
    key = "".join(f'<span class="{mark}">{mark}</span>' for mark in _COLOURED if mark in used)
    title = escape(table.title)
    return f"""{f"<h2>{title}</h2>" if title else ""}
<div class="scroll" tabindex="0" role="region" aria-label="{title or "table"}">
<table>
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table>
</div>
{f'<p class="key">{key}</p>' if key else ""}
{"".join(f"<p>{escape(remark)}</p>" for remark in table.remarks)}""".strip()


def _row(cells: list[_report.Cell], mark: str, columns: list[_report.TableColumn]) -> str:
    inside = []
    for cell, column in zip(cells, columns, strict=True):
        kinds = ["text"] * column.left + [cell.mark] * (cell.mark in _COLOURED)
        kind = f' class="{" ".join(kinds)}"' if kinds else ""
        inside.append(f"<td{kind}>{'&emsp;' * cell.level}{escape(cell.text)}</td>")
    return f'<tr class="{mark}">{"".join(inside)}</tr>' if mark else f"<tr>{''.join(inside)}</tr>"
