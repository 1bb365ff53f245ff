"""Numbers and lines as DeepSpeed's profiler prints them, and calflops after it."""

from __future__ import annotations

_MAGNITUDES = {"T": 1e12, "G": 1e9, "M": 1e6, "K": 1e3, "": 1.0, "m": 1e-3, "u": 1e-6}


def number_to_string(num: float, units: str | None = None, precision: int = 2) -> str:
    """Return a number as "1.82 G", in ``units`` ("T", "G", "M", "K", "m", "u"; any other adds no factor) or in the
    largest that the number reaches.
    """
    if units is None:
        units = next((unit for unit, magnitude in _MAGNITUDES.items() if num >= magnitude), "u") if num else ""
    return f"{round(num / _MAGNITUDES.get(units, 1.0), precision):g} {units}"


def flops_to_string(flops: float, units: str | None = None, precision: int = 2) -> str:
    """Return flops as "1.82 GFLOPS"."""
    return f"{number_to_string(flops, units, precision)}FLOPS"


def macs_to_string(macs: float, units: str | None = None, precision: int = 2) -> str:
    """Return MACs as "1.82 GMACs"."""
    return f"{number_to_string(macs, units, precision)}MACs"


def bytes_to_string(b: float, units: str | None = None, precision: int = 2) -> str:
    """Return bytes as "1.82 GB"."""
    return f"{number_to_string(b, units, precision)}B"


def params_to_string(params_num: float, units: str | None = None, precision: int = 2) -> str:
    """Return a number of parameters as "1.82 B" (billions), or "11.69 M"."""
    units = units.replace("B", "G") if units else units
    return number_to_string(params_num, units, precision).replace("G", "B").strip()


def duration_to_string(duration: float, units: str | None = None, precision: int = 2) -> str:
    """Return seconds as "1.82 ms"."""
    return f"{number_to_string(duration, units, precision)}s"


def line(name: str, value: object) -> str:
    """Return a line of a summary."""
    return f"{name + ': ':<70}  {value!s:<8}"


def titled(title: str, width: int) -> str:
    """Return a rule with a title in its middle."""
    return f"\n{'-' * width} {title} {'-' * width}"


def share(part: float, whole: float, precision: int = 2) -> str:
    """Return a share as "12.5%"."""
    return f"{round(100 * part / whole, precision) if whole else 0:g}%"
