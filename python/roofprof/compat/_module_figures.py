"""The counts of modules in another tool's convention, the sums over subtrees, and a model printed with them."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from torch import nn

import roofprof
from roofprof.compat._call import named_places
from roofprof.compat._per_element import Handle, Observed

_PATHS_OUTSIDE = ("(outside)", "(optimizer)")


class ModuleFigures:
    """One number for each module object, whatever its places: a module that is used twice counts both of its calls.

    ignored: exact types whose own work counts for the module above them, or for none where it is left out.
    """

    def __init__(
        self, model: nn.Module, ignored: Collection[type[nn.Module]] | None = None, *, leave_out: bool = False
    ) -> None:
        self._model = model
        self._ignored = frozenset(ignored or ())
        self._leave_out = leave_out
        self._own: Counter[int] = Counter()  # by id of the module
        self.replaced: dict[int, int] = {}  # by id: what a subtree counts in place of all that it does

    def add(self, report: roofprof.Report, convention: Handle) -> None:
        """Add the forward's ops in the model by ``convention``, which gets the calls of one op and dtype at a time."""
        places = dict(named_places(self._model))
        for group in report.group("phase", "module", "op", "dtype"):
            phase, path, operator, _ = group.keys
            if phase != "forward" or path.startswith(_PATHS_OUTSIDE):
                continue
            while path not in places:  # a region's row
                path = path.rpartition(".")[0]
            amount = convention(Observed(operator, group, places[path]))
            while path and type(places[path]) in self._ignored and not self._leave_out:
                path = path.rpartition(".")[0]
            if type(places[path]) not in self._ignored:
                self._own[id(places[path])] += amount  # type: ignore[assignment]

    def own(self, module: nn.Module) -> int:
        """Return the count of the module itself, without the modules below it."""
        return self._own[id(module)]

    def of(self, module: nn.Module, share: Callable[[nn.Module], float] | None = None) -> int:
        """Return the sum over a module and all modules below it, each once; of each only its ``share``, if given."""
        return round(self._sum(module, share, set()))

    def _sum(self, module: nn.Module, share: Callable[[nn.Module], float] | None, seen: set[int]) -> float:
        if id(module) in seen:
            return 0
        seen.add(id(module))
        if id(module) in self.replaced:
            return self.replaced[id(module)]
        own = self._own[id(module)]
        return (own * share(module) if share and own else own) + sum(
            self._sum(child, share, seen) for child in module.children()
        )


def printed(model: nn.Module, facts: Callable[[nn.Module], list[str]], *, keep_empty: bool = False) -> str:
    """Return ``str(model)`` with ``facts`` of each module before its own text; keep_empty: a comma also before none."""

    def described(module: nn.Module, original: Callable[[], str]) -> str:
        own = original()
        return ", ".join([*facts(module), *([own] if own or keep_empty else [])])

    with _described(model, described):
        return str(model)


_Describe = Callable[[nn.Module, Callable[[], str]], str]


@contextmanager
def _described(model: nn.Module, describe: _Describe) -> Iterator[None]:
    changed: list[tuple[nn.Module, Callable[[], str] | None]] = []
    try:
        for module in model.modules():
            before = vars(module).get("extra_repr")
            vars(module)["extra_repr"] = functools.partial(describe, module, module.extra_repr)
            changed.append((module, before))
        yield
    finally:
        for module, before in changed:
            if before is None:
                del vars(module)["extra_repr"]
            else:
                vars(module)["extra_repr"] = before


def trainable_parameters(module: nn.Module) -> int:
    """Return the number of elements of trainable parameters, each parameter once."""
    return sum(one.numel() for one in module.parameters() if one.requires_grad and not nn.parameter.is_lazy(one))
