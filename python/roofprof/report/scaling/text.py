"""Scaling as text, laid out as the report's tables are."""

from __future__ import annotations

from roofprof import _report
from roofprof.figures import fields
from roofprof.report.scaling.law import LEVEL
from roofprof.report.scaling.loss import MEANINGS
from roofprof.report.scaling.scaling import Scaling, ScalingPoint

_KINDS = {
    "strong": "strong scaling: the work of all ranks is the same",
    "weak": "weak scaling: the work of each rank is the same",
    "neither": "neither strong nor weak scaling, since the work of all and that of each rank both change: compared by "
    "work per second",
}
_DROPPED = (0, 0, 1, 0, 0, 2, 3, 4)  # columns of speed_table, the largest first, where the width is too small
_SMALL = 0.005  # of the rank time: what is less is no loss to explain
_NOTHING = 5e-5  # of it: what floating point and rounding leave
_KAPPA = 1e-9  # a smaller one is what rounding leaves of 0


def as_text(scaling: Scaling, width: int) -> str:
    """Return all of the scaling; see Scaling.table."""
    labels = _report.labelled_paragraph
    text = labels("roofprof", heading(scaling), width)
    text += "".join(labels("warning", warning, width) for warning in scaling.warnings)
    for columns, rows, ruled_from, order in (
        (*speed_table(scaling), _DROPPED),
        (*loss_table(scaling), range(len(scaling.points))[::-1]),  # the most ranks stay
    ):
        kept = [0, *order[1:]]
        named = [(name, not n, 0, rank) for n, (name, rank) in enumerate(zip(columns, kept, strict=True))]
        table, dropped = _report.text_table(named, [[(cell, 0) for cell in row] for row in rows], ruled_from, width)
        text += f"\n{table}"
        if dropped:
            text += f"left out for the width: {', '.join(dropped)}\n"
    return f"{text}\n{''.join(labels(*pair, width) for pair in explained(scaling))}".rstrip("\n")


def heading(scaling: Scaling) -> str:
    """Return the model, the ranks and the kind of scaling."""
    first, last = scaling.points[0].ranks, scaling.points[-1].ranks
    return f"{scaling.model} on {scaling.device}, {first} to {last} ranks; {_KINDS[scaling.kind]}"


def speed_table(scaling: Scaling) -> tuple[list[str], list[list[str]], int]:
    """Return columns, rows of cells, and the first row that is a prediction."""
    columns = ["ranks", scaling.per, f"{scaling.unit}/s", "speed-up", "efficiency", "spread", "hosts", "AI"]
    rate, intensity = fields["achieved_flops"], fields["intensity"]
    rows = [
        [
            str(point.ranks),
            seconds(point.time),
            rate.text(point.throughput),
            f"{point.speed_up:.2f}",
            percent(point.efficiency),
            "n/a" if point.spread is None else percent(point.spread),
            "n/a" if point.hosts is None else str(point.hosts),
            "n/a" if point.intensity is None else intensity.text(point.intensity),
        ]
        for point in scaling.points
    ]
    rows += [
        [
            f"{of.ranks} predicted",
            "n/a" if of.time is None else seconds(of.time),
            rate.text(of.speed_up * scaling.points[0].throughput),
            f"{of.speed_up:.2f}{between(of.speed_up_low, of.speed_up_high)}",
            f"{percent(of.efficiency)}{between(of.efficiency_low, of.efficiency_high, percents=True)}",
            "",
            "",
            "",
        ]
        for of in scaling.predictions
    ]
    return columns, rows, len(scaling.points)


def loss_table(scaling: Scaling) -> tuple[list[str], list[list[str]], int]:
    """Return the same of the loss, in rank-seconds and as a share of all ranks' time: its parts, and the whole."""
    points = scaling.points[1:]
    rows = [[part, *(_lost(point.parts[part], point) for point in points)] for part in scaling.points[0].parts]
    whole = ["loss", *(_lost(point.loss, point) for point in points)]
    return ["part of the loss", *(f"{point.ranks} ranks" for point in points)], [*rows, whole], len(rows)


