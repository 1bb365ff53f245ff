"""ptflops' backend "aten": figures by operator below autograd, in the modules directly below the model."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import roofprof
from roofprof.compat._call import evaluating, log_gaps, unfused
from roofprof.compat._per_element import Observed
from roofprof.compat._ptflops_convention import aten_macs

AtenRule = Callable[[Any, tuple[Any, ...]], int]  # f(inputs, outputs)

_GLOBAL = "Global"


class AtenCounts:
    """One call. custom: by operator a function of its inputs and outputs; ignored: operators that count nothing."""

    def __init__(self, custom: Mapping[Any, AtenRule], ignored: Collection[Any]) -> None:
        self._custom = dict(custom)
        self._ignored = {_name(operator): str(operator) for operator in ignored}
        self._by_module: dict[str, Counter[str]] = defaultdict(Counter)
        self._zero: dict[str, None] = {}
        self._left_out: dict[str, None] = {}

    @property
    def total(self) -> int:
        """Return the MACs of the whole model."""
        return sum(self._by_module[_GLOBAL].values())

    def count(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Count one call in eval mode."""
        # The mode decomposes operators, as ptflops' own does, so that the observer sees the operators below autograd.
        mode = _Dispatch(self._custom)
        with evaluating(model), unfused(), mode:
            report = roofprof.count(model, *args, **kwargs)
        log_gaps(report, logging.getLogger("roofprof.compat.ptflops"))
        # The rules by the user's own functions count for the model alone: the observer's rows have no arguments.
        replaced = {_name(operator) for operator in self._custom}
        for group in report.group("module", "op"):
            path, operator = group.keys
            short = operator.replace("::", ".")
            if operator in self._ignored:
                self._left_out[short] = None
            elif operator not in replaced:
                amount = aten_macs(Observed(operator, group, None))
                self._add(path, short, amount)
                if not amount:
                    self._zero[short] = None
        for operator, amount in mode.counted.items():
            if _name(operator) not in self._ignored:
                self._by_module[_GLOBAL][operator] += amount

    def _add(self, path: str, operator: str, amount: int) -> None:
        if amount:
            self._by_module[_GLOBAL][operator] += amount
            if path and not path.startswith("("):
                self._by_module[path.partition(".")[0]][operator] += amount

    def text(self, to_string: Callable[[int], str], *, per_layer: bool) -> str:
        """Return a line for each ignored operator and, where requested, the total and each module's operators."""
        lines = [f"Warning: {operator} operation is ignored" for operator in self._left_out]
        if per_layer:
            lines.append(f"Total:{to_string(self.total)}")
            for module, counts in self._by_module.items():
                lines += [f"Module:  {module}", *(f"{name}: {to_string(value)}" for name, value in counts.items()), ""]
        return _lines(lines)

    def zero_text(self) -> str:
        """Return a line for each operator that counts nothing."""
        return _lines(f"Warning: {operator} operation is treated as a zero-op" for operator in self._zero)


class _Dispatch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Does each operator, and asks the user's functions about theirs."""

    def __init__(self, rules: Mapping[Any, AtenRule]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._rules = rules
        self.counted: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        rule = self._rules.get(func._overloadpacket)
        if rule is not None:
            self.counted[str(func._overloadpacket)] += rule(args, out if isinstance(out, tuple) else (out,))
        return out


def _name(operator: Any) -> str:
    """Return the name "aten::convolution" for ``torch.ops.aten.convolution``."""
    return str(operator).replace(".", "::", 1)


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
