"""One call, observed once, and what it gives by module and operator: what fvcore's analyses share."""

from __future__ import annotations

import contextlib
import inspect
import logging
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

import roofprof
from roofprof.compat import _fvcore_convention as convention
from roofprof.compat._call import keywords, named_places, positional, require_module, unfused
from roofprof.compat._per_element import Handle, Observed
from roofprof.state.snapshot import StateSnapshot

if TYPE_CHECKING:
    from typing_extensions import Self

_TRACER_WARNINGS = ("all", "no_tracer_warning", "none")
_ANCESTOR_MODES = ("owner", "caller")

# The names of a linear layer: torch's tracer records it whole today, and recorded what it called in older versions.
_SAME_OPERATOR = {"addmm": "linear", "linear": "addmm"}


class OperatorCounter(Counter[str]):
    """A Counter over operators in which ``linear`` and ``addmm`` name each other where only one of them is there."""

    def __missing__(self, name: str) -> int:
        return int(super().get(_SAME_OPERATOR.get(name, ""), 0))

    def get(self, name: str, default: Any = None) -> Any:
        """Return the count under that name, or under the other name of the same operator."""
        return self[name] if name in self or _SAME_OPERATOR.get(name) in self else default

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and _under_one_name(self) == _under_one_name(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]


def _under_one_name(counts: dict[str, Any]) -> dict[str, Any]:
    together: dict[str, Any] = defaultdict(int)
    for name, count in counts.items():
        together["linear" if name == "addmm" else name] += count
    return {name: count for name, count in together.items() if count}


@dataclass
class _Statistics:
    """Figures by canonical module name; a module that runs inside TorchScript has no entry."""

    counts: dict[str, OperatorCounter] = field(default_factory=dict)
    unsupported: dict[str, Counter[str]] = field(default_factory=dict)
    uncalled: set[str] = field(default_factory=set)


