"""The convention of torchstat, as data: MAdd, Flops and the elements read and written, for each type of layer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import nn


@dataclass(frozen=True)
class LayerWork:
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


Count = Callable[[LayerWork], int]


class Rule(NamedTuple):
    """MAdd, Flops, and the elements that are read and written; None: torchstat has none, so that it says 0."""

    types: tuple[type[nn.Module], ...]
    madd: Count | None = None
    flops: Count | None = None
    read: Count | None = None
    written: Count | None = None


def _conv_madd(work: LayerWork) -> int:
    """Return a product and an addition for each MAC; the first addition is the bias, or none."""
    return 2 * work.macs - (0 if work.has_bias else work.outputs)


def _transposed_madd(work: LayerWork) -> int:
    """Return the count of a convolution; without a bias, 1 less for each position of the input and output channel."""
    positions = work.inputs // work.module.in_channels
    return 2 * work.macs - (0 if work.has_bias else positions * work.module.out_channels)


def _conv_flops(work: LayerWork) -> int:
    """Return the products and the additions of the bias."""
    return work.macs + (work.outputs if work.has_bias else 0)


def _linear_madd(work: LayerWork) -> int:
    """Return the products and additions without the bias."""
    return 2 * work.macs - work.outputs


def _softmax_madd(work: LayerWork) -> int:
    """Return an exponential and a division for each element, additions for all but one of a sample."""
    return 3 * work.inputs - work.samples * work.calls


def _window(work: LayerWork) -> int:
    size = work.module.kernel_size
    return math.prod(size) if isinstance(size, (tuple, list)) else int(size) ** 2


def _batch_norm_flops(work: LayerWork) -> int:
    return work.inputs * (2 if work.module.affine else 1)


def _inputs(work: LayerWork) -> int:
    return work.inputs


def _outputs(work: LayerWork) -> int:
    return work.outputs


def _macs(work: LayerWork) -> int:
    return work.macs


def _inputs_and_params(work: LayerWork) -> int:
    """Return the inputs, and the parameters once for each sample, as torchstat reads them."""
    return work.inputs + work.calls * work.samples * work.params


def _inputs_and_statistics(work: LayerWork) -> int:
    return work.inputs + work.calls * work.samples * 2 * int(work.module.num_features)


RULES = (
    Rule((nn.Conv2d,), _conv_madd, _conv_flops, _inputs_and_params, _outputs),
    Rule((nn.ConvTranspose2d,), _transposed_madd),
    Rule((nn.BatchNorm2d,), lambda w: 4 * w.inputs, _batch_norm_flops, _inputs_and_statistics, _inputs),
    Rule((nn.MaxPool2d,), lambda w: (_window(w) - 1) * w.outputs, _inputs, _inputs, _outputs),
    Rule((nn.AvgPool2d,), lambda w: _window(w) * w.outputs, _inputs, _inputs, _outputs),
    Rule((nn.ReLU, nn.ReLU6), _inputs, _inputs, _inputs, _inputs),
    Rule((nn.ELU, nn.LeakyReLU), None, _inputs, _inputs, _inputs),
    Rule((nn.PReLU,), None, _inputs, _inputs_and_params, _inputs),
    Rule((nn.Softmax,), _softmax_madd),
    Rule((nn.Upsample,), None, _outputs),
    Rule((nn.Linear,), _linear_madd, _macs, _inputs_and_params, _outputs),
)


def rule_of(module: nn.Module) -> Rule | None:
    """Return the rule for the module's type and those derived from it; None where torchstat has none."""
    return next((rule for rule in RULES if isinstance(module, rule.types)), None)
