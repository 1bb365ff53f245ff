"""The loss of a training step: the requested one, or the one that the model's output offers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from roofprof.cli.shared import CommandError, with_article
from roofprof.cli.target import load_object
from roofprof.state.state_roots import tensors_in


def load_loss(target: str) -> Callable[[Any], Any]:
    """Return the loss that ``file.py:callable`` names."""
    loss = load_object(target)
    if not callable(loss) or isinstance(loss, type):
        kind = "a class" if isinstance(loss, type) else with_article(type(loss).__name__)
        raise CommandError(
            f"{target} is {kind}; a callable that takes the model's output and returns a scalar tensor is needed"
        )
    return loss  # type: ignore[no-any-return]


def loss_of(output: Any) -> tuple[torch.Tensor, str]:
    """Return the output's loss of that name, else the sum of its floating-point tensors; and the name of that loss."""
    named = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    if isinstance(named, torch.Tensor):
        return _checked(named, "the output named 'loss'"), "the output named 'loss'"
    parts = [tensor.sum() for tensor in tensors_in(output) if tensor.requires_grad]
    if not parts:
        raise CommandError("--train needs an output that depends on parameters; this model's output needs no gradient")
    return torch.stack([part.float() for part in parts]).sum(), "the sum of the floating-point outputs"


def given_loss(loss: Callable[[Any], Any], target: str, output: Any) -> tuple[torch.Tensor, str]:
    """Return the loss that the callable of ``target`` computes from the output, and its name."""
    try:
        value = loss(output)
    except Exception as error:
        raise CommandError(f"the loss {target} raised {type(error).__name__}: {error}") from error
    return _checked(value, f"the loss {target}"), target


def _checked(value: Any, name: str) -> torch.Tensor:
    if not isinstance(value, torch.Tensor):
        kind = "None" if value is None else with_article(type(value).__name__)
        raise CommandError(f"{name} gave {kind}; a scalar tensor is needed")
    if value.numel() != 1:
        raise CommandError(f"{name} has the shape {list(value.shape)}; a scalar is needed, such as its mean()")
    if not value.requires_grad:
        raise CommandError(f"{name} needs no gradient: compute it with torch from what the model returned, undetached")
    return value
