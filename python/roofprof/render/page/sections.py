"""The sections of a report's page, in their order. Every text and figure is the report's; nothing is computed here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from roofprof import _report
from roofprof.figures import fields
from roofprof.render.html import Html, el, joined, name, plain_table, section, shown, table
from roofprof.render.page.tables import exact_text, meaning

# The figures of the total that open a report, as far as it has them.
_HEADLINE = (
    "time", "flops", "macs", "bytes", "params", "intensity", "achieved_flops", "bound", "percent_of_roof",
    "wasted_time", "dram_bytes", "utilization",
)  # fmt: skip
_TABLES = {"module": "Modules", "op": "Operators", "kernel": "Kernels"}
_LEVELS = ("attention", "warning", "info")  # of notes, the gravest first
_MOST_NAMES = 200
_CELLS = (
    "n/a: not known or not defined, never 0",
    "a cell's tooltip has the figure in full, in its unit",
    "the bars behind times are as long as the figure, against the longest of the column",
)


def header(report: _report.Report) -> Html:
    """Return what ran, what must be known first, and the figures of the total."""
    heading = _paragraphs(report, "heading")
    title = next(of.text for of in heading if of.role == "title")
    figures = [(field, field.cell(report.total)) for field in map(fields.of("row").__getitem__, _HEADLINE)]
    total = (
        el("div", el("dt", field.heading), el("dd", text, title=exact_text(field, report.total)), title=meaning(field))
        for field, text in figures
        if text not in ("n/a", "")
    )
    return joined(
        el("h1", title, id="title"),
        el("div", shown(heading), id="run"),
        el("noscript", el("p", _NO_SCRIPT, class_="banner")),
        el("dl", *total, id="total", aria_label="Total"),
        by="\n",
    )


_NO_SCRIPT = (
    "A script of this page lays out the roofline and the tables of modules, operators and kernels. It is switched off "
    "here; roofprof show has the same as text."
)


def main(report: _report.Report, content: dict[str, Any], why_no_dot: Sequence[str]) -> Html:
    """Return the sections; ``content``: what the scripts lay out in those of the roofline and the tables."""
    rows = content["tables"]["module"]["names"]
    places = {path: place for place, path in reversed([*enumerate(rows)])}
    return joined(
        section("findings", "Findings", _findings(report, places)),
        section("coverage", "Coverage and notes", _coverage(report)),
        section("hotspots", "Most waste", _hotspots(report, places)),
        section("ranks", "Ranks", _rows(report, "rank")),
        section("collectives", "Collectives", _rows(report, "collective")),
        section("memory", "Memory at the peak", _memory(report)),
        section("phases", "Phases", _rows(report, "phase") if len(report.group(["phase"])) > 1 else None),
        section("regions", "Regions", _rows(report, "scope")),
        section("roofline", "Roofline", _ROOFLINE if content["rooflines"] else _no_roofline(why_no_dot)),
        *(
            section(f"{by}s", heading, el("div", data_table=by))
            for by, heading in _TABLES.items()
            if content["tables"][by]
        ),
        section("roofs", "Roofs", _roofs(report)),
        section("environment", "Environment", _pairs(report.environment)),
        section("conventions", "What the figures mean", _conventions(content["tables"])),
        by="\n",
    )


def _paragraphs(report: _report.Report, part: str, by: str = "module") -> list[_report.Paragraph]:
    return [block for block in report.part(part, by).blocks if isinstance(block, _report.Paragraph)]


def _link(path: str, places: dict[str, int], members: Sequence[str] = ()) -> Html:
    """Return a module's name, which leads to its row and dot, where it has them; ``members``: what it stands for."""
    place = places.get(path, places.get(members[0]) if members else None)
    label = name(path or "(model)")
    return label if place is None else el("button", label, type="button", class_="link", data_row=place)


def _details(label: str, *content: str | None) -> Html:
    return el("details", el("summary", label), *content)


def _listing(label: str, items: Sequence[str], most: int = _MOST_NAMES) -> Html:
    """Return something that opens: the first so many items stand in it, and it says how many do not."""
    rest = f"{len(items) - most} more are in the report's JSON." if len(items) > most else None
    shown_items = (el("li", name(item or "(model)")) for item in items[:most])
    return _details(label, el("ul", *shown_items, class_="names"), el("p", rest, class_="aside") if rest else None)


def _plural(count: int, one: str, more: str = "") -> str:
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"


def _pairs(of: Any) -> Html:
    lines = (part for key, value in of.items() for part in (el("dt", key), el("dd", str(value))))
    return el("dl", *lines, class_="pairs")


# ---- findings, coverage and notes, and where most time goes


