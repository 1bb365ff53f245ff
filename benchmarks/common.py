"""Shared by the benchmarks: the line about the machine, plain-text tables, medians of paired ratios."""

from __future__ import annotations

import os
import platform
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


def environment() -> str:
    """The machine, torch and how busy the machine was: figures without them mean little."""
    about = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.split(":")[1].strip() for line in about if "model name" in line), platform.machine())
    threads = torch.get_num_threads()
    return (
        f"{time.strftime('%Y-%m-%d')}, {cpu}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, "
        f"torch {torch.__version__}, {threads} thread{'s' if threads > 1 else ''}, Python {platform.python_version()}"
    )


def seconds(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds that one call takes."""
    start = clock()
    call()
    return clock() - start


def autocast(model: torch.nn.Module, given: torch.Tensor) -> object:
    """Return what the model makes of the input where products are computed in bf16."""
    with torch.autocast("cpu", torch.bfloat16):
        return model(given)


def paired_ratio(times: Sequence[float], plain: Sequence[float]) -> float:
    """The median of the ratios within each round: what slows the machine for a while slows both sides of a pair."""
    return statistics.median(a / b for a, b in zip(times, plain, strict=True))


def rss_megabytes() -> float:
    """The memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """The first column to the left, figures to the right."""
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        first, *rest = (cell.ljust(widths[0]) if i == 0 else cell.rjust(widths[i]) for i, cell in enumerate(line))
        print("  ".join([first, *rest]).rstrip())
