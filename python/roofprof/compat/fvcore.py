"""``fvcore.nn``'s FLOP counting on roofprof's observer: ``from roofprof.compat.fvcore import FlopCountAnalysis``.

The convention is fvcore's: one FLOP for a multiply-accumulate, its names of operators, and for normalisation,
upsampling and adaptive pooling its weights for each element. Differences:

==============================================  ==================================  =============================
what the model does                             fvcore                              here
==============================================  ==================================  =============================
attention, LSTM and GRU, quantised products     0, listed as unsupported            their MACs, by operator
``@`` of batches that broadcast                 one operand's batch only            the MACs that are done
einsum                                          NumPy's estimate                    its products' MACs, as bmm
inputs: a dict, keyword arguments               refused                             as the model takes them
outputs: a dataclass, None, anything            refused                             never looked at
TorchScript modules                             refused                             one row, all their work in it
handles of your own                             take TorchScript's values           take an ``Observed``
BatchNorm in training mode                      its statistics move on              the model is left as it was
==============================================  ==================================  =============================

A linear layer is ``linear`` as in fvcore under today's torch, and answers to ``addmm`` too, as under the torch that
fvcore's manual shows.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

import roofprof
from roofprof.compat._call import keywords, named_places, positional, require_module, unfused
from roofprof.compat._figures import Handle, Observed, batch_norm, per_input, per_output, statistics_norm
from roofprof.state.snapshot import StateSnapshot

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "ActivationCountAnalysis",
    "FlopCountAnalysis",
    "Handle",
    "Observed",
    "OperatorCounter",
    "activation_count",
    "flop_count",
    "flop_count_str",
    "flop_count_table",
    "parameter_count",
    "parameter_count_table",
]

# ---- the convention of fvcore, as data: one FLOP for a multiply-accumulate, fixed weights by element for a few ops


def _four_per_output(op: Observed) -> int:
    return 4 * op.figures.output_elements


_FLOPS_BY_OPERATOR: dict[str, Handle] = {
    "aten::batch_norm": batch_norm,
    "aten::group_norm": statistics_norm,
    "aten::layer_norm": statistics_norm,
    "aten::instance_norm": statistics_norm,
    "aten::upsample_nearest2d": per_output,
    "aten::upsample_bilinear2d": _four_per_output,
    "aten::adaptive_avg_pool2d": per_input,
    "aten::grid_sampler": _four_per_output,
}
"""Every other op counts 1 for each of its multiply-accumulates, whatever its name."""

_ACTIVATIONS_BY_OPERATOR: dict[str, Handle] = dict.fromkeys(
    ["aten::addmm", "aten::bmm", "aten::einsum", "aten::matmul", "aten::linear"], per_output
)
"""Convolutions count as well: the elements of their outputs."""

_IGNORED = (
    *("arange", "bitwise_not", "clamp", "clamp_", "constant_pad_nd", "dropout", "eq", "floor", "floor_divide"),
    *("gather", "ge", "gt", "index", "index_put_", "masked_fill", "max", "nonzero", "relu", "relu_", "remainder"),
    "roll",
)
_IGNORED_OPS = frozenset(f"aten::{name}" for name in _IGNORED)
"""Ops whose arithmetic fvcore ignores, so that it does not list them as unsupported."""


def _is_convolution(operator: str) -> bool:
    """Return True when fvcore calls the operator "conv"."""
    return operator.startswith("aten::") and "conv" in operator


def _short_name(operator: str) -> str:
    """Return fvcore's name of the operator: without namespace, and one name for all convolutions."""
    return "conv" if _is_convolution(operator) else operator.partition("::")[2] or operator


# ---- one call, observed once, and what it gives by module and operator: what fvcore's analyses share

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


class _Analysis:
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
        """Show or hide Python warnings of the call: "none" hides them, "all" and "no_tracer_warning" do not."""
        self._tracer_warnings = _one_of(mode, _TRACER_WARNINGS, "tracer warning mode")
        return self

    def ancestor_mode(self, mode: str) -> Self:
        """Choose which parent gets the work of a module with several: "owner", that of its first name, or "caller"."""
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
        """Return the count of an operator without a handle; None if the convention has none."""
        raise NotImplementedError

    @staticmethod
    def _nothing(op: Observed) -> int | None:
        """Return 0 for an operator without MACs that does no arithmetic, or none that fvcore counts; else None."""
        does_nothing = not (op.figures.flops or op.figures.int_ops or op.figures.incomplete)
        return 0 if does_nothing or op.operator in _IGNORED_OPS else None

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
                    statistics.counts[name][_short_name(operator)] += amount  # type: ignore[assignment]
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


