"""Helpers that all replacements share: they read arguments, hook modules, set modes and name the paths of modules."""

from __future__ import annotations

import contextlib
import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.nn.modules import module as nn_module
from torch.nn.parameter import is_lazy

import roofprof
from roofprof.models.doors import told_by_doors
from roofprof.state.snapshot import StateSnapshot


class ConventionWarning(UserWarning):
    """Warns that a word of the replaced tool means something else in roofprof."""


_warned: set[str] = set()


def warn_once(tool: str, text: str) -> None:
    """Warn the caller's caller about a word's meaning, once for each ``tool`` ("thop.profile") in this process."""
    if tool not in _warned:
        _warned.add(tool)
        warnings.warn(text, ConventionWarning, stacklevel=3)


def require_module(model: Any) -> None:
    """Raise TypeError if ``model`` is not a module: the tools that are replaced take only modules."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"a torch.nn.Module is needed, not a {type(model).__name__}; roofprof.count takes any callable")


def positional(inputs: Any) -> tuple[Any, ...]:
    """Return ``inputs`` as the model's positional arguments: a tuple has several, anything else is the only one."""
    return inputs if isinstance(inputs, tuple) else (inputs,)


def as_arguments(args: Any) -> tuple[Any, ...]:
    """Return ``args`` as the model's positional arguments: a list or tuple has several, all else is the only one."""
    return tuple(args) if isinstance(args, (list, tuple)) else (args,)


