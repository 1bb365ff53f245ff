"""The two pictures of a report: the roofline, and the time of each dot's bytes against that of its FLOPs.

No label looks for room: the worst dots have numbers, which lines below the axes explain, names stand at the ends of
roofs, and labels that would lie on each other are one.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import EngFormatter, Formatter, FuncFormatter, LogLocator, NullFormatter

from roofprof import _report
from roofprof._report import printable, printable_lines
from roofprof.errors import Error
from roofprof.figures import fields
from roofprof.render.views.kinds import STYLES
from roofprof.render.views.roofline import Dot, Roof, RooflineView

Point: TypeAlias = tuple[float, float]
Place: TypeAlias = Callable[[Dot], Point]

WIDTH, AXES_HEIGHT = 5.8, 3.75  # inches
SMALL, TEXT, TITLE = 7.5, 8.5, 10.5  # points
INK, FAINT, LINES = "#222222", "#6b6b6b", "#4d4d4d"
MARKERS = {"circle": "o", "square": "s", "diamond": "D", "triangle": "^", "cross": "X"}
LONGEST_NAME = 80  # characters of a line below the axes
REMARK_WIDTH = 102  # characters
LEGEND_COLUMNS = 5
LINE = 0.145  # inches of a line of small text
DPI = 100
LETTER, HEIGHT = 0.62 * SMALL * DPI / 72, 1.35 * SMALL * DPI / 72  # pixels of small text
NEAR = 4  # pixels: what moved less has no arrow
_HALO = [withStroke(linewidth=2, foreground="white")]


class _Picture:
    """A figure with logarithmic axes, a title above, and a legend, the names of the worst dots and remarks below."""

    def __init__(self, head: tuple[str, str], view: RooflineView, remarks: Sequence[str]) -> None:
        worst = [f"{n}  {shortened(dot.label, LONGEST_NAME)} {text}" for n, (dot, text) in enumerate(view.worst, 1)]
        lines = [line for remark in remarks for line in textwrap.wrap(remark, REMARK_WIDTH)]
        legend = LINE * 1.25 * -(-len(view.kinds) // LEGEND_COLUMNS) + 0.5 * LINE
        key = LINE * (len(worst) + 0.5 * bool(worst))
        below = 0.5 + legend + key + LINE * (len(lines) + 0.3)
        height = 0.5 + AXES_HEIGHT + below
        self.figure = Figure(figsize=(WIDTH, height), dpi=DPI, facecolor="white")
        FigureCanvasAgg(self.figure)
        self.axes = self.figure.add_axes((0.66 / WIDTH, below / height, 1 - 0.78 / WIDTH, AXES_HEIGHT / height))
        top = below - 0.5
        for text, size, color, up, align in (
            (head[0], TITLE, INK, height - 0.2, "center"),
            (head[1], SMALL, FAINT, height - 0.4, "center"),
            ("\n".join(worst), SMALL, INK, top - legend, "top"),
            ("\n".join(lines), SMALL, FAINT, top - legend - key, "top"),
        ):
            self.figure.text(
                0.12 / WIDTH, up / height, printable_lines(text), fontsize=size, color=color, va=align,
                linespacing=1.25, parse_math=False,
            )  # fmt: skip
        if view.kinds:
            self.figure.legend(
                handles=[_legend_entry(kind) for kind in view.kinds], loc="upper left",
                bbox_to_anchor=(0.06 / WIDTH, top / height), ncols=LEGEND_COLUMNS, fontsize=SMALL, frameon=False,
                borderpad=0, borderaxespad=0, columnspacing=1.2, handletextpad=0.2, labelspacing=0.35, labelcolor=INK,
            )  # fmt: skip

    def set_axes(self, x: Point, y: Point, names: tuple[str, str], units: tuple[Formatter, Formatter]) -> None:
        """Set limits, names and tick labels. Dots and lines come after it."""
        axes = self.axes
        axes.set(xscale="log", yscale="log", xlim=x, ylim=y)
        for axis, name, unit in zip((axes.xaxis, axes.yaxis), names, units, strict=True):
            axis.set_label_text(name, fontsize=TEXT, color=INK)
            axis.set_major_locator(LogLocator(base=10, numticks=8))
            axis.set_major_formatter(unit)
            axis.set_minor_formatter(NullFormatter())
        axes.tick_params(which="both", labelsize=SMALL, color=FAINT, labelcolor=INK, width=0.6)
        axes.grid(visible=True, which="major", color="#e6e6e6", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set(color=FAINT, linewidth=0.6)

    def pixel(self, at: Point) -> Point:
        x, y = self.axes.transData.transform(at)
        return float(x), float(y)

    def line(self, start: Point, end: Point, name: str) -> None:
        self.axes.plot(
            [start[0], end[0]], [start[1], end[1]], color=LINES, linewidth=1.1, zorder=2, label=printable(name)
        )

    def label(self, text: str, at: Point, offset: Point, ha: str, va: str, angle: float = 0) -> None:
        """Write a text at a point of the axes, so many points of type away from it."""
        self.axes.annotate(
            printable(text), at, offset, textcoords="offset points", ha=ha, va=va, rotation=angle,
            rotation_mode="anchor", fontsize=SMALL, color=INK, zorder=6, parse_math=False, path_effects=_HALO,
        )  # fmt: skip

    # ---- dots

    def dots(self, view: RooflineView, before: RooflineView | None, place: Place) -> None:
        """Draw the dots, the largest first, so that small ones lie on them; where there is none, the reasons."""
        if not view.dots:
            self.axes.text(
                0.5, 0.3, _nothing(view), transform=self.axes.transAxes, ha="center", fontsize=TEXT, parse_math=False
            )
        pairs = moved(view, before)
        longest = max((dot.time for dot in (*view.dots, *(was for was, _ in pairs))), default=0)
        for faint, dots in ((True, [was for was, _ in pairs]), (False, view.dots)):
            alike: dict[tuple[str, bool], list[Dot]] = {}
            for dot in sorted(dots, key=lambda dot: -dot.time):
                alike.setdefault((dot.kind, dot.measured), []).append(dot)
            for (kind, measured), same in alike.items():
                color, shape = STYLES[kind]
                xs, ys = zip(*map(place, same), strict=True)
                self.axes.scatter(
                    xs, ys, s=[_area(dot.time, longest) for dot in same], marker=MARKERS[shape], edgecolors=color,
                    facecolors=color if measured else "none", linewidths=0.6 if faint else 1.2,
                    alpha=0.4 if faint else 0.85, zorder=3,
                )  # fmt: skip
        for was, dot in pairs:
            if math.dist(self.pixel(place(was)), self.pixel(place(dot))) > NEAR:
                arrow = {"arrowstyle": "-|>", "color": STYLES[dot.kind][0], "linewidth": 0.9, "shrinkA": 0}
                arrow |= {"shrinkB": 0, "mutation_scale": 7}
                self.axes.annotate("", place(dot), place(was), arrowprops=arrow, zorder=4)
        numbers = [(str(number), place(dot)) for number, (dot, _) in enumerate(view.worst, 1)]
        for text, at in self.apart(numbers):
            radius = (_area(view.worst[int(text.split(",")[0]) - 1][0].time, longest) / math.pi) ** 0.5
            self.label(text, at, (0 if radius > SMALL else radius + SMALL / 2, 0), "center", "center")

    def apart(self, labels: Iterable[tuple[str, Point]], angle: float = 0) -> list[tuple[str, Point]]:
        """Return labels of which none lies on another: those that would are one, at the first one's place."""
        cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        found = list(labels)

        def meet(one: tuple[str, Point], other: tuple[str, Point]) -> bool:
            (x0, y0), (x1, y1) = self.pixel(one[1]), self.pixel(other[1])
            along, across = (x1 - x0) * cos + (y1 - y0) * sin, (y1 - y0) * cos - (x1 - x0) * sin
            return abs(across) < HEIGHT and abs(along) < LETTER * max(len(one[0]), len(other[0]))

        while pair := next((pair for pair in itertools.combinations(found, 2) if meet(*pair)), None):
            found[found.index(pair[0])] = (f"{pair[0][0]}, {pair[1][0]}", pair[0][1])
            found.remove(pair[1])
        return found


