"""``fvcore.nn``'s FLOP counting on roofprof's observer: docs/compat.md has the convention, and what differs."""

from __future__ import annotations

import contextlib
import inspect
import logging
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from roofprof.compat._call import counted, named_places, positional, require_module, undone
from roofprof.compat._conventions import FVCORE_ACTIVATIONS, FVCORE_FLOPS, FVCORE_IGNORED, Handle, Observed
from roofprof.compat._table import Line, shown

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ActivationCountAnalysis", "FlopCountAnalysis", "Handle", "Observed", "activation_count", "flop_count"]
__all__ += ["flop_count_str", "flop_count_table", "parameter_count", "parameter_count_table"]


class _Analysis:
    """Figures by module and operator of one call ``model(*inputs, **kwargs)``, made when first asked for."""

    _rules: ClassVar[Mapping[str, Handle | None]] = {}

    def __init__(self, model: torch.nn.Module, inputs: Any = (), kwargs: Mapping[str, Any] | None = None) -> None:
        require_module(model)
        self._model, self._inputs, self._kwargs = model, inputs, dict(kwargs or {})
        self._handles = dict(self._rules)
        self._modules = dict(named_places(model))
        first: dict[int, str] = {}
        self._aliases = {path: first.setdefault(id(module), path) for path, module in self._modules.items()}
        self._warn_unsupported = self._warn_uncalled = True
        self._tracer_warnings, self._ancestor_mode = "no_tracer_warning", "owner"
        self._forget()

    def _forget(self) -> None:
        self._is_known, self._uncalled = False, set[str]()
        self._counts: dict[str, Counter[str]] = {}  # by canonical name
        self._unsupported: dict[str, Counter[str]] = {}

    @property
    def model(self) -> torch.nn.Module:
        """The model that is analysed."""
        return self._model

    # ---- figures

    def total(self, module_name: str = "") -> int:
        """Return the sum over all operators of a module and of the modules below it."""
        return sum(self.by_operator(module_name).values())

    def by_operator(self, module_name: str = "") -> Counter[str]:
        """Return the figures of a module by operator."""
        return self.by_module_and_operator()[self._with_figures(module_name)]

    def by_module(self) -> Counter[str]:
        """Return the figures of each module, the modules below it included."""
        return Counter({name: sum(counts.values()) for name, counts in self.by_module_and_operator().items()})

    def by_module_and_operator(self) -> dict[str, Counter[str]]:
        """Return the figures of each module by operator, the modules below it included."""
        self._analyze()
        return self._counts

    def unsupported_ops(self, module_name: str = "") -> Counter[str]:
        """Return operators whose arithmetic counts as 0, with their calls, except those that fvcore ignores."""
        if not self._is_known:
            raise RuntimeError("nothing is analysed yet: ask for total() or another figure before unsupported_ops()")
        return self._unsupported[self._with_figures(module_name)]

    def uncalled_modules(self) -> set[str]:
        """Return the modules that never ran."""
        self._analyze()
        return self._uncalled

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
        of the operator in one module: ``lambda op: 3 * op.figures.output_elements``.
        """
        if len(args) % 2:
            raise TypeError("set_op_handle takes pairs of an operator's name and a handle")
        handles = dict(zip(args[::2], args[1::2], strict=True)) | kwargs
        for name, handle in handles.items():
            _check_handle(name, handle)
        self._handles = self._handles | handles
        self._forget()
        return self

    def clear_op_handles(self) -> Self:
        """Remove the handles of all operators, so that only multiply-accumulates count."""
        self._handles = {}
        self._forget()
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
        """Show or hide Python warnings of the call: "none" hides them, "all" and "no_tracer_warning" do not."""
        _check(mode, ("all", "no_tracer_warning", "none"), "tracer warning mode")
        self._tracer_warnings = mode
        return self

    def ancestor_mode(self, mode: str) -> Self:
        """Choose which parent gets the work of a module with several: "owner", that of its first name, or "caller"."""
        _check(mode, ("owner", "caller"), "ancestor mode")
        self._ancestor_mode = mode
        self._forget()
        return self

    def copy(self, new_model: torch.nn.Module | None = None, new_inputs: Any = None) -> Self:
        """Return an analysis of another model or other inputs with the same settings."""
        model = self._model if new_model is None else new_model
        other = type(self)(model, self._inputs if new_inputs is None else new_inputs, self._kwargs)
        for name in ("_handles", "_warn_unsupported", "_warn_uncalled", "_tracer_warnings", "_ancestor_mode"):
            setattr(other, name, getattr(self, name))
        return other

    # ---- the call

    @staticmethod
    def _count(op: Observed) -> float:
        """Return the count of an operator without a handle; 0 if the convention has none."""
        raise NotImplementedError

    def _amount(self, op: Observed) -> float | None:
        if op.operator in self._handles:
            handle = self._handles[op.operator]
            return 0 if handle is None else handle(op)
        does_nothing = not (op.figures.flops or op.figures.int_ops or op.figures.incomplete)
        return self._count(op) or (0 if does_nothing or op.operator in FVCORE_IGNORED else None)

    def _with_figures(self, module_name: str) -> str:
        name = self.canonical_module_name(module_name)
        if name not in self.by_module_and_operator():
            raise KeyError(f"roofprof has no separate figures of '{module_name}': it runs inside a TorchScript module")
        return name

    def _analyze(self) -> None:
        if self._is_known:
            return
        args = positional(self._inputs)
        with undone(self._model, args, self._kwargs), contextlib.ExitStack() as stack:
            if self._tracer_warnings == "none":
                stack.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore")
            report = counted(self._model, args, self._kwargs, training=None)
        self._is_known = True
        rows = {row.path: row for row in report.rows}
        names = [name for name in dict.fromkeys(self._aliases.values()) if name in rows]
        self._counts, self._unsupported = (
            {name: Counter() for name in names},
            {name: Counter() for name in names},
        )
        called = {
            name
            for path, row in rows.items()
            if row.calls != 0 and path in self._aliases
            for name in self._around(path)
        }
        self._uncalled = set(names) - called
        for group in report.group("module", "op"):
            path, operator = group.keys
            amount = self._amount(Observed(operator, group, self._modules.get(path)))
            # fvcore has one name for all convolutions.
            is_conv = operator.startswith("aten::") and "conv" in operator
            short = "conv" if is_conv else operator.partition("::")[2] or operator
            for name in self._around(path):
                if amount:
                    self._counts[name][short] += amount  # type: ignore[assignment]
                elif amount is None:
                    self._unsupported[name][operator] += group.calls
        self._log()

    def _around(self, path: str) -> Iterator[str]:
        """Yield the modules that a module's ops count for, itself included; only the model for ops outside of any."""
        path = path if path in self._aliases else ""
        own = self._aliases[path] if self._ancestor_mode == "owner" else path
        parts = own.split(".") if own else []
        yield from dict.fromkeys(self._aliases[".".join(parts[:depth])] for depth in range(len(parts) + 1))

    def _log(self) -> None:
        logger = logging.getLogger("roofprof.compat.fvcore")
        for operator, calls in self._unsupported[""].items() if self._warn_unsupported else ():
            logger.warning("Unsupported operator %s encountered %d time(s)", operator, calls)
        no_forward = torch.nn.Module.forward
        uncalled = [one for one in self._uncalled if getattr(type(self._modules[one]), "forward", 0) is not no_forward]
        if self._warn_uncalled and uncalled:
            names = ", ".join(sorted(uncalled))
            logger.warning("Modules that were never called, so that their figures are 0: %s", names)


