"""ptflops' ``get_model_complexity_info`` on roofprof's observer: ``from roofprof.compat.ptflops import ...``.

The convention is ptflops': what it calls MACs are multiply-accumulates and 1 for each bias. Its backend "pytorch" also
counts for each element 2 of BatchNorm, InstanceNorm and GroupNorm (1 without a weight), 1 of LayerNorm, and 1 of
activations, softmax, poolings, interpolations, additions and multiplications. The backend "aten" counts below autograd:
multiply-accumulates, and the biases of convolutions and ``addmm``. docs/compat.md lists what differs.
"""

from __future__ import annotations

import logging
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from typing import Any, TextIO

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import roofprof
from roofprof.compat import _figures as each
from roofprof.compat._call import (
    TreeBefore,
    after_each_call,
    attributes,
    evaluating,
    input_of_shape,
    log_gaps,
    require_module,
    unfused,
    warn_once,
)
from roofprof.compat._figures import ModuleFigures, Observed, printed, trainable_parameters

__all__ = ["FLOPS_BACKEND", "flops_to_string", "get_model_complexity_info", "params_to_string"]

# ---- the convention of ptflops, as data: the MACs, in its words, of one operator in one module


def _module_macs(op: Observed) -> int:
    """Return the convention's MACs of all calls of an operator in a module: the backend "pytorch"."""
    name = op.operator.removesuffix("_")
    if name in _MACS_BY_OPERATOR:
        return int(_MACS_BY_OPERATOR[name](op))
    if "upsample" in name:
        return each.per_output(op)
    if "deform_conv" in name:
        return _deformable(op)
    return _with_bias(op) if "conv" in name else op.figures.macs


def _aten_macs(op: Observed) -> int:
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


# ---- ptflops' backend "aten": figures by operator below autograd, in the modules directly below the model

_AtenRule = Callable[[Any, tuple[Any, ...]], int]  # f(inputs, outputs)

_GLOBAL = "Global"