# ---- fvcore's two ways to print an analysis, and its count of parameters

_SCALES = ((1e14, 1e15, "P"), (1e11, 1e12, "T"), (1e8, 1e9, "G"), (1e5, 1e6, "M"), (1e2, 1e3, "K"))

_NOT_AVAILABLE = "N/A: the module was never called as a module; what it did is counted in its parents"

# Columns of one row: a missing one is blank and, unlike "", never merged with a figure.
_Cells = dict[str, str]


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
    counts = parameter_count(model)
    shapes = _shapes(model)
    rows = [["model", _rounded(counts.pop("", 0))]]

    def add(prefix: str, depth: int) -> None:
        if depth >= max_depth:
            return
        for name in _children(counts, prefix):
            indent = " " * (depth + 1)
            rows.append([indent + name, indent + (shapes.get(name) or _rounded(counts[name]))])
            add(name + ".", depth + 1)

    add("", 0)
    return _pipe_table(["name", "#elements or shape"], rows)


def flop_count_table(
    flops: _Analysis, max_depth: int = 3, activations: _Analysis | None = None, show_param_shapes: bool = True
) -> str:
    """Return parameters and FLOPs of each module as a table, without empty rows.

    max_depth: deepest module shown; activations: an analysis whose figures make a further column; show_param_shapes:
    whether parameters have rows of their own.
    """
    first = "#parameters" + (" or shape" if show_param_shapes else "")
    columns = _silenced({"#flops": flops} | ({} if activations is None else {"#activations": activations}))
    kept = _without_zeros(
        {first: parameter_count(flops.model)} | {name: one.by_module() for name, one in columns.items()}
    )
    cells = {path: {name: _human(value) for name, value in row.items()} for path, row in kept.items()}
    for column, analysis in columns.items():
        for path in analysis.uncalled_modules() & cells.keys():
            cells[path][column] = ""
    for name, shape in _shapes(flops.model).items():
        if show_param_shapes and name in cells:
            cells[name][first] = shape
        else:
            cells.pop(name, None)
    return _pipe_table(["module", first, *columns], _tree_rows(cells, [first, *columns], max_depth))


def flop_count_str(flops: _Analysis, activations: _Analysis | None = None) -> str:
    """Return the model as ``str(model)`` prints it, with parameters and FLOPs of each module that has any."""
    parameters = parameter_count(flops.model)
    columns = _silenced({"#flops": flops} | ({} if activations is None else {"#acts": activations}))

    def figures(path: str, shown: set[str]) -> str:
        values = {"#params": parameters.get(path, 0)} | {
            name: analysis.by_module().get(path, 0) for name, analysis in columns.items()
        }
        if path and path not in shown and not any(values.values()):
            return ""
        texts = {name: _human(value, 2) for name, value in values.items()}
        texts |= {name: "N/A" for name, analysis in columns.items() if path in analysis.uncalled_modules()}
        return ", ".join(f"{name}: {text}" for name, text in texts.items())

    uncalled = set[str]().union(*(analysis.uncalled_modules() for analysis in columns.values()))

    def text_of(module: torch.nn.Module, path: str) -> str:
        extra = [*module.extra_repr().splitlines(), *filter(None, [figures(path, uncalled)])]
        children = [
            f"({name}): " + text_of(child, f"{path}.{name}" if path else name).replace("\n", "\n  ")
            for name, child in module._modules.items()
            if child is not None
        ]
        lines = extra + children
        inside = extra[0] if len(extra) == 1 and not children else "".join(f"\n  {line}" for line in lines)
        name: str = module._get_name()  # type: ignore[no-untyped-call]
        return f"{name}({inside}" + ("\n)" if inside.startswith("\n") else ")")

    text = text_of(flops.model, "")
    return f"{_NOT_AVAILABLE}\n{text}" if "N/A" in text else text


def _silenced(analyses: dict[str, _Analysis]) -> dict[str, _Analysis]:
    """Switch off the warnings of analyses that are printed: fvcore logs no more of them either."""
    for analysis in analyses.values():
        analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False).tracer_warnings("none")
    return analyses


def _human(value: float, digits: int = 3) -> str:
    """Return a number such as ``11.641M``, with at most ``digits`` decimals; a scale begins at 100 of the one below."""
    for beyond, unit, letter in _SCALES:
        if abs(value) > beyond:
            return f"{value / unit:.{digits}f}".rstrip("0").rstrip(".") + letter
    return str(value)


