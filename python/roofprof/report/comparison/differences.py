"""The other differences between two reports, which a comparison names before any figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from roofprof import _report
from roofprof.report.report import Report

# These facts come in order of their weight for a reader; other facts follow under their own names.
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
    """Return the differences: machine, torch, threads, device, dtype, inputs, scope and roofs, in this order."""
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
            _words(name),
            *_distinct_texts(first.get(name), second.get(name), _unit_of(name)[1]),
            _ABOUT if name in telling else "",
        )
        for name in names
        if first.get(name) != second.get(name)
    ]


# The end of a fact's name decides on the unit of its values.
_UNITS = {"_hz": "Hz", "_bytes": "B", "_watts": "W", "_celsius": "°C", "_percent": "%"}


def _unit_of(name: str) -> tuple[str, str]:
    """Return the end of a fact's name that is a unit, and that unit; both "" where there is none."""
    return next(((end, unit) for end, unit in _UNITS.items() if name.endswith(end)), ("", ""))


def _words(name: str) -> str:
    return _NAMES.get(name) or name.removesuffix(_unit_of(name)[0]).replace("_", " ")


def _distinct_texts(before: Any, after: Any, unit: str) -> tuple[str, str]:
    """Return three digits of each with a prefix and the unit, or all digits where those would be the same."""
    first, second = _amount(before, unit), _amount(after, unit)
    if first != second:
        return first, second
    return _amount(before, unit, digits=None), _amount(after, unit, digits=None)


def _amount(value: Any, unit: str, digits: int | None = 3) -> str:
    """Return an amount as "228 GB" or "2.2 GHz"; without digits as "227,994,112,000 B"."""
    if value is None:
        return "unknown"
    if not unit or isinstance(value, str):
        return str(value)
    if digits is None:
        return f"{value:,} {unit}"
    exponent = 0
    while abs(float(f"{value:.{digits}g}")) >= 1000 and exponent < len(_PREFIXES) - 1:
        value, exponent = value / 1000, exponent + 1
    return f"{value:.{digits}g} {_PREFIXES[exponent]}{unit}"


_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def _facts(before: Report, after: Report) -> list[Difference]:
    def facts(report: Report) -> dict[str, tuple[Any, str]]:
        total = report.total
        return {
            "device": (report.device, _ABOUT),
            "model": (report.model, ""),
            "dtype": (" ".join(sorted(total.operations_by_dtype)) or "none", "operations of another dtype"),
            "inputs": ("; ".join("x".join(map(str, shape)) or "()" for shape in total.input_shapes) or "none", ""),
            "scope": (report._compiled.mode, "a count has no times, a block runs once"),
            "phases": (", ".join(report.by_phase()) or "none", "work of other phases is in the figures"),
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
    """Return the difference of the roofs, by which wasted time is measured; None if they are the same."""
    first, second = _values(before.ceilings), _values(after.ceilings)
    if first == second:
        return None
    consequence = "wasted and %roof are not comparable, because they are held against different roofs"
    if not first or not second:
        return Difference("roofs", "known" if first else "none", "known" if second else "none", consequence)
    changed = [name for name in {**first, **second} if first.get(name) != second.get(name)]
    return Difference("roofs", *_listed(changed, first, second), consequence)


# A roof's name and unit, and its rate.
_Roofs = dict[tuple[str, str], float]


def _values(roofs: _report.Ceilings) -> _Roofs:
    values = {
        (roof.dtype, "FLOP/s" if roof.dtype.startswith(("fp", "bf", "tf")) else "op/s"): roof.operations_per_second
        for roof in roofs.compute
    }
    values |= {(roof.level, "B/s"): roof.bytes_per_second for roof in roofs.memory}
    return values


def _listed(names: list[tuple[str, str]], first: _Roofs, second: _Roofs) -> tuple[str, str]:
    texts = [_distinct_texts(first.get(one), second.get(one), one[1]) for one in names]

    def side(roofs: _Roofs, number: int) -> str:
        return ", ".join(
            f"{one[0]} {both[number]}" if one in roofs else f"no {one[0]}"
            for one, both in zip(names, texts, strict=True)
        )

    return side(first, 0), side(second, 1)