def input_of_shape(model: torch.nn.Module, shape: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    """Return one tensor of ones, of the dtype and on the device of the model's first parameter."""
    if not isinstance(shape, tuple) or not shape:
        raise TypeError(f"a shape is a tuple of at least one size, not {shape!r}; pass tensors as args")
    first = next(model.parameters(), torch.empty(0))
    return (torch.ones(shape, dtype=first.dtype, device=first.device),)


def call_of(model: torch.nn.Module, mode: str) -> Callable[..., Any]:
    """Return what a mode calls: the model, or its ``generate``."""
    if mode not in {"forward", "generate"}:
        raise ValueError(f'the mode is "forward" or "generate", not {mode!r}')
    generate: Callable[..., Any] | None = getattr(model, "generate", None)
    if mode == "generate" and not callable(generate):
        raise TypeError(f'{type(model).__name__} has no generate() to call: use the mode "forward"')
    return model if mode == "forward" or generate is None else generate


def keywords(kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return ``kwargs`` as a dict; None is empty."""
    return dict(kwargs or {})


def log_gaps(report: roofprof.Report, logger: logging.Logger) -> None:
    """Log warnings about work that the figures lack."""
    coverage = report.coverage
    for op in coverage.uncosted_ops:
        logger.warning("not counted, no cost is known: %s, %d calls", op.op, op.calls)
    for place, calls in coverage.unobserved.items():
        logger.warning("not counted, done outside of torch's operators: %s, %d calls", place, calls)
    for note in coverage.notes:
        if note.code == "compiled-not-counted":
            logger.warning("%s", note.text)


def evaluating(model: torch.nn.Module) -> contextlib.AbstractContextManager[None]:
    """Put the model into eval mode; at the end each module gets its own mode back."""
    return in_mode(model, training=False)


@contextlib.contextmanager
def in_mode(model: torch.nn.Module, *, training: bool) -> Iterator[None]:
    """Put the model into training or eval mode; at the end each module gets its own mode back.

    An exported graph keeps the mode that it was exported in.
    """
    modes = [(module, module.training) for module in model.modules()]
    try:
        with contextlib.suppress(NotImplementedError):  # torch's word for an exported graph
            model.train() if training else model.eval()
        yield
    finally:
        for module, before in modes:
            module.training = before


@contextlib.contextmanager
def global_hooks(
    before: Callable[..., None] | None,
    after: Callable[..., None],
    *,
    with_kwargs: bool = False,
    always_call: bool = False,
) -> Iterator[None]:
    """Call ``before(module, args)`` and ``after(module, args, output)`` around each call of any module.

    with_kwargs: ``after`` gets the keyword arguments before the output; always_call: also after a call that raised.
    """
    by_door = after if with_kwargs else lambda module, args, _, output: after(module, args, output)
    handles = [nn_module.register_module_forward_hook(after, with_kwargs=with_kwargs, always_call=always_call)]
    if before is not None:
        handles.append(nn_module.register_module_forward_pre_hook(before))
    try:
        with told_by_doors(before, by_door, always_call=always_call):
            yield
    finally:
        for handle in handles:
            handle.remove()
        # torch keeps these of a hook that is removed.
        nn_module._global_forward_hooks_with_kwargs.pop(handles[0].id, None)
        nn_module._global_forward_hooks_always_called.pop(handles[0].id, None)


def after_each_call(
    model: torch.nn.Module, see: Callable[[torch.nn.Module, tuple[Any, ...], dict[str, Any], Any], None]
) -> contextlib.AbstractContextManager[None]:
    """Call ``see(module, args, kwargs, output)`` after each call of the model's modules."""
    members = {id(module) for module in model.modules()}

    def after(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        if id(module) in members:
            see(module, args, kwargs, output)

    return global_hooks(None, after, with_kwargs=True)


@contextlib.contextmanager
def attributes(module: torch.nn.Module, **values: Any) -> Iterator[dict[str, Any]]:
    """Give the module these attributes; afterwards it has its own again. Yields all that it has."""
    own = vars(module)
    before = {name: own[name] for name in values if name in own}
    own.update(values)
    try:
        yield own
    finally:
        for name in values:
            own.pop(name, None)
        own.update(before)


def random_tensor(size: Iterable[int], device: torch.device | None, dtype: torch.dtype) -> torch.Tensor:
    """Return an input of values from 0 to 1, without a draw from the user's random numbers."""
    with torch.random.fork_rng(devices=[]):
        return torch.rand(*size).to(device=device, dtype=dtype)


@contextlib.contextmanager
def unfused() -> Iterator[None]:
    """Keep transformer layers off torch's fused path, in which the modules inside would have no figures.

    The originals' hooks on every module do that, too.
    """
    mha = torch.backends.mha
    enabled: bool = mha.get_fastpath_enabled()
    mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        mha.set_fastpath_enabled(enabled)


@contextlib.contextmanager
def eager() -> Iterator[None]:
    """Run compiled code as it was written: fused code has no figures by module, and lacks some of its work."""
    if "torch._dynamo" not in sys.modules:
        yield  # nothing is compiled, and asking for it would load the compiler
        return
    with torch.compiler.set_stance("force_eager"):
        yield


def undone(model: torch.nn.Module, args: Any, kwargs: Any) -> contextlib.AbstractContextManager[None]:
    """Undo at the end all changes of the model by calls in here; only the sizes that a lazy model gets stay."""
    if any(is_lazy(tensor) for tensor in (*model.parameters(), *model.buffers())):
        return contextlib.nullcontext()
    return StateSnapshot(model, args, kwargs).undoing()


def path_in_report(path: str) -> str:
    """Return the path that reports have for a place: they leave out torch.compile's wrappers."""
    return ".".join(part for part in path.split(".") if part != "_orig_mod")


class TreeBefore:
    """A model's modules before calls that may replace, delete or add some: its report has rows of these."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.places = dict(named_places(model))
        self._children = {id(module): dict(module.named_children()) for module in self.places.values()}

    def children(self, module: torch.nn.Module) -> dict[str, torch.nn.Module]:
        """Return the modules that were directly inside by name, and after them what was added under other names."""
        before = self._children.get(id(module), {})
        return before | {name: child for name, child in module.named_children() if name not in before}

    def parameters(self, module: torch.nn.Module) -> list[torch.nn.Parameter]:
        """Return the parameters of a module and of all that is inside by :meth:`children`, each once."""
        pending, seen = [module], {id(module)}
        found: dict[int, torch.nn.Parameter] = {}
        while pending:
            one = pending.pop()
            found |= {id(parameter): parameter for parameter in one.parameters(recurse=False)}
            inside = [child for child in self.children(one).values() if id(child) not in seen]
            seen |= {id(child) for child in inside}
            pending += reversed(inside)
        return list(found.values())


def named_places(
    module: torch.nn.Module, path: str = "", above: tuple[torch.nn.Module, ...] = ()
) -> Iterator[tuple[str, torch.nn.Module]]:
    """Yield every path of every module, parents first. A module in two places has two paths; loops are not followed."""
    pending = [(path, module, above)]
    while pending:
        path, module, above = pending.pop()
        yield path, module
        around = (*above, module)
        inside = [(name, child) for name, child in module._modules.items() if child is not None]
        pending += reversed(
            [
                (f"{path}.{name}" if path else name, child, around)
                for name, child in inside
                if not any(child is one for one in around)
            ]
        )
