"""A figure with logarithmic axes, a title above, a legend and remarks below, and labels that find a place."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from typing import TypeAlias

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, Formatter, FuncFormatter, LogLocator, NullFormatter
from matplotlib.transforms import Bbox

from roofprof.render.plots.labels import Box, Room, along, around, center_of, moved_up
from roofprof.render.printable import printable, printable_lines
from roofprof.render.views.kinds import STYLES

WIDTH, AXES_HEIGHT = 5.8, 3.75  # inches
SMALL, TEXT, TITLE = 7.5, 8.5, 10.5  # points
INK, FAINT, LINES = "#222222", "#6b6b6b", "#4d4d4d"
MARKERS = {"circle": "o", "square": "s", "diamond": "D", "triangle": "^", "cross": "X"}
LONGEST_LABEL = 30
REMARK_WIDTH = 102  # characters
LEGEND_COLUMNS = 5
LINE = 0.145  # inches of a line of small text
PADDING = 1.5  # pixels around a label


Place: TypeAlias = tuple[float, float, float]  # x, y and area in square points of a dot


class Canvas:
    """A figure to draw on. The axes and their limits are drawn first: they decide where labels may go."""

    def __init__(self, title: str, subtitle: str, kinds: Sequence[str], remarks: Sequence[str]) -> None:
        lines = [line for remark in remarks for line in textwrap.wrap(remark, REMARK_WIDTH)]
        legend_rows = -(-len(kinds) // LEGEND_COLUMNS)
        below = 0.5 + LINE * (1.25 * legend_rows + len(lines) + 0.8)
        height = 0.5 + AXES_HEIGHT + below
        self.figure = Figure(figsize=(WIDTH, height), dpi=100, facecolor="white")
        self._canvas = FigureCanvasAgg(self.figure)
        self._renderer = self._canvas.get_renderer()  # type: ignore[no-untyped-call]
        self.axes: Axes = self.figure.add_axes((0.66 / WIDTH, below / height, 1 - 0.78 / WIDTH, AXES_HEIGHT / height))
        self._room: Room | None = None

        for text, size, color, up in ((title, TITLE, INK, 0.2), (subtitle, SMALL, FAINT, 0.4)):
            self._write(text, 0.12 / WIDTH, 1 - up / height, size, color)
        top = below - 0.5
        if kinds:
            self.figure.legend(
                handles=[_legend_entry(kind) for kind in kinds],
                loc="upper left",
                bbox_to_anchor=(0.06 / WIDTH, top / height),
                ncols=LEGEND_COLUMNS,
                fontsize=SMALL,
                frameon=False,
                borderpad=0,
                borderaxespad=0,
                columnspacing=1.2,
                handletextpad=0.2,
                labelspacing=0.35,
                labelcolor=INK,
            )
        if lines:
            down = top - LINE * (1.25 * legend_rows + 0.5)
            self._write("\n".join(lines), 0.12 / WIDTH, down / height, SMALL, FAINT, va="top")

    def _write(self, text: str, x: float, y: float, size: float, color: str, va: str = "center") -> None:
        text = printable_lines(text)
        self.figure.text(x, y, text, fontsize=size, color=color, va=va, linespacing=1.25, parse_math=False)

    def set_axes(
        self, x: tuple[float, float], y: tuple[float, float], names: tuple[str, str], units: tuple[Formatter, Formatter]
    ) -> None:
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
        box: Bbox = axes.get_window_extent(self._renderer)
        self._room = Room(box.x0 + 2, box.y0 + 2, box.x1 - 2, box.y1 - 2)

    @property
    def room(self) -> Room:
        """The room inside the axes that labels may take."""
        assert self._room is not None, "set_axes comes first"
        return self._room

    def pixel(self, x: float, y: float) -> tuple[float, float]:
        """Return the pixel at a point of the axes."""
        at = self.axes.transData.transform((x, y))
        return float(at[0]), float(at[1])

    # ---- dots

    def dots(self, places: Sequence[Place], kind: str, *, filled: bool, faint: bool = False) -> None:
        """Draw dots of one kind, each with its area in square points."""
        color, shape = STYLES[kind]
        xs, ys, areas = zip(*places, strict=True)
        self.axes.scatter(
            xs,
            ys,
            s=areas,
            marker=MARKERS[shape],
            facecolors=color if filled else "none",
            edgecolors=color,
            linewidths=0.6 if faint else 1.2,
            alpha=0.4 if faint else 0.85,
            zorder=3,
        )
        self.room.dots += [(*self.pixel(x, y), self._radius(area)) for x, y, area in places]

    def _radius(self, area: float) -> float:
        points: float = (area / math.pi) ** 0.5
        return points * self.figure.dpi / 72

    # ---- labels

    def label_dot(self, text: str, x: float, y: float, area: float) -> None:
        """Draw a label next to a dot, and a line to it where it had to go further."""
        width, height = self._size(text, TEXT)
        anchor = self.pixel(x, y)
        places = list(around(anchor, self._radius(area), width, height))
        box = self.room.take(places, anchor) or self.room.take(places)  # rather a line across a label than none
        if box is None:
            return
        at = center_of(box)
        to_points = 72 / self.figure.dpi
        self.axes.annotate(
            text,
            (x, y),
            ((at[0] - anchor[0]) * to_points, (at[1] - anchor[1]) * to_points),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=TEXT,
            color=INK,
            zorder=6,
            parse_math=False,
            arrowprops={
                "arrowstyle": "-",
                "color": FAINT,
                "linewidth": 0.6,
                "shrinkA": 0,
                "shrinkB": (area / math.pi) ** 0.5,
                "relpos": (0.5, 0.5),
            },
            bbox={"boxstyle": "square,pad=0.08", "facecolor": "white", "edgecolor": "none", "alpha": 0.75},
        )

    def label_line(self, text: str, start: tuple[float, float], end: tuple[float, float], *, from_end: bool) -> None:
        """Draw a label on a line, from one of its ends on; it interrupts the line."""
        width, height = self._size(text, SMALL)
        ends = self.pixel(*start), self.pixel(*end)
        places = list(along(*ends, width, height))
        beside = [moved_up(box, up) for up in (-1.2 * height, 1.2 * height, -2.4 * height) for box in places]
        box = self.room.take(places[::-1] if from_end else places) or self.room.take(beside)
        if box is None:
            return
        at = center_of(box)
        (x0, y0), (x1, y1) = box[0], box[1]
        self.text_at(at, text, SMALL, LINES, rotation=math.degrees(math.atan2(y1 - y0, x1 - x0)))

    def label_point(self, text: str, boxes: Callable[[float, float], Sequence[Box]]) -> None:
        """Draw a label at the first free one of the places that are offered for its size."""
        box = self.room.take(boxes(*self._size(text, SMALL)))
        if box is not None:
            self.text_at(center_of(box), text, SMALL, LINES)

    def text_at(self, pixel: tuple[float, float], text: str, size: float, color: str, rotation: float = 0) -> None:
        """Centred there, whatever is below."""
        x, y = self.axes.transAxes.inverted().transform(pixel)
        self.axes.text(
            x,
            y,
            printable(text),
            transform=self.axes.transAxes,
            ha="center",
            va="center_baseline" if rotation else "center",
            rotation=rotation,
            rotation_mode="anchor",
            fontsize=size,
            color=color,
            zorder=5,
            parse_math=False,
            bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.9},
        )

    def _size(self, text: str, size: float) -> tuple[float, float]:
        measured = self.figure.text(0, 0, printable(text), fontsize=size, parse_math=False)
        box = measured.get_window_extent(self._renderer)
        measured.remove()
        return box.width + 2 * PADDING, box.height + 2 * PADDING


def _legend_entry(kind: str) -> Line2D:
    color, shape = STYLES[kind]
    return Line2D([], [], linestyle="none", marker=MARKERS[shape], color=color, markersize=5, label=kind)


def shortened(text: str, longest: int = LONGEST_LABEL) -> str:
    """Return the end of a name, which says most of it ("...layer4.2.conv3"), on one line, and printable."""
    text = printable(text)
    return text if len(text) <= longest else "…" + text[-(longest - 1) :]


def rates() -> Formatter:
    """Return the formatter of rates: 1G, 100G, 1T."""
    return EngFormatter(sep="")


def plain_numbers() -> Formatter:
    """Return the formatter of plain numbers: 0.1, 1, 10, 1000."""
    return FuncFormatter(lambda value, _: f"{value:.6g}")


def durations() -> Formatter:
    """Return the formatter of times: 1us, 10ms."""
    return EngFormatter(unit="s", sep="")


def area_of(time: float, longest: float) -> float:
    """Return the area of a dot in square points: in proportion to its time, and never too small to be seen."""
    return max(320 * time / longest if longest > 0 else 0, 9)


_LEAST = 1e-100  # of an axis; no figure of a machine is near it


def limits(values: Sequence[float], below: float, above: float) -> tuple[float, float]:
    """Return limits around all values, wide enough for two labelled ticks."""
    low, high = min(values) / below, max(values) * above
    if low < _LEAST or high > 1 / _LEAST:
        raise ValueError(f"values from {min(values):.3g} to {max(values):.3g} are beyond what an axis can show")
    if high / low < 100:
        middle = (low * high) ** 0.5
        low, high = middle / 10, middle * 10
    return low, high
