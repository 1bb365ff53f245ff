"""Makes the call that is counted: its arguments, the modes around it, and the hooks and paths of modules."""

from __future__ import annotations

import contextlib
import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as nn_module
from torch.nn.parameter import is_lazy

import roofprof
from roofprof.models.call_wrappers import hooks_at_wrappers
from roofprof.state.snapshot import StateSnapshot

Around = contextlib.AbstractContextManager[Any]


class ConventionWarning(UserWarning):
    """Warns that a word of the replaced tool means something else in roofprof."""


_warned: set[str] = set()


def warn_once(tool: str, text: str) -> None:
    """Warn the caller's caller about a word's meaning, once for each ``tool`` ("thop.profile") in this process."""
    if tool not in _warned:
        _warned.add(tool)
        warnings.warn(text, ConventionWarning, stacklevel=3)


# ---- arguments


def require_module(model: Any) -> None:
    """Raise TypeError if ``model`` is not a module: the tools that are replaced take only modules."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"a torch.nn.Module is needed, not a {type(model).__name__}; roofprof.count takes any callable")


def positional(inputs: Any, *, lists: bool = False) -> tuple[Any, ...]:
    """Return ``inputs`` as positional arguments: a tuple, or one of the ``lists``, has several; all else is one."""
    return tuple(inputs) if isinstance(inputs, (tuple, list) if lists else tuple) else (inputs,)


def input_of_shape(model: nn.Module, shape: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    """Return one tensor of ones, of the dtype and on the device of the model's first parameter."""
    if not isinstance(shape, tuple) or not shape:
        raise TypeError(f"a shape is a tuple of at least one size, not {shape!r}; pass tensors as args")
    first = next(model.parameters(), torch.empty(0))
    return (torch.ones(shape, dtype=first.dtype, device=first.device),)


def check_sizes(sizes: Iterable[Any] | None, inputs: Any, kwargs: Mapping[str, Any] | None) -> None:
    """Raise ValueError unless there are either the sizes of one sample or arguments."""
    if (sizes is None) == (inputs is None and not kwargs):
        raise ValueError("give input_size, or None for it and inputs or kwargs")
    if any(not isinstance(size, int) or size < 1 for size in sizes or ()):
        raise ValueError(f"input_size must be the sizes of one sample, such as (3, 224, 224), not {sizes!r}")


def random_tensor(size: Iterable[int], device: torch.device | None, dtype: torch.dtype) -> torch.Tensor:
    """Return an input of values from 0 to 1, without a draw from the user's random numbers."""
    with torch.random.fork_rng(devices=[]):
        return torch.rand(*size).to(device=device, dtype=dtype)


def call_of(model: nn.Module, mode: str) -> Callable[..., Any]:
    """Return what a mode calls: the model, or its ``generate``."""
    if mode not in {"forward", "generate"}:
        raise ValueError(f'the mode is "forward" or "generate", not {mode!r}')
    generate: Any = getattr(model, "generate", None)
    if mode == "generate" and not callable(generate):
        raise TypeError(f'{type(model).__name__} has no generate() to call: use the mode "forward"')
    return model if mode == "forward" else generate


# ---- the call


def counted(
    model: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None,
    *around: Around,
    call: Callable[..., Any] | None = None,
    training: bool | None = False,
    grad: bool = True,
    tool: str = "",
) -> roofprof.Report:
    """Return the report of one call of the model, or of ``call``; ``tool``: whose log says what the figures lack."""
    with contextlib.ExitStack() as stack:
        for each in (prepared(model, training=training, grad=grad), *around):
            stack.enter_context(each)
        if call is None or call is model:
            report = roofprof.count(model, *args, **(kwargs or {}))
        else:
            profiler = block(model)
            with eager(), profiler:
                call(*args, **(kwargs or {}))
            report = profiler.report()
    if tool:
        log_gaps(report, tool)
    return report


