"""What Nsight Compute prints as CSV: kernels in launch order, with their metrics."""

from __future__ import annotations

import csv
from collections.abc import Iterable

_NEEDED = {"ID", "Kernel Name", "Metric Name", "Metric Value"}


def kernels(text: str) -> list[dict[str, float | str]]:
    """For each launch its "name", and each metric by its own. Raises ValueError where the text is no such table."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(lines))
    if not rows or not _NEEDED.issubset(rows[0]):
        raise ValueError(f"ncu printed no table of metrics: {text.strip()[-500:] or 'nothing'}")
    found: dict[str, dict[str, float | str]] = {}
    for row in rows:
        kernel = found.setdefault(row["ID"], {"name": row["Kernel Name"]})
        kernel[row["Metric Name"]] = number(row["Metric Value"])
    return list(found.values())


def number(text: str) -> float:
    """With or without commas between the thousands; "n/a" is not a number."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return float("nan")


def grouped(launches: list[dict[str, float | str]], counts: Iterable[int], metric: str) -> list[float]:
    """The metric's sums over the first launches, the next ones, and so on. Raises ValueError where they do not fit."""
    counts = list(counts)
    if sum(counts) != len(launches):
        raise ValueError(f"ncu saw {len(launches)} kernels and roofprof {sum(counts)}: {[k['name'] for k in launches]}")
    sums, start = [], 0
    for count in counts:
        sums.append(sum(float(launch[metric]) for launch in launches[start : start + count]))
        start += count
    return sums
