"""The content of a report's page, as plain data. Every text and figure is the report's; nothing is computed here."""

from __future__ import annotations

from typing import Any

from roofprof import _report
from roofprof.figures import fields
from roofprof.render.page import tables
from roofprof.render.page.folds import tree_lines
from roofprof.render.page.parts import parts, table_data
from roofprof.render.page.rooflines import Views, rooflines, why_none


def content(report: _report.Report, views: Views) -> dict[str, Any]:
    """Return the data that the page's scripts lay out, in the order of the page."""
    lines = tree_lines(report)
    return {
        "heading": [[said.label, said.text] for said in _paragraphs(report, "heading")],
        "findings": [_finding(finding, report.total.time or 0) for finding in report.findings],
        "gains": _report.GAINS_OVERLAP if len(report.findings) > 1 else "",
        "coverage": _coverage(report),
        "hotspots": tables.hotspots(report),
        "parts": parts(report),
        "memory": _memory(report),
        "rooflines": rooflines(report, views, lines),
        "no_roofline": why_none(views),
        "tables": {"module": tables.modules(report, lines), "op": tables.ops(report), "kernel": tables.kernels(report)},
        "roofs": _roofs(report),
        "environment": [[name, str(value)] for name, value in report.environment.items()],
    }


_SAID_OF_FINDING = (
    "rule", "module", "modules", "text", "action", "source", "bound", "basis", "confidence", "because", "try_it",
    "evidence", "reference",
)  # fmt: skip


def _finding(finding: _report.Finding, total: float) -> dict[str, Any]:
    shares = [gain / total if total else 0.0 for gain in (finding.gain_low, finding.gain_high)]
    time, percent = fields["time"], fields["percent_of_time"]
    low, high = (
        f"{time.text(gain)} ({percent.text(100 * share)})" if gain else "0"
        for gain, share in zip((finding.gain_low, finding.gain_high), shares, strict=True)
    )
    gain = {"gain": f"{low} to {high}" if finding.gain_high else "none to be had by code", "shares": shares}
    return {name: getattr(finding, name) for name in _SAID_OF_FINDING} | gain


def _coverage(report: _report.Report) -> dict[str, Any]:
    coverage = report.coverage
    share = fields["percent_of_time"]
    return {
        # Notes and lists stand below in full.
        "sentences": [said.text for said in _paragraphs(report, "coverage") if said.role == "statement"],
        "notes": [
            {"level": note.level, "code": note.code, "text": note.text, "count": note.count, "where": note.where}
            for note in coverage.notes
        ],
        "uncosted": [
            [op.op, str(op.calls), share.text(op.percent_of_time), [path or report.model for path in op.modules]]
            for op in coverage.uncosted_ops
        ],
        "unobserved": [[name, str(calls)] for name, calls in coverage.unobserved.items()],
        "uncalled": coverage.uncalled_modules,
    }


def _memory(report: _report.Report) -> dict[str, Any] | None:
    """Return the bytes alive over the ops that ran; None where they are not known."""
    moments = report.memory_timeline
    if not moments or not report.memory_at_peak:
        return None
    text = fields["bytes"].text
    before = sum(row.bytes for row in report.memory_at_peak if row.before)
    return {
        "said": [said.text for said in _paragraphs(report, "rows", "memory")],
        "before": before,
        "moments": [
            [moment.first_op, moment.bytes, text(moment.bytes + before), moment.module, moment.phase, moment.is_peak]
            for moment in moments
        ],
    }


def _roofs(report: _report.Report) -> dict[str, Any]:
    blocks = report.ceilings.document().blocks
    tables = {block.title: table_data(block) for block in blocks if isinstance(block, _report.Table)}
    none: dict[str, Any] = {"headings": [], "rows": []}
    return {
        "device": report.ceilings.device,
        "said": [said.text for said in _paragraphs(report, "roofs")],
        **tables.get("roofs", none),
        "curve": tables.get("bandwidth by working set", none),
    }


def _paragraphs(report: _report.Report, part: str, by: str = "module") -> list[_report.Paragraph]:
    return [block for block in report.part(part, by).blocks if isinstance(block, _report.Paragraph)]
