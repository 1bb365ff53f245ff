"""Calls of modules without torch's Python code, where it is known what that would do."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import CodeType, FunctionType

import torch
from torch.nn.modules import module as nn_module

from roofprof.models.call_wrappers import defining_class
from roofprof.models.tree import ModelTree

# All that torch's code of a call looks at, by name, in torch 2.11 to 2.15. Code with a further one may do more.
_NAMES = """
    BackwardHook Exception RuntimeError Tensor _C _WrappedHook _backward_hooks _backward_pre_hooks _call_impl
    _compiled_call_impl _forward_hooks _forward_hooks_always_called _forward_hooks_with_kwargs _forward_pre_hooks
    _forward_pre_hooks_with_kwargs _get_backward_hooks _get_backward_pre_hooks _get_tracing_state
    _global_backward_hooks _global_backward_pre_hooks _global_forward_hooks _global_forward_hooks_always_called
    _global_forward_hooks_with_kwargs _global_forward_pre_hooks _is_tracing _maybe_warn_non_full_backward_hook
    _slow_forward add compiler dict forward grad_fn is_compiling isinstance items len next register_hook set
    setup_input_hook setup_output_hook str torch tuple type values warn warnings
"""
_KNOWN = frozenset(_NAMES.split())


def called_by_torch(tree: ModelTree) -> list[type]:
    """Return the classes of the tree's modules that are called as torch calls modules; TorchScript's are not."""
    kinds = {type(module): None for module in tree.objects if module is not None}
    return [
        kind
        for kind in kinds
        if issubclass(kind, torch.nn.Module)
        and not issubclass(kind, torch.jit.ScriptModule)
        and defining_class(kind, "__call__") is torch.nn.Module
    ]


def calls_are_torchs_own() -> bool:
    """Return whether torch calls modules now by code that is known."""
    own = vars(torch.nn.Module)
    return _is_torchs(own["__call__"]) and _is_torchs(own["_call_impl"])


def _is_torchs(function: object) -> bool:
    if not isinstance(function, FunctionType):
        return False
    return function.__globals__ is vars(nn_module) and _is_known(function.__code__)


@functools.cache
def _is_known(code: CodeType) -> bool:
    return _KNOWN.issuperset(_names_in(code))


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)
