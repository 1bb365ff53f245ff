"""The time that each module's forward takes by the host's clock; the clock waits for the device at both ends."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as nn_module


class ForwardClocks:
    """Seconds of each module's calls, added up; calls that a running backward makes again are left out."""

    def __init__(self, model: nn.Module) -> None:
        self._members = {id(module) for module in model.modules()}
        self._devices = {parameter.device.type for parameter in model.parameters()} - {"cpu", "meta"}
        self._begun: dict[tuple[int, int], list[float]] = {}  # by thread and module: a stack, as modules may recurse
        self._seconds: Counter[int] = Counter()  # by id of the module

    def of(self, module: nn.Module) -> float:
        """Return the seconds of a module's calls, or of its children's if nobody calls it, as with lists of modules."""
        if id(module) in self._seconds:
            return self._seconds[id(module)]
        return sum(map(self.of, module.children()))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Time the calls in here, by global hooks, so that no module gets a hook."""
        before = nn_module.register_module_forward_pre_hook(self._begin)
        after = nn_module.register_module_forward_hook(self._end, always_call=True)
        try:
            yield
        finally:
            before.remove()
            after.remove()
            nn_module._global_forward_hooks_always_called.pop(after.id, None)
            self._begun.clear()

    def _begin(self, module: nn.Module, _: Any) -> None:
        if id(module) in self._members and torch._C._current_graph_task_id() == -1:
            self._wait()
            self._begun.setdefault((threading.get_ident(), id(module)), []).append(time.perf_counter())

    def _end(self, module: nn.Module, _: Any, __: Any) -> None:
        begun = self._begun.get((threading.get_ident(), id(module)))
        if begun and torch._C._current_graph_task_id() == -1:
            self._wait()
            seconds = time.perf_counter() - begun.pop()
            if not begun:  # a call inside a call of the same module is part of it
                self._seconds[id(module)] += seconds  # type: ignore[assignment]

    def _wait(self) -> None:
        for device in self._devices:
            getattr(torch, device).synchronize()