def _legend_entry(kind: str) -> Line2D:
    color, shape = STYLES[kind]
    return Line2D([], [], linestyle="none", marker=MARKERS[shape], color=color, markersize=5, label=kind)


def _area(time: float, longest: float) -> float:
    """Return the area of a dot in square points: in proportion to its time, and never too small to be seen."""
    return max(320 * time / longest if longest > 0 else 0, 9)


def moved(view: RooflineView, before: RooflineView | None) -> list[tuple[Dot, Dot]]:
    """Return the dots that both have, as they were and as they are."""
    earlier = {dot.key: dot for dot in before.dots} if before else {}
    return [(earlier[dot.key], dot) for dot in view.dots if dot.key in earlier]


_LEAST = 1e-100  # of an axis; no figure of a machine is near it


def _limits(values: Sequence[float], below: float, above: float) -> Point:
    """Return limits around all values, wide enough for two labelled ticks."""
    low, high = min(values) / below, max(values) * above
    if low < _LEAST or high > 1 / _LEAST:
        raise Error(f"values from {min(values):.3g} to {max(values):.3g} are beyond what an axis can show")
    if high / low < 100:
        middle = (low * high) ** 0.5
        low, high = middle / 10, middle * 10
    return low, high


# ---- the roofline


def draw_roofline(report: _report.Report, view: RooflineView, before: RooflineView | None = None) -> Figure:
    """Return the picture of a view of that report."""
    levels = "Lines with ticks: the same work by the bytes of L1, L2 and DRAM."
    has_levels = any(len(dot.levels) > 1 for dot in view.dots)
    remarks = [f"{_about_dots(view)} {levels if has_levels else ''}", view.about_ridges]
    picture = _Picture(_head(report, view, "roofline"), view, [*remarks, *_about_rest(view, before)])
    x, y = _limits_of_roofline(view, [*view.dots, *(dot for dot, _ in moved(view, before))])
    numbers = FuncFormatter(lambda value, _: f"{value:.6g}")
    picture.set_axes(x, y, ("FLOPs per byte", "FLOP/s"), (numbers, EngFormatter(sep="")))
    _draw_roofs(picture, view, x, y)
    picture.dots(view, before, lambda dot: (dot.intensity, dot.rate))
    for dot in view.dots:
        if len(dot.levels) > 1:
            at, color = [intensity for _, intensity in dot.levels], STYLES[dot.kind][0]
            picture.axes.plot(
                at, [dot.rate] * len(at), "|-", color=color, linewidth=0.8, markersize=5, alpha=0.8, zorder=3
            )
    for ridge in view.ridges:
        picture.axes.plot([ridge.intensity], [ridge.rate], "o", color=LINES, markersize=2.5, zorder=2)
    return picture.figure


