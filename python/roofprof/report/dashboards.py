"""A report as metrics for dashboards: Prometheus' text and OpenTelemetry's instruments. docs/dashboards.md lists them.

Names follow from the table of figures, so that they change only where a figure's name does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from roofprof.figures import fields

if TYPE_CHECKING:
    from roofprof.report.report import Report

# A figure's unit: how Prometheus' names end, OpenTelemetry's code of the unit, and the factor.
_UNITS = {
    "seconds": ("seconds", "s", 1.0),
    "bytes": ("bytes", "By", 1.0),
    "percent": ("ratio", "1", 0.01),
    "fraction (1 = 100%)": ("ratio", "1", 1.0),
    "ratio": ("ratio", "1", 1.0),
    "bytes per second": ("bytes_per_second", "By/s", 1.0),
    "FLOP/s (int_ops per second where those are more)": ("flops_per_second", "{operation}/s", 1.0),
    "FLOPs per byte (int_ops per byte where those are more)": ("flops_per_byte", "{operation}/By", 1.0),
    "count": ("", "1", 1.0),
    "multiply-accumulates": ("", "1", 1.0),
    "operations": ("", "1", 1.0),
    "true or false": ("", "1", 1.0),
}


class CheckedBudget(Protocol):
    """What ``Budget.check`` returns."""

    @property
    def kept(self) -> bool:
        """Return True when no limit is broken."""

    @property
    def checked(self) -> int:
        """Return how many figures were held against limits."""

    @property
    def broken(self) -> tuple[Any, ...]:
        """Return the limits that are broken."""


@dataclass(frozen=True)
class Metric:
    """One metric: a gauge, and its values by their labels."""

    name: str  # as Prometheus has it, with the unit
    instrument: str  # as OpenTelemetry has it, without
    unit: str  # OpenTelemetry's code
    help: str
    samples: tuple[tuple[dict[str, str], float], ...]


def metrics(report: Report, budget: CheckedBudget | None = None) -> list[Metric]:
    """Return the metrics of a report: totals, memory at the peak, findings, and the verdict on a budget.

    What is not known is left out.
    """
    labels = {"model": report.model, "device": report.device}
    found = [*_totals(report), *_memory(report), *_findings(report), *_verdict(budget)]
    return [
        Metric(*_names(stem, unit), text, tuple((labels | more, value * _UNITS[unit][2]) for more, value in samples))
        for stem, unit, text, samples in found
        if samples
    ]


_Found = tuple[str, str, str, list[tuple[dict[str, str], float]]]  # name, unit, help, values


def _names(stem: str, unit: str) -> tuple[str, str, str]:
    """Return the name of a figure as Prometheus wants it, and OpenTelemetry's name and unit."""
    ending, code, _ = _UNITS[unit]
    if unit == "percent":
        stem = stem.replace("percent_of", "share_of")
    # "read_bytes" has its unit already, and "achieved_flops" the first word of it.
    more = ending.removeprefix(stem.rpartition("_")[2]).removeprefix("_") if ending else ""
    return "_".join(filter(None, ("roofprof", stem, more))), f"roofprof.{stem}", code


def _totals(report: Report) -> Iterator[_Found]:
    total = report.total
    for name, field in fields.of("row").items():
        if name.startswith("self_") or name == "depth" or field.unit not in _UNITS:
            continue
        value = getattr(total, name)
        if value is not None and math.isfinite(value):
            yield name, field.unit, f"the total's {name}, as docs/definitions.md defines it", [({}, float(value))]
    statistics = report.step_statistics
    for name, unit, text, value in (
        ("mfu", "percent", "model FLOPs utilization", report.mfu),
        ("hfu", "percent", "hardware FLOPs utilization", report.hfu),
        ("steps", "count", "steps that were marked", report.steps),
        ("step", "seconds", "the median step", statistics.median if statistics else None),
        ("uncosted_ops", "count", "operators without a known cost", len(report.coverage.uncosted)),
        ("notes", "count", "notes of the report", len(report.coverage.notes)),
    ):
        if value is not None:
            yield name, unit, text, [({}, float(value))]


def _memory(report: Report) -> Iterator[_Found]:
    sums: dict[tuple[str, str], float] = {}
    for row in report.memory_at_peak:
        key = row.category, "yes" if row.before else "no"
        sums[key] = sums.get(key, 0) + row.bytes
    samples = [({"category": category, "before": before}, value) for (category, before), value in sums.items()]
    yield "memory_at_peak", "bytes", "what was alive when most memory was, by category", samples


def _findings(report: Report) -> Iterator[_Found]:
    for end in ("low", "high"):
        samples = [
            ({"id": finding.id, "module": finding.module}, getattr(finding, f"gain_{end}"))
            for finding in report.findings
        ]
        yield f"finding_gain_{end}", "seconds", f"the {end} end of what a finding can gain", samples


def _verdict(budget: CheckedBudget | None) -> Iterator[_Found]:
    if budget is None:
        return
    yield "budget_kept", "true or false", "1 where no limit is broken", [({}, float(budget.kept))]
    yield "budget_checked", "count", "figures that were held against limits", [({}, float(budget.checked))]
    yield "budget_broken", "count", "figures that break their limits", [({}, float(len(budget.broken)))]
    broken = [
        (
            {
                "module": "(total)" if one.path is None else one.path,
                "figure": one.limit.figure,
                "limit": one.limit.text,
            },
            1.0,
        )
        for one in budget.broken
    ]
    yield "budget_broken_limit", "true or false", "1 for each limit that is broken", broken


def prometheus_text(report: Report, budget: CheckedBudget | None = None) -> str:
    """Return the metrics in Prometheus' text format. Raises ImportError where prometheus_client is missing."""
    try:
        from prometheus_client import CollectorRegistry, generate_latest
        from prometheus_client.core import GaugeMetricFamily
    except ImportError:
        raise ImportError("Prometheus' text needs prometheus_client: run `pip install roofprof[prometheus]`") from None
    families = []
    for metric in metrics(report, budget):
        names = list(metric.samples[0][0])
        family = GaugeMetricFamily(metric.name, metric.help, labels=names)
        for labels, value in metric.samples:
            family.add_metric([labels[name] for name in names], value)
        families.append(family)

    class Collected:
        def collect(self) -> list[Any]:
            return families

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collected())
    text: str = generate_latest(registry).decode()
    return text


def record_in(meter: Any, report: Report, budget: CheckedBudget | None = None) -> None:
    """Set a gauge of OpenTelemetry's for each metric. meter: of ``opentelemetry.metrics.get_meter``."""
    for metric in metrics(report, budget):
        gauge = meter.create_gauge(metric.instrument, unit=metric.unit, description=metric.help)
        for labels, value in metric.samples:
            gauge.set(value, attributes=labels)
