"""torchstat's table as text, laid out as pandas printed it."""

from __future__ import annotations

from collections.abc import Sequence

from roofprof.compat._torchstat_rows import StatRow, header_names


def report_format(rows: Sequence[StatRow], without_rule: Sequence[str] = ()) -> str:
    """Return the rows, their total, and the totals in words. ``without_rule``: types of layers that count nothing."""
    total = {name: sum(getattr(row, name) for row in rows) for name in ("params", "memory_mib", "madd", "flops")}
    read, written = sum(row.read_bytes for row in rows), sum(row.write_bytes for row in rows)
    durations = [row.duration for row in rows if row.duration is not None]
    cells = [["", *header_names()]]
    for number, row in enumerate(rows):
        figures = _figures(row.params, row.memory_mib, row.madd, row.flops, row.read_bytes, row.write_bytes)
        shapes = [_shape(row.input_shape), _shape(row.output_shape)]
        cells.append([str(number), row.name, *shapes, *figures, _percent(row.duration), str(row.bytes)])
    figures = _figures(total["params"], total["memory_mib"], total["madd"], total["flops"], read, written)
    share = _percent(sum(durations) if durations else None)
    cells.append(["total", "", "", "", *figures, share, str(read + written)])
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    lines = [_line(line, widths) for line in cells]
    text = "\n".join([*lines, "=" * len(lines[0]), f"Total params: {total['params']:,}", "-" * len(lines[0])])
    text += f"\nTotal memory: {total['memory_mib']:.2f}MB\nTotal MAdd: {_rounded(total['madd'])}MAdd\n"
    text += f"Total Flops: {_rounded(total['flops'])}Flops\nTotal MemR+W: {_rounded(read + written, 1024)}B\n"
    if without_rule:
        text += f"Counted as 0, as torchstat has no rule for them: {', '.join(without_rule)}\n"
    return text


def _figures(params: int, memory_mib: float, madd: int, flops: int, read: int, written: int) -> list[str]:
    return [str(params), f"{memory_mib:.2f}", f"{madd:,}", f"{flops:,}", str(read), str(written)]


def _shape(shape: Sequence[int]) -> str:
    return " ".join(f"{size:>3d}" for size in shape)


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{share:.2%}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    index, *others = cells
    return "  ".join(
        [index.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
    )


def _rounded(value: float, thousand: int = 1000) -> str:
    for power, letter in ((4, "T"), (3, "G"), (2, "M"), (1, "K")):
        if value >= thousand**power:
            return f"{round(value / thousand**power, 2)}{letter}"
    return str(value)