def _limits_of_roofline(view: RooflineView, dots: Sequence[Dot]) -> tuple[Point, Point]:
    intensities = [dot.intensity for dot in dots] + [level[1] for dot in view.dots for level in dot.levels]
    intensities += [ridge.intensity for ridge in view.ridges]
    heights = [dot.rate for dot in dots] + [roof.rate for roof in view.compute_roofs]
    if not view.compute_roofs:
        heights += [max(intensities, default=1) * roof.rate for roof in view.memory_roofs]
    return _limits(intensities or [1], below=4, above=6), _limits(heights or [1e9], below=3, above=2.5)


def _draw_roofs(picture: _Picture, view: RooflineView, x: Point, y: Point) -> None:
    """Draw slopes up to the highest roof, and roofs from the steepest slope on, each with its name at its outer end."""
    top = view.compute_roofs[0].rate if view.compute_roofs else y[1]
    slopes: list[tuple[Roof, Point]] = []
    for roof in view.memory_roofs:
        start, end = max(x[0], y[0] / roof.rate), min(top / roof.rate, x[1])
        if start < end:
            slopes.append((roof, (start, start * roof.rate)))
            picture.line((start, start * roof.rate), (end, end * roof.rate), roof.name)
    for roof in view.compute_roofs:
        start = max(roof.rate / view.memory_roofs[0].rate, x[0]) if view.memory_roofs else x[0]
        picture.line((start, roof.rate), (x[1], roof.rate), roof.name)
    for text, at in picture.apart((roof.text, (x[1], roof.rate)) for roof in view.compute_roofs):
        picture.label(text, at, (-2, 1.5), "right", "bottom")
    for _, (x0, y0) in slopes[:1]:
        (left, low), (right, high) = picture.pixel((x0, y0)), picture.pixel((10 * x0, 10 * y0))
        angle = math.degrees(math.atan2(high - low, right - left))
        for text, at in picture.apart(((roof.text, at) for roof, at in slopes), angle):
            picture.label(text, at, (4, 4 * math.tan(math.radians(angle)) + 1), "left", "bottom", angle)


# ---- the time roofline


