"""Operators as torch's FLOP counter sees them: below autograd, by packet, some with a formula of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils import flop_counter as torchs
from torch.utils._python_dispatch import TorchDispatchMode

import roofprof

Formula = Callable[..., Any]

_FORMULA = " (formula)"  # after the name of an operator: what a formula declared for it


class OpsBelowAutograd(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Lets every op through. Ops are then observed as autograd dispatches them, and formulas are asked.

    A formula's result is declared as work; while another profiler observes, whose figures it is not for, it goes to
    ``self.instead``.
    """

    supports_higher_order_operators = True

    def __init__(self, formulas: Mapping[Any, Formula]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._formulas = formulas
        self.instead: Callable[[Any, Any], None] | None = None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        packet = getattr(func, "_overloadpacket", func)
        formula = self._formulas.get(packet)
        if formula is not None and self.instead is not None:
            result = func(*args, **kwargs)
            self.instead(packet, formula(*args, **kwargs, out_val=result))
            return result
        if formula is not None:
            name = operator_name(packet)
            with roofprof.work(name + _FORMULA):  # what runs inside is what the formula stands for
                result = func(*args, **kwargs)
            roofprof.work(name + _FORMULA, flops=formula(*args, **kwargs, out_val=result))
            return result
        if isinstance(func, torch._ops.OpOverload) and func is not torch.ops.prim.device.default:
            with self:  # in inference mode composite ops come whole
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return func(*args, **kwargs)


def user_formulas(custom_mapping: Mapping[Any, Formula]) -> dict[Any, Formula]:
    """Return the user's formulas by operator: registered ones (``register_flop_formula``) and ``custom_mapping``."""
    registered = {
        key: formula
        for key, formula in torchs.flop_registry.items()
        if getattr(formula, "__module__", None) != torchs.__name__
    }
    given = {
        key: formula if getattr(formula, "_get_raw", False) else torchs.shape_wrapper(formula)  # type: ignore[no-untyped-call]
        for key, formula in custom_mapping.items()
    }
    return registered | given


def operator_name(key: Any) -> str:
    """Return the name that reports have for an operator: "aten::mm"."""
    name: str = getattr(key, "_qualified_op_name", None) or getattr(key, "__name__", None) or str(key)
    return name


def operator_key(name: str) -> Any:
    """Return the operator of that name, the key of torch's counter; the name where there is none."""
    namespace, _, short = name.partition("::")
    try:
        return getattr(getattr(torch.ops, namespace), short) if short else name
    except (AttributeError, RuntimeError):
        return name


def from_formula(operator: str) -> tuple[bool, str]:
    """Split an operator's name: True where a formula declared its work, and the operator's own name."""
    return operator.endswith(_FORMULA), operator.removesuffix(_FORMULA)
