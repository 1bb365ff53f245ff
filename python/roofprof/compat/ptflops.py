"""ptflops' ``get_model_complexity_info`` on roofprof's observer: docs/compat.md has the convention of its backends."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from functools import partial
from typing import Any, TextIO

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from roofprof.compat import _call
from roofprof.compat._conventions import Observed, ptflops_aten_macs, ptflops_macs
from roofprof.compat._figures import ModuleFigures, elements
from roofprof.compat._table import Columns, of_modules, shown

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
    backend_specific_config: Mapping[str, Any] | None = None,  # noqa: ARG001
) -> Any:
    """Return (MACs, parameters) of one call in eval mode: strings ("1.82 GMac", "11.69 M"), or ints.

    input_constructor: a function of ``input_res`` for other inputs: a dict that it returns is keyword arguments,
        everything else the one argument.
    print_per_layer_stat: print a table of the modules to ``ost`` (stdout), or with the backend "aten" of the operators
        in the modules directly below the model. verbose: print what counts nothing.
    ignore_modules: types of modules, or with "aten" operators (``torch.ops.aten.convolution``), whose work is left out.
    custom_modules_hooks: by type of module a function ``f(module, inputs, output)`` that adds to ``module.__flops__``,
        in place of all that the module does; with "aten" by operator a function ``f(inputs, outputs)`` that returns a
        count, which stands in the sum alone, not in the modules.
    backend_specific_config: its ``count_functional`` changes nothing, as nothing is counted twice.

    The model's own exception comes through, and nothing is left on the model. Raises ValueError for another backend.
    """
    _call.require_module(model)
    _call.warn_once("ptflops.get_model_complexity_info", _CONVENTION)
    kind = FLOPS_BACKEND(getattr(backend, "value", backend))
    args, kwargs = _inputs(model, input_res, input_constructor)
    figures, custom = ModuleFigures(model, ignore_modules, leave_out=True), dict(custom_modules_hooks or {})
    silent: dict[str, bool] = {}  # of types of layers, or operators: whether none counts anything

    def params_text(params: float) -> str:
        return params_to_string(int(params), param_units, output_precision)

    def text(macs: float) -> str:
        return flops_to_string(macs, flops_units, output_precision)

    if kind is FLOPS_BACKEND.ATEN:
        counts = _by_operator(model, args, kwargs, custom, ignore_modules, silent)
        macs = sum(counts["Global"].values())
        lines = [(0, (name, key, text(value))) for name, each in counts.items() for key, value in each.items()]
        table = shown(("Module", "operator", "MACs"), lines)
    else:
        rules = figures.by_rules(custom, _counters)
        figures.add(_call.counted(model, args, kwargs, rules, tool="ptflops"), ptflops_macs)
        batch = _batch_size(args)
        macs = figures.of(model) // batch
        for layer in model.modules():
            if not any(True for _ in layer.children()):
                silent[type(layer).__name__] = silent.get(type(layer).__name__, True) and not figures.of(layer)
        columns: Columns = {
            "Params": (partial(figures.parameters, trainable=True), params_text),
            "MACs": (lambda module: figures.of(module) / batch, text),
        }
        table = of_modules(model, columns, {}, digits=3)
    zero = ", ".join(name for name, is_silent in silent.items() if is_silent)
    out = [table] * print_per_layer_stat + [f"Counted as 0: {zero}"] * (verbose and bool(zero))
    (sys.stdout if ost is None else ost).write("".join(f"{each}\n" for each in out))
    params = figures.parameters(model, trainable=True)  # now that lazy ones have their sizes
    return (text(macs), params_text(params)) if as_strings else (macs, params)


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
        return _call.input_of_shape(model, (1, *shape) if isinstance(shape, tuple) and shape else shape), {}
    made = constructor(shape)
    return ((), dict(made)) if isinstance(made, Mapping) else ((made,), {})


def _batch_size(args: tuple[Any, ...]) -> int:
    """Return the length of the first positional argument, which divides the figures: they are of one image."""
    sized = args and hasattr(args[0], "__len__") and not (isinstance(args[0], torch.Tensor) and args[0].dim() == 0)
    return max(len(args[0]), 1) if sized else 1


def _counters(module: nn.Module) -> dict[str, Any]:
    return {"__flops__": 0, "__params__": elements(one for one in module.parameters() if one.requires_grad)}


# ---- the backend "aten": by operator below autograd, in the modules directly below the model


class _Dispatch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Does each operator, so that the observer sees those below autograd, and asks the user's functions for theirs."""

    def __init__(self, rules: Mapping[Any, Callable[..., int]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._rules = rules
        self.counted: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        packet = func._overloadpacket
        if packet in self._rules:
            self.counted[str(packet)] += self._rules[packet](args, out if isinstance(out, tuple) else (out,))
        return out


def _by_operator(
    model: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    rules: dict[Any, Any],
    ignored: Collection[Any],
    silent: dict[str, bool],
) -> dict[str, Counter[str]]:
    """Return MACs by module ("Global" is all) and operator; put into ``silent`` whether an operator counts nothing.

    The user's rules count in "Global" alone: the observer's rows have no arguments.
    """
    modules = [kind.__name__ for kind in rules if isinstance(kind, type)]
    if modules:
        raise TypeError(f'the backend "aten" has rules by operator, not by module: {modules[0]}; use "pytorch"')
    mode = _Dispatch(rules)
    report = _call.counted(model, args, kwargs, mode, tool="ptflops")
    left_out, replaced = set(map(str, ignored)), set(map(str, rules))  # "aten.convolution"
    by_module: dict[str, Counter[str]] = defaultdict(Counter)
    by_module["Global"].update({name: count for name, count in mode.counted.items() if name not in left_out})
    for group in report.group("module", "op"):
        path, operator = group.keys
        name, top = operator.replace("::", "."), path.partition(".")[0]
        if name not in left_out | replaced:
            amount = ptflops_aten_macs(Observed(operator, group, None))
            silent[name] = silent.get(name, True) and not amount
            for place in ("Global", *([top] if top and not top.startswith("(") else [])) if amount else ():
                by_module[place][name] += amount
    return by_module
