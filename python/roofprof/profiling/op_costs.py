"""Costs of your own operators."""

from __future__ import annotations

import difflib
import inspect
import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from roofprof import _C, _report
from roofprof._report import printable

_Function = TypeVar("_Function", bound=Callable[..., Any])

_LARGEST = 2**63 - 1  # counts saturate
_given = set[str]()  # names of operators that op_cost was used with
_ran = set[str]()  # those of them that ran: a library may take its operators away again


@dataclass(frozen=True)
class Work:
    """The work of one call.

    macs: multiply-accumulates. causal_macs: those that a causal mask leaves; None: all.
    flops: floating-point operations, those of the MACs included; None: 2 x macs.
    int_ops: integer operations, in addition to those of MACs in an integer dtype.
    bytes: bytes read and written together; None: read_bytes + write_bytes.
    read_bytes, write_bytes: None: for an op the compulsory ones of its call (each distinct input once, each result
    once), for declared work 0.
    dtype: the type of the computation; None: the op's first floating-point input's, for declared work float32.
    lower_limit: the counts are lower limits, because a part of the work is not known: rows with them are marked ">=".

    Raises TypeError or ValueError for invalid counts.
    """

    macs: float = 0
    flops: float | None = None
    bytes: float | None = None
    read_bytes: float | None = None
    write_bytes: float | None = None
    int_ops: float = 0
    dtype: torch.dtype | None = None
    causal_macs: float | None = None
    lower_limit: bool = False

    def __post_init__(self) -> None:
        for name in ("macs", "flops", "bytes", "read_bytes", "write_bytes", "int_ops", "causal_macs"):
            value = getattr(self, name)
            if value is not None or name in {"macs", "int_ops"}:
                object.__setattr__(self, name, _count(name, value))
        if self.causal_macs is not None and self.causal_macs > self.macs:
            raise ValueError(f"causal_macs={self.causal_macs} must not be more than macs={self.macs}, the dense ones")
        if self.bytes is not None and (self.read_bytes is not None or self.write_bytes is not None):
            raise ValueError("give bytes, or read_bytes and write_bytes, not both")
        if self.dtype is not None and not isinstance(self.dtype, torch.dtype):
            raise TypeError(f"dtype must be a torch.dtype, not {self.dtype!r}")
        if self.flops and self.dtype is not None and not _report.is_floating(_C.dtype_name(self.dtype)):
            raise ValueError(f"flops are floating-point operations, but dtype is {self.dtype}: give them as int_ops")

    def counts(self, dtype: str = "fp32", compulsory: tuple[int, int] = (0, 0)) -> dict[str, Any]:
        """Return the counts for the extension, with this dtype and these (read, written) bytes where none are given."""
        dtype = dtype if self.dtype is None else _C.dtype_name(self.dtype)
        floating = dtype if _report.is_floating(dtype) else "fp32"
        integer = "int64" if _report.is_floating(dtype) else dtype
        operations = {floating: 0, integer: self.int_ops}
        if self.flops is not None:
            operations[floating] += self.flops
        else:
            operations[dtype] += 2 * self.macs
        read, written = compulsory if self.bytes is None else (self.bytes, 0)
        return {
            "macs": self.macs,
            "causal_macs": self.macs if self.causal_macs is None else self.causal_macs,
            "operations": {name: min(int(count), _LARGEST) for name, count in operations.items() if count},
            "read_bytes": read if self.read_bytes is None else self.read_bytes,
            "write_bytes": written if self.write_bytes is None else self.write_bytes,
            "lower_limit": bool(self.lower_limit),
        }


def op_cost(op: str) -> Callable[[_Function], _Function]:
    """Decorate a function that returns the work of one call of the operator ``op``.

    ``"mylib::op"`` stands for all overloads, ``"mylib::op.overload"`` for one. The operator may be torch's, from a
    ``torch.library`` (custom ops and Triton kernels included) or from C++, and may be registered later. This
    cost replaces roofprof's own and an earlier one.

    The function takes the op's arguments as its schema has them. Tensors come as descriptors without data (``shape``,
    ``dtype``, ``numel()``, ``dim()``, ``size()``, ``element_size()``, ``nbytes``), lists of tensors as lists without
    their Nones, numbers, strings, lists of numbers and dtypes as values, devices as their names. A keyword-only
    parameter ``out`` gets the result, a list of them where there are several. It returns a :class:`Work` or a dict of
    its fields, and is called once per operator, module and shapes, not for each call. If it raises, a note in the
    report's coverage says so, and the op is uncosted.
    """
    if not isinstance(op, str):
        raise TypeError(f"op_cost takes the operator's name, such as 'mylib::op', not {op!r}")

    def register(function: _Function) -> _Function:
        if not callable(function):
            raise TypeError(f"the cost of {op} must be a function, not {function!r}")
        takes_out = _takes_out(function)

        def evaluate(
            args: list[Any], kwargs: dict[str, Any], results: list[Any], compulsory: tuple[int, int], dtype: str
        ) -> dict[str, Any]:
            _ran.add(op)
            kwargs.pop("out", None)  # out= forms: the result says the same
            if takes_out:
                kwargs["out"] = results[0] if len(results) == 1 else results
            return _as_work(function(*args, **kwargs)).counts(dtype, compulsory)

        _given.add(op)
        _C.add_op_cost(op, evaluate, inspect.getdoc(function) or "")
        return function

    return register


def unused_costs() -> list[_C.Note]:
    """Return a note on each given cost whose operator is not registered, and never ran."""
    if not _given:
        return []
    given = [line["op"] for line in _report.op_costs() if line["family"] == "own"]
    return [_unused(op) for op in given if op in _given and op not in _ran and not _is_registered(op)]


def _schemas(op: str) -> list[Any]:
    return list(torch._C._jit_get_schemas_for_operator(op))


def _is_registered(op: str) -> bool:
    if _schemas(op):
        return True
    name, _, overload = op.rpartition(".")
    return any((schema.overload_name or "default") == overload for schema in _schemas(name)) if name else False


def _unused(op: str) -> _C.Note:
    library = op.partition("::")[0]
    names = {schema.name for schema in torch._C._jit_get_all_schemas() if schema.name.startswith(f"{library}::")}
    close = difflib.get_close_matches(op, names, n=1)
    text = f"op_cost names {printable(op)}, and no such operator is registered or ran: its cost counts nothing"
    return _C.Note("cost-unused", text + (f"; did you mean {close[0]}?" if close else ""))


def _as_work(value: object) -> Work:
    if isinstance(value, Work):
        return value
    if isinstance(value, dict):
        return Work(**value)
    if isinstance(value, numbers.Number):
        raise TypeError(
            f"{value!r} does not say whether it counts FLOPs or MACs; return roofprof.Work(flops=...) or Work(macs=...)"
            " (roofprof docs own-ops)"
        )
    raise TypeError(f"the cost must return a roofprof.Work, not {value!r}")


def _takes_out(function: Callable[..., Any]) -> bool:
    try:
        parameter = inspect.signature(function).parameters.get("out")
    except (TypeError, ValueError):  # a C function that does not tell
        return False
    return parameter is not None and parameter.kind is inspect.Parameter.KEYWORD_ONLY


def _count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, not {value!r}")
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} must be finite and 0 or more, not {value!r}")
    return min(int(value) if isinstance(value, numbers.Integral) else round(float(value)), _LARGEST)
