"""Pages: HTML in pieces, documents as HTML, and the one file around both, under a policy that lets nothing else run."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from itertools import groupby
from typing import Any, TypeAlias

from roofprof import _report

# ---- pieces

_VOID = {"img", "meta"}  # they have no end


class Html(str):
    """Text that is HTML. Any other text is escaped when it becomes a part of an ``Html``."""

    __slots__ = ()


def el(tag: str, *children: str | None, **attributes: object) -> Html:
    """Return an element: children are texts or HTML; attributes of None or False are left out.

    ``class_`` is the attribute "class", ``aria_label`` is "aria-label".
    """
    shown = "".join(
        f" {name.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(str(value))}"')
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{tag}{shown}>" if tag in _VOID else f"<{tag}{shown}>{joined(*children)}</{tag}>")


def joined(*parts: str | None, by: str = "") -> Html:
    """Return the parts as one, texts among them escaped; those that are None or empty are left out."""
    return Html(escape(by).join(part if isinstance(part, Html) else escape(part) for part in parts if part))


def name(text: str) -> Html:
    """Return a name of the user's: whatever its direction of writing is, it stays inside."""
    return el("bdi", text, class_="name")


def section(id_: str, heading: str, *content: str | None) -> Html:
    """Return a section; "" where nothing stands in it."""
    if not any(content):
        return Html()
    head = el("h2", heading, id=f"{id_}-heading")
    return el("section", head, *content, id=id_, aria_labelledby=f"{id_}-heading")


# ---- documents

Block: TypeAlias = "_report.Heading | _report.Paragraph | _report.Table"

_COLOURED = ("slower", "faster", "changed")  # marks of rows and cells that have a colour


def shown(blocks: Iterable[Block]) -> Html:
    """Return blocks in their order, without the title and what is for readers of text."""
    parts: list[str] = []
    for _, group in groupby(blocks, type):
        same = [*group]
        parts.append(_paragraphs([of for of in same if isinstance(of, _report.Paragraph)]))
        parts += (table(of) for of in same if isinstance(of, _report.Table))
        parts += (el("h2", of.text) for of in same if isinstance(of, _report.Heading))
    return joined(*parts, by="\n")


def _paragraphs(paragraphs: Iterable[_report.Paragraph]) -> Html:
    """Return paragraphs, those of one label together."""
    groups: list[tuple[_report.Paragraph, list[str]]] = []  # the first of each label, and the texts of all
    for of in paragraphs:
        if of.role in ("title", "hint"):
            continue
        if not groups or (of.label and of.label != groups[-1][0].label):
            groups.append((of, []))
        groups[-1][1].extend(el("p", text) for text in of.items or [of.text])
    return joined(
        *(
            el("div", el("strong", first.label) if first.label else None, *texts,
               class_="banner" if first.role == "warning" else "statement")
            for first, texts in groups
        )
    )  # fmt: skip


def table(of: _report.Table, *, titled: bool = True) -> Html:
    """Return a table that does not change, the key of its colours and its remarks."""
    head = (el("th", column.heading, scope="col", class_=None if column.left else "number") for column in of.columns)
    rows = (_row(cells, mark, of.columns) for cells, mark in zip(of.rows, of.marks, strict=True))
    marks = {*of.marks, *(cell.mark for cells in of.rows for cell in cells)}
    key = [el("span", mark, class_=mark) for mark in _COLOURED if mark in marks]
    return joined(
        el("h2", of.title) if of.title and titled else None,
        boxed(joined(*head), rows, of.title or "table"),
        el("p", *key, class_="key") if key else None,
        *(el("p", remark) for remark in of.remarks),
    )


def _row(cells: Iterable[_report.Cell], mark: str, columns: Iterable[_report.TableColumn]) -> Html:
    inside = (
        el("td", "\N{EM SPACE}" * cell.level, el("bdi", cell.text) if column.left else cell.text,
           class_=_classes("" if column.left else "number", cell.mark if cell.mark in _COLOURED else ""))
        for cell, column in zip(cells, columns, strict=True)
    )  # fmt: skip
    return el("tr", *inside, class_=mark or None)


def plain_table(headings: Sequence[str], rows: Iterable[Sequence[str]], numeric: Iterable[int], label: str) -> Html:
    """Return a table of texts or HTML; ``numeric``: the columns that stand right."""
    right = dict.fromkeys(numeric, "number")
    head = joined(*(el("th", text, scope="col", class_=right.get(i)) for i, text in enumerate(headings)))
    lines = (el("tr", *(el("td", cell, class_=right.get(i)) for i, cell in enumerate(row))) for row in rows)
    return boxed(head, lines, label)


def boxed(head: Html, rows: Iterable[Html], label: str) -> Html:
    """Return a table in a frame that scrolls, also by keyboard."""
    inside = el("table", el("thead", el("tr", head)), el("tbody", *rows), class_="plain")
    return el("div", inside, class_="box", tabindex=0, role="region", aria_label=label)


def _classes(*names: str) -> str | None:
    return " ".join(filter(None, names)) or None


# ---- the file


def page_of(document: _report.Document, about: str, picture: Html | None = None) -> str:
    """Return a document as a page without scripts.

    about: the title of a document that has none. picture: HTML that stands below the last
    table; its images are data within it.
    """
    blocks = document.blocks
    titles = (of.text for of in blocks if isinstance(of, _report.Paragraph) and of.role == "title")
    title = next(titles, about)
    last = 1 + max((place for place, block in enumerate(blocks) if isinstance(block, _report.Table)), default=-1)
    main = joined(shown(blocks[:last]), picture, shown(blocks[last:]), by="\n")
    return page(f"roofprof: {title}", el("h1", title), main)


def page(title: str, header: Html, main: Html, data: Any = None, script: str = "") -> str:
    """Return the whole page. With a script, it has the data as JSON in the element "data"."""
    styles = _part("page.css")
    scripts = Html()
    if script:
        scripts = joined(
            el("script", Html(json_in_html(data)), type="application/json", id="data"),
            el("script", Html(script), type="module"),
        )
    policy = [
        "default-src 'none'",
        *([f"script-src {_hash(script)}"] if script else []),
        f"style-src {_hash(styles)}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    filled = {
        "policy": escape("; ".join(policy), quote=False),
        "title": escape(title),
        "styles": styles,
        "header": header,
        "main": main,
        "scripts": scripts,
    }
    # All slots are filled in one pass, so that no filled-in text is searched for slots.
    return re.sub(r"\{\{(\w+)\}\}", lambda slot: filled[slot[1]], _part("page.html"))


def json_in_html(data: Any) -> str:
    """Return JSON for a script element, with "<" escaped so that it begins nothing there."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _part(file: str) -> str:
    return resources.files(__package__).joinpath(file).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the name that a policy gives to a text that may run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
