"""Names of modules in a program: a variable, a class, or "Class[2]"."""

from __future__ import annotations

import re
import sys
import weakref
from collections.abc import Mapping
from typing import Any

import torch


class Names:
    """Which module a name means. variables: the program's; None: those of ``__main__``."""

    def __init__(self, variables: Mapping[str, Any] | None) -> None:
        self._variables = variables
        self._places: dict[str, list[weakref.ref[torch.nn.Module]]] = {}  # by class, as they were first called

    def is_named(self, module: torch.nn.Module, name: str) -> bool:
        """Whether the module, which is called now, has that name."""
        if found := re.fullmatch(r"(\w+)\[(\d+)\]", name):
            return type(module).__name__ == found[1] and self._place(module) == int(found[2])
        return type(module).__name__ == name or self._variable(name) is module

    def _variable(self, name: str) -> object:
        """What a dotted name is in the program; None where it has none."""
        first, *rest = name.split(".")
        variables = vars(sys.modules["__main__"]) if self._variables is None else self._variables
        value = variables.get(first)
        for part in rest:
            value = getattr(value, part, None)
        return value

    def _place(self, module: torch.nn.Module) -> int:
        """Among the objects of its class that were called, in the order of their first calls."""
        places = self._places.setdefault(type(module).__name__, [])
        for place, known in enumerate(places):
            if known() is module:
                return place
        places.append(weakref.ref(module))
        return len(places) - 1
