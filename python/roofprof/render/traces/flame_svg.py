"""A flame graph as one SVG file without scripts, the root on top, coloured by the share of the roof."""

from __future__ import annotations

import colorsys
import re
from collections.abc import Iterator
from xml.sax.saxutils import escape

from roofprof._report import printable
from roofprof.render.traces.time_tree import OP, Node

LINE = 20  # pixels of a level
HEAD = 68  # above the first one
LEAST = 0.02  # percent of the width: narrower boxes are left out
USUAL_WIDTH = 1000  # pixels: labels are cut for a picture of this width
CHARACTER = 6.6  # pixels
_SCALE = (0, 25, 50, 75, 100)  # percent of the roof, as the legend shows them

_STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #1a1a1a }
text.head { font-weight: 600 }
rect.all { fill: #ffffff }
svg.box rect { stroke: #ffffff; stroke-width: 1 }
svg.box:hover rect { stroke: #1a1a1a; stroke-width: 2 }
"""


def flame_svg(roots: list[Node], title: str) -> str:
    """Return the file's text. It is as wide as its window: widths are percentages, text and heights are pixels."""
    total = sum(root.time_ns for root in roots)
    boxes = list(_boxes(roots, total))
    height = HEAD + LINE * (1 + max((level for level, *_ in boxes), default=0)) + 8
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="100%" height="{height}" role="img">',
        f"<title>{_text(title)}</title>",
        f"<style>{_STYLE}</style>",
        '<rect class="all" width="100%" height="100%"/>',
        f'<text class="head" x="6" y="17">{_text(title)}</text>',
        f'<text x="6" y="35">{_text(_duration(total))} by module and op; what is below a box is inside of it</text>',
        *_legend(),
    ]
    parts += [_box(*box, total) for box in boxes]
    return "\n".join([*parts, "</svg>\n"])


def _legend() -> Iterator[str]:
    """Yield what says which colour means what."""
    yield '<text x="6" y="57">% of the roof</text>'
    shares = [(_color(share), f"{share}") for share in _SCALE] + [(_color(None), "not known")]
    for place, (color, words) in enumerate(shares):
        x = 90 + 44 * place
        yield f'<rect x="{x}" y="46" width="{40 if words.isdigit() else 72}" height="15" fill="{color}"/>'
        yield f'<text x="{x + 4}" y="57">{words}</text>'


def _boxes(roots: list[Node], total_ns: int) -> Iterator[tuple[int, float, float, Node]]:
    """Level, left edge and width in percent, and module."""
    waiting = [(0, 0, roots)]
    while waiting:
        level, begin_ns, nodes = waiting.pop()
        for node in nodes:
            width = 100 * node.time_ns / total_ns
            if width >= LEAST:
                yield level, 100 * begin_ns / total_ns, width, node
                waiting.append((level + 1, begin_ns, node.children))
            begin_ns += node.time_ns


def _box(level: int, left: float, width: float, node: Node, total_ns: int) -> str:
    of_all = f"{100 * node.time_ns / total_ns:.1f}%"
    own = f", {_duration(node.own_ns)} of its own" if node.children else ""
    roof = "" if node.percent_of_roof is None else f", {node.percent_of_roof:.2g}% of the roof"
    tooltip = f"<title>{_text(f'{_named(node)}: {_duration(node.time_ns)}, {of_all}{own}{roof}')}</title>"
    room = int((width / 100 * USUAL_WIDTH - 8) / CHARACTER)
    whole = f"{node.name} {of_all}"
    words = whole if len(whole) <= room else cut(node.name, room)
    label = f'<text x="4" y="14">{_text(words)}</text>' if words else ""
    place = f'x="{left:.4f}%" y="{HEAD + level * LINE}" width="{width:.4f}%" height="{LINE}"'
    fill = f'<rect width="100%" height="{LINE}" fill="{_color(node.percent_of_roof)}"/>'
    return f'<svg class="box" {place}>{tooltip}{fill}{label}</svg>'


def _named(node: Node) -> str:
    if node.type == OP:
        return f"{node.name} in {node.path or 'the model'}"
    return f"{node.path or node.name} ({node.type})" if node.type else node.path or node.name


def cut(name: str, room: int) -> str:
    """Return a name that fits into so many characters, cut where a word in it ends; "" where not one word fits."""
    if len(name) <= room:
        return name
    ends = [match.end() for match in re.finditer(r"[^\W_]+", name) if match.end() < room]
    return f"{name[: ends[-1]]}\N{HORIZONTAL ELLIPSIS}" if ends else ""


def _color(percent_of_roof: float | None) -> str:
    """Return orange for nothing of the roof, blue for all of it, grey for unknown; dark text can be read on each."""
    if percent_of_roof is None:
        return "#dddddd"
    share = min(max(percent_of_roof / 100, 0), 1)
    red, green, blue = colorsys.hls_to_rgb((20 + 190 * share) / 360, 0.76, 0.75)
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"


def _text(text: str) -> str:
    """Return a text for an XML document, which cannot have some characters, not even escaped: they are replaced."""
    return escape(re.sub(r"[\ufffe\uffff]", "\ufffd", printable(text)))


def _duration(ns: int) -> str:
    for unit, size in (("s", 10**9), ("ms", 10**6), ("µs", 10**3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}" if ns < 100 * size else f"{ns / size:.0f} {unit}"
    return f"{ns} ns"
