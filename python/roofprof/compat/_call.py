"""What the replacements share: how users write arguments, and the paths of modules."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch


def require_module(model: Any) -> None:
    """Raise TypeError if ``model`` is not a module: the tools that are replaced take only modules."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"a torch.nn.Module is needed, not a {type(model).__name__}; roofprof.count takes any callable")


def positional(inputs: Any) -> tuple[Any, ...]:
    """``inputs`` as the model's positional arguments: a tuple is several, everything else is the one."""
    return inputs if isinstance(inputs, tuple) else (inputs,)


def keywords(kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
    """``kwargs`` as a dict; None is none."""
    return dict(kwargs or {})


@contextlib.contextmanager
def unfused() -> Iterator[None]:
    """Transformer layers module by module: the originals' hooks on every module keep torch off its fused path as well,
    in which the modules inside would have no figures.
    """
    mha = torch.backends.mha
    enabled: bool = mha.get_fastpath_enabled()
    mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        mha.set_fastpath_enabled(enabled)


def named_places(
    module: torch.nn.Module, path: str = "", above: tuple[torch.nn.Module, ...] = ()
) -> Iterator[tuple[str, torch.nn.Module]]:
    """Every path of every module, parents first: a module in two places comes twice. A loop is not followed."""
    yield path, module
    for name, child in module._modules.items():
        if child is not None and not any(child is one for one in (*above, module)):
            yield from named_places(child, f"{path}.{name}" if path else name, (*above, module))
