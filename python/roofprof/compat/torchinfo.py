"""torchinfo's ``summary`` on roofprof's observer: docs/compat.md has the convention, and what differs."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves, tree_map

from roofprof.compat import _call
from roofprof.compat._layers import Calls, LayerInfo
from roofprof.compat._table import Line, share, shown

if TYPE_CHECKING:
    import numpy as np

__all__ = ["ColumnSettings", "LayerInfo", "Mode", "ModelStatistics", "RowSettings", "Units", "Verbosity"]
__all__ += ["clear_cached_forward_pass", "summary"]

Mode = Enum("Mode", {"TRAIN": "train", "EVAL": "eval"}, type=str)
Units = Enum("Units", {"AUTO": "auto", "MEGABYTES": "M", "GIGABYTES": "G", "TERABYTES": "T", "NONE": ""}, type=str)
Verbosity = IntEnum("Verbosity", ["QUIET", "DEFAULT", "VERBOSE"], start=0)


class RowSettings(str, Enum):
    """The settings of a line's name."""

    DEPTH = "depth"
    VAR_NAMES = "var_names"
    ASCII_ONLY = "ascii_only"
    HIDE_RECURSIVE_LAYERS = "hide_recursive_layers"


class ColumnSettings(str, Enum):
    """The columns."""

    KERNEL_SIZE = "kernel_size"
    INPUT_SIZE = "input_size"
    OUTPUT_SIZE = "output_size"
    NUM_PARAMS = "num_params"
    PARAMS_PERCENT = "params_percent"
    MULT_ADDS = "mult_adds"
    TRAINABLE = "trainable"


_HEADINGS = ("Kernel Shape", "Input Shape", "Output Shape", "Param #", "Param %", "Mult-Adds", "Trainable")
_cached: dict[str, list[LayerInfo]] = {}


@dataclass
class _Formatting:
    """The options of a table; users may change them before they print it again."""

    max_depth: int
    verbose: int
    col_names: tuple[ColumnSettings, ...]
    col_width: int
    row_settings: set[RowSettings]

    def lines(self, layers: list[LayerInfo], total_params: int) -> Iterator[Line]:
        settings = {setting.value for setting in self.row_settings}
        for layer in layers:
            if layer.depth > self.max_depth or (layer.is_recursive and "hide_recursive_layers" in settings):
                continue
            last = layer.depth == self.max_depth
            params = layer.num_params if last or layer.is_leaf_layer else layer.leftover_params()
            cells = {
                "kernel_size": layer.kernel_size or "--",
                "input_size": layer.input_size or "--",
                "output_size": layer.output_size or "--",
                "num_params": "(recursive)" if layer.is_recursive else params,
                "params_percent": "(recursive)" if layer.is_recursive else share(params, total_params),
                "mult_adds": layer.macs + (sum(below.macs for below in layer.children) if last else 0),
                "trainable": layer.trainable,
            }
            name = layer.class_name + (f" ({layer.var_name})" if "var_names" in settings else "")
            name += f": {layer.depth}-{layer.depth_index}" if "depth" in settings and layer.depth else ""
            yield layer.depth, (name, *(cells[column.value] for column in self.col_names))
            for inner, texts in layer.inner_layers.items() if self.verbose == 2 else ():
                yield layer.depth + 1, (inner, *(texts.get(column.value, "") for column in self.col_names))


