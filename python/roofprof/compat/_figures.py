"""The figures that several tools share: weights for each element, sums over subtrees, times of modules."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import nn

import roofprof
from roofprof import GroupRow
from roofprof.compat._call import TreeBefore, attributes, global_hooks

# ---- weights for each element, of all calls of one operator in one module


class Observed(NamedTuple):
    """All calls of one operator in one module."""

    operator: str  # "aten::conv2d"
    figures: GroupRow  # macs, calls, input_elements, output_elements, ...
    module: nn.Module | None  # whose own op it is; None: of no module


Handle = Callable[[Observed], float]

_NORMS = (
    nn.modules.batchnorm._NormBase,
    nn.LayerNorm,
    nn.GroupNorm,
)


# The names that begin with "native" or "_" are what TorchScript's executor and exported graphs call.
ACTIVATIONS = ("relu", "relu6", "prelu", "_prelu_kernel", "elu", "leaky_relu", "silu", "gelu", "softmax", "_softmax")
BATCH_NORMS = ("batch_norm", "_batch_norm_impl_index", "native_batch_norm", "_native_batch_norm_legit_no_training")
LAYER_NORMS = ("layer_norm", "native_layer_norm")
GROUP_NORMS = ("group_norm", "native_group_norm", "instance_norm")
POOLINGS = (
    *(f"{kind}_pool{dims}d" for kind in ("max", "avg", "adaptive_max", "adaptive_avg") for dims in (1, 2, 3)),
    *(f"max_pool{dims}d_with_indices" for dims in (1, 2, 3)),
)


def by_operator(*rules: tuple[Handle, Iterable[str]]) -> dict[str, Handle]:
    """Return the rule of each operator of ATen, by its name without "aten::"."""
    return {f"aten::{name}": handle for handle, names in rules for name in names}


def nothing(_: Observed) -> int:
    """Return 0: the operator is known, and counts as no work."""
    return 0


def per_input(op: Observed) -> int:
    """Return 1 for each input element."""
    return op.figures.input_elements


def per_output(op: Observed) -> int:
    """Return 1 for each output element."""
    return op.figures.output_elements


def is_affine(op: Observed) -> bool:
    """Return True for a norm with a weight."""
    # A functional call does not say; nearly all pass a weight.
    return not isinstance(op.module, _NORMS) or op.module.weight is not None


def statistics_norm(op: Observed) -> int:
    """Return 5 for each element, 4 without a weight: mean, variance and the rest, roughly."""
    return op.figures.input_elements * (5 if is_affine(op) else 4)


def batch_norm(op: Observed) -> int:
    """Return 2 for each element, 1 without a weight; with the batch's own statistics, the count of other norms."""
    # roofprof counts 2 for each element where the statistics are given, and more where the op computes them.
    if op.figures.flops > 2 * op.figures.input_elements:
        return statistics_norm(op)
    return op.figures.input_elements * (2 if is_affine(op) else 1)


def relu6(op: Observed) -> int:
    """Return 1 for each input element of a ReLU6, which inherits from Hardtanh; 0 for any other Hardtanh."""
    return per_input(op) if isinstance(op.module, nn.ReLU6) else 0


def elementwise(op: Observed) -> int:
    """Return 1 for each output element; 0 for integers, and for a dropout layer's product with its mask."""
    if not op.figures.flops or isinstance(op.module, nn.modules.dropout._DropoutNd):
        return 0
    return per_output(op)


class Recurrence(NamedTuple):
    """The sizes of recurrent layers and cells that three tools share, for all work but the matrix products."""

    units: int  # hidden units x steps x samples x layers x directions
    gates: int
    others: int  # sums of the two products, and element-wise products and sums, for each unit
    bias: bool


_RECURRENT = {"rnn_tanh": (1, 1), "rnn_relu": (1, 1), "gru": (3, 7), "lstm": (4, 10)}
RECURRENT = (*_RECURRENT, *(f"{name}_cell" for name in _RECURRENT))


def recurrence(op: Observed) -> Recurrence:
    """Return the sizes of an operator of :data:`RECURRENT`; without its module they are unknown, and units are 0."""
    input_size, hidden_size = (int(getattr(op.module, name, 0)) for name in ("input_size", "hidden_size"))
    gates, others = _RECURRENT[op.operator.removeprefix("aten::").removesuffix("_cell")]
    cells = getattr(op.module, "num_layers", 1) * (2 if getattr(op.module, "bidirectional", False) else 1)
    steps = op.figures.input_elements // input_size if input_size else 0
    return Recurrence(steps * cells * hidden_size, gates, others, bool(getattr(op.module, "bias", False)))


# ---- the counts of modules in another tool's convention, the sums over subtrees, and a model printed with them

_PATHS_OUTSIDE = ("(outside)", "(optimizer)")


class ModuleFigures:
    """One number for each module object: a module that is used in two places has the calls of both.

    ignored: exact types whose own work counts for the module above them, or for nobody with ``leave_out``.
    """

    def __init__(
        self, model: nn.Module, ignored: Collection[type[nn.Module]] | None = None, *, leave_out: bool = False
    ) -> None:
        self._ignored = frozenset(ignored or ())
        self._leave_out = leave_out
        self._own: Counter[int] = Counter()  # by id of the module
        self.replaced: dict[int, int] = {}  # by id: the count that replaces that of the subtree
        self.tree = TreeBefore(model)

    def add(self, report: roofprof.Report, convention: Handle) -> None:
        """Add the forward's ops in the model by ``convention``, which gets the calls of one op and dtype at a time."""
        places = self.tree.places
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
            self._sum(child, share, seen) for child in self.tree.children(module).values()
        )


def printed(model: nn.Module, facts: Callable[[nn.Module], list[str]], *, keep_empty: bool = False) -> str:
    """Return ``str(model)`` with ``facts`` before each module's text; keep_empty: a comma even if it is empty."""

    def described(module: nn.Module, original: Callable[[], str]) -> str:
        own = original()
        return ", ".join([*facts(module), *([own] if own or keep_empty else [])])

    with contextlib.ExitStack() as stack:
        for module in model.modules():
            stack.enter_context(attributes(module, extra_repr=functools.partial(described, module, module.extra_repr)))
        return str(model)


def trainable_parameters(of: nn.Module | Iterable[nn.Parameter]) -> int:
    """Return the number of elements of trainable parameters, of a module each once."""
    parameters = of.parameters() if isinstance(of, nn.Module) else of
    return sum(one.numel() for one in parameters if one.requires_grad and not nn.parameter.is_lazy(one))


# ---- the time that each module's forward takes by the host's clock; the clock waits for the device at both ends


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

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Time the calls in here, by global hooks, so that no module gets a hook."""
        try:
            with global_hooks(self._begin, self._end, always_call=True):
                yield
        finally:
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
