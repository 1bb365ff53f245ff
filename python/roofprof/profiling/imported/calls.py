"""The calls of a model's modules in one forward, in order, to be found again in a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from roofprof.latency.batches import arguments_of
from roofprof.profiling.profiler import count
from roofprof.report.report import Report


def calls_of(model: Callable[..., Any], inputs: Any) -> tuple[Report, list[tuple[str, int]]]:
    """Count one call of the model; return its report, and each call of a module: path, and the index of the one around.

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
    return report, calls
