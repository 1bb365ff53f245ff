"""Calls of modules in a program that knows nothing of roofprof, and the names that it has for them."""

from __future__ import annotations

import contextlib
import re
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from roofprof import _C
from roofprof.models.compiled import Compilations
from roofprof.models.hooks import ModuleHooks, unwarned


class Names:
    """Finds the module that a name means: a variable, a class, or "Class[2]".

    variables: the program's; None: those of ``__main__``.
    """

    def __init__(self, variables: Mapping[str, Any] | None) -> None:
        self._variables = variables
        self._places: dict[str, list[weakref.ref[torch.nn.Module]]] = {}  # by class, as they were first called

    @property
    def variables(self) -> Mapping[str, Any]:
        """The program's variables."""
        return vars(sys.modules["__main__"]) if self._variables is None else self._variables

    def is_named(self, module: torch.nn.Module, name: str) -> bool:
        """Return whether the module, which is called now, has that name."""
        if found := re.fullmatch(r"(\w+)\[(\d+)\]", name):
            return type(module).__name__ == found[1] and self._place(module) == int(found[2])
        return type(module).__name__ == name or self.variable(name) is module

    def variable(self, name: str) -> object:
        """Return the program's value of a dotted name; None if there is none."""
        first, *rest = name.split(".")
        value = self.variables.get(first)
        for part in rest:
            value = getattr(value, part, None)
        return value

    def _place(self, module: torch.nn.Module) -> int:
        """Return the module's place among the called objects of its class, in the order of their first calls."""
        places = self._places.setdefault(type(module).__name__, [])
        for place, known in enumerate(places):
            if known() is module:
                return place
        places.append(weakref.ref(module))
        return len(places) - 1


@contextlib.contextmanager
def outer_calls(
    begin: Callable[[torch.nn.Module, tuple[Any, ...]], bool],
    end: Callable[[torch.nn.Module], None],
    missed: Callable[[torch.nn.Module], None],
) -> Iterator[None]:
    """Ask ``begin(module, arguments)`` before each outer call whether to take it, and call ``end(module)`` after it.

    Calls inside a call that is taken are not reported. torch's compiler does not see the hooks; for a call that it
    compiles as a whole, ``missed(module)`` is called instead.
    """
    calls = _C.OuterCalls(begin, end)
    compilations = Compilations(missed=missed)
    hooks = ModuleHooks(calls.enter_hook, calls.leave_hook)
    with contextlib.ExitStack() as made:
        made.callback(calls.forget)
        made.callback(hooks.remove)
        hooks.register()
        made.enter_context(unwarned())
        made.enter_context(compilations.watched())
        made.enter_context(compilations.kept_from(hooks))
        yield


@dataclass
class Seen:
    """A module that was called from outside of all others."""

    module: weakref.ref[torch.nn.Module]
    type: str
    calls: int = 0
    seconds: float = 0.0
    calls_of_phase: Counter[str | None] = field(default_factory=Counter)
    is_trained: bool = False  # a backward followed a call
    in_step: int = -1  # the last step in which it was called
    in_gap: int = -1  # the last gap between two steps in which it was called
    is_regular: bool = False  # it was called in the gap before that, too
    _has_parameters: bool = False

    @property
    def has_parameters(self) -> bool:
        """True if it has parameters, which it may have got since its first call."""
        module = None if self._has_parameters else self.module()
        if module is not None:
            self._has_parameters = next(module.parameters(), None) is not None
        return self._has_parameters


def named(modules: list[Seen]) -> str:
    """Return the types of modules with the numbers of their calls."""
    return counted([(one.type, one.calls) for one in modules])


def counted(calls: list[tuple[str, int]]) -> str:
    """Return the types with their numbers, as "Net (20), Loss (20) and 3 more"."""
    each = [f"{name} ({number})" for name, number in calls]
    return ", ".join(each[:5]) + (f" and {len(each) - 5} more" if len(each) > 5 else "")
