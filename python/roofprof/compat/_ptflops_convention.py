"""The convention of ptflops, as data: the MACs, in its words, of one operator in one module.

One for each multiply-accumulate and each bias, and a fixed weight for each element of the operators named here. All
others have their multiply-accumulates alone.
"""

from __future__ import annotations

import math

from roofprof.compat import _per_element as each
from roofprof.compat._per_element import Observed


def macs(op: Observed) -> int:
    """Return the convention's MACs of all calls of an operator in a module: the backend "pytorch"."""
    name = op.operator.removesuffix("_")
    if name in _MACS_BY_OPERATOR:
        return int(_MACS_BY_OPERATOR[name](op))
    if "upsample" in name:
        return each.per_output(op)
    if "deform_conv" in name:
        return _deformable(op)
    return _with_bias(op) if "conv" in name else op.figures.macs


def aten_macs(op: Observed) -> int:
    """Return the convention's MACs of an operator below autograd: the backend "aten"."""
    return _with_bias(op) if "convolution" in op.operator or op.operator == "aten::addmm" else op.figures.macs


def _with_bias(op: Observed) -> int:
    """Return 1 for each MAC and each bias: roofprof's FLOPs are 2 for each MAC and 1 for each bias."""
    return max(op.figures.macs, op.figures.flops - op.figures.macs)


def _product_and_sum(op: Observed) -> int:
    return op.figures.macs + each.per_output(op)


def _affine_norm(op: Observed) -> int:
    return op.figures.input_elements * (2 if each.is_affine(op) else 1)


def _attention(op: Observed) -> int:
    """Return the MACs; in a module with known heads' size also the scaled queries and the softmax's elements."""
    head_size = getattr(op.module, "head_dim", 0)
    if not isinstance(head_size, int) or head_size < 1:
        return op.figures.macs
    return op.figures.macs + each.per_input(op) + op.figures.macs // (2 * head_size)


def _recurrent(op: Observed) -> int:
    units, gates, others, bias = each.recurrence(op)
    return op.figures.macs + units * (others + (2 * gates if bias else 0))


_PER_SAMPLE = 20 + 4  # a bilinear interpolation, and the coordinates


def _deformable(op: Observed) -> int:
    """Return the MACs, the biases, and the interpolation of each kernel element at each position."""
    channels, kernel = (getattr(op.module, name, 0) for name in ("out_channels", "kernel_size"))
    if not channels:
        return op.figures.macs
    elements = math.prod(kernel if isinstance(kernel, tuple) else (kernel, kernel))
    biases = 0 if getattr(op.module, "bias", None) is None else op.figures.output_elements
    return op.figures.macs + biases + _PER_SAMPLE * elements * (op.figures.output_elements // channels)


_MACS_BY_OPERATOR = each.by_operator(
    (each.per_input, [*each.ACTIVATIONS, *each.POOLINGS, *each.LAYER_NORMS]),
    (_affine_norm, [*each.BATCH_NORMS, *each.GROUP_NORMS]),
    (each.relu6, ["hardtanh"]),
    (each.elementwise, ["add", "mul"]),
    (_with_bias, ["linear"]),
    (_product_and_sum, ["addmm", "baddbmm"]),
    (_attention, ["scaled_dot_product_attention"]),
    (_recurrent, each.RECURRENT),
    (each.nothing, ["embedding"]),
)