def draw_time(report: _report.Report, view: RooflineView, before: RooflineView | None = None) -> Figure:
    """Return the picture of a view of that report."""
    placed, earlier = _with_times(view), _with_times(before) if before else None
    unplaced = len(view.dots) - len(placed.dots)
    roofless = [f"Left out: {unplaced} whose roofs are not known."] if unplaced else []
    lower = "Above the diagonal memory is the limit, below it compute; the lower bound is the larger."
    remarks = [f"{_about_dots(placed)} {lower}", *roofless, *_about_rest(placed, earlier)]
    picture = _Picture(_head(report, view, "time roofline"), placed, remarks)
    places = [_times(dot) for dot in (*placed.dots, *(was for was, _ in moved(placed, earlier)))]
    both = _limits([value for place in places for value in place] or [1e-6], below=3, above=3)
    names = "time that the FLOPs need", "time that the bytes need"
    picture.set_axes(both, both, names, (EngFormatter("s", sep=""), EngFormatter("s", sep="")))
    picture.line((both[0], both[0]), (both[1], both[1]), "both alike")
    picture.dots(placed, earlier, _times)
    return picture.figure


def _with_times(view: RooflineView) -> RooflineView:
    return dataclasses.replace(view, dots=tuple(dot for dot in view.dots if dot.compute_time and dot.memory_time))


def _times(dot: Dot) -> Point:
    assert dot.compute_time is not None and dot.memory_time is not None
    return dot.compute_time, dot.memory_time


# ---- the text around the axes

_DOTS = {
    "module": "a dot is a module's own ops",
    "op": "a dot is an operator",
    "kernel": "a dot is a kernel in one module",
}


def _head(report: _report.Report, view: RooflineView, what: str) -> tuple[str, str]:
    """Return the title, with the model and the kind of the dots, and the subtitle, with the machine and the time."""
    environment, wall = report.environment, report.total.wall
    gpu, threads = environment.get("gpu_device"), environment.get("torch_threads")
    torch = environment.get("torch")
    parts = [
        report.device,
        str(gpu or environment.get("device") or report.device),
        "" if gpu or not threads else f"{threads} thread{'' if threads == 1 else 's'}",
        f"torch {torch}" if torch else "",
        f"{fields['time'].text(report.total.time if wall is None else wall)} in all",
    ]
    title = f"{shortened(report.model or 'the model', 34)}: {what}, {_DOTS[view.by]}"
    return title, ", ".join(dict.fromkeys(shortened(part, 60) for part in parts if part))


def shortened(text: str, longest: int) -> str:
    """Return the end of a name, which says most of it ("...layer4.2.conv3"), on one line, and printable."""
    text = printable(text)
    return text if len(text) <= longest else "…" + text[-(longest - 1) :]


def _about_dots(view: RooflineView) -> str:
    if not view.dots:
        return ""
    measured = sum(dot.measured for dot in view.dots)
    bytes_from = "from shapes" if not measured else "measured" if measured == len(view.dots) else ""
    source = f"Bytes: {bytes_from}." if bytes_from else "Filled: bytes were measured; open: they follow from shapes."
    incomplete = " >=, <=: limits, an op without a known cost is in it." if any(d.incomplete for d in view.dots) else ""
    folded = " xN: the sum of N equal modules." if any(len(dot.places) > 1 for dot in view.dots) else ""
    return f"Area: time. {source}{folded}{incomplete}"


def _about_rest(view: RooflineView, before: RooflineView | None) -> list[str]:
    """Return remarks on the roofs, on what changed, and on what is left out."""
    missing = [name for name, there in (("compute", view.compute_roofs), ("memory", view.memory_roofs)) if not there]
    without = f" No roof is known for {missing[0]}." if missing else ""
    roofs = f"Roofs: {'; '.join(dict.fromkeys(roof.source for roof in view.roofs))}.{without}"
    remarks = [roofs if view.roofs else "No roofs are known: what the machine could do is not shown."]
    if before is not None:
        now, then = ({dot.key for dot in of.dots} for of in (view, before))
        change = "Faint: before."
        if now - then:
            change += f" {len(now - then)} only after."
        if then - now:
            change += f" {len(then - now)} only before, not drawn."
        if [(roof.name, roof.rate) for roof in view.roofs] != [(roof.name, roof.rate) for roof in before.roofs]:
            change += " The roofs are those of after; before had others."
        remarks.append(change)
    return remarks + view.about_left_out


def _nothing(view: RooflineView) -> str:
    """Return the text that takes the place of the dots."""
    reasons = view.about_left_out or ["Nothing was observed."]
    return "\n".join(["No dot has a place here.", *(line for why in reasons for line in textwrap.wrap(why, 60))])
