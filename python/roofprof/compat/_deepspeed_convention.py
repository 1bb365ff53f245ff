"""The convention of DeepSpeed's profiler, which calflops took over, as data: FLOPs of one operator in one module.

Two for each multiply-accumulate, one for each bias of a convolution and none for that of a linear layer, and a fixed
weight for each element of the operators named here. All others have their multiply-accumulates alone.
"""

from __future__ import annotations

from torch import nn

from roofprof.compat import _per_element as each
from roofprof.compat._per_element import Observed


def flops(op: Observed) -> int:
    """Return the convention's FLOPs of all calls of an operator in a module."""
    if type(op.module) is nn.Linear:  # torch.func takes its bias apart
        return 2 * op.figures.macs
    name = op.operator.removesuffix("_")
    if name in _FLOPS_BY_OPERATOR:
        return int(_FLOPS_BY_OPERATOR[name](op))
    if "upsample" in name:
        return each.per_output(op)
    products = 2 * op.figures.macs
    return max(products, op.figures.flops) if "conv" in name and products else products


def macs(op: Observed) -> int:
    """Return the multiply-accumulates."""
    return op.figures.macs


def _product_and_sum(op: Observed) -> int:
    return 2 * op.figures.macs + each.per_output(op)


def _recurrent(op: Observed) -> int:
    """Return the flops of a recurrent op: a row of n products has n - 1 additions; biases add two for each gate."""
    units, gates, others, bias = each.recurrence(op)
    return 2 * op.figures.macs + units * (others - 2 * gates + (2 * gates if bias else 0))


_FLOPS_BY_OPERATOR = each.by_operator(
    (each.per_input, [*each.ACTIVATIONS, *each.POOLINGS]),
    (each.batch_norm, each.BATCH_NORMS),
    (each.statistics_norm, [*each.LAYER_NORMS, *each.GROUP_NORMS]),
    (each.relu6, ["hardtanh"]),
    (each.elementwise, ["add", "mul"]),
    (_product_and_sum, ["addmm", "baddbmm"]),
    (_recurrent, each.RECURRENT),
    (each.nothing, ["embedding"]),
)
