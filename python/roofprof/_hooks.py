"""Global hooks: nothing is put on the model, and its modules' own fast paths stay on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch.nn.modules import module as nn_module
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from roofprof import _C


@contextlib.contextmanager
def global_hooks(session: _C.Session) -> Iterator[None]:
    """Tells the session of every call of a module and every step of an optimizer."""

    # What a pre-hook returns would be taken for new arguments.
    def enter_optimizer(optimizer: torch.optim.Optimizer, *_: object) -> None:
        session.enter_optimizer(optimizer)

    def leave_optimizer(optimizer: torch.optim.Optimizer, *_: object) -> None:
        session.leave_optimizer(optimizer)

    handles = [
        nn_module.register_module_forward_pre_hook(session.enter_hook),
        nn_module.register_module_forward_hook(session.leave_hook, with_kwargs=True, always_call=True),
        register_optimizer_step_pre_hook(enter_optimizer),
        register_optimizer_step_post_hook(leave_optimizer),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
            # torch removes the hook, but not its entry in here.
            nn_module._global_forward_hooks_with_kwargs.pop(handle.id, None)
