"""A flame graph as one SVG file, the root on top. Without scripts: names are cut by their boxes, tooltips have all."""

from __future__ import annotations

import colorsys
import re
import zlib
from collections.abc import Iterator
from xml.sax.saxutils import escape

from roofprof._traces.time_tree import Node

LINE = 20  # pixels of a level
HEAD = 46  # above the first one
LEAST = 0.02  # percent of the width: narrower boxes are left out
LEAST_WITH_TEXT = 1.2
LEAST_WITH_SHARE = 18  # where a share has room in 400 pixels: cut, it would be another number

_STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #1a1a1a }
text.head { font-weight: 600 }
rect.all { fill: #ffffff }
svg.box rect { stroke: #ffffff; stroke-width: 1 }
svg.box:hover rect { stroke: #1a1a1a; stroke-width: 2 }
"""


def flame_svg(roots: list[Node], title: str) -> str:
    """The file's text. It is as wide as what shows it: widths are percentages, text and heights are pixels."""
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
        f'<text x="6" y="35">{_text(_duration(total))} by module; what is below a box is inside of it</text>',
    ]
    parts += [_box(*box, total) for box in boxes]
    return "\n".join([*parts, "</svg>\n"])


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
    name = f"{node.path or node.name} ({node.type})" if node.type else node.path or node.name
    tooltip = f"<title>{_text(f'{name}: {_duration(node.time_ns)}, {of_all}{own}')}</title>"
    words = f"{node.name} {of_all}" if width >= LEAST_WITH_SHARE else node.name
    label = f'<text x="4" y="14">{_text(words)}</text>' if width >= LEAST_WITH_TEXT else ""
    place = f'x="{left:.4f}%" y="{HEAD + level * LINE}" width="{width:.4f}%" height="{LINE}"'
    fill = f'<rect width="100%" height="{LINE}" fill="{_color(node.type)}"/>'
    return f'<svg class="box" {place}>{tooltip}{fill}{label}</svg>'


def _color(kind: str) -> str:
    """Light enough for dark text; one for each type of module."""
    hue = zlib.crc32(kind.encode("utf-8", "replace")) % 360 / 360
    red, green, blue = colorsys.hls_to_rgb(hue, 0.78, 0.62)
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"


def _text(text: str) -> str:
    """As text of an XML document, which has no place for some characters, however they are written."""
    return escape(re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text))


def _duration(ns: int) -> str:
    for unit, size in (("s", 10**9), ("ms", 10**6), ("µs", 10**3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}" if ns < 100 * size else f"{ns / size:.0f} {unit}"
    return f"{ns} ns"
