"""thop's ``profile`` and ``clever_format`` on roofprof's observer: ``from roofprof.compat.thop import profile``.

The convention is thop's: what it calls MACs are multiply-accumulates, and an extra for each call of some modules of
exactly these types:

=====================================  ============================================================================
type                                   added to its MACs
=====================================  ============================================================================
BatchNorm, LayerNorm, InstanceNorm     2 for each input element, 4 with weight and bias
Softmax                                3 for each element, less 1 for each row
PReLU                                  1 for each input element
AvgPool                                1 for each output element
AdaptiveAvgPool                        1 for each input and each output element
Upsample                               for each output element 1 nearest, 5 linear, 11 bilinear, 259 bicubic
RNN, GRU, LSTM and their cells         for each hidden unit and step: 1 (3 with biases) for each gate, and 0, 4, 4
everything else                        0
=====================================  ============================================================================

Work that thop misses is counted by its MACs, so that no work is silently 0: functional calls and ``@``, attention,
subclasses of the layers that it knows, modules of your own. Where it is wrong the figure here is right: transposed
convolutions (it multiplies by the stride), packed sequences (it takes all for the longest), modules in two places (it
counts them twice), parameters outside the types that it knows and of modules that did not run (it leaves them out).

Inside TorchScript no module is seen: the same extras go by operator, so that a functional pooling counts like a module,
norms are taken for affine, and softmax and recurrent layers count their MACs alone.

``ultralytics-thop``, which has the same import name, takes ``stride`` and ``min_cells`` as well. docs/compat.md lists
where its figures differ from thop's.
"""

from __future__ import annotations

import logging
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

import roofprof
from roofprof import GroupRow
from roofprof.compat._call import (
    TreeBefore,
    after_each_call,
    attributes,
    evaluating,
    keywords,
    log_gaps,
    positional,
    require_module,
    unfused,
)

__all__ = ["clever_format", "default_dtype", "profile", "profile_origin"]

default_dtype = torch.float64

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


_EXTRAS: dict[type[nn.Module], Extra] = (
    dict.fromkeys((nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm, nn.LayerNorm), _norm)
    | dict.fromkeys((nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d), _norm)
    | dict.fromkeys((nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d), _per_output)
    | dict.fromkeys((nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d), _adaptive_average)
    | dict.fromkeys((nn.Upsample, nn.UpsamplingBilinear2d, nn.UpsamplingNearest2d), _upsample)
    | dict.fromkeys(_RECURRENT, _recurrent)
    | {nn.PReLU: _per_input, nn.Softmax: _softmax}
)

_WITHOUT_EXTRA = (
    *(nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d, nn.Linear),
    *(nn.ZeroPad2d, nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.Dropout, nn.PixelShuffle, nn.Sequential),
    *(nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d),
    *(nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d),
)
"""Types that thop knows and that count their MACs alone."""


def _extra_in_torchscript(operator: str, figures: GroupRow) -> int:
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


def _rule_of(module: nn.Module) -> str | None:
    """Return the rule for a module's type in words; None if thop has none."""
    extra = _EXTRAS.get(type(module))
    if extra is None:
        return "MACs" if type(module) in _WITHOUT_EXTRA else None
    return f"MACs + {extra.__name__.strip('_').replace('_', ' ')}"


CustomOp = Callable[[Any, tuple[Any, ...], Any], None]
LayerInfo = dict[str, tuple[float, float, Any]]

_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K"))


def profile(  # noqa: PLR0913 (the original's parameters)
    model: nn.Module,
    inputs: Any,
    custom_ops: Mapping[type[nn.Module], CustomOp] | None = None,
    verbose: bool = True,
    ret_layer_info: bool = False,
    report_missing: bool = False,
    stride: Any = None,  # noqa: ARG001 (ultralytics-thop's)
    min_cells: int = 1,  # noqa: ARG001
    *,
    kwargs: Mapping[str, Any] | None = None,
) -> Any:
    """Return MACs and parameters of one call ``model(*inputs, **kwargs)`` in eval mode and without gradients.

    inputs: a tuple or list of positional arguments; a dict or a tensor is the one argument.
    custom_ops: by exact type, a function ``f(module, inputs, output)`` that adds to ``module.total_ops``; it replaces
    the count of the module and of all modules below it.
    verbose: print the rule of each type of module once; report_missing: also the types without one.
    ret_layer_info: a third result, ``{name: (macs, params, the same of its children)}``; a module in two places is
        listed at the first.
    stride, min_cells: change nothing. ultralytics-thop estimates the MACs of a large image from those of small ones
        with them; here the call itself is counted.

    Returns (macs, params) as floats. Raises whatever the model raises, and TypeError if the model is not a module;
    nothing is left on the model.
    """
    require_module(model)
    args = tuple(inputs) if isinstance(inputs, list) else positional(inputs)
    custom = dict(custom_ops or {})
    if verbose or report_missing:
        _print_rules(model, custom, missing=report_missing)
    tally = _Tally(model, custom)
    with evaluating(model), tally.watching(), unfused(), torch.no_grad():
        report = roofprof.count(model, *args, **keywords(kwargs))
    tally.add(report)
    log_gaps(report, logging.getLogger(__name__))
    macs, params, info = tally.layer(model)
    return (macs, params, info) if ret_layer_info else (macs, params)


