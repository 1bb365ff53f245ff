"""A budget made from a report, to begin with."""

from __future__ import annotations

import json

from roofprof import _report
from roofprof.budget.named import named_rows
from roofprof.budget.quantities import readable
from roofprof.figures import fields
from roofprof.render.printable import printable
from roofprof.report.report import Report

_EXACT = ("params", "macs", "flops", "bytes")
_LARGEST_MODULES = 5


def budget_of(report: Report, margin: float = 0.1) -> str:
    """Return a budget as TOML, for the total and the largest modules: exact counts, and times with that margin."""
    device, machine = printable(report.device), printable(str(report.environment.get("device", "this machine")))
    lines = [
        f"# Limits of {_quoted(report.model)} on {device}, made from a report by roofprof check --write.",
        "# Counts are exact, rounded up to four digits: they change with the model alone.",
        f"# Times have a margin of {margin:.0%}; they hold on {machine}.",
        "# Relative to a baseline report: time = '<= 1.05 base'.",
        "",
        "[total]",
        *_limits(report.total, margin),
        f'uncosted_ops = "<= {len(report.coverage.uncosted)}"',
    ]
    rows = [row for row in named_rows(report) if row.path and row.depth == 1 and (row.time or row.flops)]
    rows.sort(key=lambda row: (row.time or 0, row.flops), reverse=True)
    for row in rows[:_LARGEST_MODULES]:
        lines += ["", f"[modules.{_quoted(_literal(row.path))}]", *_limits(row, margin)]
    return "\n".join(lines) + "\n"


def _literal(path: str) -> str:
    """Return a glob that matches that path alone."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in path)


def _quoted(text: str) -> str:
    """Return a text in TOML's quotes, as JSON, with all characters escaped that a terminal would act on."""
    return "".join(f"\\U{ord(c):08x}" if printable(c) != c else c for c in json.dumps(text, ensure_ascii=False))


def _limits(row: _report.Row, margin: float) -> list[str]:
    table = fields.of("row")
    limits = [
        f'{name} = "<= {readable(value, table[name], up=True)}"'
        for name in _EXACT
        if (value := getattr(row, name)) and not (row.incomplete and table[name].limit)
    ]
    if row.incomplete:
        limits.append("# macs, flops and bytes are lower limits here, because an op without a known cost is in it")
    if row.time is not None:
        limits.append(f'time = "<= {readable(row.time * (1 + margin), table["time"], up=True)}"')
    if row.percent_of_roof is not None:
        least = row.percent_of_roof / (1 + margin)
        limits.append(f'percent_of_roof = ">= {readable(least, table["percent_of_roof"], up=False)}"')
    return limits
