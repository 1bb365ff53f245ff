"""torchsummary's ``summary`` on roofprof's observer: docs/compat.md has what differs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from roofprof.compat import _call
from roofprof.compat._layers import Calls, LayerInfo, tensors_in
from roofprof.compat._table import shown

__all__ = ["summary", "summary_string"]


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

    input_size: None where ``inputs``, a tuple of positional arguments or the one argument, and ``kwargs`` are given.
    batch_size: the printed batch size, to which the sizes in MB are scaled; -1 counts as one sample.
    device: "cuda" or "cpu", as torchsummary takes it. The call runs where the model is.
    """
    _call.warn_once(
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
    _call.require_module(model)
    if torch.device(device).type not in {"cuda", "cpu"}:
        raise ValueError(f"device must be 'cuda' or 'cpu', not {device!r}; the call runs where the model is")
    shapes = [input_size] if not input_size or isinstance(input_size[0], int) else list(input_size)
    _call.check_sizes(None if input_size is None else [n for shape in shapes for n in shape], inputs, kwargs)
    kinds = dtypes or [torch.float] * len(shapes)
    if len(kinds) != len(shapes):
        raise ValueError(f"{len(kinds)} dtypes for {len(shapes)} inputs: give one for each")
    where = next(model.parameters(), torch.empty(0)).device
    args = () if inputs is None else _call.positional(inputs)
    if input_size is not None:  # two random samples of each input
        pairs = zip(shapes, kinds, strict=True)
        args = tuple(_call.random_tensor((2, *shape), where, kind) for shape, kind in pairs)
    calls = Calls(model)
    with _call.undone(model, args, kwargs or {}):
        watching = calls.watching()
        report = _call.counted(model, args, kwargs, watching, training=None, grad=False, tool="torchsummary")
        lines = sorted((line for line in calls.lines(report) if _has_line(line)), key=lambda line: line.ended)
    called = {line.layer_id for line in lines}
    rows = []
    for number, line in enumerate(lines, 1):
        line.set_leftover(called)
        outputs = [[batch_size, *shape[1:]] for shape in line.outputs]
        params = line.num_params if line.is_leaf_layer else line.leftover_params()
        rows.append((0, (f"{line.class_name}-{number}", outputs[0] if len(outputs) == 1 else outputs, params)))
    given = tensors_in([args, dict(kwargs or {})])
    # A size is printed for `batch_size` samples; the call had as many as its inputs.
    scale = abs(batch_size) / (given[0].shape[0] if given and given[0].dim() else 1)
    parameters = list(model.parameters())
    total = sum(p.numel() for p in parameters)
    trainable = sum(p.numel() for p in parameters if p.requires_grad)
    sizes = {"Input size": scale * sum(tensor.nbytes for tensor in given)}
    sizes["Forward/backward pass size"] = scale * 2 * sum(line.outputs_bytes for line in lines)
    sizes["Params size"] = sum(p.nbytes for p in parameters)
    sizes["Estimated Total Size"] = sum(sizes.values())
    facts: dict[str, Any] = {
        "Total params": total,
        "Trainable params": trainable,
        "Non-trainable params": total - trainable,
    }
    facts |= {f"{name} (MB)": f"{size / 1024**2:.2f}" for name, size in sizes.items()}
    return shown(("Layer (type)", "Output Shape", "Param #"), rows, facts), (total, trainable)


def _has_line(line: LayerInfo) -> bool:
    """Return True for a call with a line; the model has one only where nothing else would."""
    is_container = isinstance(line.module, (nn.Sequential, nn.ModuleList)) or line.class_name in {
        "Sequential",
        "ModuleList",
    }
    return bool(line.ended) and (not is_container if line.depth else line.is_leaf_layer)
