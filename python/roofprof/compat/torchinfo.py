"""torchinfo's ``summary`` on roofprof's observer: ``from roofprof.compat.torchinfo import summary``.

The convention is torchinfo's: a line for each call of a module. Mult-adds are its multiply-accumulates, one more for
each bias that is added, and for norms and other layers without products one for each parameter and sample. If a module
is called several times, its lines share the work by the sizes of their outputs. docs/compat.md lists what differs.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

import roofprof
from roofprof.compat._call import in_mode, random_tensor, require_module, undone, unfused, warn_once
from roofprof.compat._torchinfo import (
    Calls,
    ColumnSettings,
    FormattingOptions,
    LayerInfo,
    Mode,
    ModelStatistics,
    RowSettings,
    Units,
    Verbosity,
)

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "ColumnSettings",
    "LayerInfo",
    "Mode",
    "ModelStatistics",
    "RowSettings",
    "Units",
    "Verbosity",
    "clear_cached_forward_pass",
    "summary",
]

_OF_A_CALL = {ColumnSettings.INPUT_SIZE, ColumnSettings.OUTPUT_SIZE, ColumnSettings.MULT_ADDS}
_cached: dict[str, list[LayerInfo]] = {}


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
    batch_dim: where a batch dimension of 1 is put into ``input_size``.
    cache_forward_pass: keep the call's lines by the name of the model's class, and use them again.
    col_names: of "input_size", "output_size", "num_params", "params_percent", "kernel_size", "mult_adds", "trainable".
    depth: the deepest level shown; col_width in characters; row_settings: of "depth", "var_names", "ascii_only",
        "hide_recursive_layers".
    device: where the call runs; None: with ``input_data`` wherever both are, else where the model is.
    mode: "eval" or "train"; verbose: 0 prints nothing, 1 the table, 2 with weights; None: 1, in interactive sessions 0.
    kwargs: further keyword arguments of the model.

    Raises whatever the model raises, and ValueError, TypeError or RuntimeError for arguments that make no sense.
    """
    require_module(model)
    given = input_data is not None or input_size is not None
    default_columns = ["output_size", "num_params"] if given else ["num_params"]
    columns = tuple(ColumnSettings(name) for name in (default_columns if col_names is None else col_names))
    rows = {RowSettings(name) for name in (["depth"] if row_settings is None else row_settings)}
    chosen_mode = Mode.EVAL if mode is None else Mode(mode)
    if verbose is None:
        verbose = 0 if getattr(sys, "ps1", None) else 1
    _check(input_data, input_size, columns, col_width, verbose)
    target = _target(model, device, has_data=input_data is not None)
    if dtypes is not None and input_size is not None and len(dtypes) < len(_sizes(input_size)):
        raise ValueError(f"{len(dtypes)} dtypes for {len(_sizes(input_size))} inputs: give one for each")
    args, keywords, sizes = _arguments(input_data, input_size, batch_dim, target, dtypes)
    if given:
        warn_once(
            "torchinfo",
            "torchinfo's mult-adds are MACs and one addition for each bias, and its 'Forward/backward pass size' is "
            "twice the outputs of layers with parameters; roofprof.count(model, ...) has MACs, FLOPs and peak memory",
        )
    name = type(model).__name__
    if cache_forward_pass and name in _cached:
        lines = _cached[name]
    elif given:
        keywords = {**keywords, **_moved(kwargs, target)}
        lines = _cached[name] = _called(model, args, keywords, batch_dim, target, chosen_mode)
    else:
        lines = Calls(model).all_modules()
    formatting = FormattingOptions(depth, verbose, columns, col_width, rows)
    results = ModelStatistics(lines, sizes, _bytes([args, keywords if input_data is not None else {}]), formatting)
    if verbose > Verbosity.QUIET:
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
    needing = sorted(column.value for column in _OF_A_CALL.intersection(columns))
    if input_data is None and input_size is None and needing:
        raise ValueError(f"You must pass input_data or input_size in order to use columns: {', '.join(needing)}")


def _target(model: nn.Module, device: torch.device | str | None, *, has_data: bool) -> torch.device | None:
    """Return the device of the call; None leaves the arguments and the model where they are."""
    if device is not None:
        return torch.device(device)
    parameter = next(model.parameters(), None)
    return None if has_data else torch.device("cpu") if parameter is None else parameter.device


