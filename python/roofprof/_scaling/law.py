"""The Universal Scalability Law, fitted to throughputs, with the uncertainty of what it says of more ranks.

Gunther, "A General Theory of Computational Scalability Based on Rational Functions", 2008 (arXiv:0808.1431): N ranks
have the throughput X(N) = X(1) N / (1 + sigma (N - 1) + kappa N (N - 1)). With kappa = 0 it is Amdahl's law, "Validity
of the single processor approach", 1967. Rank-seconds for a unit of work, N / X(N), are linear in 1, N - 1 and
N (N - 1), so that least squares with coefficients of 0 or more have one solution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import torch

LEVEL = 0.8  # of intervals
_Forms: TypeAlias = Sequence[Sequence[int]]
_DRAWS = 2_000
_RULED_OUT = 0.01  # a form that so few draws have is none that the points leave open
_MOST_NOISE = 3.0  # of a logarithm
_ALL: _Forms = ((0,), (0, 1), (0, 2), (0, 1, 2))
_LINEAR: _Forms = ((0,),)
_AMDAHL: _Forms = ((0,), (0, 1))
_COHERENCE_ALONE: _Forms = ((0,), (0, 2))


class Interval(NamedTuple):
    """Of a throughput: the curve's own value, and the ends of the interval; None where nothing tells them."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Law:
    """What was fitted. Throughputs are in the unit of those that were given."""

    single: float  # throughput of one rank
    sigma: float  # contention: the share of work that does not get faster with ranks
    kappa: float  # coherency: what each pair of ranks costs
    points: int
    from_residuals: bool  # where the uncertainty comes from; else from the spread of steps
    draws: tuple[torch.Tensor, ...]  # of the coefficients, for each form of the law that the points leave open

    @property
    def peak(self) -> float | None:
        """Ranks beyond which throughput falls; None where the curve has none."""
        return math.sqrt(max(1 - self.sigma, 0) / self.kappa) if self.kappa > 0 else None

    def throughput(self, ranks: float) -> float:
        """Of the curve."""
        return self.single * ranks / (1 + self.sigma * (ranks - 1) + self.kappa * ranks * (ranks - 1))

    def interval(self, ranks: float) -> Interval:
        """The curve's throughput, and where it lies in 80% of the draws."""
        value = self.throughput(ranks)
        if not self.draws:
            return Interval(value, None, None)
        ends = torch.tensor([(1 - LEVEL) / 2, (1 + LEVEL) / 2], dtype=torch.float64)
        rates = [(ranks / (draws @ _terms([ranks]).T).squeeze(1)).quantile(ends).tolist() for draws in self.draws]
        return Interval(value, min(low for low, _ in rates), max(high for _, high in rates))


def fit(ranks: Sequence[int], throughputs: Sequence[float], errors: Sequence[float | None]) -> Law:
    """Least squares of relative deviations, with coefficients of 0 or more.

    errors: the relative standard error of each throughput by itself, None where it is not known. Two points give
    Amdahl's law. The uncertainty is that of the residuals where there are more points than coefficients, and never less
    than the errors; it is drawn 2,000 times. Where the points leave open that sigma or kappa is 0, as two always do,
    the interval holds these forms' intervals too: draws around a positive value would miss the end of its range.
    """
    costs = torch.tensor([n / rate for n, rate in zip(ranks, throughputs, strict=True)], dtype=torch.float64)
    terms = _terms(ranks)
    forms = _ALL if len(ranks) > 2 else _AMDAHL
    found = _least_squares(terms, costs[None], costs, forms)[0]
    free = len(ranks) - int((found > 0).sum())
    by_residuals = len(ranks) > 3 and free > 0
    draws: tuple[torch.Tensor, ...] = ()
    if by_residuals or None not in errors or len(ranks) == 2:
        deviation = torch.tensor([error or 0.0 for error in errors], dtype=torch.float64).expand(_DRAWS, -1)
        generator = torch.Generator().manual_seed(0)  # the same answer each time, and nobody else's numbers
        if by_residuals:
            squares = ((costs - terms @ found) / costs).square().sum()
            chi2 = torch.randn(_DRAWS, free, generator=generator, dtype=torch.float64).square().sum(dim=1)
            deviation = torch.maximum(deviation, (squares / chi2).sqrt()[:, None])
        noise = torch.randn(_DRAWS, len(ranks), generator=generator, dtype=torch.float64) * deviation
        factors = noise.clamp(-_MOST_NOISE, _MOST_NOISE).exp()  # costs stay above 0

        def drawn(forms: _Forms) -> torch.Tensor:
            fitted = terms @ _least_squares(terms, costs[None], costs, forms)[0]
            return _least_squares(terms, fitted * factors, costs, forms)

        if len(ranks) == 2:
            draws = drawn(_AMDAHL), drawn(_COHERENCE_ALONE)
        else:
            whole = drawn(_ALL)
            left_open = ((whole <= 0).double().mean(dim=0) > _RULED_OUT).tolist()
            simpler = [form for form, at in ((_COHERENCE_ALONE, 1), (_AMDAHL, 2)) if left_open[at]]
            simpler += [_LINEAR] if len(simpler) == 2 else []
            draws = (whole, *map(drawn, simpler))
    single, contention, coherency = found.tolist()
    return Law(1 / single, contention / single, coherency / single, len(ranks), by_residuals, draws)


def _terms(ranks: Sequence[float]) -> torch.Tensor:
    n = torch.tensor(ranks, dtype=torch.float64)
    return torch.stack([torch.ones_like(n), n - 1, n * (n - 1)], dim=1)


def _least_squares(terms: torch.Tensor, costs: torch.Tensor, scale: torch.Tensor, forms: _Forms) -> torch.Tensor:
    """Of each line of costs the coefficients of 0 or more that fit best: the best of the forms that have them so."""
    best = torch.zeros(len(costs), 3, dtype=torch.float64)
    least = torch.full((len(costs),), math.inf, dtype=torch.float64)
    wanted = costs / scale
    for form in forms:
        weighted = terms[:, list(form)] / scale[:, None]
        norms = weighted.norm(dim=0)
        if not (norms > 0).all():
            continue
        found = (wanted @ torch.linalg.pinv(weighted / norms).T) / norms
        left = (found @ weighted.T - wanted).square().sum(dim=1)
        better = (found >= 0).all(dim=1) & (found[:, 0] > 0) & (left < least)
        least = torch.where(better, left, least)
        full = torch.zeros_like(best)
        full[:, list(form)] = found
        best = torch.where(better[:, None], full, best)
    return best
