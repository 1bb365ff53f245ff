"""Records a call with a plain dispatch mode and plain hooks: shapes alone, and formulas that fit on a line.

Nothing of roofprof is in here: reasons for differences take their amounts from this record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as nn_module
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Op:
    """An operator below autograd. modules: those that were running, the innermost last."""

    name: str  # "addmm"
    inputs: tuple[Shape, ...]
    output: Shape
    is_float: bool
    modules: tuple[nn.Module, ...]

    @property
    def macs(self) -> int:
        """Multiply-accumulates: of each output element as many as the dimension that is summed up."""
        if self.name == "convolution":
            return math.prod(self.output) * math.prod(self.inputs[1][1:])
        if self.name in {"mm", "bmm"}:
            return math.prod(self.output) * self.inputs[0][-1]
        if self.name in {"addmm", "baddbmm"}:
            return math.prod(self.output) * self.inputs[1][-1]
        if "scaled_dot_product" in self.name:  # queries by keys, weights by values
            query, key, value = self.inputs[:3]
            return math.prod(query) * key[-2] + math.prod(query[:-1]) * key[-2] * value[-1]
        return 0

    @property
    def elements(self) -> int:
        """Return the number of elements of the output."""
        return math.prod(self.output)


@dataclass(frozen=True)
class Call:
    """A call of a module, its first input and output tensor."""

    module: nn.Module
    input: Shape
    output: Shape

    @property
    def is_leaf(self) -> bool:
        """Return whether the module has no modules inside."""
        return not any(True for _ in self.module.children())


@dataclass(frozen=True)
class Record:
    """All ops and module calls of one call of a model."""

    model: nn.Module
    ops: list[Op]
    calls: list[Call]

    def macs(self, where: Callable[[Op], bool] = lambda _: True) -> int:
        """Return the MACs of the ops for which ``where`` holds."""
        return sum(op.macs for op in self.ops if where(op))

    def elements(self, *names: str, where: Callable[[Op], bool] = lambda _: True) -> int:
        """Output elements of floating-point ops with these names."""
        return sum(op.elements for op in self.ops if op.name in names and op.is_float and where(op))

    def of(self, *kinds: type[nn.Module]) -> Iterator[Call]:
        """Calls of modules of these types and those derived from them."""
        return (call for call in self.calls if isinstance(call.module, kinds))


def record(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Record:
    """Return the record of one call in eval mode; transformer layers run module by module."""
    model.eval()
    ops: list[Op] = []
    calls: list[Call] = []
    running: list[nn.Module] = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            out = _first(result)
            if out is not None:
                shapes = tuple(tuple(x.shape) for x in tree_leaves(args) if torch.is_tensor(x))
                name = func.name().partition("::")[2].partition(".")[0]
                ops.append(Op(name, shapes, tuple(out.shape), out.is_floating_point(), tuple(running)))
            return result

    def before(module: nn.Module, _: Any) -> None:
        running.append(module)

    def after(module: nn.Module, given: Any, result: Any) -> None:
        running.pop()
        first, out = _first(given), _first(result)
        if out is not None:
            calls.append(Call(module, tuple(first.shape) if first is not None else (), tuple(out.shape)))

    handles = [
        nn_module.register_module_forward_pre_hook(before),
        nn_module.register_module_forward_hook(after),
    ]
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad(), Mode():
            model(*args, **kwargs)
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for handle in handles:
            handle.remove()
    return Record(model, ops, calls)


def _first(value: Any) -> Any:
    return next((x for x in tree_leaves(value) if torch.is_tensor(x)), None)
