"""The Universal Scalability Law, fitted to throughputs, with the uncertainty of its predictions for more ranks.

Gunther, "A General Theory of Computational Scalability Based on Rational Functions", 2008 (arXiv:0808.1431): N ranks
have the throughput X(N) = X(1) N / (1 + sigma (N - 1) + kappa N (N - 1)). With kappa = 0 it is Amdahl's law, "Validity
of the single processor approach", 1967. Rank-seconds for a unit of work, N / X(N), are linear in 1, N - 1 and
N (N - 1), so that least squares with coefficients of 0 or more have one solution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from roofprof import _report

LEVEL = 0.8  # of intervals


class Interval(NamedTuple):
    """The throughput by the curve, and the ends of its interval; None where they are not known."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Law:
    """The fitted curve. Throughputs are in the unit of the given ones."""

    single: float  # throughput of one rank
    sigma: float  # contention: the share of work that does not get faster with ranks
    kappa: float  # coherency: what each pair of ranks costs
    points: int
    fitted: _report.ScalingLaw

    @property
    def from_residuals(self) -> bool:
        """Return True when the uncertainty comes from the residuals, False when it comes from the spread of steps."""
        return self.fitted.from_residuals

    @property
    def peak(self) -> float | None:
        """Ranks beyond which throughput falls; None where the curve has none."""
        return math.sqrt(max(1 - self.sigma, 0) / self.kappa) if self.kappa > 0 else None

    def throughput(self, ranks: float) -> float:
        """Return the throughput by the curve."""
        return self.single * ranks / (1 + self.sigma * (ranks - 1) + self.kappa * ranks * (ranks - 1))

    def interval(self, ranks: float) -> Interval:
        """Return the curve's throughput, and the range of 80% of the draws."""
        low, high = self.fitted.interval(ranks, LEVEL) or (None, None)
        return Interval(self.throughput(ranks), low, high)


def fit(ranks: Sequence[int], throughputs: Sequence[float], errors: Sequence[float | None]) -> Law:
    """Least squares of relative deviations, with coefficients of 0 or more.

    errors: the relative standard error of each throughput by itself, None where it is not known. Two points give
    Amdahl's law. The uncertainty is that of the residuals where there are more points than coefficients, and never less
    than the errors; it is drawn 2,000 times. Where the points leave open that sigma or kappa is 0, as two always do,
    the interval holds these forms' intervals too: draws around a positive value would miss the end of its range.
    """
    fitted = _report.ScalingLaw(ranks, throughputs, errors)
    single, contention, coherency = fitted.costs
    return Law(1 / single, contention / single, coherency / single, len(ranks), fitted)