def _findings(report: _report.Report, places: dict[str, int]) -> Html | None:
    findings = report.findings
    if not findings:
        return None
    order = f"What gains most comes first; {_report.GAINS_OVERLAP}." if len(findings) > 1 else None
    items = (_finding(finding, report.total.time or 0, places) for finding in findings)
    return joined(el("p", order, class_="aside") if order else None, el("ol", *items, class_="findings"))


def _finding(of: _report.Finding, total: float, places: dict[str, int]) -> Html:
    shares = [100 * gain / total if total else 0.0 for gain in (of.gain_low, of.gain_high)]
    low, high = (
        f"{fields['time'].text(gain)} ({fields['percent_of_time'].text(share)})" if gain else "0"
        for gain, share in zip((of.gain_low, of.gain_high), shares, strict=True)
    )
    widths = [min(share, 100) for share in shares]
    bar = (
        el("rect", class_="low", width=f"{widths[0]:.1f}", height=1),
        el("rect", class_="high", x=f"{widths[0]:.1f}", width=f"{widths[1] - widths[0]:.1f}", height=1),
    )
    evidence = "; ".join([f"bound {of.bound}", *(f"{key} {value:.4g}" for key, value in of.evidence.items())])
    return el(
        "li",
        el("p", _link(of.module, places, of.modules), " ", el("code", of.rule)),
        el("p", el("bdi", of.text)),
        el("p", f"{of.action[:1].upper()}{of.action[1:]}.", class_="action"),
        el(
            "p",
            el("svg", *bar, class_="gain", viewBox="0 0 100 1", preserveAspectRatio="none", aria_hidden="true"),
            " gain ",
            el("strong", f"{low} to {high}" if of.gain_high else "none to be had by code"),
            el("span", f", basis: {of.basis}; confidence {of.confidence}: {of.because}", class_="aside"),
        ),
        el("pre", of.try_it, class_="try", tabindex=0) if of.try_it else None,
        el("p", "at ", el("code", of.source), class_="aside") if of.source else None,
        _details("Evidence", el("p", evidence, class_="aside"), el("p", f"Rule: {of.reference}", class_="aside")),
        _listing(f"in {_plural(len(of.modules), 'module')}", of.modules) if len(of.modules) > 1 else None,
    )


def _coverage(report: _report.Report) -> Html:
    coverage = report.coverage
    ops = [
        [name(op.op), str(op.calls), fields["percent_of_time"].text(op.percent_of_time),
         joined(*(name(path or report.model) for path in op.modules), by=", ")]
        for op in coverage.uncosted_ops
    ]  # fmt: skip
    statements = (el("p", of.text) for of in _paragraphs(report, "coverage") if of.role == "statement")
    # Leave out notes that a banner above has already.
    above = {of.text for of in _paragraphs(report, "heading") if of.role == "warning"}
    notes = [note for note in coverage.notes if note.count > 1 or note.text not in above]
    notes.sort(key=lambda note: _LEVELS.index(note.level))
    parts: list[Html] = []
    if ops:
        label = _plural(len(ops), "op without a known cost", "ops without a known cost")
        headings = ("op", "calls", "of the op time", "modules")
        parts.append(_details(label, plain_table(headings, ops, (1, 2), "ops without a known cost")))
    if coverage.unobserved:
        label = f"{_plural(len(coverage.unobserved), 'kind')} of work that bypassed the dispatcher"
        rows = [[name(kind), str(calls)] for kind, calls in coverage.unobserved.items()]
        parts.append(_details(label, plain_table(("what", "calls"), rows, (1,), "unobserved work")))
    if coverage.uncalled_modules:
        label = f"{_plural(len(coverage.uncalled_modules), 'module')} never called"
        parts.append(_listing(label, coverage.uncalled_modules, 1000))
    if notes:
        parts.append(el("ul", *map(_note, notes), class_="notes"))
    return joined(*statements, *parts)


def _note(note: _report.Note) -> Html:
    more = f" ({note.count} times)" if note.count > 1 else ""
    places = [path for path in note.where if path == "" or path not in note.text]
    return el(
        "li",
        el("span", note.level, class_="level"), " ", el("span", note.text + more), " ", el("code", note.code),
        _listing(f"in {_plural(len(places), 'module')}", places) if places else None,
        class_=f"note {note.level}",
    )  # fmt: skip


def _hotspots(report: _report.Report, places: dict[str, int]) -> Html | None:
    """Return the list that tables print as "most waste in", equal siblings as one."""
    figures = [fields.of("group")[figure] for figure in ("time", "bound", "percent_of_roof", "wasted_time")]
    rows = [
        [joined(_link(row.module or "", places), f" x{count}" if count > 1 else None), row.op or "",
         *(field.cell(row) for field in figures)]
        for row, count in report.most_wasting()
    ]  # fmt: skip
    headings = [fields["path"].heading, "op", *(field.heading for field in figures)]
    return plain_table(headings, rows, (2, 4, 5), "most waste") if rows else None


