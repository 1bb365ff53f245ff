"""The parts of the loss of efficiency: the rank-seconds of a step, which add up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from roofprof.report.scaling.measured import Measured

# These are the parts and their meanings. A rank-second is a second of one rank.
MEANINGS = {
    "communication": "exposed communication, which no compute hides, apart from waiting and imbalance",
    "communication and waiting": "communication that no compute hides, with waiting for others, apart from imbalance",
    "waiting": "waiting for other ranks, apart from imbalance: steps that vary, ranks that start late",
    "imbalance": "slowest rank's compute - mean compute, for which the others wait",
    "overhead": "time outside ops and communication: the host program, launches, data",
    "communication and overhead": "communication that no compute hides, waiting and time outside ops, which these "
    "reports do not tell apart",
    "lower intensity": "what ops need by the roofs grew for the same work: more bytes or FLOPs, as of smaller shards "
    "and of work that each rank repeats",
    "slower ops": "ops are further from their roofs: small sizes, or bandwidth and caches that ranks share",
    "slower compute": "ops take longer for the same work: lower intensity, small sizes, or bandwidth and caches that "
    "ranks share",
    "all": "all parts together, since the time inside ops is not known of every rank",
}

Spent = dict[str, float]


def parts_of_loss(points: Sequence[Measured], work: Sequence[float], *, same_roofs: bool) -> list[Spent]:
    """Return for each point, in parts, the rank-seconds that it spends beyond those of the first for the same work.

    work: the work of each point. same_roofs: True when lower bounds may be compared. Parts may be negative, which is a
    gain; they add up to ``ranks * time - work / work[0] * ranks[0] * time[0]``. All points have the same parts: if one
    of them cannot separate two parts, they are one part of all.
    """
    split = _splitting(points, same_roofs=same_roofs)
    first, *_ = spent = [split(point) for point in points]
    return [
        {part: seconds - share / work[0] * first[part] for part, seconds in of.items()}
        for of, share in zip(spent, work, strict=True)
    ]


def _splitting(points: Sequence[Measured], *, same_roofs: bool) -> Callable[[Measured], Spent]:
    def known(name: str) -> bool:
        return all(getattr(point, name) is not None for point in points)

    if not known("compute"):
        return lambda point: {"all": point.ranks * point.time}
    bounds, exposed, waiting = same_roofs and known("lower_bound"), known("exposed"), known("waiting")

    def split(point: Measured) -> Spent:
        compute = _of_all(point, point.compute)
        waits = point.ranks * max(point.compute or ()) - compute  # for the slowest rank's compute
        rest = point.ranks * point.time - compute
        of_compute: Mapping[str, float] = {"slower compute": compute}
        if bounds:
            of_compute = {"lower intensity": point.lower_bound or 0, "slower ops": compute - (point.lower_bound or 0)}
        if not exposed:
            return {"communication and overhead": rest - waits, "imbalance": waits, **of_compute}
        outside = _of_all(point, point.exposed)
        if not waiting:
            waits = min(waits, outside)
            communication = {"communication and waiting": outside - waits, "imbalance": waits}
        else:
            waited = _of_all(point, [min(pair) for pair in zip(point.waiting or (), point.exposed or (), strict=True)])
            waits = min(waits, waited)
            communication = {"communication": outside - waited, "waiting": waited - waits, "imbalance": waits}
        return {**communication, "overhead": rest - outside, **of_compute}

    return split


def _of_all(point: Measured, seconds: Sequence[float] | None) -> float:
    """Return the sum over all ranks; each missing rank counts as the mean of the others."""
    return point.ranks * sum(seconds or ()) / len(seconds or (0,))