class Analysis:
    """Figures by module and operator of one call ``model(*inputs, **kwargs)``, made when first asked for.

    inputs: a tuple of positional arguments; anything else (a tensor, a dict, a list) is the one argument.
    kwargs: keyword arguments, which fvcore does not have.

    The model's own exception comes through. The model and the random number generators are left as they were.
    """

    _default_handles: Mapping[str, Handle | None] = {}

    def __init__(self, model: torch.nn.Module, inputs: Any = (), kwargs: Mapping[str, Any] | None = None) -> None:
        require_module(model)
        self._model = model
        self._inputs = inputs
        self._kwargs = keywords(kwargs)
        self._handles: dict[str, Handle | None] = dict(self._default_handles)
        self._modules = dict(named_places(model))
        first: dict[int, str] = {}
        self._aliases = {path: first.setdefault(id(module), path) for path, module in self._modules.items()}
        self._statistics: _Statistics | None = None
        self._warn_unsupported = self._warn_uncalled = True
        self._tracer_warnings = "no_tracer_warning"
        self._ancestor_mode = "owner"

    @property
    def model(self) -> torch.nn.Module:
        """The model that is analysed."""
        return self._model

    # ---- figures

    def total(self, module_name: str = "") -> int:
        """Return the sum over all operators of a module and of the modules below it."""
        return sum(self._counts_of(module_name).values())

    def by_operator(self, module_name: str = "") -> OperatorCounter:
        """Return the figures of a module by operator."""
        return self._counts_of(module_name)

    def by_module(self) -> Counter[str]:
        """Return the figures of each module, the modules below it included."""
        return Counter({name: sum(counts.values()) for name, counts in self._analyze().counts.items()})

    def by_module_and_operator(self) -> dict[str, OperatorCounter]:
        """Return the figures of each module by operator, the modules below it included."""
        return self._analyze().counts

    def unsupported_ops(self, module_name: str = "") -> Counter[str]:
        """Return operators whose arithmetic counts as 0, with their calls, except those that fvcore ignores.

        Raises RuntimeError before any figure was asked for, as fvcore does.
        """
        if self._statistics is None:
            raise RuntimeError("nothing is analysed yet: ask for total() or another figure before unsupported_ops()")
        return self._statistics.unsupported[self._known(module_name)]

    def uncalled_modules(self) -> set[str]:
        """Return the modules that never ran."""
        return self._analyze().uncalled

    def canonical_module_name(self, name: str) -> str:
        """Return the name under which a module has its figures: the first where it has several. Raises KeyError."""
        if not isinstance(name, str):
            raise TypeError(f"a module's name is a string, not a {type(name).__name__}")
        if name not in self._aliases:
            raise KeyError(f"the model has no module '{name}'")
        return self._aliases[name]

    # ---- settings

    def set_op_handle(self, *args: Any, **kwargs: Handle | None) -> Self:
        """Count operators another way: pairs of a name and a handle, or keywords.

        A handle is None, so that the operator is ignored, or a function of one :class:`Observed`, which has all calls
        of the operator in one module: ``lambda op: 3 * op.figures.output_elements``. fvcore's handles take values of a
        TorchScript graph, which an op that was observed does not have: they raise TypeError here.
        """
        if len(args) % 2:
            raise TypeError("set_op_handle takes pairs of an operator's name and a handle")
        handles = dict(zip(args[::2], args[1::2], strict=True)) | kwargs
        for name, handle in handles.items():
            _check_handle(name, handle)
        self._handles |= handles
        self._statistics = None
        return self

    def clear_op_handles(self) -> Self:
        """Remove the handles of all operators, so that only multiply-accumulates count."""
        self._handles = {}
        self._statistics = None
        return self

    def unsupported_ops_warnings(self, enabled: bool) -> Self:
        """Switch the log of unsupported operators on or off."""
        self._warn_unsupported = enabled
        return self

    def uncalled_modules_warnings(self, enabled: bool) -> Self:
        """Switch the log of uncalled modules on or off."""
        self._warn_uncalled = enabled
        return self

    def tracer_warnings(self, mode: str) -> Self:
        """Python warnings of the call: "none" hides them, "all" and "no_tracer_warning" do not; nothing is traced."""
        self._tracer_warnings = _one_of(mode, _TRACER_WARNINGS, "tracer warning mode")
        return self

    def ancestor_mode(self, mode: str) -> Self:
        """Who shares in the work of a module with several parents: "owner" the parent of its first name, "caller" the
        parent that called it.
        """
        self._ancestor_mode = _one_of(mode, _ANCESTOR_MODES, "ancestor mode")
        self._statistics = None
        return self

    def copy(self, new_model: torch.nn.Module | None = None, new_inputs: Any = None) -> Self:
        """Return an analysis of another model or other inputs with the same settings."""
        other = type(self)(
            self._model if new_model is None else new_model,
            self._inputs if new_inputs is None else new_inputs,
            self._kwargs,
        )
        other._handles = dict(self._handles)
        other._warn_unsupported, other._warn_uncalled = self._warn_unsupported, self._warn_uncalled
        other._tracer_warnings, other._ancestor_mode = self._tracer_warnings, self._ancestor_mode
        return other

    # ---- the call

    def _count(self, op: Observed) -> float | None:
        """Return the count of an operator without a handle; None where the convention has none."""
        raise NotImplementedError

    def _known(self, module_name: str) -> str:
        name = self.canonical_module_name(module_name)
        if name not in self._analyze().counts:
            raise KeyError(f"roofprof has no separate figures of '{module_name}': it runs inside a TorchScript module")
        return name

    def _counts_of(self, module_name: str) -> OperatorCounter:
        name = self._known(module_name)
        return self._analyze().counts[name]

    def _analyze(self) -> _Statistics:
        if self._statistics is None:
            statistics = self._collect(self._observe())
            self._statistics = statistics
            self._log(statistics)
        return self._statistics

    def _observe(self) -> roofprof.Report:
        args = positional(self._inputs)
        rewind = StateSnapshot(self._model, args, self._kwargs)
        with contextlib.ExitStack() as stack:
            if self._tracer_warnings == "none":
                stack.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore")
            stack.enter_context(rewind.undoing())
            stack.enter_context(unfused())
            return roofprof.count(self._model, *args, **self._kwargs)

    def _collect(self, report: roofprof.Report) -> _Statistics:
        rows = {row.path: row for row in report.rows}
        names = [name for name in dict.fromkeys(self._aliases.values()) if name in rows]
        statistics = _Statistics(
            {name: OperatorCounter() for name in names}, {name: Counter() for name in names}, set(names)
        )
        for path, row in rows.items():
            if row.calls != 0 and path in self._aliases:
                statistics.uncalled.difference_update(self._ancestors(path))
        for group in report.group("module", "op"):
            path, operator = group.keys
            op = Observed(operator, group, self._modules.get(path))
            amount = self._amount(op)
            for name in self._ancestors(path):
                if amount:
                    statistics.counts[name][convention.short_name(operator)] += amount  # type: ignore[assignment]
                elif amount is None:
                    statistics.unsupported[name][operator] += group.calls
        return statistics

    def _amount(self, op: Observed) -> float | None:
        if op.operator not in self._handles:
            return self._count(op)
        handle = self._handles[op.operator]
        return 0 if handle is None else handle(op)

    def _ancestors(self, path: str) -> Iterator[str]:
        """Yield the modules that a module's ops count for, itself included; only the model for ops outside of any."""
        if path not in self._aliases:
            path = ""
        own = self._aliases[path] if self._ancestor_mode == "owner" else path
        parts = own.split(".") if own else []
        yield from dict.fromkeys(self._aliases[".".join(parts[:depth])] for depth in range(len(parts) + 1))

    def _log(self, statistics: _Statistics) -> None:
        logger = logging.getLogger("roofprof.compat.fvcore")
        if self._warn_unsupported:
            for operator, calls in statistics.unsupported[""].items():
                logger.warning("Unsupported operator %s encountered %d time(s)", operator, calls)
        uncalled = {name for name in statistics.uncalled if _has_forward(self._modules[name])}
        if self._warn_uncalled and uncalled:
            logger.warning(
                "Modules that were never called, so that their figures are 0: %s", ", ".join(sorted(uncalled))
            )


def _check_handle(name: str, handle: Any) -> None:
    if handle is None:
        return
    if not callable(handle):
        raise TypeError(f"the handle of '{name}' must be a function or None, not a {type(handle).__name__}")
    try:
        inspect.signature(handle).bind(None)
    except TypeError:
        raise TypeError(
            f"the handle of '{name}' must take one argument, an Observed with .figures (calls, macs, input_elements, "
            f"output_elements): fvcore's own (inputs, outputs) are of a TorchScript graph, and nothing is traced here"
        ) from None


def _one_of(value: str, known: tuple[str, ...], what: str) -> str:
    if value not in known:
        raise ValueError(f"there is no {what} '{value}'; there are {', '.join(known)}")
    return value


def _has_forward(module: torch.nn.Module) -> bool:
    return getattr(type(module), "forward", None) is not torch.nn.Module.forward
