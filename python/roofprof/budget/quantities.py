"""Amounts as budgets have them: "20 ms", "8.2 G", "40 %"."""

from __future__ import annotations

import math
import re

from roofprof import _report
from roofprof.errors import Error

_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_TIMES = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
# These units may follow the prefix of a count; they repeat the figure's name.
_COUNTED = {"FLOPs", "FLOP", "MACs", "MAC", "ops", "op", "params"}
_RATES = {"FLOP/s", "FLOPS", "op/s"}
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*(?:\.[\d_]*)?|\.\d+)(?:[eE][-+]?\d+)?")


def parsed(text: str, field: _report.Field) -> float:
    """Return the amount in the unit of the row's attribute. Raises ValueError, with an example, for other texts."""
    number, unit = split_amount(text)
    if number is None:
        shown = text.strip() if len(text) < 60 else f"{text.strip()[:60]}..."
        raise Error(f"'{shown}' is not an amount; write it as in '{example(field)}'")
    factor = _units(field).get(unit)
    if factor is None:
        lacking = f"'{unit}' is no unit of {field.name}" if unit else f"{field.name} needs a unit"
        raise Error(f"{lacking}; write it as in '{example(field)}'")
    return number * factor


def split_amount(text: str) -> tuple[float | None, str]:
    """Return the number that the text begins with, None where it begins with none, and the text after it."""
    text = text.strip()
    found = _NUMBER.match(text)
    if not found:
        return None, text
    return float(found[0].replace("_", "")), text[found.end() :].strip()


def _units(field: _report.Field) -> dict[str, float]:
    if field.unit == "seconds":
        return _TIMES
    if _is_count(field):
        return _PREFIXES | _with_units(_PREFIXES, _COUNTED)
    if field.unit.startswith("bytes"):
        return _with_units(_PREFIXES | _BINARY, {"B" if field.unit == "bytes" else "B/s"})
    if "per second" in field.unit:
        return _with_units(_PREFIXES, _RATES)
    percent = {"percent": 1.0}.get(field.unit, 0.01 if field.unit.startswith("fraction") else None)
    return {"": 1.0} | ({} if percent is None else {"%": percent})


def _with_units(prefixes: dict[str, float], units: set[str]) -> dict[str, float]:
    return {f"{prefix}{unit}": factor for prefix, factor in prefixes.items() for unit in units}


def _is_count(field: _report.Field) -> bool:
    return field.unit in {"count", "operations", "multiply-accumulates"}


def example(field: _report.Field) -> str:
    """Return an amount of that figure."""
    if field.unit == "seconds":
        return "20 ms"
    if field.unit == "bytes":
        return "430 MB"
    if field.unit == "bytes per second":
        return "10 GB/s"
    if "per second" in field.unit:
        return "200 GFLOP/s"
    if field.unit == "percent" or field.unit.startswith("fraction"):
        return "40 %"
    return "8.2 G" if _is_count(field) else "1.5"


def readable(value: float, field: _report.Field, *, up: bool) -> str:
    """Return four digits of a limit, rounded so that the value keeps it, with the unit that :func:`parsed` reads."""
    if field.unit == "seconds":
        units = [(1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s")]
    elif field.unit == "percent":
        units = [(1.0, "%")]
    else:
        end = "B" if field.unit == "bytes" else ""
        units = [(factor, f"{prefix}{end}") for prefix, factor in _PREFIXES.items() if prefix != "K"]
    factor, unit = next(((f, u) for f, u in reversed(units) if abs(value) >= f), units[0])
    # One count more or less matters, so counts that fit stand as they are.
    if float(value).is_integer() and abs(value) < 1e4 and field.unit != "seconds":
        return f"{value:.0f} {units[0][1]}".strip()
    return f"{_rounded(value / factor, up=up)} {unit}".strip()


def _rounded(number: float, *, up: bool) -> str:
    if number == 0:
        return "0"
    step = 10.0 ** (math.floor(math.log10(abs(number))) - 3)
    steps = number / step
    # A number that is a whole number of steps but for its last bits is not rounded further.
    away = math.ceil if up else math.floor
    whole = round(steps) if math.isclose(steps, round(steps), rel_tol=1e-12) else away(steps)
    return f"{whole * step:.10g}"
