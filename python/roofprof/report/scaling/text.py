"""Scaling as text, laid out as the report's tables are."""

from __future__ import annotations

from roofprof import _report
from roofprof.figures import fields
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


def as_text(scaling: Scaling, width: int) -> str:
    """Return all of the scaling; see Scaling.table."""
    labels = _report.labelled_paragraph
    text = labels("roofprof", heading(scaling), width)
    text += "".join(labels("warning", warning, width) for warning in scaling.warnings)
    speed_columns, speed_rows = speed_table(scaling)
    for columns, rows, ruled_from, order in (
        (speed_columns, speed_rows, len(speed_rows), _DROPPED),
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


def speed_table(scaling: Scaling) -> tuple[list[str], list[list[str]]]:
    """Return the columns and the rows of cells."""
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
    return columns, rows


def loss_table(scaling: Scaling) -> tuple[list[str], list[list[str]], int]:
    """Return columns, rows of the loss's parts and of the whole, and the index of the whole.

    Cells have rank-seconds, and the share of the time of all ranks.
    """
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
    return [
        ("largest", _largest(scaling)),
        *_compute(scaling),
        ("loss", loss),
        ("parts", meanings),
    ]


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


# ---- cells


def seconds(value: float) -> str:
    """Return seconds with their sign."""
    return ("-" if value < 0 else "") + fields.of("row")["time"].text(abs(value))


def percent(share: float) -> str:
    """Return a share of 1 as a percentage."""
    return f"{100 * share:.1f}%"


def _lost(amount: float, point: ScalingPoint) -> str:
    share = amount / (point.ranks * point.time)
    return "0" if abs(share) < _NOTHING else f"{seconds(amount)} ({percent(share)})"
