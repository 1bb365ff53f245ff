"""torchsummary's ``summary`` on roofprof's observer: ``from roofprof.compat.torchsummary import summary``.

The summary has a line for each call of a module, as the calls end, with its outputs and its own parameters. The sizes
in MB are MiB, and "Forward/backward pass size" is twice the outputs of all lines. docs/compat.md lists what differs.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import roofprof
from roofprof.compat._call import (
    global_hooks,
    keywords,
    named_places,
    positional,
    random_tensor,
    require_module,
    undone,
    unfused,
    warn_once,
)
from roofprof.compat._torchinfo import LayerInfo, tensors_in

__all__ = ["Line", "summary", "summary_string"]

_MIB = 1024**2
_LINE = "{:>20}  {:>25} {:>15}"
_RULE = "-" * 64


@dataclass
class Line:
    """A call of a module. shapes: of the tensors that it returns; params: the module's own."""

    module: nn.Module
    shapes: list[list[int]]
    is_one_tensor: bool
    output_bytes: int
    params: int = 0


def summary(
    model: nn.Module,
    input_size: Any,
    batch_size: int = -1,
    device: str | torch.device = "cuda",
    *,
    dtypes: Sequence[torch.dtype] | None = None,
    inputs: Any = None,
    kwargs: Mapping[str, Any] | None = None,
) -> None:
    """Print the layers, their outputs and their parameters, by one call of the model with a batch of 2.

    input_size: the shape of one sample, or a list of them for several inputs, which are made of random float32 or of
        ``dtypes``. None: ``inputs``, a tuple of positional arguments or the one argument, and ``kwargs`` are given.
    batch_size: the printed batch size, to which the sizes in MB are scaled; -1 counts as one sample.
    device: "cuda" or "cpu", as torchsummary takes it. The call runs where the model is.

    Raises ValueError for arguments that make no sense, and whatever the model raises.
    """
    warn_once(
        "torchsummary",
        "torchsummary's 'Forward/backward pass size' is twice what all modules return, not what is allocated at once; "
        "roofprof.count(model, ...).total.peak_memory is",
    )
    text, _ = summary_string(model, input_size, batch_size, device, dtypes, inputs=inputs, kwargs=kwargs)
    sys.stdout.write(f"{text}\n")


def summary_string(
    model: nn.Module,
    input_size: Any,
    batch_size: int = -1,
    device: str | torch.device = "cuda",
    dtypes: Sequence[torch.dtype] | None = None,
    *,
    inputs: Any = None,
    kwargs: Mapping[str, Any] | None = None,
) -> tuple[str, tuple[int, int]]:
    """Return the text that :func:`summary` prints, and the parameters: (all, trainable)."""
    require_module(model)
    if torch.device(device).type not in {"cuda", "cpu"}:
        raise ValueError(f"device must be 'cuda' or 'cpu', not {device!r}; the call runs where the model is")
    if (input_size is None) == (inputs is None and not kwargs):
        raise ValueError("give input_size, or None for it and inputs or kwargs")
    args = _made(model, input_size, dtypes) if inputs is None else positional(inputs)
    named = keywords(kwargs)
    given = tensors_in([args, named])
    lines = _called(model, args, named)
    # A size is printed for `batch_size` samples; the call had as many as its inputs.
    samples = given[0].shape[0] if given and given[0].dim() else 1
    scale = abs(batch_size) / samples
    parameters = list(model.parameters())
    totals = sum(p.numel() for p in parameters), sum(p.numel() for p in parameters if p.requires_grad)
    sizes = {
        "Input size": scale * sum(tensor.nbytes for tensor in given),
        "Forward/backward pass size": scale * 2 * sum(line.output_bytes for line in lines),
        "Params size": sum(p.nbytes for p in parameters),
    }
    return _text(lines, batch_size, totals, sizes), totals


def _made(model: nn.Module, input_size: Any, dtypes: Sequence[torch.dtype] | None) -> tuple[torch.Tensor, ...]:
    """Return two random samples of each input."""
    if input_size is None:
        return ()
    sizes = [input_size] if not input_size or isinstance(input_size[0], int) else list(input_size)
    if any(not isinstance(size, int) or size < 1 for shape in sizes for size in shape):
        raise ValueError(f"input_size must be the sizes of one sample, such as (3, 224, 224), not {input_size!r}")
    if dtypes is not None and len(dtypes) != len(sizes):
        raise ValueError(f"{len(dtypes)} dtypes for {len(sizes)} inputs: give one for each")
    parameter = next(model.parameters(), torch.empty(0))
    kinds = dtypes or [torch.float] * len(sizes)
    return tuple(random_tensor((2, *shape), parameter.device, kind) for shape, kind in zip(sizes, kinds, strict=True))


def _called(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Line]:
    lines: list[Line] = []
    places = dict(named_places(model))
    has_line = {id(module) for path, module in places.items() if _has_line(path, module)}

    def after(module: nn.Module, _: Any, output: Any) -> None:
        if id(module) in has_line:
            tensors = tensors_in(output)
            shapes = [list(tensor.shape) for tensor in tensors]
            one = isinstance(output, torch.Tensor)
            lines.append(Line(module, shapes, one, sum(tensor.nbytes for tensor in tensors)))

    with global_hooks(None, after), undone(model, args, kwargs), unfused(), torch.no_grad():
        report = roofprof.count(model, *args, **kwargs)
    called = {id(line.module) for line in lines}
    for row in report.rows:  # inside TorchScript no hook is called
        module = places.get(row.path)
        if isinstance(module, torch.jit.ScriptModule) and row.calls and id(module) in has_line - called:
            lines.append(Line(module, row.output_shapes, len(row.output_shapes) == 1, row.output_bytes or 0))
    called = {id(line.module) for line in lines}
    for line in lines:
        layer = LayerInfo("", line.module, 0)
        layer.set_leftover(called)
        line.params = layer.num_params if layer.is_leaf_layer else layer.leftover_params()
    return lines


def _has_line(path: str, module: nn.Module) -> bool:
    """Return True for a module with a line; the model has one only where nothing else would."""
    is_leaf = not any(True for _ in module.children())
    kind = getattr(module, "original_name", type(module).__name__)
    is_container = isinstance(module, (nn.Sequential, nn.ModuleList)) or kind in {"Sequential", "ModuleList"}
    return is_leaf if not path else not is_container


def _text(lines: list[Line], batch_size: int, totals: tuple[int, int], sizes: dict[str, float]) -> str:
    double_rule = "=" * 64
    text = [_RULE, _LINE.format("Layer (type)", "Output Shape", "Param #"), double_rule]
    for number, line in enumerate(lines, 1):
        kind = getattr(line.module, "original_name", type(line.module).__name__)
        shapes = [[batch_size, *shape[1:]] for shape in line.shapes]
        shown = shapes[0] if line.is_one_tensor else shapes
        text.append(_LINE.format(f"{kind}-{number}", str(shown), f"{line.params:,}"))
    total, trainable = totals
    text += [double_rule, f"Total params: {total:,}", f"Trainable params: {trainable:,}"]
    text += [f"Non-trainable params: {total - trainable:,}", _RULE]
    text += [f"{name} (MB): {size / _MIB:.2f}" for name, size in sizes.items()]
    return "\n".join([*text, f"Estimated Total Size (MB): {math.fsum(sizes.values()) / _MIB:.2f}", _RULE])