class ModelStatistics:
    """The result of :func:`roofprof.compat.torchinfo.summary`: the lines, their sums, and the table by ``str()``.

    total_params, trainable_params: distinct ones of the model. total_mult_adds: of all lines. total_input,
    total_output_bytes, total_param_bytes: bytes; outputs are twice those of the layers with parameters.
    """

    def __init__(
        self, summary_list: list[LayerInfo], input_size: Any, total_input_size: int, formatting: _Formatting
    ) -> None:
        self.summary_list, self.input_size, self.formatting = summary_list, input_size, formatting
        self.total_input = total_input_size
        self.total_params = summary_list[0].num_params
        self.trainable_params = summary_list[0].trainable_params
        self.total_param_bytes = summary_list[0].param_bytes
        self.total_mult_adds = sum(line.macs for line in summary_list)
        with_params = [line for line in summary_list if line.is_leaf_layer and line.num_params > 0]
        self.total_output_bytes = 2 * sum(line.output_bytes for line in with_params)

    @staticmethod
    def to_megabytes(num: int) -> float:
        """Return bytes in megabytes."""
        return num / 1e6

    @staticmethod
    def float_to_megabytes(num: int) -> float:
        """Return the megabytes of so many floats of 4 bytes."""
        return num * 4 / 1e6

    @staticmethod
    def to_readable(num: int, units: Units = Units.AUTO) -> tuple[Units, float]:
        """Return a unit and the number in it."""
        factors = {Units.TERABYTES: 1e12, Units.GIGABYTES: 1e9, Units.MEGABYTES: 1e6, Units.NONE: 1}
        if units == Units.AUTO:
            units = next((unit for unit, factor in factors.items() if num >= factor > 1), Units.MEGABYTES)
        return units, num / factors[units]

    def __repr__(self) -> str:
        facts: dict[str, Any] = {"Total params": self.total_params, "Trainable params": self.trainable_params}
        facts["Non-trainable params"] = self.total_params - self.trainable_params
        if self.input_size:
            sizes = {"Input size": self.total_input, "Forward/backward pass size": self.total_output_bytes}
            sizes["Params size"] = self.total_param_bytes
            sizes["Estimated Total Size"] = sum(sizes.values())
            facts["Total mult-adds"] = self.total_mult_adds
            facts |= {f"{name} (MB)": f"{self.to_megabytes(size):0.2f}" for name, size in sizes.items()}
        settings = self.formatting.row_settings
        title = "Layer (type" + (" (var_name)" if RowSettings.VAR_NAMES in settings else "")
        title += ":depth-idx)" if RowSettings.DEPTH in settings else ")"
        columns = (title, *(_HEADINGS[list(ColumnSettings).index(one)] for one in self.formatting.col_names))
        return shown(columns, self.formatting.lines(self.summary_list, self.total_params), facts)


def summary(  # noqa: PLR0913, PLR0917 (torchinfo's)
    model: nn.Module,
    input_size: Sequence[int | Sequence[Any] | torch.Size] | None = None,
    input_data: torch.Tensor | np.ndarray[Any, Any] | Sequence[Any] | Mapping[str, Any] | None = None,
    batch_dim: int | None = None,
    cache_forward_pass: bool | None = None,
    col_names: Iterable[str] | None = None,
    col_width: int = 25,
    depth: int = 3,
    device: torch.device | str | None = None,
    dtypes: list[torch.dtype] | None = None,
    mode: str | None = None,
    row_settings: Iterable[str] | None = None,
    verbose: int | None = None,
    **kwargs: Any,
) -> ModelStatistics:
    """Return layers, shapes, parameters and mult-adds of one call of the model without gradients, and print them.

    input_size: the shape of the input, or a list of shapes; random tensors of ``dtypes`` (float32) are made.
    input_data: a tensor or an array, a list or tuple of positional arguments, a dict of keyword arguments (a dict that
        is the only argument stands in a list). Without either nothing is called: names and parameters alone.
    col_width, and "ascii_only" of row_settings, change nothing. device: another one than the model's runs a copy of it.

    Raises whatever the model raises, and ValueError, TypeError or RuntimeError for arguments that make no sense.
    """
    _call.require_module(model)
    given = input_data is not None or input_size is not None
    default_columns = ["output_size", "num_params"] if given else ["num_params"]
    columns = tuple(ColumnSettings(name) for name in (default_columns if col_names is None else col_names))
    rows = {RowSettings(name) for name in (["depth"] if row_settings is None else row_settings)}
    training = mode is not None and Mode(mode).value == "train"
    if verbose is None:
        verbose = 0 if getattr(sys, "ps1", None) else 1
    _check(input_data, input_size, columns, col_width, verbose)
    target = None if device is None else torch.empty(0, device=device).device
    if target is not None and any(one.device != target for one in (*model.parameters(), *model.buffers())):
        model = copy.deepcopy(model).to(target)
    if target is None and input_data is None:
        target = next(model.parameters(), torch.empty(0)).device
    args, named, sizes = _arguments(input_data, input_size, batch_dim, target, dtypes)
    if given:
        _call.warn_once(
            "torchinfo",
            "torchinfo's mult-adds are MACs and one addition for each bias, and its 'Forward/backward pass size' is "
            "twice the outputs of layers with parameters; roofprof.count(model, ...) has MACs, FLOPs and peak memory",
        )
    name = type(model).__name__
    if cache_forward_pass and name in _cached:
        lines = _cached[name]
    elif given:
        calls, every = Calls(model, batch_dim), {**named, **_moved(kwargs, target)}
        with _call.undone(model, args, every):
            watching = calls.watching()
            report = _call.counted(model, args, every, watching, training=training, grad=False, tool="torchinfo")
            lines = _cached[name] = calls.lines(report)
    else:
        lines = Calls(model).all_modules()
    total_input = sum(
        getattr(one, "nbytes", 0) for one in tree_leaves(_tensors([args, named], lambda tensor: tensor.data))
    )
    results = ModelStatistics(lines, sizes, total_input, _Formatting(depth, verbose, columns, col_width, rows))
    if verbose:
        sys.stdout.write(f"{results}\n")
    return results