def _rounded(count: int) -> str:
    for beyond, unit, letter in _SCALES[2:]:
        if count > beyond:
            return f"{count / unit:.1f}{letter}"
    return str(count)


def _shapes(model: torch.nn.Module) -> dict[str, str]:
    return {name: str(tuple(parameter.shape)) for name, parameter in model.named_parameters()}


def _children(names: Iterable[str], prefix: str) -> list[str]:
    level = prefix.count(".")
    return [name for name in names if name and name.count(".") == level and name.startswith(prefix)]


def _without_zeros(columns: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return the rows by path, in order of appearance, of the model and of each module with a figure at or below it."""
    rows: dict[str, dict[str, float]] = {}
    for column, values in columns.items():
        for path, value in values.items():
            rows.setdefault(path, {})[column] = value
    kept = {""}
    for path, row in rows.items():
        if any(row.values()):
            parts = path.split(".")
            kept |= {".".join(parts[:depth]) for depth in range(1, len(parts) + 1)}
    return {path: row for path, row in rows.items() if path in kept}


def _tree_rows(cells: dict[str, _Cells], columns: Sequence[str], max_depth: int) -> list[list[str]]:
    rows: list[list[str]] = []
    top, figures = _merged("", cells)
    hidden = top + "." if top else ""

    def add(name: str, figures: _Cells, depth: int) -> None:
        indent = " " * depth
        rows.append([indent + name, *(indent + figures[column] if column in figures else "" for column in columns)])

    def fill(prefix: str, depth: int) -> None:
        if depth > max_depth:
            return
        for child in _children(cells, prefix):
            path, figures = _merged(child, cells)
            add(path.removeprefix(hidden), figures, depth)
            fill(path + ".", depth + 1)

    add(top or "model", figures, 0)
    fill(hidden, 1)
    return rows


def _merged(path: str, cells: Mapping[str, _Cells]) -> tuple[str, _Cells]:
    """Return the row that a module shares with only children that say the same, with the last one's path."""
    figures = cells[path]
    while True:
        children = _children(cells, path + "." if path else "")
        if len(children) != 1 or cells[children[0]].keys() != figures.keys():
            return path, figures
        child = cells[children[0]]
        if any(child[column] != text for column, text in figures.items() if text and child[column]):
            return path, figures
        path, figures = children[0], {column: text or child[column] for column, text in figures.items()}


def _pipe_table(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in [header, *rows]]
    rule = "|" + "|".join(":" + "-" * (width + 1) for width in widths) + "|"
    text = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([text[0], rule, *text[1:]])


class FlopCountAnalysis(_Analysis):
    """FLOPs of one call ``model(*inputs, **kwargs)`` in fvcore's convention, made when first asked for.

    inputs: a tuple of positional arguments; anything else (a tensor, a dict, a list) is the one argument.
    kwargs: keyword arguments, which fvcore does not have.
    """

    _default_handles = _FLOPS_BY_OPERATOR

    def _count(self, op: Observed) -> float | None:
        return op.figures.macs or self._nothing(op)


class ActivationCountAnalysis(_Analysis):
    """Elements that convolutions, linear layers and products return in one call, as fvcore counts activations.

    inputs and kwargs: as for :class:`FlopCountAnalysis`.
    """

    _default_handles = _ACTIVATIONS_BY_OPERATOR

    def _count(self, op: Observed) -> float | None:
        # Attention and recurrent layers count, too, for which fvcore has no handle.
        return op.figures.output_elements if op.figures.macs else self._nothing(op)


def flop_count(
    model: torch.nn.Module, inputs: Any, supported_ops: Mapping[str, Handle | None] | None = None
) -> tuple[defaultdict[str, float], Counter[str]]:
    """Return GFLOPs by operator, and the calls of unsupported operators."""
    return _scaled(FlopCountAnalysis(model, inputs), supported_ops, 1e9)


def activation_count(
    model: torch.nn.Module, inputs: Any, supported_ops: Mapping[str, Handle | None] | None = None
) -> tuple[defaultdict[str, float], Counter[str]]:
    """Return millions of activations by operator, and the calls of unsupported operators."""
    return _scaled(ActivationCountAnalysis(model, inputs), supported_ops, 1e6)


def _scaled(
    analysis: _Analysis, supported_ops: Mapping[str, Handle | None] | None, unit: float
) -> tuple[defaultdict[str, float], Counter[str]]:
    analysis.set_op_handle(**(supported_ops or {}))
    counts = analysis.by_operator()
    return defaultdict(float, {name: count / unit for name, count in counts.items()}), analysis.unsupported_ops()
