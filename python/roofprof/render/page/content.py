"""The content of a report's page, as plain data. Every text and figure is the report's; nothing is computed here."""

from __future__ import annotations

from typing import Any

from roofprof import _report
from roofprof.figures import fields
from roofprof.render.page import tables
from roofprof.render.page.folds import tree_lines
from roofprof.render.page.parts import parts
from roofprof.render.page.rooflines import Views, rooflines, why_none


def content(report: _report.Report, views: Views) -> dict[str, Any]:
    """Return the data that the page's scripts lay out, in the order of the page."""
    lines = tree_lines(report)
    return {
        "heading": report.paragraphs("heading"),
        "coverage": _coverage(report),
        "advice": [
            {name: getattr(advice, name) for name in ("rule", "module", "modules", "text", "source")}
            for advice in getattr(report, "advice", ())
        ],
        "hotspots": tables.hotspots(report),
        "parts": parts(report),
        "rooflines": rooflines(report, views, lines),
        "no_roofline": why_none(views),
        "tables": {"module": tables.modules(report, lines), "op": tables.ops(report), "kernel": tables.kernels(report)},
        "roofs": _roofs(report),
        "environment": [[name, str(value)] for name, value in report.environment.items()],
    }


def _coverage(report: _report.Report) -> dict[str, Any]:
    coverage = report.coverage
    said = [text for _, text in report.paragraphs("coverage")]
    share = fields["percent_of_time"]
    return {
        # Notes and lists stand below in full.
        "sentences": [text for text in said if not text.startswith(("note: ", "in full: "))],
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


def _roofs(report: _report.Report) -> dict[str, Any]:
    ceilings = report.ceilings
    flops, rate, size, spread = (
        fields[name] for name in ("achieved_flops", "achieved_bandwidth", "bytes", "time_spread")
    )

    def origin(provenance: _report.Provenance) -> list[str]:
        return [spread.text(provenance.spread), provenance.source, provenance.date, provenance.method]

    rows = []
    for peak in ceilings.compute:
        unit = "op/s" if peak.dtype.startswith(("int", "uint", "bool")) else "FLOP/s"
        rows.append([peak.dtype, flops.text(peak.operations_per_second) + unit, "", *origin(peak.provenance)])
    for level in ceilings.memory:
        holds = size.text(level.capacity_bytes) if level.capacity_bytes else ""
        rows.append([level.level, rate.text(level.bytes_per_second) + "B/s", holds, *origin(level.provenance)])
    measured = ("read", "triad", "copy", "write", "update")
    return {
        "device": ceilings.device,
        "said": [text for _, text in report.paragraphs("roofs")],
        "headings": ["roof", "value", "holds", "spread", "source", "date", "method"],
        "rows": rows,
        "curve": {
            "headings": ["working set", *measured, "spread"],
            "rows": [
                [
                    size.text(point.working_set_bytes),
                    *(rate.text(getattr(point, name)) + "B/s" for name in measured),
                    spread.text(point.spread),
                ]
                for point in ceilings.curve.points
            ],
        },
    }