def clear_cached_forward_pass() -> None:
    """Forget what ``cache_forward_pass`` kept."""
    _cached.clear()


def _check(input_data: Any, input_size: Any, columns: tuple[ColumnSettings, ...], col_width: int, verbose: int) -> None:
    if col_width <= 0:
        raise ValueError(f"Column width must be greater than 0: col_width={col_width}")
    if verbose not in {0, 1, 2}:
        raise ValueError(f"verbose must be 0 (nothing), 1 (the table) or 2 (with weights), not {verbose!r}")
    if input_data is not None and input_size is not None:
        raise RuntimeError("Only one of (input_data, input_size) should be specified.")
    needing = sorted({column.value for column in columns} & {"input_size", "output_size", "mult_adds"})
    if input_data is None and input_size is None and needing:
        raise ValueError(f"You must pass input_data or input_size in order to use columns: {', '.join(needing)}")


def _arguments(
    input_data: Any,
    input_size: Any,
    batch_dim: int | None,
    device: torch.device | None,
    dtypes: list[torch.dtype] | None,
) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    """Return the model's positional and keyword arguments, and the sizes of the given inputs."""
    if input_data is not None:
        data, sizes = _moved(input_data, device), _tensors(input_data, lambda tensor: tensor.data.shape)
        if isinstance(data, Mapping):
            return (), dict(data), sizes
        return (tuple(data) if isinstance(data, (list, tuple)) else (data,)), {}, sizes
    if input_size is None:
        return (), {}, []
    if not isinstance(input_size, (list, tuple)):
        raise TypeError(f"input_size must be a shape or a list of shapes, not {input_size!r}")
    if not input_size or any(size <= 0 for size in tree_leaves(input_size)):
        raise ValueError(f"input_size must be one shape or more, all of sizes above 0, not {input_size!r}")
    shapes = [tuple(input_size)] if isinstance(input_size[0], int) else list(input_size)
    if dtypes is not None and len(dtypes) < len(shapes):
        raise ValueError(f"{len(dtypes)} dtypes for {len(shapes)} inputs: give one for each")
    pairs = zip(shapes, dtypes or [torch.float] * len(shapes), strict=False)
    tensors = [_call.random_tensor(size, device, dtype) for size, dtype in pairs]
    return tuple(one if batch_dim is None else one.unsqueeze(batch_dim) for one in tensors), {}, shapes


def _moved(data: Any, device: torch.device | None) -> Any:
    return data if device is None else _tensors(data, lambda tensor: tensor.to(device))


def _tensors(data: Any, change: Any) -> Any:
    """Return the same containers with every tensor, or packed sequence, changed."""
    kinds = (torch.Tensor, nn.utils.rnn.PackedSequence)
    return tree_map(
        lambda one: change(one) if isinstance(one, kinds) else one, data, is_leaf=lambda one: isinstance(one, kinds)
    )
