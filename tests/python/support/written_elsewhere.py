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


def renamed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate under the other's name."""

    def forward(*args: Any, **named: Any) -> Any:
        return function(*args, **named)

    forward.__name__, forward.__qualname__ = function.__name__, function.__qualname__
    return forward


class _Holder:
    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.function(*args, **named)


def by_object(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate with an object in between."""
    held = _Holder(function)

    def forward(*args: Any, **named: Any) -> Any:
        return held(*args, **named)

    return forward


def by_default(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate with the function as a default."""

    def forward(self: nn.Module, x: torch.Tensor, call: Callable[..., Any] = function) -> Any:
        return call(self, x)

    return forward


def by_list(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate with the function in a list."""
    calls = [function]

    def forward(self: nn.Module, x: torch.Tensor) -> Any:
        return calls[0](self, x)

    return forward


def honest(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate as functools.wraps does."""

    @functools.wraps(function)
    def wrapper(*args: Any, **named: Any) -> Any:
        return function(*args, **named)

    return wrapper
