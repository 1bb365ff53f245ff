"""The table that torch's FLOP counter prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LETTERS = ("", "K", "M", "B", "T")
_HEADER = ("Module", "FLOP", "% Total")

Line = tuple[str, str, str]


def table(counts: Mapping[str, Mapping[Any, int]], depth: int | None) -> str:
    """Return a line for each module down to ``depth``, sorted by name, and below it one for each of its operators.

    "Global" has lines only where no module has all of it. All figures have the letter that suits the total.
    """
    total = sum(counts.get("Global", {}).values())
    # Up to four digits before the point: 1001M, not 1.001B.
    scale = max(0, min(len(_LETTERS) - 1, (len(str(total)) - 2) // 3))

    def lines(name: str, indent: int) -> list[Line]:
        return [_line(" " * indent + name, sum(counts[name].values()), total, scale)] + [
            _line(" " * indent + f" - {key}", flops, total, scale) for key, flops in counts[name].items()
        ]

    modules = [name for name in sorted(counts) if name != "Global"]
    shown = [name for name in modules if depth is None or name.count(".") < depth]
    rows = [line for name in shown for line in lines(name, name.count("."))]
    if "Global" in counts and not any(sum(counts[name].values()) >= total for name in shown):
        rows = lines("Global", 0) + [(f" {name}", flops, share) for name, flops, share in rows]
    return _laid_out(rows or [("Global", "0", "0%")])


def _line(name: str, flops: int, total: int, scale: int) -> Line:
    amount = f"{flops / 1000**scale:.3f}{_LETTERS[scale]}" if scale else str(flops)
    return name, amount, f"{flops / total:.2%}" if total else "0%"


def _laid_out(rows: list[Line]) -> str:
    # The layout is tabulate's.
    widths = [max(len(title) + 2, *(len(row[column]) for row in rows)) for column, title in enumerate(_HEADER)]
    rule = "  ".join("-" * width for width in widths)

    def text(row: Line) -> str:
        first, *numbers = row
        return "  ".join([first.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])])

    return "\n".join([text(_HEADER), rule, *map(text, rows)])
