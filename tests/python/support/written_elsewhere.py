"""A module whose forward others inherit, and decorators of both kinds: in a file of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class Base(nn.Module):
    """Has the forward."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def silent(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate without saying what it wraps."""

    def forward(*args: Any, **named: Any) -> Any:
        return function(*args, **named)

    return forward


def honest(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate as functools.wraps does."""

    @functools.wraps(function)
    def wrapper(*args: Any, **named: Any) -> Any:
        return function(*args, **named)

    return wrapper
