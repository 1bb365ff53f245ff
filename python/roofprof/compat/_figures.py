"""The figures of modules: counts in another tool's convention, summed over subtrees, and the times of forwards."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import torch
from torch import nn

import roofprof
from roofprof.compat._call import Around, global_hooks, named_places
from roofprof.compat._conventions import Handle, Observed


class ModuleFigures:
    """Holds one number for each module object: a module that is used in two places has the calls of both.

    The modules are those before the calls, which may replace, delete or add some: a report has rows of these.

    ignored: exact types whose own work counts for the module above them, or for nobody with ``leave_out``.
    """

    def __init__(
        self, model: nn.Module, ignored: Collection[type[nn.Module]] | None = None, *, leave_out: bool = False
    ) -> None:
        self._ignored, self._leave_out = frozenset(ignored or ()), leave_out
        self.own: Counter[int] = Counter()  # by id of the module, without the modules below it
        self.replaced: dict[int, float] = {}  # by id: the count that replaces that of the subtree
        self._places = dict(named_places(model))
        self._children = {id(module): _inside(module) for module in self._places.values()}

    def add(self, report: roofprof.Report, convention: Handle, *, forward_alone: bool = True) -> None:
        """Add the ops in the model, or those of the forward; a convention gets all calls of one op at a time."""
        places = self._places
        for group in report.group("phase", "module", "op", "dtype"):
            phase, path, operator, _ = group.keys
            if (forward_alone and phase != "forward") or path.startswith(("(outside)", "(optimizer)")):
                continue
            while path not in places:  # a region's row
                path = path.rpartition(".")[0]
            amount = convention(Observed(operator, group, places[path]))
            while path and type(places[path]) in self._ignored and not self._leave_out:
                path = path.rpartition(".")[0]
            if type(places[path]) not in self._ignored:
                self.own[id(places[path])] += amount  # type: ignore[assignment]

    def by_rules(
        self, rules: Mapping[type[nn.Module], Callable[..., None]], counters: Callable[[nn.Module], dict[str, Any]]
    ) -> Around:
        """Let the user's rule ``f(module, inputs, output)`` for a module's exact type count its calls in here.

        counters: the attributes that a module has for as long as its rule runs, which adds to the first one.
        """
        members = {id(module) for module in self._places.values() if type(module) in rules}

        def after(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            if id(module) in members and type(module) not in self._ignored:
                own, values = vars(module), counters(module)
                before = {name: own[name] for name in values if name in own}
                own.update(values)
                try:
                    rules[type(module)](module, (*args, *kwargs.values()), output)
                    count = float(own[next(iter(values))])  # a number, or a tensor of one
                finally:
                    for name in values:
                        own.pop(name, None)
                    own.update(before)
                self.replaced[id(module)] = self.replaced.get(id(module), 0) + count

        return global_hooks(None, after) if members else contextlib.nullcontext()

    def of(self, module: nn.Module, share: Callable[[nn.Module], float] | None = None) -> int:
        """Return the sum over a module and all modules below it, each once; of each only its ``share``, if given."""
        total: float = 0
        for one in self._subtree(module, self.replaced):
            own = self.own.get(id(one), 0)
            total += self.replaced[id(one)] if id(one) in self.replaced else own * (share(one) if share and own else 1)
        return round(total)

    def _subtree(self, module: nn.Module, ends: Collection[int] = ()) -> Iterable[nn.Module]:
        """Return a module and all modules below it, each once; ``ends``: ids of those whose children are left out."""
        found, pending = dict[int, nn.Module](), [module]
        while pending:
            one = pending.pop()
            if id(one) not in found:
                found[id(one)] = one
                pending += () if id(one) in ends else self.children(one).values()
        return found.values()

    def children(self, module: nn.Module) -> dict[str, nn.Module]:
        """Return the modules that were directly inside by name, and after them what was added under other names."""
        before, now = self._children.get(id(module), {}), _inside(module)
        return {**before, **now, **before} if before != now else before

    def parameters(self, module: nn.Module, *, trainable: bool = False) -> int:
        """Return the number of elements of the subtree's parameters, each once."""
        found = {id(each): each for one in self._subtree(module) for each in one.parameters(recurse=False)}
        return elements(one for one in found.values() if one.requires_grad or not trainable)


def _inside(module: nn.Module) -> dict[str, nn.Module]:
    return {name: child for name, child in module._modules.items() if child is not None}


def elements(parameters: Iterable[nn.Parameter]) -> int:
    """Return the number of elements of parameters that have their sizes."""
    return sum(0 if nn.parameter.is_lazy(one) else one.numel() for one in parameters)


class ForwardClocks:
    """Seconds of each module's calls, added up; calls that a running backward makes again are left out.

    The clock is the host's, and waits for the device at both ends.
    """

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

    def running(self) -> Around:
        """Time the calls in here, by global hooks, so that no module gets a hook."""
        self._begun.clear()
        return global_hooks(self._begin, self._end, always_call=True)

    def _now(self) -> float:
        for device in self._devices:
            getattr(torch, device).synchronize()
        return time.perf_counter()

    def _begin(self, module: nn.Module, _: Any) -> None:
        if id(module) in self._members and torch._C._current_graph_task_id() == -1:
            self._begun.setdefault((threading.get_ident(), id(module)), []).append(self._now())

    def _end(self, module: nn.Module, *_: Any) -> None:
        begun = self._begun.get((threading.get_ident(), id(module)))
        if begun and torch._C._current_graph_task_id() == -1:
            seconds = self._now() - begun.pop()
            if not begun:  # a call inside a call of the same module is part of it
                self._seconds[id(module)] += seconds  # type: ignore[assignment]
