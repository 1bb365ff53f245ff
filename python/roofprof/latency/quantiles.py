"""Quantiles of a few hundred times."""

from __future__ import annotations

import math
from collections.abc import Sequence


def quantile(values: Sequence[float], percent: float) -> float:
    """Return the quantile, linear between the two nearest values: type 7 of Hyndman and Fan 1996, numpy's default."""
    if not 0 <= percent <= 100:
        raise ValueError(f"a quantile is asked for in percent, 0 to 100, not {percent}")
    ordered = sorted(values)
    place = percent / 100 * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def fewest_for(percent: float) -> int:
    """Return the fewest values of which one lies beyond that quantile; the median needs one value."""
    beyond = min(percent, 100 - percent)
    if percent == 50 or beyond <= 0:
        return 1
    return math.ceil(round(100 / beyond, 9))
