"""Calls of modules from outside of all others, noticed in a program that knows nothing of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch

from roofprof import _C
from roofprof.models.compiled import Compilations
from roofprof.models.hooks import ModuleHooks, unwarned


@contextlib.contextmanager
def outer_calls(
    begin: Callable[[torch.nn.Module], bool],
    end: Callable[[torch.nn.Module], None],
    missed: Callable[[torch.nn.Module], None],
) -> Iterator[None]:
    """In here ``begin(module)`` is called before each call and says whether to take it, ``end(module)`` after those.

    Of the calls inside of one that is taken neither is told. torch's compiler sees nothing of it; ``missed(module)`` is
    called for a call that it compiles as a whole, of which neither is told.
    """
    calls = _C.OuterCalls(begin, end)
    compilations = Compilations(missed=missed)
    hooks = ModuleHooks(calls.enter_hook, calls.leave_hook)
    with contextlib.ExitStack() as made:
        made.callback(calls.forget)
        made.callback(hooks.remove)
        hooks.register()
        made.enter_context(unwarned())
        made.enter_context(compilations.watched())
        made.enter_context(compilations.kept_from(hooks))
        yield