class _AtenCounts:
    """One call. custom: by operator a function of its inputs and outputs; ignored: operators that count nothing."""

    def __init__(self, custom: Mapping[Any, _AtenRule], ignored: Collection[Any]) -> None:
        self._custom = dict(custom)
        self._ignored = {_name(operator): str(operator) for operator in ignored}
        self._by_module: dict[str, Counter[str]] = defaultdict(Counter)
        self._zero: dict[str, None] = {}
        self._left_out: dict[str, None] = {}

    @property
    def total(self) -> int:
        """Return the MACs of the whole model."""
        return sum(self._by_module[_GLOBAL].values())

    def count(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Count one call in eval mode."""
        # The mode decomposes operators, as ptflops' own does, so that the observer sees the operators below autograd.
        mode = _Dispatch(self._custom)
        with evaluating(model), unfused(), mode:
            report = roofprof.count(model, *args, **kwargs)
        log_gaps(report, logging.getLogger("roofprof.compat.ptflops"))
        # The rules by the user's own functions count for the model alone: the observer's rows have no arguments.
        replaced = {_name(operator) for operator in self._custom}
        for group in report.group("module", "op"):
            path, operator = group.keys
            short = operator.replace("::", ".")
            if operator in self._ignored:
                self._left_out[short] = None
            elif operator not in replaced:
                amount = _aten_macs(Observed(operator, group, None))
                self._add(path, short, amount)
                if not amount:
                    self._zero[short] = None
        for operator, amount in mode.counted.items():
            if _name(operator) not in self._ignored:
                self._by_module[_GLOBAL][operator] += amount

    def _add(self, path: str, operator: str, amount: int) -> None:
        if amount:
            self._by_module[_GLOBAL][operator] += amount
            if path and not path.startswith("("):
                self._by_module[path.partition(".")[0]][operator] += amount

    def text(self, to_string: Callable[[int], str], *, per_layer: bool) -> str:
        """Return a line for each ignored operator and, where requested, the total and each module's operators."""
        lines = [f"Warning: {operator} operation is ignored" for operator in self._left_out]
        if per_layer:
            lines.append(f"Total:{to_string(self.total)}")
            for module, counts in self._by_module.items():
                lines += [f"Module:  {module}", *(f"{name}: {to_string(value)}" for name, value in counts.items()), ""]
        return _lines(lines)

    def zero_text(self) -> str:
        """Return a line for each operator that counts nothing."""
        return _lines(f"Warning: {operator} operation is treated as a zero-op" for operator in self._zero)


class _Dispatch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Does each operator, and asks the user's functions about theirs."""

    def __init__(self, rules: Mapping[Any, _AtenRule]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._rules = rules
        self.counted: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        rule = self._rules.get(func._overloadpacket)
        if rule is not None:
            self.counted[str(func._overloadpacket)] += rule(args, out if isinstance(out, tuple) else (out,))
        return out


def _name(operator: Any) -> str:
    """Return the name "aten::convolution" for ``torch.ops.aten.convolution``."""
    return str(operator).replace(".", "::", 1)


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


_CONVENTION = (
    'ptflops\' MACs are multiply-accumulates with 1 for each bias, and in its backend "pytorch" for each element of '
    "activations, norms and poolings: roofprof.count(model, x).total.macs are multiply-accumulates alone, and "
    ".total.flops all operations"
)


class FLOPS_BACKEND(Enum):  # noqa: N801 (ptflops' name for it)
    """The backends: one counts the work of modules and functions, the other the operators below autograd."""

    PYTORCH = "pytorch"
    ATEN = "aten"


def get_model_complexity_info(  # noqa: PLR0913, PLR0917 (the original's parameters)
    model: nn.Module,
    input_res: tuple[int, ...],
    print_per_layer_stat: bool = True,
    as_strings: bool = True,
    input_constructor: Callable[[tuple[int, ...]], Any] | None = None,
    ost: TextIO | None = None,
    verbose: bool = False,
    ignore_modules: Collection[Any] = (),
    custom_modules_hooks: Mapping[Any, Any] | None = None,
    backend: str | FLOPS_BACKEND = FLOPS_BACKEND.PYTORCH,
    flops_units: str | None = None,
    param_units: str | None = None,
    output_precision: int = 2,
    backend_specific_config: Mapping[str, Any] | None = None,
) -> Any:
    """Return (MACs, parameters) of one call in eval mode: strings ("1.82 GMac", "11.69 M"), or ints.

    input_res: the shape of one input without its batch, which is 1. input_constructor: a function of ``input_res`` for
        other inputs: a dict that it returns is keyword arguments, everything else the one argument.
    print_per_layer_stat: print to ``ost`` (stdout) the model with each module's figures, or with the backend "aten"
        those of each operator in the modules directly below the model. verbose: print what counts nothing.
    ignore_modules: types of modules, or with "aten" operators (``torch.ops.aten.convolution``), whose work is left out.
    custom_modules_hooks: by type of module a function ``f(module, inputs, output)`` that adds to ``module.__flops__``,
        in place of all that the module does; with "aten" by operator a function ``f(inputs, outputs)`` that returns a
        count, which stands in the sum alone, not in the modules.
    flops_units: "GMac", "MMac", "KMac"; param_units: "M", "K", "B". backend_specific_config: its ``count_functional``
        changes nothing, as nothing is counted twice.

    The model's own exception comes through, and nothing is left on the model. Raises ValueError for another backend.
    """
    require_module(model)
    del backend_specific_config
    warn_once("ptflops.get_model_complexity_info", _CONVENTION)
    kind = FLOPS_BACKEND(getattr(backend, "value", backend))
    args, kwargs = _inputs(model, input_res, input_constructor)
    tree = TreeBefore(model)
    out = sys.stdout if ost is None else ost
    units: dict[str, Any] = {"units": flops_units, "precision": output_precision}
    custom = dict(custom_modules_hooks or {})
    if kind is FLOPS_BACKEND.ATEN:
        counts = _AtenCounts(_aten_rules(custom), ignore_modules)
        counts.count(model, args, kwargs)
        macs = counts.total
        out.write(counts.zero_text() if verbose else "")
        out.write(counts.text(lambda value: flops_to_string(value, **units), per_layer=print_per_layer_stat))
    else:
        batch = _batch_size(args)
        figures = _counted(model, args, kwargs, ignore_modules, custom)
        macs = figures.of(model) // batch
        out.write(_zero_text(model, figures) if verbose else "")
        if print_per_layer_stat:
            facts = _Facts(model, figures, batch, frozenset(ignore_modules), units, param_units)
            out.write(printed(model, facts, keep_empty=True) + "\n")
    params = trainable_parameters(tree.parameters(model))  # now that lazy ones have their sizes
    if not as_strings:
        return macs, params
    return flops_to_string(macs, **units), params_to_string(params, param_units, output_precision)


def flops_to_string(flops: float, units: str | None = None, precision: int = 2) -> str:
    """Return MACs as "1.82 GMac"; without ``units`` ("GMac", "MMac", "KMac") in the largest that the number reaches."""
    scales = {"GMac": 1e9, "MMac": 1e6, "KMac": 1e3}
    if units is None:
        units = next((unit for unit, scale in scales.items() if flops >= scale), "Mac")
    return f"{round(flops / scales[units], precision)} {units}" if units in scales else f"{flops} Mac"


def params_to_string(params_num: int, units: str | None = None, precision: int = 2) -> str:
    """Return a number as "11.69 M", in ``units`` ("M", "K", "B") or, without them, in millions or thousands ("k")."""
    scales = {"M": 1e6, "k": 1e3} if units is None else {"B": 1e9, "M": 1e6, "K": 1e3}
    if units is None:
        units = next((unit for unit, scale in scales.items() if params_num >= scale), "")
    return f"{round(params_num / scales[units], precision)} {units}" if units in scales else str(params_num)


def _inputs(
    model: nn.Module, shape: tuple[int, ...], constructor: Callable[[tuple[int, ...]], Any] | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if constructor is None:
        return input_of_shape(model, (1, *shape) if isinstance(shape, tuple) and shape else shape), {}
    made = constructor(shape)
    return ((), dict(made)) if isinstance(made, Mapping) else ((made,), {})


def _batch_size(args: tuple[Any, ...]) -> int:
    """Return the length of the first positional argument, which divides the figures: they are of one image."""
    if not args:
        sys.stdout.write("Warning! No positional inputs found for a module, assuming batch size is 1.\n")
    sized = args and hasattr(args[0], "__len__") and not (isinstance(args[0], torch.Tensor) and args[0].dim() == 0)
    return max(len(args[0]), 1) if sized else 1


def _counted(
    model: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    ignored: Collection[type[nn.Module]],
    custom: Mapping[type[nn.Module], Callable[..., None]],
) -> ModuleFigures:
    figures = ModuleFigures(model, ignored, leave_out=True)

    def see(module: nn.Module, inputs: tuple[Any, ...], keywords: dict[str, Any], output: Any) -> None:
        rule = custom.get(type(module))
        if rule is not None and type(module) not in ignored:
            count = _count_of(rule, module, (*inputs, *keywords.values()), output)
            figures.replaced[id(module)] = figures.replaced.get(id(module), 0) + count

    watching: AbstractContextManager[None] = after_each_call(model, see) if custom else nullcontext()
    with evaluating(model), watching, unfused():
        report = roofprof.count(model, *args, **kwargs)
    figures.add(report, _module_macs)
    log_gaps(report, logging.getLogger(__name__))
    return figures


def _count_of(rule: Callable[..., None], module: nn.Module, inputs: tuple[Any, ...], output: Any) -> int:
    """Return the number that a custom rule adds to ``module.__flops__``, an attribute for as long as the rule runs."""
    with attributes(module, __flops__=0, __params__=trainable_parameters(module)) as own:
        rule(module, inputs, output)
        return int(own["__flops__"])


def _aten_rules(custom: Mapping[Any, Any]) -> dict[Any, _AtenRule]:
    modules = [kind.__name__ for kind in custom if isinstance(kind, type)]
    if modules:
        raise TypeError(f'the backend "aten" has rules by operator, not by module: {modules[0]}; use "pytorch"')
    return dict(custom)


class _Facts:
    """The texts at each module of the printed model."""

    def __init__(
        self,
        model: nn.Module,
        figures: ModuleFigures,
        batch: int,
        ignored: Collection[Any],
        units: dict[str, Any],
        param_units: str | None,
    ) -> None:
        self._figures, self._batch, self._ignored = figures, batch, ignored
        self._units, self._param_units = units, param_units
        self._macs, self._params = max(figures.of(model) / batch, 1), max(self._trainable(model), 1)

    def _trainable(self, module: nn.Module) -> int:
        return trainable_parameters(self._figures.tree.parameters(module))

    def __call__(self, module: nn.Module) -> list[str]:
        params = 0 if type(module) in self._ignored else self._trainable(module)
        macs = self._figures.of(module) / self._batch
        return [
            params_to_string(params, self._param_units, self._units["precision"]),
            f"{params / self._params:.3%} Params",
            flops_to_string(macs, **self._units),
            f"{macs / self._macs:.3%} MACs",
        ]


def _zero_text(model: nn.Module, figures: ModuleFigures) -> str:
    """Return a line for each type of modules none of which does anything itself."""
    counted = {type(one) for one in model.modules() if figures.own(one) or id(one) in figures.replaced}
    kinds = {type(one): None for one in reversed(list(model.modules()))}
    silent = [kind.__name__ for kind in kinds if kind not in counted and kind not in {nn.Sequential, nn.ModuleList}]
    return "".join(f"Warning: module {name} is treated as a zero-op.\n" for name in silent)
