"""What a call of the model may leave changed, kept so that extra calls can be undone."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from typing import Any

import torch


class RandomState:
    """The state of every random number generator that a model is likely to draw from."""

    def __init__(self) -> None:
        self._torch = torch.get_rng_state()
        self._cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
        self._python = random.getstate()
        self._numpy: Any = sys.modules["numpy"].random.get_state() if "numpy" in sys.modules else None

    def restore(self) -> None:
        """Set all generators back to this state."""
        torch.set_rng_state(self._torch)
        if self._cuda is not None:
            torch.cuda.set_rng_state_all(self._cuda)
        random.setstate(self._python)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)


class Versions:
    """Tells which tensors were written in place since it was made."""

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        self._before = [(tensor, _version(tensor)) for tensor in tensors]

    def changed(self) -> list[torch.Tensor]:
        """The tensors written since."""
        return [tensor for tensor, version in self._before if _version(tensor) != version]


def _version(tensor: torch.Tensor) -> int:
    # Tensors made in inference mode do not keep count.
    return -1 if tensor.is_inference() else tensor._version


class ModelState:
    """A model after its first call: buffers, gradients, training flags, and the tensors that the call wrote to."""

    def __init__(self, model: object, written: Iterable[torch.Tensor]) -> None:
        modules = list(model.modules()) if isinstance(model, torch.nn.Module) else []
        self._training = [(module, module.training) for module in modules]
        self._buffers = [(module, dict(module._buffers)) for module in modules]
        self._parameters = [(module, dict(module._parameters)) for module in modules]
        parameters = {id(p): p for module in modules for p in module._parameters.values() if p is not None}
        self._grads = [(p, p.grad) for p in parameters.values() if not p.is_inference() and p.is_leaf]
        buffers = [b for module in modules for b in module._buffers.values() if b is not None]
        grads = [grad for _, grad in self._grads if grad is not None]
        kept = {id(t): t for t in [*buffers, *written, *grads]}
        self._values = [(t, t.detach().clone(), Versions([t])) for t in kept.values() if not torch.nn.parameter.is_lazy(t)]

    def restore(self) -> None:
        """Undo what further calls did."""
        for module, training in self._training:
            module.training = training
        for module, buffers in self._buffers:
            module._buffers.clear()
            module._buffers.update(buffers)
        for module, parameters in self._parameters:
            module._parameters.clear()
            module._parameters.update(parameters)
        for parameter, grad in self._grads:
            parameter.grad = grad
        with torch.no_grad():
            for tensor, value, versions in self._values:
                if tensor.is_inference() or versions.changed():
                    _write_back(tensor, value)


def _write_back(tensor: torch.Tensor, value: torch.Tensor) -> None:
    if tensor.is_inference():
        with torch.inference_mode():
            tensor.copy_(value)
    else:
        tensor.detach().copy_(value)