# ---- ranks, collectives, memory, phases, regions; roofs and what figures mean


def _rows(report: _report.Report, by: str) -> Html | None:
    """Return the table by ranks, phases and the like, and what its columns mean where no other table has them."""
    blocks = report.part("rows", by).blocks
    tables = [table(block, titled=False) for block in blocks if isinstance(block, _report.Table)]
    legend = _paragraphs(report, "legend", by) if by not in ("phase", "scope") else []
    return joined(*tables[:1], *(el("p", of.text, class_="aside") for of in legend)) if tables else None


def _memory(report: _report.Report) -> Html | None:
    """Return a bar for the most memory during equally many ops, on what was there before; None where none is known."""
    moments, at_peak = report.memory_timeline, report.memory_at_peak
    if not moments or not at_peak:
        return None
    before = sum(row.bytes for row in at_peak if row.before)
    scale = 160 / (before + max(moment.bytes for moment in moments))
    step = 1000 / len(moments)

    def bar(kind: str, x: float, width: float, height: float, title: Html | None = None) -> Html:
        y, tall = f"{160 - height * scale:.1f}", f"{height * scale:.1f}"
        return el("rect", title, class_=kind, x=f"{x:.2f}", width=f"{width:.2f}", y=y, height=tall)

    bars = []
    for index, moment in enumerate(moments):
        size = before + moment.bytes
        where = f"{moment.module or '(model)'}, {moment.phase}"
        title = el("title", f"{fields['bytes'].text(size)} around op {moment.first_op}: {where}")
        bars.append(bar("peak" if moment.is_peak else moment.phase, index * step, step, size, title))
    label = "Bytes alive over the ops that ran"
    kinds = [*dict.fromkeys(moment.phase for moment in moments), "peak", "before"]
    key = (el("span", "there before" if kind == "before" else kind, class_=kind) for kind in kinds)
    return joined(
        *(el("p", of.text) for of in _paragraphs(report, "rows", "memory")),
        el("svg", *bars, bar("before", 0, 1000, before), class_="memory", viewBox="0 0 1000 160", role="img",
           preserveAspectRatio="none", aria_label=label),
        el("p", f"{label}: ", *key, class_="aside memory-key"),
        _details("What was there, by module", of_modules) if (of_modules := _rows(report, "memory")) else None,
    )  # fmt: skip


def _roofs(report: _report.Report) -> Html | None:
    found = {block.title: block for block in report.ceilings.document().blocks if isinstance(block, _report.Table)}
    statements = (el("p", of.text) for of in _paragraphs(report, "roofs"))
    roofs, curve = found.get("roofs"), found.get("bandwidth by working set")
    return joined(
        el("p", report.ceilings.device) if report.ceilings.device else None,
        *([table(roofs, titled=False)] if roofs and roofs.rows else statements),
        _details("Bandwidth by working set", table(curve, titled=False)) if curve and curve.rows else None,
    )


def _conventions(tables: dict[str, Any]) -> Html:
    printed: set[str] = set()
    parts: list[Html] = []
    legends = [(heading, tables[by]["legend"]) for by, heading in _TABLES.items() if tables[by]]
    for heading, sentences in [*legends, ("Cells", _CELLS)]:
        parts += _convention(heading, [sentence for sentence in sentences if sentence not in printed])
        printed.update(sentences)
    return joined(*parts)


def _convention(heading: str, sentences: Iterable[str]) -> list[Html]:
    items = [el("li", sentence) for sentence in sentences]
    return [el("h3", heading), el("ul", *items, class_="legend")] if items else []


# ---- what the script draws in


def _no_roofline(why: Sequence[str]) -> Html | None:
    return el("p", "There is nothing to draw. ", " ".join(why), class_="aside") if why else None


def _button(label: str, id_: str, aria_label: str | None = None) -> Html:
    return el("button", label, type="button", id=id_, aria_label=aria_label)


_ROOFLINE = joined(
    el(
        "div",
        el("div", id="roofline-by", class_="segments", role="group", aria_label="A dot for each"),
        el("span", class_="grow"),
        el("div", _button("+", "zoom-in", "Zoom in"), _button("\N{MINUS SIGN}", "zoom-out", "Zoom out"),
           _button("Reset zoom", "zoom-reset"), class_="segments", role="group", aria_label="Zoom"),
        class_="tools",
    ),
    el("div", el("svg", id="plot", role="img", aria_label="Roofline: FLOP/s against FLOPs per byte"),
       el("div", id="tip", hidden=True), id="plot-box"),
    el("div", id="kinds", class_="kinds", role="group", aria_label="Kinds of op that are shown"),
    el("p", id="marked", class_="aside", aria_live="polite"),
    el("ol", id="worst", aria_label="Numbers in the plot"),
    el("p", id="plot-remarks", class_="aside"),
)  # fmt: skip
