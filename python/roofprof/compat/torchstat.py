"""torchstat's ``stat`` on roofprof's observer: ``from roofprof.compat.torchstat import stat``.

The convention is torchstat's, whose words are not the usual ones:

==================  ==================================================================================================
column              meaning
==================  ==================================================================================================
MAdd                multiplications and additions of a convolution (2 for each MAC, the bias being the first addition)
                    and of a linear layer without its bias; 4 for each element of a BatchNorm2d
Flops               multiply-accumulates, and one more for each bias of a convolution; elements of other layers
memory(MB)          what the layers return and their parameters, in MiB
MemRead, MemWrite   bytes of inputs with parameters, and of outputs; once for each sample
duration[%]         the layer's share of the time of all rows
==================  ==================================================================================================

Layers without a rule and without MACs count 0, as in torchstat; a line below the table names them. docs/compat.md lists
what differs.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn

import roofprof
from roofprof.compat._call import (
    evaluating,
    keywords,
    named_places,
    path_in_report,
    positional,
    random_tensor,
    require_module,
    undone,
    unfused,
    warn_once,
)

__all__ = ["ModelStat", "StatRow", "report_format", "stat"]

# ---- the convention of torchstat, as data: MAdd, Flops and the elements read and written, for each type of layer


@dataclass(frozen=True)
class _LayerWork:
    """The observed work of all calls of one layer."""

    module: Any
    calls: int
    samples: int  # of a call: the batch
    macs: int
    inputs: int  # elements
    outputs: int

    @property
    def params(self) -> int:
        """Return the number of elements of the layer's own parameters."""
        return sum(parameter.numel() for parameter in self.module.parameters(recurse=False))

    @property
    def has_bias(self) -> bool:
        """Return True when the layer has a bias."""
        return getattr(self.module, "bias", None) is not None


_Count = Callable[[_LayerWork], int]


class _Rule(NamedTuple):
    """MAdd, Flops, and the elements that are read and written; None: torchstat has none, so that it says 0."""

    types: tuple[type[nn.Module], ...]
    madd: _Count | None = None
    flops: _Count | None = None
    read: _Count | None = None
    written: _Count | None = None


def _conv_madd(work: _LayerWork) -> int:
    """Return a product and an addition for each MAC; the first addition is the bias, or none."""
    return 2 * work.macs - (0 if work.has_bias else work.outputs)


def _transposed_madd(work: _LayerWork) -> int:
    """Return the count of a convolution; without a bias, 1 less for each position of the input and output channel."""
    positions = work.inputs // work.module.in_channels
    return 2 * work.macs - (0 if work.has_bias else positions * work.module.out_channels)


def _conv_flops(work: _LayerWork) -> int:
    """Return the products and the additions of the bias."""
    return work.macs + (work.outputs if work.has_bias else 0)


def _linear_madd(work: _LayerWork) -> int:
    """Return the products and additions without the bias."""
    return 2 * work.macs - work.outputs


def _softmax_madd(work: _LayerWork) -> int:
    """Return an exponential and a division for each element, additions for all but one of a sample."""
    return 3 * work.inputs - work.samples * work.calls


def _window(work: _LayerWork) -> int:
    size = work.module.kernel_size
    return math.prod(size) if isinstance(size, (tuple, list)) else int(size) ** 2


def _batch_norm_flops(work: _LayerWork) -> int:
    return work.inputs * (2 if work.module.affine else 1)


def _inputs(work: _LayerWork) -> int:
    return work.inputs


def _outputs(work: _LayerWork) -> int:
    return work.outputs


def _macs(work: _LayerWork) -> int:
    return work.macs


def _inputs_and_params(work: _LayerWork) -> int:
    """Return the inputs, and the parameters once for each sample, as torchstat reads them."""
    return work.inputs + work.calls * work.samples * work.params


def _inputs_and_statistics(work: _LayerWork) -> int:
    return work.inputs + work.calls * work.samples * 2 * int(work.module.num_features)


_RULES = (
    _Rule((nn.Conv2d,), _conv_madd, _conv_flops, _inputs_and_params, _outputs),
    _Rule((nn.ConvTranspose2d,), _transposed_madd),
    _Rule((nn.BatchNorm2d,), lambda w: 4 * w.inputs, _batch_norm_flops, _inputs_and_statistics, _inputs),
    _Rule((nn.MaxPool2d,), lambda w: (_window(w) - 1) * w.outputs, _inputs, _inputs, _outputs),
    _Rule((nn.AvgPool2d,), lambda w: _window(w) * w.outputs, _inputs, _inputs, _outputs),
    _Rule((nn.ReLU, nn.ReLU6), _inputs, _inputs, _inputs, _inputs),
    _Rule((nn.ELU, nn.LeakyReLU), None, _inputs, _inputs, _inputs),
    _Rule((nn.PReLU,), None, _inputs, _inputs_and_params, _inputs),
    _Rule((nn.Softmax,), _softmax_madd),
    _Rule((nn.Upsample,), None, _outputs),
    _Rule((nn.Linear,), _linear_madd, _macs, _inputs_and_params, _outputs),
)


def _rule_of(module: nn.Module) -> _Rule | None:
    """Return the rule for the module's type and those derived from it; None where torchstat has none."""
    return next((rule for rule in _RULES if isinstance(module, rule.types)), None)


