"""How fvcore counts, as data: one FLOP for a multiply-accumulate, and a fixed weight for each element of a few ops."""

from __future__ import annotations

from collections.abc import Callable
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


def _is_affine(op: Observed) -> bool:
    # A functional call does not say; nearly all pass a weight.
    return not isinstance(op.module, _NORMS) or op.module.weight is not None


def _statistics_norm(op: Observed) -> int:
    """5 for each element, 4 without a weight: mean, variance and the rest, roughly."""
    return op.figures.input_elements * (5 if _is_affine(op) else 4)


def _batch_norm(op: Observed) -> int:
    """With running statistics 2 for each element, 1 without a weight; with the batch's own as other norms."""
    # Our own count of the op: 2 for each element where the statistics are given.
    if op.figures.flops > 2 * op.figures.input_elements:
        return _statistics_norm(op)
    return op.figures.input_elements * (2 if _is_affine(op) else 1)


def _per_input(op: Observed) -> int:
    return op.figures.input_elements


def _per_output(op: Observed) -> int:
    return op.figures.output_elements


def _four_per_output(op: Observed) -> int:
    return 4 * op.figures.output_elements


FLOPS_BY_OPERATOR: dict[str, Handle] = {
    "aten::batch_norm": _batch_norm,
    "aten::group_norm": _statistics_norm,
    "aten::layer_norm": _statistics_norm,
    "aten::instance_norm": _statistics_norm,
    "aten::upsample_nearest2d": _per_output,
    "aten::upsample_bilinear2d": _four_per_output,
    "aten::adaptive_avg_pool2d": _per_input,
    "aten::grid_sampler": _four_per_output,
}
"""Beside these, every op with multiply-accumulates counts one for each, whatever its name."""

ACTIVATIONS_BY_OPERATOR: dict[str, Handle] = dict.fromkeys(
    ["aten::addmm", "aten::bmm", "aten::einsum", "aten::matmul", "aten::linear"], _per_output
)
"""Beside these, convolutions: the elements of what they return."""

_IGNORED = (
    *("arange", "bitwise_not", "clamp", "clamp_", "constant_pad_nd", "dropout", "eq", "floor", "floor_divide"),
    *("gather", "ge", "gt", "index", "index_put_", "masked_fill", "max", "nonzero", "relu", "relu_", "remainder"),
    "roll",
)
IGNORED = frozenset(f"aten::{name}" for name in _IGNORED)
"""Ops with arithmetic that fvcore takes for none, so that it does not list them as unsupported."""


def is_convolution(operator: str) -> bool:
    """Whether fvcore calls the operator "conv"."""
    return operator.startswith("aten::") and "conv" in operator


def short_name(operator: str) -> str:
    """The name that fvcore gives the operator: without namespace, one for all convolutions."""
    return "conv" if is_convolution(operator) else operator.partition("::")[2] or operator
