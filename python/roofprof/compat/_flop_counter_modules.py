"""The modules that run, and their names in torch's FLOP counter: an outermost module's type, the paths of others."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.fx import GraphModule
from torch.nn.modules import module as nn_module

from roofprof.compat._call import named_places

_MOST = 5_000


class _Together(torch.nn.Module):
    """All modules that may run, as one model."""


class _Open(threading.local):
    """The modules whose calls are under way on this thread, outer before inner."""

    def __init__(self) -> None:
        self.modules: list[torch.nn.Module] = []


class ModulesSeen:
    """The modules of a block: their names, and one tree in which all of them have a place."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._named_below: dict[int, torch.nn.Module] = {}  # kept alive, as names go by identity
        self._called: set[int] = set()
        self._together: _Together | None = None
        self._places: dict[str, torch.nn.Module] = {}
        self._in_tree: set[int] = set()
        self._open = _Open()
        self._thread = threading.get_ident()

    @contextlib.contextmanager
    def watching(self, unknown: Callable[[torch.nn.Module, Any], None]) -> Iterator[None]:
        """Name what is called; ``unknown`` hears of a module that has no place yet and begins on this thread."""

        def before(module: torch.nn.Module, args: Any) -> None:
            self._called.add(id(module))
            self._open.modules.append(module)
            if len(self._open.modules) == 1:
                self._name(module)
                if id(module) not in self._in_tree and threading.get_ident() == self._thread:
                    unknown(module, args)

        def after(*_: Any) -> None:
            del self._open.modules[-1:]

        handles = [
            nn_module.register_module_forward_pre_hook(before),
            nn_module.register_module_forward_hook(after, always_call=True),
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()
            nn_module._global_forward_hooks_always_called.pop(handles[1].id, None)

    def _name(self, module: torch.nn.Module) -> None:
        name = self._names.setdefault(id(module), type(module).__name__)
        if id(module) in self._named_below:
            return
        self._named_below[id(module)] = module
        for child_name, child in module.named_children():
            self._names[id(child)] = f"{name}.{child_name}"
            self._name(child)

    def discover(self, called: torch.nn.Module) -> None:
        """Give ``called`` a place, and all other modules that are there: a backward may run through them too.

        Graphs of torch.fx only where they are called, and in a process with very many modules no others.
        """
        self._together = None
        roots = {id(root): root for root in _roots()}
        if sum(1 for root in roots.values() for _ in root.modules()) > _MOST:
            roots = {id(root): root for root in roots.values() if any(called is one for one in root.modules())}
        below = {id(module) for root in roots.values() for module in root.modules()}
        if id(called) not in below:  # its parents are each other's children
            roots[id(called)] = called
        self._together = _Together()
        for number, root in enumerate(roots.values()):
            self._together.add_module(str(number), root)
        self._places = dict(named_places(self._together))
        self._in_tree = {id(module) for module in self._places.values()}

    def together(self) -> torch.nn.Module | None:
        """Return one module that contains every module with a place; None before any has one."""
        return self._together

    def names_open(self) -> Iterator[str]:
        """Yield the names of the modules whose calls are under way on this thread."""
        for module in self._open.modules:
            if id(module) in self._names:
                yield self._names[id(module)]

    def names_above(self, path: str, places: Mapping[str, torch.nn.Module] | None = None) -> Iterator[str]:
        """Yield the names of the module at a path and of those around it, as far as they were called.

        places: modules by path, those of another model than :meth:`together`.
        """
        places = self._places if places is None else places
        parts = path.split(".") if path else []
        if parts and parts[0] not in places:
            return
        for end in range(len(parts) + 1):
            module = places.get(".".join(parts[:end]))
            if module is None or id(module) not in self._names:
                continue
            # Lists have no row; modules in TorchScript run without being called from here.
            if id(module) in self._called or isinstance(module, torch.jit.ScriptModule):
                yield self._names[id(module)]


def _roots() -> list[torch.nn.Module]:
    """Return every module that is in no other one."""
    # Ask type(), not isinstance: isinstance asks objects for their __class__, which some compute.
    found = [each for each in gc.get_objects() if issubclass(type(each), torch.nn.Module)]
    modules = [each for each in found if not issubclass(type(each), (_Together, GraphModule)) and _is_made(each)]
    inside = {id(child) for module in modules for child in module._modules.values() if child is not None}
    return [module for module in modules if id(module) not in inside]


def _is_made(module: torch.nn.Module) -> bool:
    """Return True when the module's constructor has called nn.Module's."""
    return all(hasattr(module, name) for name in ("_modules", "_parameters", "_buffers"))