def _check_handle(name: str, handle: Any) -> None:
    if handle is not None and not callable(handle):
        raise TypeError(f"the handle of '{name}' must be a function or None, not a {type(handle).__name__}")
    try:
        inspect.signature(handle or len).bind(None)
    except TypeError:
        raise TypeError(
            f"the handle of '{name}' must take one argument, an Observed with .figures (calls, macs, input_elements, "
            f"output_elements): fvcore's own (inputs, outputs) are of a TorchScript graph, and nothing is traced here"
        ) from None


def _check(value: str, known: tuple[str, ...], what: str) -> None:
    if value not in known:
        raise ValueError(f"there is no {what} '{value}'; there are {', '.join(known)}")


class FlopCountAnalysis(_Analysis):
    """FLOPs of one call ``model(*inputs, **kwargs)`` in fvcore's convention, made when first asked for.

    inputs: a tuple of positional arguments; anything else (a tensor, a dict, a list) is the one argument.
    kwargs: keyword arguments, which fvcore does not have.
    """

    _rules = FVCORE_FLOPS

    @staticmethod
    def _count(op: Observed) -> float:
        return op.figures.macs


class ActivationCountAnalysis(_Analysis):
    """Elements that convolutions, linear layers and products return in one call, as fvcore counts activations."""

    _rules = FVCORE_ACTIVATIONS

    @staticmethod
    def _count(op: Observed) -> float:
        # Attention and recurrent layers count, too, for which fvcore has no handle.
        return op.figures.output_elements if op.figures.macs else 0


