"""thop's ``profile`` and ``clever_format`` on roofprof's observer: docs/compat.md has the weights, and what differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import nn

from roofprof.compat import _call, _conventions
from roofprof.compat._figures import ModuleFigures
from roofprof.compat._table import shown

__all__ = ["clever_format", "default_dtype", "profile", "profile_origin"]

default_dtype = torch.float64
_COUNTERS = ("total_ops", "total_params")

CustomOp = Callable[[Any, tuple[Any, ...], Any], None]
LayerInfo = dict[str, tuple[float, float, Any]]


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
    """Return MACs and parameters, floats, of one call ``model(*inputs, **kwargs)`` in eval mode and without gradients.

    inputs: a tuple or list of positional arguments; a dict or a tensor is the one argument.
    custom_ops: by exact type, a function ``f(module, inputs, output)`` that adds to ``module.total_ops``; it replaces
        the count of the module and of all modules below it.
    verbose: print the types of modules that count more than MACs; report_missing: the others as well.
    ret_layer_info: a third result, ``{name: (macs, params, the same of its children)}``; a module in two places is
        listed at the first.
    stride, min_cells: change nothing: no large image's MACs are estimated from those of small ones.
    """
    _call.require_module(model)
    custom = dict(custom_ops or {})
    for module in model.modules():
        if type(module) in custom and any(hasattr(module, name) for name in _COUNTERS):
            raise ValueError(f"{type(module).__name__} has a {' or '.join(_COUNTERS)}, which its rule would overwrite")
    if verbose or report_missing:
        _print_rules(model, custom, missing=report_missing)
    figures = ModuleFigures(model)
    rules = figures.by_rules({nn.Softmax: _softmax, **custom}, _counters)
    report = _call.counted(model, _call.positional(inputs, lists=True), kwargs, rules, grad=False, tool="thop")
    figures.add(report, _conventions.thop_macs, forward_alone=False)
    macs, params, info = _layer(model, figures, custom, set())
    return (macs, params, info) if ret_layer_info else (macs, params)


def profile_origin(
    model: nn.Module,
    inputs: Any,
    custom_ops: Mapping[type[nn.Module], CustomOp] | None = None,
    verbose: bool = True,
    report_missing: bool = False,
) -> tuple[float, float]:
    """Return the MACs and parameters that :func:`profile` gives; thop's older walk of the model is not repeated."""
    macs, params = profile(model, inputs, custom_ops, verbose, report_missing=report_missing)
    return macs, params


def clever_format(nums: Any, format: str = "%.2f") -> Any:  # noqa: A002 (thop's name for it)
    """Return numbers as "4.13G": one as a string, several as a tuple. Below 1,000 the letter is B, as in thop."""
    scales = {"T": 1e12, "G": 1e9, "M": 1e6, "K": 1e3}
    texts = []
    for number in nums if isinstance(nums, Iterable) else [nums]:
        letter = next((letter for letter, unit in scales.items() if number > unit), "B")
        texts.append(format % (number / scales.get(letter, 1)) + letter)
    return texts[0] if len(texts) == 1 else tuple(texts)


def _softmax(module: Any, inputs: tuple[Any, ...], _: Any) -> None:
    """Add an exponential and a division for each element, additions for all but one of each row."""
    x = inputs[0]
    dim = module.dim if module.dim is not None else 0 if x.dim() in {0, 1, 3} else 1
    vars(module)["total_ops"] += 3 * x.numel() - (x.numel() // x.size(dim) if x.numel() else 0)


def _counters(_: nn.Module) -> dict[str, Any]:
    return {name: torch.zeros(1, dtype=default_dtype) for name in _COUNTERS}


def _layer(
    module: nn.Module, figures: ModuleFigures, custom: Mapping[type[nn.Module], CustomOp], seen: set[int]
) -> tuple[float, float, LayerInfo]:
    """Return the MACs, parameters and layers of a subtree. A module or parameter that was seen counts nothing."""
    if id(module) in seen:
        return 0.0, 0.0, {}
    new = {id(one): one.numel() for one in module.parameters(recurse=False) if id(one) not in seen}
    seen |= {id(module), *new}
    children = figures.children(module)
    first = {id(child): name for name, child in reversed(children.items())}
    inside = ((name, child) for name, child in children.items() if first[id(child)] == name)
    info = {name: _layer(child, figures, custom, seen) for name, child in inside}
    params = float(sum(new.values()) + sum(layer[1] for layer in info.values()))
    macs = float(figures.own[id(module)] + sum(layer[0] for layer in info.values()))
    replaced = figures.replaced.get(id(module), 0.0)
    # thop adds a container's rule to those of the modules inside it; any other rule replaces them.
    if type(module) not in custom or isinstance(module, (nn.Sequential, nn.ModuleList)):
        return macs + replaced, params, info
    return replaced, params, {}


def _print_rules(model: nn.Module, custom: Mapping[type[nn.Module], CustomOp], *, missing: bool) -> None:
    lines = []
    for kind in dict.fromkeys(map(type, model.modules())):
        extra = "softmax" if kind is nn.Softmax else _conventions.THOP_TYPES.get(kind)
        rule = f"MACs + {extra}" if extra else "MACs" if missing else None
        rule = getattr(custom[kind], "__qualname__", "custom") if kind in custom else rule
        lines += [(0, (kind.__name__, rule))] if rule else []
    print(shown(("module", "rule"), lines))  # noqa: T201 (what the original prints)
