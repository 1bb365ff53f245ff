"""ptflops' ``get_model_complexity_info`` on roofprof's observer: ``from roofprof.compat.ptflops import ...``.

The convention is ptflops': what it calls MACs are multiply-accumulates, 1 for each bias, and in its backend "pytorch"
(:mod:`roofprof.compat._ptflops_convention` is the table) for each element

=================================================  =====================================================================
BatchNorm, InstanceNorm, GroupNorm                 2, 1 without a weight; LayerNorm 1
ReLU and its kin, SiLU, GELU, softmax, poolings    1 for each input element
interpolation, additions, multiplications          1 for each output element
everything else                                    its MACs alone
=================================================  =====================================================================

The backend "aten" counts below autograd: multiply-accumulates, and the biases of convolutions and ``addmm``.

Differences:

=================================================  ==================================  =================================
what the model does                                ptflops                             here
=================================================  ==================================  =================================
ReLU, pooling, Upsample as modules                 twice, unless ``count_functional``  once
                                                   is switched off
MultiheadAttention with weights                    its products and softmax twice      once
``x + y``, ``x * y``, in place too                 0; ``torch.add(x, y)`` is counted   1 for each output element
``torch.add`` of shapes that broadcast             lined up at their first dimension   1 for each output element
``x @ y``, einsum, functional linear, conv, norm   0                                   counted as the modules
fused attention                                    0 in both backends, but for         its MACs
                                                   MultiheadAttention's own rule
subclasses of the layers that it knows             0                                   as what they do
a module in two places                             twice for each call                 once for each call
packed sequences, unbatched recurrent inputs       refused, wrong                      their real steps
a deformable convolution's mask                    1 for each sample                   0
a batch from ``input_constructor``                 modules divided by its size, the    all divided by its size
                                                   functional part not; "aten": not    ("aten": not)
a model that raises                                printed, and (None, None)           its exception comes through
the model's mode                                   left in eval mode                   each module's own comes back
=================================================  ==================================  =================================
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from typing import Any, TextIO

import torch
from torch import nn

import roofprof
from roofprof.compat import _ptflops_convention as convention
from roofprof.compat._call import (
    after_each_call,
    evaluating,
    input_of_shape,
    log_gaps,
    require_module,
    unfused,
    warn_once,
)
from roofprof.compat._module_figures import ModuleFigures, printed, trainable_parameters
from roofprof.compat._ptflops_aten import AtenCounts, AtenRule

__all__ = ["FLOPS_BACKEND", "flops_to_string", "get_model_complexity_info", "params_to_string"]

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
    out = sys.stdout if ost is None else ost
    units: dict[str, Any] = {"units": flops_units, "precision": output_precision}
    custom = dict(custom_modules_hooks or {})
    if kind is FLOPS_BACKEND.ATEN:
        counts = AtenCounts(_aten_rules(custom), ignore_modules)
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
    params = trainable_parameters(model)  # now that lazy ones have their sizes
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
    figures.add(report, convention.macs)
    log_gaps(report, logging.getLogger(__name__))
    return figures


def _count_of(rule: Callable[..., None], module: nn.Module, inputs: tuple[Any, ...], output: Any) -> int:
    """Return the number that a custom rule adds to ``module.__flops__``, an attribute for as long as the rule runs."""
    names = ("__flops__", "__params__")
    before = {name: vars(module)[name] for name in names if name in vars(module)}
    vars(module).update(__flops__=0, __params__=trainable_parameters(module))
    try:
        rule(module, inputs, output)
        return int(vars(module)["__flops__"])
    finally:
        for name in names:
            vars(module).pop(name, None)
        vars(module).update(before)


def _aten_rules(custom: Mapping[Any, Any]) -> dict[Any, AtenRule]:
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
        self._macs, self._params = max(figures.of(model) / batch, 1), max(trainable_parameters(model), 1)

    def __call__(self, module: nn.Module) -> list[str]:
        params = 0 if type(module) in self._ignored else trainable_parameters(module)
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
