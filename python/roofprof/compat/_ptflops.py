"""ptflops: its conventions with the backends pytorch and aten."""

from __future__ import annotations

import logging
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import roofprof
from roofprof.compat import _per_element as each
from roofprof.compat._call import evaluating, log_gaps, unfused
from roofprof.compat._per_element import Observed

# ---- the convention of ptflops, as data: the MACs, in its words, of one operator in one module


def macs(op: Observed) -> int:
    """Return the convention's MACs of all calls of an operator in a module: the backend "pytorch"."""
    name = op.operator.removesuffix("_")
    if name in _MACS_BY_OPERATOR:
        return int(_MACS_BY_OPERATOR[name](op))
    if "upsample" in name:
        return each.per_output(op)
    if "deform_conv" in name:
        return _deformable(op)
    return _with_bias(op) if "conv" in name else op.figures.macs


def aten_macs(op: Observed) -> int:
    """Return the convention's MACs of an operator below autograd: the backend "aten"."""
    return _with_bias(op) if "convolution" in op.operator or op.operator == "aten::addmm" else op.figures.macs


def _with_bias(op: Observed) -> int:
    """Return 1 for each MAC and each bias: roofprof's FLOPs are 2 for each MAC and 1 for each bias."""
    return max(op.figures.macs, op.figures.flops - op.figures.macs)


def _product_and_sum(op: Observed) -> int:
    return op.figures.macs + each.per_output(op)


def _affine_norm(op: Observed) -> int:
    return op.figures.input_elements * (2 if each.is_affine(op) else 1)


def _attention(op: Observed) -> int:
    """Return the MACs; in a module with known heads' size also the scaled queries and the softmax's elements."""
    head_size = getattr(op.module, "head_dim", 0)
    if not isinstance(head_size, int) or head_size < 1:
        return op.figures.macs
    return op.figures.macs + each.per_input(op) + op.figures.macs // (2 * head_size)


def _recurrent(op: Observed) -> int:
    units, gates, others, bias = each.recurrence(op)
    return op.figures.macs + units * (others + (2 * gates if bias else 0))


_PER_SAMPLE = 20 + 4  # a bilinear interpolation, and the coordinates


def _deformable(op: Observed) -> int:
    """Return the MACs, the biases, and the interpolation of each kernel element at each position."""
    channels, kernel = (getattr(op.module, name, 0) for name in ("out_channels", "kernel_size"))
    if not channels:
        return op.figures.macs
    elements = math.prod(kernel if isinstance(kernel, tuple) else (kernel, kernel))
    biases = 0 if getattr(op.module, "bias", None) is None else op.figures.output_elements
    return op.figures.macs + biases + _PER_SAMPLE * elements * (op.figures.output_elements // channels)


_MACS_BY_OPERATOR = each.by_operator(
    (each.per_input, [*each.ACTIVATIONS, *each.POOLINGS, *each.LAYER_NORMS]),
    (_affine_norm, [*each.BATCH_NORMS, *each.GROUP_NORMS]),
    (each.relu6, ["hardtanh"]),
    (each.elementwise, ["add", "mul"]),
    (_with_bias, ["linear"]),
    (_product_and_sum, ["addmm", "baddbmm"]),
    (_attention, ["scaled_dot_product_attention"]),
    (_recurrent, each.RECURRENT),
    (each.nothing, ["embedding"]),
)


# ---- ptflops' backend "aten": figures by operator below autograd, in the modules directly below the model

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
