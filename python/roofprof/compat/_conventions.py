"""The counting rules of each tool for an operator's calls in one module, as data; _layers has torchinfo's."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

from torch import nn
from torch.jit import ScriptModule
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from roofprof import GroupRow


class Observed(NamedTuple):
    """All calls of one operator in one module."""

    operator: str  # "aten::conv2d"
    figures: GroupRow  # macs, calls, input_elements, output_elements, ...
    module: nn.Module | None  # whose own op it is; None: of no module


Handle = Callable[[Observed], float]

# ---- operators, and what they count in several tools

# The names that begin with "native" or "_" are what TorchScript's executor and exported graphs call.
_ACTIVATIONS = ("relu", "relu6", "prelu", "_prelu_kernel", "elu", "leaky_relu", "silu", "gelu", "softmax", "_softmax")
_BATCH_NORMS = ("batch_norm", "_batch_norm_impl_index", "native_batch_norm", "_native_batch_norm_legit_no_training")
_LAYER_NORMS = ("layer_norm", "native_layer_norm")
_GROUP_NORMS = ("group_norm", "native_group_norm", "instance_norm")
_POOLINGS = (
    *(f"{kind}_pool{dims}d" for kind in ("max", "avg", "adaptive_max", "adaptive_avg") for dims in (1, 2, 3)),
    *(f"max_pool{dims}d_with_indices" for dims in (1, 2, 3)),
)
# Each kind's gates, and its other operations for each hidden unit: adding the two products, and element-wise ones.
_RECURRENT = {"rnn_tanh": (1, 1), "rnn_relu": (1, 1), "gru": (3, 7), "lstm": (4, 10)}
_RECURRENT_NAMES = (*_RECURRENT, *(f"{name}_cell" for name in _RECURRENT))


macs: Callable[[Observed], int] = attrgetter("figures.macs")
_per_input: Callable[[Observed], int] = attrgetter("figures.input_elements")
_per_output: Callable[[Observed], int] = attrgetter("figures.output_elements")


def _is_affine(op: Observed) -> bool:
    """Return True for a norm with a weight. A functional call does not say: nearly all pass one."""
    return not isinstance(op.module, (_NormBase, nn.LayerNorm, nn.GroupNorm)) or op.module.weight is not None


def _statistics_norm(op: Observed) -> int:
    """Return 5 for each element, 4 without a weight: mean, variance and the rest, roughly."""
    return op.figures.input_elements * (5 if _is_affine(op) else 4)


def _affine_norm(op: Observed) -> int:
    return op.figures.input_elements * (2 if _is_affine(op) else 1)


def _batch_norm(op: Observed) -> int:
    """Return 2 for each element, 1 without a weight; with the batch's own statistics, the count of other norms."""
    # roofprof counts 2 for each element where the statistics are given, and more where the op computes them.
    return _statistics_norm(op) if op.figures.flops > 2 * op.figures.input_elements else _affine_norm(op)


def _elementwise(op: Observed) -> int:
    """Return 1 for each output element; 0 for integers, and for a dropout layer's product with its mask."""
    return 0 if not op.figures.flops or isinstance(op.module, _DropoutNd) else _per_output(op)


def _recurrence(op: Observed) -> tuple[int, int, int, int]:
    """Return units x steps x samples x layers x directions (0 without the module), gates, others, biases of a gate."""
    input_size, hidden_size = (int(getattr(op.module, name, 0)) for name in ("input_size", "hidden_size"))
    gates, others = _RECURRENT[op.operator.removeprefix("aten::").removesuffix("_cell")]
    cells = getattr(op.module, "num_layers", 1) * (2 if getattr(op.module, "bidirectional", False) else 1)
    steps = op.figures.input_elements // input_size if input_size else 0
    return steps * cells * hidden_size, gates, others, 2 if getattr(op.module, "bias", False) else 0


# ---- DeepSpeed's profiler and calflops: the FLOPs of the forward; ptflops: what it calls MACs, by backend


def deepspeed_flops(op: Observed) -> int:
    """Return the FLOPs of all calls of an operator in a module."""
    name, products = op.operator.removesuffix("_"), 2 * op.figures.macs
    if type(op.module) is nn.Linear:  # torch.func takes its bias apart
        return products
    if name in _WEIGHTS or "upsample" in name:
        return int(_WEIGHTS.get(name, (_per_output,))[0](op))
    return max(products, op.figures.flops) if "conv" in name and products else products


def ptflops_macs(op: Observed) -> int:
    """Return the MACs of all calls of an operator in a module: the backend "pytorch"."""
    name = op.operator.removesuffix("_")
    if name in _WEIGHTS or "upsample" in name:
        return int(_WEIGHTS.get(name, (_per_output,))[-1](op))
    return _deformable(op) if "deform_conv" in name else _with_bias(op) if "conv" in name else op.figures.macs


