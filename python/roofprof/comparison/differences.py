"""What else differs between two reports: said before any figure is compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from roofprof import _report
from roofprof.report import Report

# By what they mean for a reader, the most telling first; what is not listed follows under its own name.
_NAMES = {
    "device": "machine",
    "torch": "torch",
    "torch_threads": "threads",
    "cores": "cores",
    "logical_cpus": "processors",
    "governor": "governor",
    "frequency_hz": "frequency",
    "simd": "SIMD",
    "memory_total_bytes": "memory",
    "memory_limit_bytes": "memory limit",
    "kernel": "kernel",
}
_ABOUT = "times compare two set-ups, not two models"


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same, and what follows from it."""

    what: str  # "torch"
    before: str
    after: str
    consequence: str = ""

    def __str__(self) -> str:
        end = f": {self.consequence}" if self.consequence else ""
        return f"{self.what} {self.before} -> {self.after}{end}"


def differences(before: Report, after: Report) -> tuple[Difference, ...]:
    """Machine, torch, threads, device, dtype, inputs, scope and roofs, in this order, where they differ."""
    found = list(_environment(before, after))
    found += _facts(before, after)
    if roofs := _roofs(before, after):
        found.append(roofs)
    return tuple(found)


def _environment(before: Report, after: Report) -> list[Difference]:
    first, second = before.environment, after.environment
    names = [*(name for name in _NAMES if name in first or name in second)]
    names += [name for name in {**first, **second} if name not in _NAMES]
    telling = {"device", "torch", "torch_threads"}
    return [
        Difference(
            _NAMES.get(name, name.replace("_", " ")),
            str(first.get(name, "unknown")),
            str(second.get(name, "unknown")),
            _ABOUT if name in telling else "",
        )
        for name in names
        if first.get(name) != second.get(name)
    ]


def _facts(before: Report, after: Report) -> list[Difference]:
    def facts(report: Report) -> dict[str, tuple[Any, str]]:
        total = report.total
        return {
            "device": (report.device, _ABOUT),
            "model": (report.model, ""),
            "dtype": (" ".join(sorted(total.operations_by_dtype)) or "none", "operations of another dtype"),
            "inputs": ("; ".join("x".join(map(str, shape)) or "()" for shape in total.input_shapes) or "none", ""),
            "scope": (report._compiled.scope, "a count has no times, a block runs once"),
            "steps": (report.steps or "not marked", "figures are those of all steps"),
            "partial": ("yes" if report.partial else "no", "what ran before an exception is in it, no more"),
        }

    first, second = facts(before), facts(after)
    return [
        Difference(what, str(value), str(second[what][0]), consequence)
        for what, (value, consequence) in first.items()
        if value != second[what][0]
    ]


def _roofs(before: Report, after: Report) -> Difference | None:
    """Wasted time is held against the roofs: with other roofs it is another figure."""
    first, second = _values(before.ceilings), _values(after.ceilings)
    if first == second:
        return None
    consequence = "wasted and %roof are not comparable, because they are held against different roofs"
    if not first or not second:
        return Difference("roofs", "known" if first else "none", "known" if second else "none", consequence)
    changed = [name for name in {**first, **second} if first.get(name) != second.get(name)]
    return Difference("roofs", _listed(first, changed), _listed(second, changed), consequence)


def _values(roofs: _report.Ceilings) -> dict[str, float]:
    values = {roof.dtype: roof.operations_per_second for roof in roofs.compute}
    values |= {roof.level: roof.bytes_per_second for roof in roofs.memory}
    return values


def _listed(values: dict[str, float], names: list[str]) -> str:
    return ", ".join(f"{name} {values[name] / 1e9:.3g}G" if name in values else f"no {name}" for name in names)
