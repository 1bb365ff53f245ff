"""Calls on tensors without data: on the meta device, or fake ones.

A call is made unchanged at first, in the mode of the fake tensors that it uses. If torch misses data then, because code
looks at values or tensors lie on different devices, the call is repeated with a fake tensor on the CPU in the place of
every tensor: models and torch support more on fake tensors than on the meta device. Containers and arguments hold the
fakes for that long. A tensor that a function names itself, in its closure or as a global, stays there and becomes fake
in the operators that it goes into; code that looks at it without one (its type, its device) still sees the original.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.utils import _pytree

from roofprof import _C
from roofprof.state.snapshot import AmbientState
from roofprof.state.state_roots import Contents, is_lazy, is_tensor, tensors_named_by, used_by

if TYPE_CHECKING:
    from typing_extensions import TypeIs

_Result = TypeVar("_Result")
_Call = Callable[[tuple[Any, ...], dict[str, Any]], _Result]

_NO_DATA = (DataDependentOutputException, DynamicOutputShapeException)
# These are torch's messages about tensors without data, besides the two types above; it refuses ".numpy()" to all
# subclasses.
_COMPLAINT = re.compile(r"\b(register_)?meta\b|fake ?tensor|\bfake impl|\.numpy\(\) is not supported", re.IGNORECASE)


def call_without_data(
    call: _Call[_Result], model: object, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[_Result, list[_C.Note]]:
    """Make the call; return its result and notes on how it was made. Raises what the call raises.

    Raises RuntimeError where no such call can be made because it needs data.
    """
    before = _Before(model, args, kwargs)
    mode = next((tensor.fake_mode for tensor in before.tensors if _is_fake(tensor)), None)
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
        text = f"counted with fake tensors on the CPU, because the call as it stands raised {reason}"
        return result, [_C.Note("counted-with-fakes", text)]


def _call_on_fakes(
    call: _Call[_Result], model: object, before: _Before, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> _Result:
    """Make the call with fake tensors on the CPU, and leave nothing of it behind."""
    try:
        with _fake_everywhere(before, args, kwargs) as (fake_args, fake_kwargs):
            return call(fake_args, fake_kwargs)
    except Exception as error:
        if isinstance(error, _NO_DATA) or _misses_data(error):
            raise _needs_data(error, _kept_original(model)) from error
        raise
    finally:
        before.restore()


class _Before:
    """The state that a call can reach, as it was before; a call that fails gets it back."""

    def __init__(self, model: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.contents = Contents(*used_by(model), args, kwargs, hooks=False)
        self.tensors = self.contents.tensors
        inputs = Contents(args, kwargs, hooks=False).tensors
        self._gradients = [(tensor, _C.gradient_of(tensor)) for tensor in self.tensors]
        self._inputs = _C.KeptTensors([tensor for tensor in inputs if not is_lazy(tensor)])
        self._ambient = AmbientState(self.contents.generators)

    def restore(self) -> None:
        self.contents.restore()
        for tensor, gradient in self._gradients:
            if _C.gradient_of(tensor) is not gradient:
                tensor.grad = gradient
        self._inputs.restore()
        self._ambient.restore()


@contextlib.contextmanager
def _fake_everywhere(
    before: _Before, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Replace in here all tensors within reach, in the arguments and in containers, by fake ones on the CPU."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode, torch.device("cpu"):
        fakes = {id(tensor): _fake_like(tensor) for tensor in before.tensors if _can_be_faked(tensor)}
        for tensor in before.tensors:  # those in tuples and named by functions become fake when an operator takes them
            fake = fakes.get(id(tensor))
            if _is_fake(fake) and not _is_fake(tensor):
                mode.fake_tensor_converter.set_tensor_memo(tensor, fake)
        with before.contents.replaced(fakes):
            yield _substituted((args, kwargs), fakes)


def _fake_like(tensor: torch.Tensor) -> torch.Tensor:
    fake = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="cpu")
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(fake, tensor.requires_grad)
    return fake.requires_grad_(tensor.requires_grad)


def _can_be_faked(tensor: torch.Tensor) -> bool:
    known = type(tensor) in {torch.Tensor, torch.nn.Parameter, FakeTensor} or isinstance(tensor, torch.nn.Buffer)
    return known and tensor.layout is torch.strided and not tensor.is_quantized


def _substituted(arguments: Any, substitutes: dict[int, Any]) -> Any:
    return _pytree.tree_map(lambda value: substitutes.get(id(value), value), arguments)


def _inputs_in(
    mode: FakeTensorMode, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], list[_C.Note]]:
    """Return the arguments with a fake tensor for each plain one, and a note where there were any."""
    if not any(type(value) is torch.Tensor for value in _pytree.tree_leaves((args, kwargs))):
        return args, kwargs, []
    args, kwargs = _pytree.tree_map(
        lambda value: mode.from_tensor(value) if type(value) is torch.Tensor else value, (args, kwargs)
    )
    text = "inputs that hold data were taken as fake tensors, as the others are"
    return args, kwargs, [_C.Note("inputs-taken-as-fakes", text)]


def _misses_data(error: Exception) -> bool:
    return isinstance(error, (RuntimeError, TypeError, AssertionError)) and bool(_COMPLAINT.search(str(error)))


def _kept_original(model: object) -> list[str]:
    """Return the names of tensors that cannot be made fake where the code looks at them."""
    if isinstance(model, functools.partial):
        positional = [f"argument {index} of the partial" for index, value in enumerate(model.args) if _is_real(value)]
        return positional + _kept_original(model.func)
    return [name for name, tensor in tensors_named_by(model) if _is_real(tensor)]


def _is_fake(value: object) -> TypeIs[FakeTensor]:
    return issubclass(type(value), FakeTensor)


def _is_real(value: object) -> bool:
    return is_tensor(value) and not _is_fake(value)


def _needs_data(error: Exception, originals: Sequence[str] = ()) -> RuntimeError:
    operator = getattr(error, "func", None)
    what = operator._schema.name if isinstance(operator, torch._ops.OpOverload) else _first_line(error)
    advice = "count it with real data, on the CPU for example"
    if originals:
        advice += f", or pass what it holds itself ({', '.join(dict.fromkeys(originals))}) as arguments of the call"
    return RuntimeError(
        f"the call needs data ({what}), and tensors that are fake or on the meta device hold none: {advice}"
    )


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")
