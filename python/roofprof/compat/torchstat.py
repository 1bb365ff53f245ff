"""torchstat's ``stat`` on roofprof's observer: docs/compat.md has the columns, and what differs."""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import roofprof
from roofprof.compat import _call
from roofprof.compat._conventions import TORCHSTAT, LayerWork
from roofprof.compat._table import shown

__all__ = ["ModelStat", "StatRow", "stat"]

_COLUMNS = ["module name", "input shape", "output shape", "params", "memory(MB)", "MAdd", "Flops"]
_COLUMNS += ["MemRead(B)", "MemWrite(B)", "duration[%]", "MemR+W(B)"]


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


class _Layers:
    """Profiles one call of the model, and gives rows of it."""

    def __init__(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], *, parameters: bool) -> None:
        first = next((x for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor)), None)
        self._size = 4 if first is None or not first.is_floating_point() else first.element_size()
        self._counts_parameters = parameters
        # A module that torch.compile wraps takes the place of its wrapper, which stands above it.
        places = {_call.path_in_report(path): module for path, module in _call.named_places(model)}
        # A run has the figures of its later calls, which do other work where the first one changes the modules.
        with _call.undone(model, args, kwargs):
            report = _call.counted(model, args, kwargs, grad=False, tool="torchstat")
        profiler = roofprof.RooflineProfiler(model, warmup=1, repeat=3, counters="off", ceilings=roofprof.Ceilings())
        with _call.prepared(model, grad=False):
            timed = profiler.run(*args, **kwargs)
        self._times = {row.path: (row.self_time, row.time) for row in timed.rows}
        self._rows = {row.path: row for row in report.rows}
        self._modules = {path: module for path, module in places.items() if path in self._rows}
        self._leaves = {path for path, module in self._modules.items() if not any(True for _ in module.children())}
        self._groups: defaultdict[str, list[roofprof.GroupRow]] = defaultdict(list)
        for group in report.group("module", "op"):
            path = group.keys[0]
            self._groups[path if path in self._modules else ""].append(group)
        self._owners: dict[int, str] = {}  # by id of a parameter: the first layer that has it
        for path, module in self._modules.items():
            for parameter in module.parameters(recurse=False):
                self._owners.setdefault(id(parameter), path)

    def without_rule(self) -> list[str]:
        """Return the types of layers that ran and count nothing: torchstat has no rule for them, and no MACs ran."""
        ran = [path for path in self._leaves if self._rows[path].calls and not self._rows[path].self_macs]
        return sorted({type(self._modules[path]).__name__ for path in ran if not _rules_of(self._modules[path])})

    def rows(self) -> list[StatRow]:
        """Return a row for each layer, and for each module around layers that itself has ops or parameters."""
        always = {*self._owners.values(), *self._leaves}
        shown = [path for path in self._modules if path in always or self._rows[path].self_macs]
        times = [self._times.get(path, (None, None))[path in self._leaves] for path in shown]
        total = sum(time or 0 for time in times)
        shares = [time / total if time is not None and total else None for time in times]
        return [self._row(path, share) for path, share in zip(shown, shares, strict=True)]

    def _row(self, path: str, share: float | None) -> StatRow:
        """Return the row of the module's own ops, in all its calls."""
        module, row, groups, is_leaf = self._modules[path], self._rows[path], self._groups[path], path in self._leaves
        rules = _rules_of(module) if is_leaf else ()
        params = sum(one.numel() for one in module.parameters(recurse=False) if self._owners[id(one)] == path)
        given, returned = ([tuple(each) for each in shapes[:1]] for shapes in (row.input_shapes, row.output_shapes))
        calls = row.calls or 0
        # A padded convolution runs several ops: take the one with MACs, the convolution. In other layers take the op on
        # all of the input.
        main = max(groups, key=lambda group: (group.macs, group.input_elements), default=None)
        sizes = (main.input_elements, main.output_elements) if main else (0, 0)
        samples = (given[0][0] if given and given[0] else 1) * calls
        work = LayerWork(module, samples, sum(group.macs for group in groups), *sizes)
        elements = work.outputs if rules else sum(math.prod(shape) for shape in returned) * calls
        memory = (elements if is_leaf else 0) + (params if self._counts_parameters else 0)
        # Without a rule of torchstat's, MAdd and Flops follow from the MACs; the bytes are the ops' if there are MACs.
        moved = [sum(getattr(group, name) for group in groups) for name in ("read_bytes", "write_bytes")]
        counts = [2 * work.macs, work.macs, *(moved if work.macs else (0, 0))]
        for place, rule in enumerate(rules):
            if rule is not None:
                counts[place] = rule(work) * (1 if place < 2 else self._size)
        shapes = given[0][1:] if given else (), returned[0][1:] if returned else ()
        return StatRow(path, *shapes, params, memory * self._size / 1024**2, *counts, duration=share)  # type: ignore[misc]


