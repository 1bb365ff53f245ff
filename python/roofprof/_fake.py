"""Calls on tensors without data: on the meta device, or fake ones.

A call is made as it stands, in the mode of the fake tensors that it uses. Where torch then misses data, as in code that
looks at values, or tensors lie on different devices, it is made once more with a fake tensor on the CPU in the place of
every tensor: models and torch take more of what is fake than of what is meta.
"""

from __future__ import annotations

import contextlib
import functools
import re
import types
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.utils import _pytree

from roofprof._arguments import Contents, functions_of, used_by
from roofprof._state import AmbientState, KeptTensor

_Result = TypeVar("_Result")
_Call = Callable[[tuple[Any, ...], dict[str, Any]], _Result]

_NO_DATA = (DataDependentOutputException, DynamicOutputShapeException)
# What torch says of tensors without data, beside the two above; ".numpy()" is refused to all subclasses.
_COMPLAINT = re.compile(r"\b(register_)?meta\b|fake ?tensor|\bfake impl|\.numpy\(\) is not supported", re.IGNORECASE)


def call_without_data(
    call: _Call[_Result], model: object, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[_Result, list[str]]:
    """Make the call, and say what was done to make it. Raises what the call raises.

    Raises RuntimeError where no such call can be made because it needs data.
    """
    before = _Before(model, args, kwargs)
    mode = next((tensor.fake_mode for tensor in before.tensors if isinstance(tensor, FakeTensor)), None)
    try:
        if mode is None:
            return call(args, kwargs), []
        fake_args, fake_kwargs, notes = _inputs_in(mode, args, kwargs)
        with mode:
            return call(fake_args, fake_kwargs), notes
    except _NO_DATA as error:
        raise _needs_data(error) from error
    except Exception as error:
        if not _misses_data(error):
            raise
        reason = f"{type(error).__name__}: {_first_line(error)}"
        before.restore()
        result = _call_on_fakes(call, model, before, args, kwargs)
        return result, [f"counted with fake tensors on the CPU, because the call as it stands raised {reason}"]


def _call_on_fakes(
    call: _Call[_Result], model: object, before: _Before, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> _Result:
    """The call with fake tensors on the CPU; nothing of it is left behind."""
    try:
        with _fake_everywhere(model, before, args, kwargs) as (fake_args, fake_kwargs):
            return call(fake_args, fake_kwargs)
    except Exception as error:
        if isinstance(error, _NO_DATA) or _misses_data(error):
            raise _needs_data(error) from error
        raise
    finally:
        before.restore()


class _Before:
    """What is within reach of a call before it is made, to be put back when it fails."""

    def __init__(self, model: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.contents = Contents(*used_by(model), args, kwargs, hooks=False)
        self.tensors = self.contents.tensors
        self._gradients = [(tensor, tensor.grad) for tensor in self.tensors if tensor.is_leaf]
        inputs = Contents(args, kwargs, hooks=False).tensors
        self._inputs = [KeptTensor(tensor, by_value=True) for tensor in inputs if tensor.device.type == "cpu"]
        self._ambient = AmbientState(self.contents.generators)

    def restore(self) -> None:
        self.contents.restore()
        for tensor, gradient in self._gradients:
            if tensor.grad is not gradient:
                tensor.grad = gradient
        for kept in self._inputs:
            kept.restore()
        self._ambient.restore()


@contextlib.contextmanager
def _fake_everywhere(
    model: object, before: _Before, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """In here all tensors within reach are fake and on the CPU, those of the model and of functions' variables too."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode, torch.device("cpu"):
        fakes = {id(tensor): _fake_like(tensor) for tensor in before.tensors if _can_be_faked(tensor)}
        for tensor in before.tensors:  # those in tuples, which cannot be changed, become fake when they are used
            fake = fakes.get(id(tensor))
            if isinstance(fake, FakeTensor) and not isinstance(tensor, FakeTensor):
                mode.fake_tensor_converter.set_tensor_memo(tensor, fake)
        functions = functions_of(model) if isinstance(model, types.FunctionType) else []
        with contextlib.ExitStack() as stack:
            stack.enter_context(before.contents.replaced(fakes))
            for function in functions:
                stack.enter_context(_variables_replaced(function, fakes))
            if isinstance(model, functools.partial):
                stack.enter_context(_arguments_replaced(model, fakes))
            yield _substituted((args, kwargs), fakes)


def _fake_like(tensor: torch.Tensor) -> torch.Tensor:
    fake = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="cpu")
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(fake, tensor.requires_grad)
    return fake.requires_grad_(tensor.requires_grad)


def _can_be_faked(tensor: torch.Tensor) -> bool:
    known = type(tensor) in {torch.Tensor, torch.nn.Parameter, FakeTensor} or isinstance(tensor, torch.nn.Buffer)
    return known and tensor.layout is torch.strided and not tensor.is_quantized


@contextlib.contextmanager
def _variables_replaced(function: types.FunctionType, substitutes: dict[int, Any]) -> Iterator[None]:
    """The variables of its closure and the globals that it names have their substitutes."""
    names = function.__code__.co_names
    old = {name: function.__globals__[name] for name in names if id(function.__globals__.get(name)) in substitutes}
    cells = []
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # it has no value yet
            if id(cell.cell_contents) in substitutes:
                cells.append((cell, cell.cell_contents))
    try:
        for name, value in old.items():
            function.__globals__[name] = substitutes[id(value)]
        for cell, value in cells:
            cell.cell_contents = substitutes[id(value)]
        yield
    finally:
        function.__globals__.update(old)
        for cell, value in cells:
            cell.cell_contents = value


@contextlib.contextmanager
def _arguments_replaced(partial: functools.partial[Any], substitutes: dict[int, Any]) -> Iterator[None]:
    """Its positional arguments have their substitutes; the keywords lie in a dict, as others do."""
    changeable: Any = partial  # as pickle does it
    function, args, *others = changeable.__reduce__()[2]
    try:
        changeable.__setstate__((function, _substituted(args, substitutes), *others))
        yield
    finally:
        changeable.__setstate__((function, args, *others))


def _substituted(arguments: Any, substitutes: dict[int, Any]) -> Any:
    return _pytree.tree_map(lambda value: substitutes.get(id(value), value), arguments)


def _inputs_in(
    mode: FakeTensorMode, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], list[str]]:
    """The arguments with a fake tensor for each that is not."""
    if not any(type(value) is torch.Tensor for value in _pytree.tree_leaves((args, kwargs))):
        return args, kwargs, []
    args, kwargs = _pytree.tree_map(
        lambda value: mode.from_tensor(value) if type(value) is torch.Tensor else value, (args, kwargs)
    )
    return args, kwargs, ["inputs that hold data were taken as fake tensors, as the others are"]


def _misses_data(error: Exception) -> bool:
    return isinstance(error, (RuntimeError, TypeError, AssertionError)) and bool(_COMPLAINT.search(str(error)))


def _needs_data(error: Exception) -> RuntimeError:
    operator = getattr(error, "func", None)
    what = operator._schema.name if isinstance(operator, torch._ops.OpOverload) else _first_line(error)
    return RuntimeError(
        f"the call needs data ({what}), and tensors that are fake or on the meta device hold none: "
        "count it with real data, on the CPU for example"
    )


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")