def _sizes(input_size: Any) -> list[Any]:
    """Return ``input_size`` as a list of shapes."""
    if not isinstance(input_size, (list, tuple)):
        raise TypeError(f"input_size must be a shape or a list of shapes, not {input_size!r}")
    if not input_size or any(size <= 0 for size in _flat(input_size)):
        raise ValueError(f"input_size must be one shape or more, all of sizes above 0, not {input_size!r}")
    return [tuple(input_size)] if isinstance(input_size[0], int) else list(input_size)


def _flat(nested: Any) -> Iterator[Any]:
    for each in nested:
        if isinstance(each, (list, tuple)):
            yield from _flat(each)
        else:
            yield each


def _arguments(
    input_data: Any,
    input_size: Any,
    batch_dim: int | None,
    device: torch.device | None,
    dtypes: list[torch.dtype] | None,
) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    """Return the model's positional and keyword arguments, and the sizes of the given inputs."""
    if input_size is not None:
        sizes = _sizes(input_size)
        tensors = []
        for size, dtype in zip(sizes, dtypes or [torch.float] * len(sizes), strict=False):
            tensor = random_tensor(size, device, dtype)
            tensors.append(tensor if batch_dim is None else tensor.unsqueeze(batch_dim))
        return tuple(tensors), {}, sizes
    if input_data is None:
        return (), {}, []
    data, sizes = _moved(input_data, device), _mapped(input_data, lambda tensor: tensor.data.shape)
    if isinstance(data, Mapping):
        return (), dict(data), sizes
    return (tuple(data) if isinstance(data, (list, tuple)) else (data,)), {}, sizes


def _moved(data: Any, device: torch.device | None) -> Any:
    return data if device is None else _mapped(data, lambda tensor: tensor.to(device))


def _mapped(data: Any, change: Any) -> Any:
    """Return the same containers with every tensor changed."""
    if isinstance(data, (torch.Tensor, nn.utils.rnn.PackedSequence)):
        return change(data)
    if type(data) is tuple or type(data) is list:
        return type(data)(_mapped(each, change) for each in data)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(_mapped(each, change) for each in data))
    if type(data) is dict:
        return {key: _mapped(value, change) for key, value in data.items()}
    return data


def _bytes(data: Any) -> int:
    """Return the bytes of all tensors and arrays in containers."""
    if isinstance(data, Mapping):
        return _bytes(list(data.values()))
    if isinstance(data, (list, tuple)) and not isinstance(data, nn.utils.rnn.PackedSequence):
        return sum(_bytes(each) for each in data)
    data = data.data if isinstance(data, nn.utils.rnn.PackedSequence) else data
    nbytes = getattr(data, "nbytes", 0)
    return nbytes if isinstance(nbytes, int) else 0


def _called(
    model: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    batch_dim: int | None,
    device: torch.device | None,
    mode: Mode,
) -> list[LayerInfo]:
    calls = Calls(model, batch_dim)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_on(model, device))
        stack.enter_context(undone(model, args, kwargs))
        stack.enter_context(unfused())
        stack.enter_context(torch.no_grad())
        stack.enter_context(calls.watching())
        with in_mode(model, training=mode is Mode.TRAIN):
            report = roofprof.count(model, *args, **kwargs)
        return calls.lines(report)


@contextlib.contextmanager
def _on(model: nn.Module, device: torch.device | None) -> Iterator[None]:
    """Put the model's parameters and buffers on that device; afterwards it has its own again."""
    if device is None or all(tensor.device == device for tensor in [*model.parameters(), *model.buffers()]):
        yield
        return
    kept: list[tuple[nn.Module, str, Any]] = []
    moved: dict[int, Any] = {}  # by identity: what is tied stays so
    try:
        for module in model.modules():
            for name, tensor in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
                if id(tensor) not in moved:
                    copy = tensor.detach().to(device)
                    is_parameter = isinstance(tensor, nn.Parameter)
                    moved[id(tensor)] = nn.Parameter(copy, tensor.requires_grad) if is_parameter else copy
                kept.append((module, name, tensor))
                setattr(module, name, moved[id(tensor)])  # recurrent layers keep lists, which this updates
        yield
    finally:
        for module, name, tensor in kept:
            setattr(module, name, tensor)