def _rules_of(module: nn.Module) -> tuple[Any, ...]:
    """Return the rules for the module's type and those derived from it; () where torchstat has none."""
    return next((rules for types, rules in TORCHSTAT if isinstance(module, types)), ())


class ModelStat:
    """The rows of one call of a model in eval mode without gradients.

    input_size: the shape of one sample. inputs: in its place, a tuple of positional arguments or the one argument.
    query_granularity: 1, as torchstat fails on others. parameter_memory: whether memory(MB) has the parameters.
    """

    def __init__(
        self,
        model: nn.Module,
        input_size: Sequence[int] | None,
        query_granularity: int = 1,
        *,
        inputs: Any = None,
        kwargs: Mapping[str, Any] | None = None,
        parameter_memory: bool = True,
    ) -> None:
        _call.require_module(model)
        _call.check_sizes(input_size, inputs, kwargs)
        if query_granularity != 1:
            raise ValueError(f"query_granularity must be 1, a row for each layer, not {query_granularity!r}")
        self._model, self._size, self._parameters = model, input_size, parameter_memory
        self._inputs, self._kwargs = () if inputs is None else _call.positional(inputs), dict(kwargs or {})

    def rows(self) -> list[StatRow]:
        """Return the table's rows. Each call profiles the model again."""
        return self._layers().rows()

    def _layers(self) -> _Layers:
        args = self._inputs
        if self._size is not None:
            parameter = next((p for p in self._model.parameters() if p.is_floating_point()), torch.empty(0))
            args = (_call.random_tensor((1, *self._size), parameter.device, parameter.dtype),)
        return _Layers(self._model, args, self._kwargs, parameters=self._parameters)

    def show_report(self) -> None:
        """Print the table."""
        layers = self._layers()
        rows, silent = layers.rows(), ", ".join(layers.without_rule())
        lines = []
        for row in rows:
            shapes = ("x".join(map(str, shape)) for shape in (row.input_shape, row.output_shape))
            work = (row.params, f"{row.memory_mib:.2f}", row.madd, row.flops, row.read_bytes, row.write_bytes)
            share = None if row.duration is None else f"{row.duration:.2%}"
            lines.append((0, (row.name, *shapes, *work, share, row.bytes)))
        facts: dict[str, Any] = {"Total params": sum(row.params for row in rows)}
        facts["Total memory"] = f"{sum(row.memory_mib for row in rows):.2f}MB"
        for name, field in {"MAdd": "madd", "Flops": "flops", "MemR+W": "bytes"}.items():
            facts[f"Total {name}"] = sum(getattr(row, field) for row in rows)
        facts |= {"Counted as 0, as torchstat has no rule for them": silent} if silent else {}
        sys.stdout.write(shown(_COLUMNS, lines, facts) + "\n")


def stat(
    model: nn.Module,
    input_size: Sequence[int] | None,
    query_granularity: int = 1,
    *,
    inputs: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    parameter_memory: bool = True,
) -> None:
    """Print the table of :class:`ModelStat`, whose arguments these are; its ``rows()`` are the figures."""
    _call.warn_once(
        "torchstat",
        "torchstat calls multiplications and additions MAdd and multiply-accumulates Flops; "
        "roofprof.count(model, ...).total has both as flops and macs",
    )
    options: dict[str, Any] = {"inputs": inputs, "kwargs": kwargs, "parameter_memory": parameter_memory}
    ModelStat(model, input_size, query_granularity, **options).show_report()