def flop_count(
    model: torch.nn.Module, inputs: Any, supported_ops: Mapping[str, Handle | None] | None = None
) -> tuple[defaultdict[str, float], Counter[str]]:
    """Return GFLOPs by operator, and the calls of unsupported operators."""
    return _scaled(FlopCountAnalysis(model, inputs).set_op_handle(**(supported_ops or {})), 1e9)


def activation_count(
    model: torch.nn.Module, inputs: Any, supported_ops: Mapping[str, Handle | None] | None = None
) -> tuple[defaultdict[str, float], Counter[str]]:
    """Return millions of activations by operator, and the calls of unsupported operators."""
    return _scaled(ActivationCountAnalysis(model, inputs).set_op_handle(**(supported_ops or {})), 1e6)


def _scaled(analysis: _Analysis, unit: float) -> tuple[defaultdict[str, float], Counter[str]]:
    counts = {name: count / unit for name, count in analysis.by_operator().items()}
    return defaultdict(float, counts), analysis.unsupported_ops()


# ---- printed


def parameter_count(model: torch.nn.Module) -> defaultdict[str, int]:
    """Return parameters by the name of each parameter and of each module above it; "" is the model. Ties count once."""
    counts: defaultdict[str, int] = defaultdict(int)
    for name, parameter in model.named_parameters():
        parts = name.split(".")
        for depth in range(len(parts) + 1):
            counts[".".join(parts[:depth])] += parameter.numel()
    return counts


def parameter_count_table(model: torch.nn.Module, max_depth: int = 3) -> str:
    """Return the parameters of modules, and the shapes of parameters, down to ``max_depth`` names."""
    return shown(("name", "#elements or shape"), _lines(model, [parameter_count(model)], max_depth, shapes=True))


def flop_count_table(
    flops: _Analysis, max_depth: int = 3, activations: _Analysis | None = None, show_param_shapes: bool = True
) -> str:
    """Return parameters and FLOPs of each module down to ``max_depth`` as a table, without rows that have none."""
    first = "#parameters" + (" or shape" if show_param_shapes else "")
    columns = ("module", first, "#flops", *(() if activations is None else ("#activations",)))
    return _table(columns, flops, activations, max_depth, shapes=show_param_shapes)


def flop_count_str(flops: _Analysis, activations: _Analysis | None = None) -> str:
    """Return parameters and FLOPs of all modules as a table."""
    columns = ("module", "#params", "#flops", *(() if activations is None else ("#acts",)))
    return _table(columns, flops, activations, sys.maxsize, shapes=False)


def _table(
    columns: tuple[str, ...], flops: _Analysis, activations: _Analysis | None, max_depth: int, *, shapes: bool
) -> str:
    figures: list[Mapping[str, int | None]] = [parameter_count(flops.model)]
    for analysis in (flops, activations):
        if analysis is not None:  # fvcore logs no more of one that is printed
            analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False).tracer_warnings("none")
            figures.append({**analysis.by_module(), **dict.fromkeys(analysis.uncalled_modules())})
    return shown(columns, _lines(flops.model, figures, max_depth, shapes=shapes))


def _lines(
    model: torch.nn.Module, figures: Sequence[Mapping[str, int | None]], max_depth: int, *, shapes: bool
) -> Iterator[Line]:
    for path, module in model.named_modules():
        depth = path.count(".") + 1 if path else 0
        cells = [column.get(path, 0) for column in figures]
        if depth <= max_depth and (any(cells) or not path):
            yield depth, (path or "model", *cells)
            for name, parameter in module.named_parameters(recurse=False) if shapes and depth < max_depth else ():
                shape = str(tuple(parameter.shape))
                yield depth + 1, (f"{path}.{name}".lstrip("."), shape, *("" for _ in figures[1:]))
