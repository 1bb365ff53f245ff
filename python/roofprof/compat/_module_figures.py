"""What modules count in another tool's convention, the sums over subtrees, and a model printed with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import torch
from torch import nn

import roofprof
from roofprof.compat._call import named_places
from roofprof.compat._per_element import Handle, Observed

_PATHS_OUTSIDE = ("(outside)", "(optimizer)")


class ModuleFigures:
    """One number for each module object, whatever its places: a module that is used twice counts both of its calls.

    ignored: exact types whose own work counts for the module above them.
    """

    def __init__(self, model: nn.Module, ignored: Collection[type[nn.Module]] | None = None) -> None:
        self._model = model
        self._ignored = frozenset(ignored or ())
        self._own: Counter[int] = Counter()  # by id of the module

    def add(self, report: roofprof.Report, convention: Handle) -> None:
        """What ``convention`` says of the forward's ops in the model, each given as the calls of one dtype."""
        places = dict(named_places(self._model))
        for group in report.group("phase", "module", "op", "dtype"):
            phase, path, operator, _ = group.keys
            if phase != "forward" or path.startswith(_PATHS_OUTSIDE):
                continue
            while path not in places:  # a region's row
                path = path.rpartition(".")[0]
            amount = convention(Observed(operator, group, places[path]))
            while path and type(places[path]) in self._ignored:
                path = path.rpartition(".")[0]
            if type(places[path]) not in self._ignored:
                self._own[id(places[path])] += amount  # type: ignore[assignment]

    def of(self, module: nn.Module) -> int:
        """The sum over a module and all that is below it, each module once."""
        return sum(self._own[id(one)] for one in module.modules())


def printed(model: nn.Module, facts: Callable[[nn.Module], list[str]]) -> str:
    """``str(model)`` with ``facts`` of each module before its own description."""
    with _described(model, facts):
        return str(model)


@contextmanager
def _described(model: nn.Module, facts: Callable[[nn.Module], list[str]]) -> Iterator[None]:
    changed: list[tuple[nn.Module, Callable[[], str] | None]] = []
    try:
        for module in model.modules():
            before = vars(module).get("extra_repr")
            vars(module)["extra_repr"] = _extra_repr(module, module.extra_repr, facts)
            changed.append((module, before))
        yield
    finally:
        for module, before in changed:
            if before is None:
                del vars(module)["extra_repr"]
            else:
                vars(module)["extra_repr"] = before


def _extra_repr(
    module: nn.Module, original: Callable[[], str], facts: Callable[[nn.Module], list[str]]
) -> Callable[[], str]:
    return lambda: ", ".join([*facts(module), *filter(None, [original()])])


def parameters_in(module: nn.Module, *, trainable: bool) -> int:
    """Elements of its parameters, each once; of those that are trained, or of all."""
    return sum(one.numel() for one in module.parameters() if (one.requires_grad or not trainable) and _is_known(one))


def _is_known(parameter: torch.Tensor) -> bool:
    return not nn.parameter.is_lazy(parameter)
