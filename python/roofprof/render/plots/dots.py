"""The dots of all pictures of reports: their size by time, names, arrows from before to after, and the text around."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from roofprof.figures import fields
from roofprof.render.plots.canvas import TEXT, Canvas, area_of, shortened
from roofprof.render.views.kinds import STYLES
from roofprof.render.views.roofline import Dot, RooflineView

if TYPE_CHECKING:
    from roofprof.render.views.reads import ViewedReport

Place: TypeAlias = Callable[[Dot], tuple[float, float]]

LABELLED = 5
NEAR = 4  # pixels: what moved less has no arrow


def kinds_in(view: RooflineView) -> list[str]:
    """Return the kinds of the dots, in the order of the palette."""
    present = {dot.kind for dot in view.dots}
    return [kind for kind in STYLES if kind in present]


def moved(view: RooflineView, before: RooflineView | None) -> list[tuple[Dot, Dot]]:
    """Return the dots that both have, as they were and as they are."""
    earlier = {dot.key: dot for dot in before.dots} if before else {}
    return [(earlier[dot.key], dot) for dot in view.dots if dot.key in earlier]


def draw_dots(canvas: Canvas, view: RooflineView, before: RooflineView | None, place: Place) -> None:
    """Draw the dots, the largest first, so that small ones lie on them; where there is none, the reasons."""
    if not view.dots:
        canvas.axes.text(
            0.5, 0.3, nothing_drawn(view), transform=canvas.axes.transAxes, ha="center", fontsize=TEXT, parse_math=False
        )
    pairs = moved(view, before)
    longest = max((dot.time for dot in (*view.dots, *(was for was, _ in pairs))), default=0)
    for faint, dots in ((True, [was for was, _ in pairs]), (False, view.dots)):
        alike: dict[tuple[str, bool], list[tuple[float, float, float]]] = {}
        for dot in sorted(dots, key=lambda dot: -dot.time):
            alike.setdefault((dot.kind, dot.measured), []).append((*place(dot), area_of(dot.time, longest)))
        for (kind, measured), places in alike.items():
            canvas.dots(places, kind, filled=measured, faint=faint)
    for was, dot in pairs:
        if math.dist(canvas.pixel(*place(was)), canvas.pixel(*place(dot))) > NEAR:
            arrow = {"arrowstyle": "-|>", "color": STYLES[dot.kind][0], "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0}
            canvas.axes.annotate("", place(dot), place(was), arrowprops=arrow | {"mutation_scale": 7}, zorder=4)


def label_worst(canvas: Canvas, view: RooflineView, place: Place) -> None:
    """Draw the names of dots that waste most, with their waste; where nothing has a roof, of the longest."""
    longest = max((dot.time for dot in view.dots), default=0)
    for dot in view.hotspots[:LABELLED]:
        figure = "time" if dot.wasted_time is None else "wasted_time"
        limit = fields[figure].limit if dot.incomplete else ""
        text = f"{shortened(dot.label)} {limit}{fields[figure].text(getattr(dot, figure))}"
        canvas.label_dot(text, *place(dot), area_of(dot.time, longest))


# ---- the text around the axes

DOTS = {
    "module": "a dot is a module's own ops",
    "op": "a dot is an operator",
    "kernel": "a dot is a kernel in one module",
}
TITLES = {"roofline": "roofline", "time": "time roofline"}


def headings(report: ViewedReport, view: RooflineView, kind: str) -> tuple[str, str]:
    """Return the title, with the model and the kind of the dots, and the subtitle, with the machine and the time."""
    title = f"{shortened(report.model or 'the model', 34)}: {TITLES[kind]}, {DOTS[view.by]}"
    environment = report.environment
    gpu = environment.get("gpu_device")
    machine = str(gpu or environment.get("device") or report.device)
    threads = environment.get("torch_threads")
    parts = [report.device, machine, "" if gpu or not threads else f"{threads} thread{'' if threads == 1 else 's'}"]
    if torch := environment.get("torch"):
        parts.append(f"torch {torch}")
    wall = report.total.wall
    parts.append(f"{fields['time'].text(report.total.time if wall is None else wall)} in all")
    return title, ", ".join(dict.fromkeys(shortened(part, 60) for part in parts if part))


def roofline_remarks(view: RooflineView, before: RooflineView | None) -> list[str]:
    """Return remarks on reading the roofline, and on what it leaves out."""
    said = _of_dots(view)
    if view.ridges:
        said += " Numbers on the roofs: FLOPs per byte where memory stops being the limit."
    if any(len(dot.levels) > 1 for dot in view.dots):
        said += " Lines with ticks: the same work by the bytes of L1, L2 and DRAM."
    return [said, *_of_roofs(view), *_of_change(view, before), *_left_out(view)]


def time_remarks(view: RooflineView, before: RooflineView | None, unplaced: list[Dot]) -> list[str]:
    """Return remarks on reading the time roofline, and on what it leaves out."""
    said = f"{_of_dots(view)} Above the diagonal memory is the limit, below it compute; the lower bound is the larger."
    roofless = [f"Left out: {len(unplaced)} whose roofs are not known."] if unplaced else []
    return [said, *_of_roofs(view), *_of_change(view, before), *roofless, *_left_out(view)]


def _of_dots(view: RooflineView) -> str:
    if not view.dots:
        return ""
    measured = sum(dot.measured for dot in view.dots)
    bytes_from = "from shapes" if not measured else "measured" if measured == len(view.dots) else ""
    said = f"Bytes: {bytes_from}." if bytes_from else "Filled: bytes were measured; open: they follow from shapes."
    wasted = view.hotspots and view.hotspots[0].wasted_time is not None
    labels = "the time that is wasted, of the five worst" if wasted else "time, of the five longest"
    incomplete = " >=, <=: limits, an op without a known cost is in it." if any(d.incomplete for d in view.dots) else ""
    folded = " xN: the sum of N equal modules." if any(dot.members for dot in view.dots) else ""
    return f"Area: time. Labels: {labels}. {said}{folded}{incomplete}"


def _of_roofs(view: RooflineView) -> list[str]:
    if not view.roofs:
        return ["No roofs are known: what the machine could do is not shown."]
    missing = [name for name, there in (("compute", view.compute_roofs), ("memory", view.memory_roofs)) if not there]
    sources = dict.fromkeys(roof.source for roof in view.roofs)
    without = f" No roof is known for {missing[0]}." if missing else ""
    return [f"Roofs: {'; '.join(sources)}.{without}"]


def _of_change(view: RooflineView, before: RooflineView | None) -> list[str]:
    if before is None:
        return []
    now, then = ({dot.key for dot in of.dots} for of in (view, before))
    said = "Faint: before."
    if now - then:
        said += f" {len(now - then)} only after."
    if then - now:
        said += f" {len(then - now)} only before, not drawn."
    if [(roof.name, roof.rate) for roof in view.roofs] != [(roof.name, roof.rate) for roof in before.roofs]:
        said += " The roofs are those of after; before had others."
    return [said]


def _left_out(view: RooflineView) -> list[str]:
    if not view.left_out:
        return []
    time = fields["time"]
    reasons = (f"{left.count} ({time.text(left.time)}) {left.reason}" for left in view.left_out)
    return [f"Left out: {'; '.join(reasons)}."]


def nothing_drawn(view: RooflineView) -> str:
    """Return the text that takes the place of the dots."""
    reasons = [f"{left.count}: {left.reason}" for left in view.left_out] or ["nothing was observed"]
    return "\n".join(["No dot has a place here.", *(line for why in reasons for line in textwrap.wrap(why, 60))])