def profile_origin(
    model: nn.Module,
    inputs: Any,
    custom_ops: Mapping[type[nn.Module], CustomOp] | None = None,
    verbose: bool = True,
    report_missing: bool = False,
) -> tuple[float, float]:
    """Return the MACs and parameters that :func:`profile` gives: the older walk of thop has no figures of its own."""
    macs, params = profile(model, inputs, custom_ops, verbose, report_missing=report_missing)
    return macs, params


def clever_format(nums: Any, format: str = "%.2f") -> Any:  # noqa: A002 (thop's name for it)
    """Return numbers as "4.13G": one as a string, several as a tuple. Below 1,000 the letter is B, as in thop."""
    numbers = list(nums) if isinstance(nums, Iterable) else [nums]
    texts = tuple(_clever(number, format) for number in numbers)
    return texts[0] if len(texts) == 1 else texts


def _clever(number: float, template: str) -> str:
    for unit, letter in _SCALES:
        if number > unit:
            return template % (number / unit) + letter
    return template % number + "B"


class _Tally:
    """Counts each module without those inside: the MACs of its ops, and thop's extra for each call."""

    def __init__(self, model: nn.Module, custom: Mapping[type[nn.Module], CustomOp]) -> None:
        self._custom = custom
        self._tree = TreeBefore(model)
        self._places = self._tree.places
        self._own: Counter[int] = Counter()  # by id of the module
        self._replaced: dict[int, float] = {}
        self._modules_seen: set[int] = set()
        self._parameters_seen: set[int] = set()

    def watching(self) -> AbstractContextManager[None]:
        """Apply the rules to every call of the model's modules."""
        return after_each_call(self._places[""], self._see)

    def _see(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        inputs = (*args, *kwargs.values())
        rule = self._custom.get(type(module))
        if rule is not None:
            self._replaced[id(module)] = self._replaced.get(id(module), 0) + _custom_ops_of(
                rule, module, inputs, output
            )
        elif (extra := _EXTRAS.get(type(module))) is not None:
            self._own[id(module)] += extra(module, inputs, output)  # type: ignore[assignment]

    def add(self, report: roofprof.Report) -> None:
        """Add the MACs of the call."""
        for group in report.group("module", "op"):
            path, operator = group.keys
            module = self._places.get(path, self._places[""])
            self._own[id(module)] += group.macs
            if isinstance(module, torch.jit.ScriptModule):
                self._own[id(module)] += _extra_in_torchscript(operator, group)

    def layer(self, module: nn.Module) -> tuple[float, float, LayerInfo]:
        """Return the MACs, parameters and layers of a subtree. A module that was listed before counts nothing."""
        if id(module) in self._modules_seen:
            return 0.0, 0.0, {}
        self._modules_seen.add(id(module))
        macs, params = float(self._own[id(module)]), float(self._new_parameters(module))
        info: LayerInfo = {}
        for name, child in self._tree.children(module).items():
            info[name] = self.layer(child)
            macs += info[name][0]
            params += info[name][1]
        if type(module) not in self._custom:
            return macs, params, info
        replaced = self._replaced.get(id(module), 0.0)
        # thop adds a container's rule to those of the modules inside it; any other rule replaces them.
        if isinstance(module, (nn.Sequential, nn.ModuleList)):
            return macs + replaced, params, info
        return replaced, params, {}

    def _new_parameters(self, module: nn.Module) -> int:
        count = 0
        for parameter in module.parameters(recurse=False):
            if id(parameter) not in self._parameters_seen:
                self._parameters_seen.add(id(parameter))
                count += parameter.numel()
        return count


def _custom_ops_of(rule: CustomOp, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> float:
    """Return the number that a custom rule adds to ``module.total_ops``, an attribute for as long as the rule runs."""
    names = ("total_ops", "total_params")
    if any(hasattr(module, name) for name in names):
        raise ValueError(
            f"{type(module).__name__} has a total_ops or total_params, which its custom rule would overwrite"
        )
    with attributes(module, **{name: torch.zeros(1, dtype=torch.float64) for name in names}) as own:
        rule(module, inputs, output)
        return float(own["total_ops"])  # a number, or a tensor of one


def _print_rules(model: nn.Module, custom: Mapping[type[nn.Module], CustomOp], *, missing: bool) -> None:
    for kind, module in {type(module): module for module in model.modules()}.items():
        rule = _rule_of(module)
        if kind in custom:
            text = f"[INFO] Customize rule {getattr(custom[kind], '__qualname__', custom[kind])}() {kind}."
        elif rule is not None:
            text = f"[INFO] Register {rule} for {kind}."
        elif missing:
            text = f"[WARN] Cannot find rule for {kind}. Its MACs are counted, nothing else."
        else:
            continue
        sys.stdout.write(text + "\n")