# ---- the rows of torchstat's table: layers, or the modules around them, with what was observed of their calls

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


class _Layers:
    """Profiles one call of the model, and gives rows of it."""

    def __init__(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._first = next((x for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor)), None)
        # A module that torch.compile wraps takes the place of its wrapper, which stands above it.
        places = {path_in_report(path): module for path, module in named_places(model)}
        # None of the columns needs roofs, so none are measured.
        profiler = roofprof.RooflineProfiler(model, warmup=1, repeat=3, counters="off", ceilings=roofprof.Ceilings())
        with evaluating(model), unfused(), torch.no_grad():
            # A run has the figures of its later calls, which do other work where the first one changes the modules.
            with undone(model, args, kwargs):
                report = roofprof.count(model, *args, **kwargs)
            timed = profiler.run(*args, **kwargs)
        self._times = {row.path: (row.time, row.self_time) for row in timed.rows}
        self._rows = {row.path: row for row in report.rows}
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
        """Types of layers that ran and count nothing, because torchstat has no rule for them and they have no MACs."""

    def _types_without_rule(self) -> set[str]:
        return {
            type(self._modules[path]).__name__
            for path in self._leaves
            if self._rows[path].calls and _rule_of(self._modules[path]) is None and not self._rows[path].self_macs
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
        return self._times.get(path, (None, None))[alone]

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
        rule = _rule_of(module) if path in self._leaves else None
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
    def _count(rule: _Rule, what: str, work: _LayerWork) -> int:
        """Return the count of a rule; where torchstat has none, MAdd and Flops by the MACs, and no bytes."""
        count = getattr(rule, what)
        if count is not None:
            return int(count(work))
        return {"madd": 2 * work.macs, "flops": work.macs}.get(what, 0)

    def _work(self, path: str) -> _LayerWork:
        row, groups = self._rows[path], self._groups[path]
        # A padded convolution runs several ops: take the one with MACs, the convolution. In other layers take the op on
        # all of the input.
        main = max(groups, key=lambda group: (group.macs, group.input_elements), default=None)
        shape = row.input_shapes[0] if row.input_shapes else []
        return _LayerWork(
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


def _header_names() -> Iterator[str]:
    """Yield the columns in torchstat's order."""
    yield from ("module name", "input shape", "output shape", "params", "memory(MB)", "MAdd", "Flops")
    yield from ("MemRead(B)", "MemWrite(B)", "duration[%]", "MemR+W(B)")


# ---- torchstat's table as text, laid out as pandas printed it


def report_format(rows: Sequence[StatRow], without_rule: Sequence[str] = ()) -> str:
    """Return the rows, their total, and the totals in words. ``without_rule``: types of layers that count nothing."""
    total = {name: sum(getattr(row, name) for row in rows) for name in ("params", "memory_mib", "madd", "flops")}
    read, written = sum(row.read_bytes for row in rows), sum(row.write_bytes for row in rows)
    durations = [row.duration for row in rows if row.duration is not None]
    cells = [["", *_header_names()]]
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


class ModelStat:
    """The rows of one call of a model in eval mode without gradients.

    input_size: the shape of one sample, to which a batch of 1 is added. query_granularity: 1 for each layer; n for
    modules with n levels in them, and next to these modules with fewer levels.
    inputs: in place of the size, a tuple of positional arguments or the one argument, with ``kwargs``.
    parameter_memory: whether memory(MB) has the parameters; torchstat 0.0.7 leaves them out.

    Raises TypeError or ValueError for arguments that make no sense, and whatever the model raises.
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
        require_module(model)
        if (input_size is None) == (inputs is None and not kwargs):
            raise ValueError("give input_size, or None for it and inputs or kwargs")
        if input_size is not None and not all(isinstance(size, int) and size > 0 for size in input_size):
            raise ValueError(f"input_size must be the sizes of one sample, such as (3, 224, 224), not {input_size!r}")
        if not isinstance(query_granularity, int) or query_granularity < 1:
            raise ValueError(f"query_granularity must be 1 or more, not {query_granularity!r}")
        self._model = model
        self._size = input_size
        self._granularity = query_granularity
        self._inputs = () if inputs is None else positional(inputs)
        self._kwargs = keywords(kwargs)
        self._parameter_memory = parameter_memory

    def rows(self) -> list[StatRow]:
        """Return the table's rows. Each call profiles the model again."""
        return self._layers().rows(self._granularity, parameter_memory=self._parameter_memory)

    def _layers(self) -> _Layers:
        args = self._inputs
        if self._size is not None:
            parameter = next((p for p in self._model.parameters() if p.is_floating_point()), torch.empty(0))
            args = (random_tensor((1, *self._size), parameter.device, parameter.dtype),)
        return _Layers(self._model, args, self._kwargs)

    def show_report(self) -> None:
        """Print the table."""
        layers = self._layers()
        rows = layers.rows(self._granularity, parameter_memory=self._parameter_memory)
        sys.stdout.write(report_format(rows, layers.without_rule) + "\n")


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
    warn_once(
        "torchstat",
        "torchstat calls multiplications and additions MAdd and multiply-accumulates Flops; "
        "roofprof.count(model, ...).total has both as flops and macs",
    )
    ModelStat(
        model, input_size, query_granularity, inputs=inputs, kwargs=kwargs, parameter_memory=parameter_memory
    ).show_report()
