"""Weights for each element that several tools share, of all calls of one operator in one module."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch

from roofprof import GroupRow


class Observed(NamedTuple):
    """All calls of one operator in one module."""

    operator: str  # "aten::conv2d"
    figures: GroupRow  # macs, calls, input_elements, output_elements, ...
    module: torch.nn.Module | None  # whose own op it is; None: of no module


Handle = Callable[[Observed], float]

_NORMS = (
    torch.nn.modules.batchnorm._NormBase,
    torch.nn.LayerNorm,
    torch.nn.GroupNorm,
)


# The names that begin with "native" or "_" are what TorchScript's executor and exported graphs call.
ACTIVATIONS = ("relu", "relu6", "prelu", "_prelu_kernel", "elu", "leaky_relu", "silu", "gelu", "softmax", "_softmax")
BATCH_NORMS = ("batch_norm", "_batch_norm_impl_index", "native_batch_norm", "_native_batch_norm_legit_no_training")
LAYER_NORMS = ("layer_norm", "native_layer_norm")
GROUP_NORMS = ("group_norm", "native_group_norm", "instance_norm")
POOLINGS = (
    *(f"{kind}_pool{dims}d" for kind in ("max", "avg", "adaptive_max", "adaptive_avg") for dims in (1, 2, 3)),
    *(f"max_pool{dims}d_with_indices" for dims in (1, 2, 3)),
)


def by_operator(*rules: tuple[Handle, Iterable[str]]) -> dict[str, Handle]:
    """Return the rule of each operator of ATen, by its name without "aten::"."""
    return {f"aten::{name}": handle for handle, names in rules for name in names}


def nothing(_: Observed) -> int:
    """Known, and counted as no work."""
    return 0


def per_input(op: Observed) -> int:
    """Return 1 for each input element."""
    return op.figures.input_elements


def per_output(op: Observed) -> int:
    """Return 1 for each output element."""
    return op.figures.output_elements


def is_affine(op: Observed) -> bool:
    """Return True for a norm with a weight."""
    # A functional call does not say; nearly all pass a weight.
    return not isinstance(op.module, _NORMS) or op.module.weight is not None


def statistics_norm(op: Observed) -> int:
    """Return 5 for each element, 4 without a weight: mean, variance and the rest, roughly."""
    return op.figures.input_elements * (5 if is_affine(op) else 4)


def batch_norm(op: Observed) -> int:
    """Return 2 for each element, 1 without a weight; with the batch's own statistics, the count of other norms."""
    # roofprof counts 2 for each element where the statistics are given, and more where the op computes them.
    if op.figures.flops > 2 * op.figures.input_elements:
        return statistics_norm(op)
    return op.figures.input_elements * (2 if is_affine(op) else 1)


def relu6(op: Observed) -> int:
    """Return 1 for each input element of a ReLU6, which inherits from Hardtanh; 0 for any other Hardtanh."""
    return per_input(op) if isinstance(op.module, torch.nn.ReLU6) else 0


def elementwise(op: Observed) -> int:
    """Return 1 for each output element; 0 for integers, and for a dropout layer's product with its mask."""
    if not op.figures.flops or isinstance(op.module, torch.nn.modules.dropout._DropoutNd):
        return 0
    return per_output(op)


class Recurrence(NamedTuple):
    """The sizes of recurrent layers and cells that three tools share, for all work but the matrix products."""

    units: int  # hidden units x steps x samples x layers x directions
    gates: int
    others: int  # sums of the two products, and element-wise products and sums, for each unit
    bias: bool


_RECURRENT = {"rnn_tanh": (1, 1), "rnn_relu": (1, 1), "gru": (3, 7), "lstm": (4, 10)}
RECURRENT = (*_RECURRENT, *(f"{name}_cell" for name in _RECURRENT))


def recurrence(op: Observed) -> Recurrence:
    """Return the sizes of an operator of :data:`RECURRENT`; without its module they are unknown, and units are 0."""
    input_size, hidden_size = (int(getattr(op.module, name, 0)) for name in ("input_size", "hidden_size"))
    gates, others = _RECURRENT[op.operator.removeprefix("aten::").removesuffix("_cell")]
    cells = getattr(op.module, "num_layers", 1) * (2 if getattr(op.module, "bidirectional", False) else 1)
    steps = op.figures.input_elements // input_size if input_size else 0
    return Recurrence(steps * cells * hidden_size, gates, others, bool(getattr(op.module, "bias", False)))
