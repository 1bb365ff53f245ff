"""The rows of torchstat's table: layers, or the modules around them, with what was observed of their calls."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import roofprof
from roofprof.compat._call import evaluating, named_places, path_in_report, unfused
from roofprof.compat._torchstat_convention import LayerWork, Rule, rule_of

_MIB = 1024**2


@dataclass(frozen=True)
class StatRow:
    """One row. Shapes are without the batch; bytes are bytes; duration is the share of all rows' time, 0 to 1, or None
    where nothing was timed.
    """

    name: str
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    params: int
    memory_mib: float
    madd: int
    flops: int
    read_bytes: int
    write_bytes: int
    duration: float | None

    @property
    def bytes(self) -> int:
        """Read and written."""
        return self.read_bytes + self.write_bytes


class Layers:
    """Profiles one call of the model, and gives rows of it."""

    def __init__(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._first = next((x for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor)), None)
        # Roofs are not asked for, so none are measured.
        profiler = roofprof.RooflineProfiler(model, warmup=1, repeat=3, counters="off", ceilings=roofprof.Ceilings())
        with evaluating(model), unfused(), torch.no_grad():
            report = profiler.run(*args, **kwargs)
        self._rows = {row.path: row for row in report.rows}
        # A module that torch.compile wraps takes the place of its wrapper, which stands above it.
        places = {path_in_report(path): module for path, module in named_places(model)}
        self._modules = {path: module for path, module in places.items() if path in self._rows}
        self._subtrees: defaultdict[str, list[str]] = defaultdict(list)
        for path in self._modules:
            for above in {"", *itertools.accumulate(path.split("."), "{}.{}".format)}:
                self._subtrees[above].append(path)
        self._groups: defaultdict[str, list[roofprof.GroupRow]] = defaultdict(list)
        for group in report.group("module", "op"):
            path = group.keys[0]
            self._groups[path if path in self._modules else ""].append(group)
        self._leaves = {path for path, module in self._modules.items() if not any(True for _ in module.children())}
        owners: dict[int, str] = {}  # by id of a parameter: the first layer that has it
        for path, module in self._modules.items():
            for parameter in module.parameters(recurse=False):
                owners.setdefault(id(parameter), path)
        self._owners = owners
        self.without_rule = sorted(self._types_without_rule())
        """Types of layers that ran and count nothing, since torchstat has no rule and they have no MACs."""

    def _types_without_rule(self) -> set[str]:
        return {
            type(self._modules[path]).__name__
            for path in self._leaves
            if self._rows[path].calls and rule_of(self._modules[path]) is None and not self._rows[path].self_macs
        }

    def rows(self, granularity: int, *, parameter_memory: bool) -> list[StatRow]:
        """Return the rows of a granularity, in the model's order."""
        chosen = [path for path in self._modules if self._is_shown(path, granularity)]
        times = [self._time(path, alone=False) for path in chosen]
        # No other row has the ops and parameters of the modules around them.
        covered = {path for one in chosen for path in self._below(one)}
        owners = set(self._owners.values())
        around = [
            path for path in self._modules if path not in covered and (self._rows[path].self_macs or path in owners)
        ]
        rows = {path: self._sum(self._below(path), path, parameter_memory) for path in chosen}
        rows |= {path: self._sum([path], path, parameter_memory) for path in around}
        seconds = dict(zip(chosen, times, strict=True)) | {path: self._time(path, alone=True) for path in around}
        total = sum(time or 0 for time in seconds.values())
        order = [path for path in self._modules if path in rows]
        return [self._with_share(rows[path], seconds[path], total) for path in order]

    def _time(self, path: str, *, alone: bool) -> float | None:
        return self._rows[path].self_time if alone else self._rows[path].time

    def _with_share(self, row: StatRow, seconds: float | None, total: float) -> StatRow:
        share = None if seconds is None or not total else seconds / total
        return StatRow(**{**vars(row), "duration": share})

    def _children(self, path: str) -> list[str]:
        depth = path.count(".") + 1 if path else 0
        return [each for each in self._below(path) if each != path and each.count(".") == depth]

    def _below(self, path: str) -> list[str]:
        """Return the path itself, and all below it."""
        return self._subtrees[path]

    def _levels(self, path: str) -> int:
        return (
            1
            + max((each.count(".") + 1 for each in self._below(path)), default=0)
            - (path.count(".") + 1 if path else 0)
        )

    def _is_shown(self, path: str, granularity: int) -> bool:
        """Return True for a module with ``granularity`` levels, and for one with fewer next to one that has them."""
        if not path:
            return self._levels("") == granularity
        if self._levels(path) >= granularity:
            return self._levels(path) == granularity
        siblings = self._children(path.rpartition(".")[0])
        return max(self._levels(each) for each in siblings) >= granularity

    def _sum(self, paths: list[str], path: str, parameter_memory: bool) -> StatRow:
        parts = [self._own(each, parameter_memory) for each in paths]
        return StatRow(
            path,
            self._shape(self._rows[path].input_shapes),
            self._shape(self._rows[path].output_shapes),
            sum(part.params for part in parts),
            sum(part.memory_mib for part in parts),
            sum(part.madd for part in parts),
            sum(part.flops for part in parts),
            sum(part.read_bytes for part in parts),
            sum(part.write_bytes for part in parts),
            None,
        )

    @staticmethod
    def _shape(shapes: list[list[int]]) -> tuple[int, ...]:
        return tuple(shapes[0][1:]) if shapes else ()

    def _own(self, path: str, parameter_memory: bool) -> StatRow:
        """Return the row of the module's own ops, in all its calls."""
        module, row, groups = self._modules[path], self._rows[path], self._groups[path]
        size = 4 if self._first is None or not self._first.is_floating_point() else self._first.element_size()
        work = self._work(path)
        rule = rule_of(module) if path in self._leaves else None
        own = module.parameters(recurse=False)
        params = sum(parameter.numel() for parameter in own if self._owners[id(parameter)] == path)
        elements = work.outputs if rule is not None else self._returned(path)
        memory = (elements if path in self._leaves else 0) + (params if parameter_memory else 0)
        if rule is None:
            counts = 2 * work.macs, work.macs, row.self_read_bytes, row.self_write_bytes
            madd, flops, read, written = counts if work.macs else (0, 0, 0, 0)
        else:
            madd, flops = (self._count(rule, what, work) for what in ("madd", "flops"))
            read, written = (size * self._count(rule, what, work) for what in ("read", "written"))
            if rule.read is None and work.macs:
                read = sum(group.read_bytes for group in groups)
                written = sum(group.write_bytes for group in groups)
        return StatRow(path, (), (), params, memory * size / _MIB, madd, flops, read, written, None)

    @staticmethod
    def _count(rule: Rule, what: str, work: LayerWork) -> int:
        """Return the count of a rule; where torchstat has none, MAdd and Flops by the MACs, and no bytes."""
        count = getattr(rule, what)
        if count is not None:
            return int(count(work))
        return {"madd": 2 * work.macs, "flops": work.macs}.get(what, 0)

    def _work(self, path: str) -> LayerWork:
        row, groups = self._rows[path], self._groups[path]
        # A padded convolution runs several ops: take the one with MACs, the convolution. In other layers take the op on
        # all of the input.
        main = max(groups, key=lambda group: (group.macs, group.input_elements), default=None)
        shape = row.input_shapes[0] if row.input_shapes else []
        return LayerWork(
            self._modules[path],
            row.calls or 0,
            shape[0] if shape else 1,
            sum(group.macs for group in groups),
            main.input_elements if main else 0,
            main.output_elements if main else 0,
        )

    def _returned(self, path: str) -> int:
        row = self._rows[path]
        return math.prod(row.output_shapes[0]) * (row.calls or 0) if row.output_shapes else 0


def header_names() -> Iterator[str]:
    """Yield the columns in torchstat's order."""
    yield from ("module name", "input shape", "output shape", "params", "memory(MB)", "MAdd", "Flops")
    yield from ("MemRead(B)", "MemWrite(B)", "duration[%]", "MemR+W(B)")