def explained(scaling: Scaling) -> list[tuple[str, str]]:
    """Return explanations of the tables, and conclusions from them: pairs of label and text."""
    parts = scaling.points[0].parts
    meanings = "; ".join(f"{part}: {MEANINGS[part]}" for part in parts)
    first = scaling.points[0].ranks
    ranks = "1 rank needs" if first == 1 else f"{first} ranks need"
    loss = (
        f"ranks x {scaling.per}, beyond what {ranks} for the same work, in rank-seconds (and its share of the time of "
        "all ranks, 100% - efficiency). Its parts add up; a negative one is a gain"
    )
    pairs = [
        ("largest", _largest(scaling)),
        *_compute(scaling),
        ("loss", loss),
        ("parts", meanings),
        ("law", law_words(scaling)),
    ]
    return [*pairs, ("predicted", predicted_words(scaling))]


def _largest(scaling: Scaling) -> str:
    last = scaling.points[-1]
    part, amount = max(last.parts.items(), key=lambda item: item[1])
    share = amount / (last.ranks * last.time)
    if share < _SMALL:
        return f"no part of the loss is above {percent(_SMALL)} of the time of {last.ranks} ranks"
    return f"of {last.ranks} ranks {part} takes {percent(share)} of their time"


def _compute(scaling: Scaling) -> list[tuple[str, str]]:
    """Return the causes of slower ops: intensities, and the ranks that share a host."""
    first, last = scaling.points[0], scaling.points[-1]
    said = []
    if first.intensity is not None and last.intensity is not None:
        texts = [fields["intensity"].text(point.intensity or 0.0) for point in (first, last)]
        said.append(f"AI, the FLOPs per byte of ops that are no collectives: {texts[0]} -> {texts[1]}")
    if last.hosts and last.hosts < last.ranks:
        hosts = "one host" if last.hosts == 1 else f"{last.hosts} hosts"
        said.append(f"{last.ranks} ranks share the cores, caches and memory bandwidth of {hosts}")
    return [("compute", "; ".join(said))] if said else []


def law_words(scaling: Scaling) -> str:
    """Return the name of the curve, its parameters, and the number of points that they come from."""
    law = scaling.law
    known = f"sigma = {law.sigma:.3g}, kappa = {law.kappa if law.kappa > _KAPPA else 0:.3g}"
    text = (
        "Universal Scalability Law (Gunther): X(N) = X(1) N / (1 + sigma (N - 1) + kappa N (N - 1)), sigma contention, "
        f"kappa coherency, by least squares: {known}"
    )
    if law.kappa <= _KAPPA:
        text += " (with kappa = 0 it is Amdahl's law)"
    if law.sigma <= _KAPPA and law.kappa <= _KAPPA:
        text += "; no loss grows with the ranks"
    if law.kappa > _KAPPA and law.peak is not None:
        first = scaling.points[0].ranks
        text += f"; throughput falls {f'beyond {law.peak:.3g} ranks' if law.peak > first else 'with each further rank'}"
    if law.points == 2:
        text += (
            ". Two numbers of ranks cannot tell sigma from kappa: the loss is taken for sigma, and the interval "
            "reaches down to where all of it is kappa"
        )
    return text


def predicted_words(scaling: Scaling) -> str:
    """Return the assumptions of a prediction, and the sources of its interval."""
    text = (
        "no measurement: the curve continued, as if hosts, network and the split of the work stayed alike; what begins "
        "beyond the measured ranks, such as a second host, is not in it"
    )
    level = f"The {LEVEL:.0%} interval comes"
    reasons = {
        "residuals": f". {level} from the distances of the points from the curve and the spread of steps",
        "spread of steps": f". {level} from the spread of steps; it knows nothing of what differs from run to run",
        "forms of the law": f". {level} from the two forms of the law alone, as the spread of times is not known",
        None: ". Its interval is n/a: the spread of times is unknown, and points are not more than coefficients",
    }
    return text + reasons[scaling.uncertainty]


# ---- cells


def seconds(value: float) -> str:
    """Return seconds with their sign."""
    return ("-" if value < 0 else "") + fields.of("row")["time"].text(abs(value))


def percent(share: float) -> str:
    """Return a share of 1 as a percentage."""
    return f"{100 * share:.1f}%"


def between(low: float | None, high: float | None, *, percents: bool = False) -> str:
    """Return the ends of an interval in brackets; nothing where they are not known."""
    if low is None or high is None:
        return ""
    return f" ({100 * low:.1f}-{100 * high:.1f}%)" if percents else f" ({low:.2f}-{high:.2f})"


def _lost(amount: float, point: ScalingPoint) -> str:
    share = amount / (point.ranks * point.time)
    return "0" if abs(share) < _NOTHING else f"{seconds(amount)} ({percent(share)})"