def ptflops_aten_macs(op: Observed) -> int:
    """Return the MACs of an operator below autograd: the backend "aten"."""
    return _with_bias(op) if "convolution" in op.operator or op.operator == "aten::addmm" else op.figures.macs


def _with_bias(op: Observed) -> int:
    """Return 1 for each MAC and each bias: roofprof's FLOPs are 2 for each MAC and 1 for each bias."""
    return max(op.figures.macs, op.figures.flops - op.figures.macs)


def _attention(op: Observed) -> int:
    """Return the MACs; in a module with known heads' size also the scaled queries and the softmax's elements."""
    size = getattr(op.module, "head_dim", 0)
    known = isinstance(size, int) and size > 0
    return op.figures.macs + (op.figures.input_elements + op.figures.macs // (2 * size) if known else 0)


def _recurrent_flops(op: Observed) -> int:
    """Return the flops of a recurrent op: a row of n products has n - 1 additions; biases add two for each gate."""
    units, gates, others, biases = _recurrence(op)
    return 2 * op.figures.macs + units * (others - 2 * gates + biases * gates)


def _recurrent_macs(op: Observed) -> int:
    units, gates, others, biases = _recurrence(op)
    return op.figures.macs + units * (others + biases * gates)


def _deformable(op: Observed) -> int:
    """Return the MACs, the biases, and 20 of a bilinear interpolation and 4 of coordinates for each kernel element."""
    channels, kernel = (getattr(op.module, name, 0) for name in ("out_channels", "kernel_size"))
    window = math.prod(kernel if isinstance(kernel, tuple) else (kernel, kernel))
    samples = window * (op.figures.output_elements // channels) if channels else 0
    biases = op.figures.output_elements if getattr(op.module, "bias", None) is not None and channels else 0
    return op.figures.macs + biases + (20 + 4) * samples


# Each operator's rules: DeepSpeed's and ptflops', or one rule that both share.
_WEIGHTS: dict[str, tuple[Handle, ...]] = {
    f"aten::{name}": handles
    for names, handles in (
        ((*_ACTIVATIONS, *_POOLINGS), (_per_input,)),
        (_BATCH_NORMS, (_batch_norm, _affine_norm)),
        (_LAYER_NORMS, (_statistics_norm, _per_input)),
        (_GROUP_NORMS, (_statistics_norm, _affine_norm)),
        (["hardtanh"], (lambda op: op.figures.input_elements * isinstance(op.module, nn.ReLU6),)),  # its base class
        (["add", "mul"], (_elementwise,)),
        (
            ["addmm", "baddbmm"],
            (lambda op: 2 * op.figures.macs + _per_output(op), lambda op: op.figures.macs + _per_output(op)),
        ),
        (["linear"], (lambda op: 2 * op.figures.macs, _with_bias)),
        (["scaled_dot_product_attention"], (lambda op: 2 * op.figures.macs, _attention)),
        (_RECURRENT_NAMES, (_recurrent_flops, _recurrent_macs)),
        (["embedding"], (lambda _: 0,)),
    )
    for name in names
}


# ---- thop: MACs, and an extra for layers of exactly these types, in operators with these words in their names

THOP_TYPES: dict[type, str] = {
    kind: operator
    for operator, kinds in {
        "batch_norm": (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm),
        "layer_norm": (nn.LayerNorm,),
        "instance_norm": (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d),
        "prelu": (nn.PReLU,),
        "avg_pool": (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d),
        "adaptive_avg_pool": (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d),
        "upsample": (nn.Upsample, nn.UpsamplingBilinear2d, nn.UpsamplingNearest2d),
        "rnn": (nn.RNN, nn.RNNCell),
        "gru": (nn.GRU, nn.GRUCell),
        "lstm": (nn.LSTM, nn.LSTMCell),
    }.items()
    for kind in kinds
}
# Each operator's extra for an input element (of a norm with weight and bias) and for an output element.
_THOP: dict[str, tuple[int, int]] = (
    dict.fromkeys(("batch_norm", "layer_norm", "instance_norm"), (4, 0))
    | {"prelu": (1, 0), "_prelu_kernel": (1, 0)}
    | {f"avg_pool{dims}d": (0, 1) for dims in (1, 2, 3)}
    | {f"adaptive_avg_pool{dims}d": (1, 1) for dims in (1, 2, 3)}
    | {f"upsample_nearest{dims}d": (0, 1) for dims in (1, 2, 3)}
    | {"upsample_linear1d": (0, 5), "upsample_bilinear2d": (0, 11), "upsample_bicubic2d": (0, 224 + 35)}
)


def thop_macs(op: Observed) -> int:
    """Return the MACs and the extra. In TorchScript the operator decides: all norms but instance norms are affine."""
    name, scripted = op.operator.removeprefix("aten::"), isinstance(op.module, ScriptModule)
    if not scripted and THOP_TYPES.get(type(op.module), "nothing") not in name:
        return op.figures.macs
    if name in _RECURRENT_NAMES:
        units, gates, _, biases = (0, 0, 0, 0) if scripted else _recurrence(op)
        return op.figures.macs + units * (gates * (1 + biases) + (0 if gates == 1 else 4))
    per_input, per_output = _THOP.get(name, (0, 0))
    if name.endswith("_norm") and (name == "instance_norm" if scripted else not _is_affine(op)):
        per_input = 2
    return op.figures.macs + per_input * op.figures.input_elements + per_output * op.figures.output_elements


# ---- fvcore: every operator that has no rule counts its MACs

FVCORE_FLOPS: dict[str, Handle | None] = {
    "aten::batch_norm": _batch_norm,
    **dict.fromkeys(("aten::group_norm", "aten::layer_norm", "aten::instance_norm"), _statistics_norm),
    "aten::upsample_nearest2d": _per_output,
    **dict.fromkeys(("aten::upsample_bilinear2d", "aten::grid_sampler"), lambda op: 4 * op.figures.output_elements),
    "aten::adaptive_avg_pool2d": _per_input,
}
FVCORE_ACTIVATIONS: dict[str, Handle | None] = {
    f"aten::{name}": _per_output for name in ("addmm", "bmm", "einsum", "matmul", "linear")
}
# Ops whose arithmetic fvcore ignores, so that it does not list them as unsupported.
FVCORE_IGNORED = frozenset(
    f"aten::{name}"
    for name in (
        *("arange", "bitwise_not", "clamp", "clamp_", "constant_pad_nd", "dropout", "eq", "floor", "floor_divide"),
        *("gather", "ge", "gt", "index", "index_put_", "masked_fill", "max", "nonzero", "relu", "relu_", "remainder"),
        "roll",
    )
)


# ---- torchstat: MAdd, Flops and the elements read and written, by the type of the layer and those derived from it


class LayerWork(NamedTuple):
    """The observed work of all calls of one layer."""

    module: Any
    samples: int  # of all calls: their batches
    macs: int
    inputs: int  # elements
    outputs: int

    @property
    def bias(self) -> int:
        """Return the output elements that a bias is added to."""
        return self.outputs if getattr(self.module, "bias", None) is not None else 0

    def with_params(self) -> int:
        """Return the inputs, and the parameters once for each sample, as torchstat reads them."""
        parameters: int = sum(one.numel() for one in self.module.parameters(recurse=False))
        return self.inputs + self.samples * parameters

    @property
    def window(self) -> int:
        """Return the elements of a pooling's window."""
        size = self.module.kernel_size
        return int(math.prod(size)) if isinstance(size, (tuple, list)) else int(size) ** 2

    def plain_transposed(self) -> int:
        """Return what a transposed convolution without a bias lacks: 1 for each input position and output channel."""
        return 0 if self.bias else self.inputs // int(self.module.in_channels) * int(self.module.out_channels)


_Counts = Callable[[LayerWork], int] | None
_inputs, _outputs, _with_params = attrgetter("inputs"), attrgetter("outputs"), LayerWork.with_params
_statistics_read: Callable[[LayerWork], int] = lambda w: w.inputs + w.samples * 2 * w.module.num_features  # noqa: E731

# None: torchstat has no rule, so that it says 0.
TORCHSTAT: tuple[tuple[tuple[type[nn.Module], ...], tuple[_Counts, _Counts, _Counts, _Counts]], ...] = (
    ((nn.Conv2d,), (lambda w: 2 * w.macs - w.outputs + w.bias, lambda w: w.macs + w.bias, _with_params, _outputs)),
    ((nn.ConvTranspose2d,), (lambda w: 2 * w.macs - w.plain_transposed(), None, None, None)),
    (
        (nn.BatchNorm2d,),
        (lambda w: 4 * w.inputs, lambda w: w.inputs * (2 if w.module.affine else 1), _statistics_read, _inputs),
    ),
    ((nn.MaxPool2d,), (lambda w: (w.window - 1) * w.outputs, _inputs, _inputs, _outputs)),
    ((nn.AvgPool2d,), (lambda w: w.window * w.outputs, _inputs, _inputs, _outputs)),
    ((nn.ReLU, nn.ReLU6), (_inputs, _inputs, _inputs, _inputs)),
    ((nn.ELU, nn.LeakyReLU), (None, _inputs, _inputs, _inputs)),
    ((nn.PReLU,), (None, _inputs, _with_params, _inputs)),
    ((nn.Softmax,), (lambda w: 3 * w.inputs - w.samples, None, None, None)),
    ((nn.Upsample,), (None, _outputs, None, None)),
    ((nn.Linear,), (lambda w: 2 * w.macs - w.outputs, lambda w: w.macs, _with_params, _outputs)),
)