def block(model: nn.Module) -> roofprof.RooflineProfiler:
    """Return a profiler that measures no roofs: none of the tools has any."""
    return roofprof.RooflineProfiler(model, counters="off", ceilings=roofprof.Ceilings())


def log_gaps(report: roofprof.Report, tool: str) -> None:
    """Log warnings about work that the figures lack."""
    logger, coverage = logging.getLogger(f"roofprof.compat.{tool}"), report.coverage
    for op in coverage.uncosted_ops:
        logger.warning("not counted, no cost is known: %s, %d calls", op.op, op.calls)
    for place, calls in coverage.unobserved.items():
        logger.warning("not counted, done outside of torch's operators: %s, %d calls", place, calls)
    for note in coverage.notes:
        if note.code == "compiled-not-counted":
            logger.warning("%s", note.text)


@contextlib.contextmanager
def prepared(model: nn.Module, *, training: bool | None = False, grad: bool = True) -> Iterator[None]:
    """Set the model's mode, if any, and torch's; at the end each module gets its own mode back.

    Transformer layers stay off torch's fused path, in which the modules inside would have no figures; the originals'
    hooks do that, too. An exported graph keeps the mode that it was exported in.
    """
    modes, mha = [(module, module.training) for module in model.modules()], torch.backends.mha
    fused: bool = mha.get_fastpath_enabled()
    try:
        mha.set_fastpath_enabled(False)
        with contextlib.suppress(NotImplementedError):  # torch's word for an exported graph
            if training is not None:
                model.train() if training else model.eval()
        with contextlib.nullcontext() if grad else torch.no_grad():
            yield
    finally:
        mha.set_fastpath_enabled(fused)
        for module, before in modes if training is not None else ():
            module.training = before


def eager() -> Around:
    """Run compiled code as it was written: fused code has no figures by module, and lacks some of its work."""
    if "torch._dynamo" not in sys.modules:
        return contextlib.nullcontext()  # nothing is compiled, and asking for it would load the compiler
    stance: Around = torch.compiler.set_stance("force_eager")
    return stance


def undone(model: nn.Module, args: Any, kwargs: Any) -> Around:
    """Undo at the end all changes of the model by calls in here; only the sizes that a lazy model gets stay."""
    if any(is_lazy(tensor) for tensor in (*model.parameters(), *model.buffers())):
        return contextlib.nullcontext()
    return StateSnapshot(model, args, kwargs).undoing()


# ---- modules


@contextlib.contextmanager
def global_hooks(
    before: Callable[..., None] | None, after: Callable[..., None], *, always_call: bool = False
) -> Iterator[None]:
    """Call ``before(module, args)`` and ``after(module, args, kwargs, output)`` around each call of any module.

    always_call: ``after`` is called after a call that raised, too, by torch without ``kwargs``.
    """
    handles = [nn_module.register_module_forward_hook(after, with_kwargs=True, always_call=always_call)]
    if before is not None:
        handles.append(nn_module.register_module_forward_pre_hook(before))
    try:
        with hooks_at_wrappers(before, after, always_call=always_call):
            yield
    finally:
        for handle in handles:
            handle.remove()
        # torch keeps these of a hook that is removed.
        nn_module._global_forward_hooks_with_kwargs.pop(handles[0].id, None)
        nn_module._global_forward_hooks_always_called.pop(handles[0].id, None)


def path_in_report(path: str) -> str:
    """Return the path that reports have for a place: they leave out torch.compile's wrappers."""
    return ".".join(part for part in path.split(".") if part != "_orig_mod")


def named_places(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yield every path of every module, parents first. A module in two places has two paths; loops are not followed."""
    pending = [("", model, frozenset[int]())]  # with the ids of what is around it
    while pending:
        path, module, around = pending.pop()
        yield path, module
        around |= {id(module)}
        pending += [
            (f"{path}.{name}" if path else name, child, around)
            for name, child in reversed([*module._modules.items()])
            if child is not None and id(child) not in around
        ]
