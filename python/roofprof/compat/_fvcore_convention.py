"""The convention of fvcore, as data: one FLOP for a multiply-accumulate, fixed weights by element for a few ops."""

from __future__ import annotations

from roofprof.compat._per_element import Handle, Observed, batch_norm, per_input, per_output, statistics_norm


def _four_per_output(op: Observed) -> int:
    return 4 * op.figures.output_elements


FLOPS_BY_OPERATOR: dict[str, Handle] = {
    "aten::batch_norm": batch_norm,
    "aten::group_norm": statistics_norm,
    "aten::layer_norm": statistics_norm,
    "aten::instance_norm": statistics_norm,
    "aten::upsample_nearest2d": per_output,
    "aten::upsample_bilinear2d": _four_per_output,
    "aten::adaptive_avg_pool2d": per_input,
    "aten::grid_sampler": _four_per_output,
}
"""Every other op counts 1 for each of its multiply-accumulates, whatever its name."""

ACTIVATIONS_BY_OPERATOR: dict[str, Handle] = dict.fromkeys(
    ["aten::addmm", "aten::bmm", "aten::einsum", "aten::matmul", "aten::linear"], per_output
)
"""Convolutions count as well: the elements of their outputs."""

_IGNORED = (
    *("arange", "bitwise_not", "clamp", "clamp_", "constant_pad_nd", "dropout", "eq", "floor", "floor_divide"),
    *("gather", "ge", "gt", "index", "index_put_", "masked_fill", "max", "nonzero", "relu", "relu_", "remainder"),
    "roll",
)
IGNORED = frozenset(f"aten::{name}" for name in _IGNORED)
"""Ops with arithmetic that fvcore takes for none, so that it does not list them as unsupported."""


def is_convolution(operator: str) -> bool:
    """Return True when fvcore calls the operator "conv"."""
    return operator.startswith("aten::") and "conv" in operator


def short_name(operator: str) -> str:
    """Return fvcore's name of the operator: without namespace, and one name for all convolutions."""
    return "conv" if is_convolution(operator) else operator.partition("::")[2] or operator
