"""How DeepSpeed's profiler counts, and calflops after it, as data: FLOPs of one operator in one module.

Two for each multiply-accumulate, one for each bias of a convolution and none for that of a linear layer, and a fixed
weight for each element of the operators named here. All others have their multiply-accumulates alone.
"""

from __future__ import annotations

from torch import nn

from roofprof.compat._per_element import Handle, Observed, batch_norm, nothing, per_input, per_output, statistics_norm


def flops(op: Observed) -> int:
    """The convention's FLOPs of all calls of an operator in a module, in the forward."""
    name = op.operator.removesuffix("_")
    if name in _FLOPS_BY_OPERATOR:
        return int(_FLOPS_BY_OPERATOR[name](op))
    if "upsample" in name:
        return per_output(op)
    products = 2 * op.figures.macs
    return max(products, op.figures.flops) if "conv" in name and products else products


def macs(op: Observed) -> int:
    """The multiply-accumulates."""
    return op.figures.macs


def _elementwise(op: Observed) -> int:
    """1 for each output element; none for integers, nor for what a dropout layer multiplies by its mask."""
    if not op.figures.flops or isinstance(op.module, nn.modules.dropout._DropoutNd):
        return 0
    return per_output(op)


def _product_and_sum(op: Observed) -> int:
    return 2 * op.figures.macs + per_output(op)


# By operator: for each hidden unit and step the gates, and the operations beside the products and the biases.
_RECURRENT = {"rnn_tanh": (1, 1), "rnn_relu": (1, 1), "gru": (3, 7), "lstm": (4, 10)}


def _recurrent(op: Observed) -> int:
    """A row of n products has n - 1 additions; biases are two additions for each gate."""
    products = 2 * op.figures.macs
    input_size, hidden_size = (int(getattr(op.module, name, 0)) for name in ("input_size", "hidden_size"))
    if not input_size:
        return products  # called without its module
    gates, others = _RECURRENT[op.operator.removeprefix("aten::").removesuffix("_cell")]
    cells = getattr(op.module, "num_layers", 1) * (2 if getattr(op.module, "bidirectional", False) else 1)
    per_unit = others - 2 * gates + (2 * gates if getattr(op.module, "bias", False) else 0)
    steps = op.figures.input_elements // input_size
    return products + steps * cells * hidden_size * per_unit


_POOLS = [f"{kind}_pool{dims}d" for kind in ("max", "avg", "adaptive_max", "adaptive_avg") for dims in (1, 2, 3)]
_POOLS += [f"max_pool{dims}d_with_indices" for dims in (1, 2, 3)]
_PER_INPUT = ["relu", "relu6", "prelu", "_prelu_kernel", "elu", "leaky_relu", "silu", "gelu", "softmax", "_softmax"]
# The names that begin with "native" or "_" are what TorchScript's executor and exported graphs call.
_BATCH_NORMS = ["batch_norm", "_batch_norm_impl_index", "native_batch_norm", "_native_batch_norm_legit_no_training"]
_NORMS = ["layer_norm", "group_norm", "instance_norm", "native_layer_norm", "native_group_norm"]

_FLOPS_BY_OPERATOR: dict[str, Handle] = {
    f"aten::{name}": handle
    for handle, names in (
        (per_input, [*_PER_INPUT, *_POOLS]),
        (batch_norm, _BATCH_NORMS),
        (statistics_norm, _NORMS),
        (_elementwise, ["add", "mul"]),
        (_product_and_sum, ["addmm", "baddbmm"]),
        (_recurrent, [*_RECURRENT, *(f"{name}_cell" for name in _RECURRENT)]),
        (nothing, ["embedding"]),
    )
    for name in names
}
