"""The calls of a model's modules in one forward, in order, to be found again in a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from roofprof.latency.batches import arguments_of
from roofprof.models.walk import has_forward_of_torch
from roofprof.profiling.profiler import count
from roofprof.report.report import Report


class ModelCalls(NamedTuple):
    """One call of a model, counted."""

    report: Report
    calls: list[tuple[str, int]]  # of modules: the path, and the index of the call around it or -1
    # By module: the sizes of its own, such as "32x16", and whether its forward is one of torch.nn's, which reads all.
    parameters: dict[str, tuple[list[str], bool]]


def calls_of(model: Callable[..., Any], inputs: Any) -> ModelCalls:
    """Count one call of the model; return its report, the calls of its modules and their parameters.

    Raises TypeError for what is no module, and whatever the model raises.
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"the model of a trace is a torch.nn.Module, not a {type(model).__name__}")
    paths = {id(module): path for path, module in model.named_modules()}
    calls: list[tuple[str, int]] = []
    open_calls: list[int] = []

    def enter(module: torch.nn.Module, _: Any) -> None:
        if id(module) not in paths:
            return
        if module is model and not open_calls:  # a call that torch refused on this device is made again with fakes
            calls.clear()
        calls.append((paths[id(module)], open_calls[-1] if open_calls else -1))
        open_calls.append(len(calls) - 1)

    def leave(module: torch.nn.Module, *_: Any) -> None:
        if id(module) in paths and open_calls:
            open_calls.pop()

    hooks = [register_module_forward_pre_hook(enter), register_module_forward_hook(leave, always_call=True)]
    args, kwargs = arguments_of(() if inputs is None else inputs)
    try:
        with torch.no_grad():
            report = count(model, *args, **kwargs)
    finally:
        for hook in hooks:
            hook.remove()
    parameters = {path: (_own_parameters(part), has_forward_of_torch(part)) for path, part in model.named_modules()}
    return ModelCalls(report, calls, parameters)


def _own_parameters(module: torch.nn.Module) -> list[str]:
    sizes = (tuple(parameter.shape) for parameter in module.parameters(recurse=False))
    return ["x".join(map(str, shape)) for shape in sizes if shape]
