"""The data that scaling takes from the report of one number of ranks: the time of a step, its parts, and its work."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from roofprof import _report
from roofprof.errors import Error
from roofprof.report.report import Report

# These prefixes mark collectives, as in csrc/analysis/ranks/rank_figures.cpp: their bytes are not the model's work.
_COLLECTIVES = ("c10d::", "_c10d_functional::", "_c10d_functional_autograd::", "_dtensor::")
_WRAPPERS = {"DistributedDataParallel", "FullyShardedDataParallel"}


@dataclass(frozen=True)
class Measured:
    """One number of ranks. Times are seconds of one step, or of the whole run where steps were not marked."""

    name: str
    ranks: int
    hosts: int | None  # None: not known
    time: float  # of the slowest rank
    spread: float | None  # (longest - shortest) / median of its steps or runs
    macs: float  # of all ranks
    flops: float
    compute: tuple[float, ...] | None  # of each rank, inside ops other than collectives
    exposed: tuple[float, ...] | None  # of each rank: communication that no compute hides
    waiting: tuple[float, ...] | None  # of each rank: the part of it in which it waits for others
    lower_bound: float | None  # rank-seconds that those ops need by the roofs
    intensity: float | None  # FLOPs per byte of those ops


@dataclass(frozen=True)
class Read:
    """A report, with a line for each rank."""

    name: str
    report: Report
    lines: Sequence[_report.Rank]
    ranks: int  # with the missing ones

    @property
    def has_steps(self) -> bool:
        """Return True when every rank marked its steps."""
        return all(line.steps is not None and line.step is not None for line in self.lines)

    @property
    def model(self) -> str:
        """Return the type of the model that was wrapped to run on several ranks."""
        if self.report.model in _WRAPPERS:
            return next((row.type for row in self.report.rows if row.path == "module"), self.report.model)
        return re.sub("^FSDP(?=[A-Z])", "", self.report.model)  # as fully_shard names what it shards


def read(report: Report | str | Path, position: int) -> Read:
    """Read a merged report, or that of a program of one process. Raises ValueError or OSError for any other."""
    name = f"report {position}" if isinstance(report, Report) else str(report)
    given = report if isinstance(report, Report) else Report.from_json(report)
    lines = given.ranks
    if not lines:
        world_size = given.environment.get("world_size", 1)
        if isinstance(world_size, int) and world_size > 1:
            raise Error(
                f"{name} is of one rank of {world_size}: merge the reports of all ranks first (roofprof docs ranks)"
            )
        merger = _report.RankMerger()
        merger.add(given._compiled, name, 0)
        lines = merger.finish().ranks
    if any(line.wall is None for line in lines):
        raise Error(f"{name} has no times, as it is a count: profile steps on every rank (roofprof docs ranks)")
    return Read(name, given, lines, len(lines) + len(given.missing_ranks))


def measured(of: Read, *, per_step: bool) -> Measured:
    """Return the figures of a report; those of missing ranks are taken to be the mean of the others."""
    lines, report = of.lines, of.report
    steps = [(line.steps if per_step else None) or 1 for line in lines]
    walls = [float(line.wall or 0) for line in lines]
    times = [float(line.step or 0) if per_step else wall for line, wall in zip(lines, walls, strict=True)]
    slowest = max(range(len(lines)), key=times.__getitem__)
    if not times[slowest] > 0:
        raise Error(f"{of.name} has steps that took no time: there is nothing to compare")
    spread = _spread(of, slowest, per_step=per_step)
    every = of.ranks / len(lines)

    def seconds(name: str) -> tuple[float, ...] | None:
        # Sums over the block come in its steps' median time by their share of the block's.
        values = [getattr(line, name, None) for line in lines]
        known = [value for value in values if value is not None]
        if len(known) < len(lines):
            return None
        return tuple(
            value * time / wall if wall else 0.0 for value, time, wall in zip(known, times, walls, strict=True)
        )

    ops = [group for op, group in report.by_operator().items() if not op.startswith(_COLLECTIVES)]
    bounds = [group.lower_bound_time for group in ops if group.lower_bound_time is not None]
    moved = sum(group.bytes for group in ops)
    alone = of.ranks == 1
    nothing = (0.0,) * len(lines) if alone else None  # a rank alone waits for nobody
    return Measured(
        name=of.name,
        ranks=of.ranks,
        hosts=len({line.host for line in lines}) if all(line.host for line in lines) else 1 if alone else None,
        time=times[slowest],
        spread=spread,
        macs=every * sum(line.macs / n for line, n in zip(lines, steps, strict=True)),
        flops=every * sum(line.flops / n for line, n in zip(lines, steps, strict=True)),
        compute=seconds("compute"),
        exposed=seconds("exposed") or nothing,
        waiting=seconds("waiting") or nothing,
        lower_bound=every * sum(bounds) / steps[slowest] if bounds and len(bounds) == len(ops) else None,
        intensity=sum(group.flops for group in ops) / moved if moved else None,
    )


def _spread(of: Read, slowest: int, *, per_step: bool) -> float | None:
    """Return (longest - shortest) / median of the times whose median is taken; None where there are less than two."""
    if per_step:
        return of.lines[slowest].step_spread
    runs = of.report.run_times if len(of.lines) == 1 else []
    return (max(runs) - min(runs)) / median(runs) if len(runs) > 1 else None


def roofs_of_compute(of: Read) -> dict[str, Any]:
    """Return the roofs for all ops but collectives: the network's roof differs for each number of ranks."""
    roofs = of.report.ceilings.to_dict()
    return {key: value for key, value in roofs.items() if key not in {"device", "network"}}


def what_differs(reads: Iterable[Read]) -> list[str]:
    """Return a sentence for each thing besides the ranks that is not the same."""
    sentences = []
    kinds: dict[str, Any] = {
        "torch": lambda of: of.report.environment.get("torch"),
        "the machine": lambda of: of.report.environment.get("gpu_device") or of.report.environment.get("device"),
        "the kind of device": lambda of: of.report.device.partition(":")[0],
        "the number of threads of a rank": lambda of: of.report.environment.get("torch_threads"),
    }
    reads = list(reads)
    for what, value_of in kinds.items():
        values = {of.name: value_of(of) for of in reads}
        if len(set(values.values())) > 1:
            listed = ", ".join(f"{value} in {name}" for name, value in values.items())
            sentences.append(f"{what} is not the same: {listed}")
    for of in reads:
        if of.report.missing_ranks:
            missing = ", ".join(map(str, of.report.missing_ranks))
            sentences.append(f"{of.name} lacks ranks {missing} of {of.ranks}: they count as the mean of the others")
        elif of.report.partial:
            sentences.append(f"{of.name} is partial: an exception ended it, and it has what ran before")
    return sentences
