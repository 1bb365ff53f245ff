"""The convention of thop, as data: multiply-accumulates, and for some types of modules an extra by element or step.

Only exact types have an extra, as in thop. Every other module counts the MACs that it does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from roofprof import GroupRow

# A rule f(module, inputs, output) returns what thop adds to the MACs of a module's call.
Extra = Callable[[Any, tuple[Any, ...], Any], float]


def _norm(module: Any, inputs: tuple[Any, ...], _: Any) -> int:
    """Return 2 for each element (subtract, divide), 4 with weight and bias."""
    affine = getattr(module, "affine", False) or getattr(module, "elementwise_affine", False)
    return int(inputs[0].numel()) * (4 if affine else 2)


def _per_input(_module: Any, inputs: tuple[Any, ...], _: Any) -> int:
    return int(inputs[0].numel())


def _per_output(_module: Any, _: tuple[Any, ...], output: Any) -> int:
    return int(output.numel())


def _adaptive_average(_module: Any, inputs: tuple[Any, ...], output: Any) -> int:
    """Return an addition for each element of the windows, a division for each output."""
    return int(inputs[0].numel() + output.numel())


def _softmax(module: Any, inputs: tuple[Any, ...], _: Any) -> int:
    """Return an exponential and a division for each element, additions for all but one of each row."""
    x = inputs[0]
    dim = module.dim if module.dim is not None else 0 if x.dim() in {0, 1, 3} else 1
    return int(3 * x.numel() - (x.numel() // x.size(dim) if x.numel() else 0))


# The weights are for each output element; trilinear, area and the exact nearest count nothing.
_INTERPOLATION = {"nearest": 1, "linear": 5, "bilinear": 11, "bicubic": 224 + 35}


def _upsample(module: Any, _: tuple[Any, ...], output: Any) -> int:
    return int(output.numel()) * _INTERPOLATION.get(module.mode, 0)


# One step of one cell, for each hidden unit: (gates, element-wise operations apart from the gates' MACs). A gate adds 1
# for the sum of its two products, and 2 with biases.
_RECURRENT = {
    nn.RNNCell: (1, 0),
    nn.GRUCell: (3, 4),  # r * (...), (1 - z) * n + z * h
    nn.LSTMCell: (4, 4),  # f * c + i * g, o * tanh(c)
    nn.RNN: (1, 0),
    nn.GRU: (3, 4),
    nn.LSTM: (4, 4),
}


def _recurrent(module: Any, inputs: tuple[Any, ...], _: Any) -> int:
    gates, others = _RECURRENT[type(module)]
    per_unit = gates * (3 if module.bias else 1) + others
    cells = getattr(module, "num_layers", 1) * (2 if getattr(module, "bidirectional", False) else 1)
    return int(cells * module.hidden_size * per_unit * _samples(inputs[0]))


def _samples(x: Any) -> int:
    """Return steps x batch: each is one row of features."""
    data: torch.Tensor = x.data if isinstance(x, nn.utils.rnn.PackedSequence) else x
    return math.prod(int(size) for size in data.shape[:-1])


EXTRAS: dict[type[nn.Module], Extra] = (
    dict.fromkeys((nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm, nn.LayerNorm), _norm)
    | dict.fromkeys((nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d), _norm)
    | dict.fromkeys((nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d), _per_output)
    | dict.fromkeys((nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d), _adaptive_average)
    | dict.fromkeys((nn.Upsample, nn.UpsamplingBilinear2d, nn.UpsamplingNearest2d), _upsample)
    | dict.fromkeys(_RECURRENT, _recurrent)
    | {nn.PReLU: _per_input, nn.Softmax: _softmax}
)

WITHOUT_EXTRA = (
    *(nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d, nn.Linear),
    *(nn.ZeroPad2d, nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.Dropout, nn.PixelShuffle, nn.Sequential),
    *(nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d),
    *(nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d),
)
"""Types that thop knows and that count their MACs alone."""


def extra_in_torchscript(operator: str, figures: GroupRow) -> int:
    """Return the extra by operator, for ops inside TorchScript, where no module is seen.

    Norms are taken for affine, but for instance norms, which are not by default. Softmax and recurrent layers count
    their MACs alone: their sizes are not in the sums.
    """
    per_input, per_output = _BY_OPERATOR.get(operator, (0, 0))
    return per_input * figures.input_elements + per_output * figures.output_elements


# (for each input element, for each output element)
_BY_OPERATOR: dict[str, tuple[int, int]] = (
    {"aten::batch_norm": (4, 0), "aten::layer_norm": (4, 0), "aten::instance_norm": (2, 0), "aten::prelu": (1, 0)}
    | {f"aten::avg_pool{dims}d": (0, 1) for dims in (1, 2, 3)}
    | {f"aten::adaptive_avg_pool{dims}d": (1, 1) for dims in (1, 2, 3)}
    | {"aten::upsample_nearest1d": (0, 1), "aten::upsample_nearest2d": (0, 1), "aten::upsample_nearest3d": (0, 1)}
    | {"aten::upsample_linear1d": (0, 5), "aten::upsample_bilinear2d": (0, 11), "aten::upsample_bicubic2d": (0, 259)}
)


def rule_of(module: nn.Module) -> str | None:
    """Return the rule for a module's type in words; None where thop has none."""
    extra = EXTRAS.get(type(module))
    if extra is None:
        return "MACs" if type(module) in WITHOUT_EXTRA else None
    return f"MACs + {extra.__name__.strip('_').replace('_', ' ')}"


def first_tensors(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return a call's inputs in the order of the rules: keyword arguments follow the others."""
    return (*args, *kwargs.values())


def as_number(value: Any) -> float:
    """Return the ``total_ops`` of a custom rule, which is a number or a tensor of one."""
    return float(value.item() if isinstance(value, torch.Tensor) else value)
