"""The times that changed: a test within the runs of two reports, and a guard for differences between processes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from roofprof import _report

ALPHA = 0.05
TEST = (
    "permutation test of the runs: Welch's t of the logarithms of their times, held against the largest t of all rows "
    "in each arrangement (Westfall and Young's max-T, which corrects for the number of rows); exact up to "
    "1,000 arrangements, else over 999 at random"
)
GUARD = (
    "the medians must lie further apart than the row's spreads (longest - shortest run) in both reports together, "
    "where a row counts with the median row's relative spread at least, and 10 / n times as far where a report has "
    "n < 10 runs: processes differ by more than the runs of one of them do"
)
_USUAL_RUNS = 10

Runs = Sequence[int]  # nanoseconds of each run


class Finding(NamedTuple):
    """The verdict on one row's time."""

    verdict: str  # "faster", "slower", "same", "not tested"
    p: float | None = None  # adjusted for all rows; None: not tested
    noise: float | None = None  # seconds; a change within it is called none
    reason: str = ""  # of "not tested"


def judge(before: Mapping[str, Runs], after: Mapping[str, Runs]) -> dict[str, Finding]:
    """Return the finding of each row in both reports. p is adjusted for all of these rows together."""
    runs = max((len(times) for times in before.values()), default=0), max(map(len, after.values()), default=0)
    whole = [key for key in before if key in after and (len(before[key]), len(after[key])) == runs]
    timed = [key for key in whole if statistics.median(before[key]) > 0 and statistics.median(after[key]) > 0]
    found = {key: Finding("not tested", reason="it ran in some of the runs only") for key in before if key in after}
    found |= {key: Finding("not tested", reason="it took no time") for key in whole}
    if reason := _too_few(*runs):
        return found | {key: Finding("not tested", reason=reason) for key in timed}
    step = math.gcd(*(t for times in (before, after) for key in timed for t in times[key]))
    adjusted = _report.adjusted_p_values([before[key] for key in timed], [after[key] for key in timed], step)
    factor = max(1.0, _USUAL_RUNS / min(runs))
    usual = [_usual_spread([times[key] for key in timed]) for times in (before, after)]
    for key, p in zip(timed, adjusted, strict=True):
        spreads = (_noise(times[key], least) for times, least in zip((before, after), usual, strict=True))
        noise = factor * (sum(spreads) + 2 * step)
        change = statistics.median(after[key]) - statistics.median(before[key])
        called = p <= ALPHA and abs(change) > noise
        verdict = "same" if not called else "slower" if change > 0 else "faster"
        found[key] = Finding(verdict, p, noise * 1e-9)
    return found


def _too_few(before: int, after: int) -> str:
    if min(before, after) < 2:
        return "one run"
    if math.comb(before + after, before) * ALPHA < (2 if before == after else 1):
        return f"too few runs ({before} and {after}): chance alone arranges them so in more than 1 of 20 cases"
    return ""


def _spread(times: Runs) -> int:
    return max(times) - min(times)


def _usual_spread(rows: Sequence[Runs]) -> float:
    """Return the spread of the median row, relative to its time: with few runs a small spread is luck."""
    return statistics.median([_spread(times) / statistics.median(times) for times in rows] or [0.0])


def _noise(times: Runs, least: float) -> float:
    return max(_spread(times), least * statistics.median(times))
