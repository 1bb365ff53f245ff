"""Tensors and children of modules, read where torch keeps them: a user's class may override methods that list them."""

from __future__ import annotations

import torch

_attributes = vars(torch.nn.Module)["__dict__"].__get__


def tensors_of_modules(model: torch.nn.Module) -> list[torch.Tensor]:
    """Return the parameters and buffers of a module and all below it, in its tree's order; some may come twice."""
    found: list[torch.Tensor] = []
    pending = [model]
    seen: set[int] = set()
    while pending:
        module = pending.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        parameters, buffers, children = own_tables(module)
        found += [*parameters, *buffers]
        pending += reversed([child for _, child in children])
    return found


def own_tables(
    module: torch.nn.Module,
) -> tuple[list[torch.Tensor], list[torch.Tensor], list[tuple[str, torch.nn.Module]]]:
    """Return the module's own parameters, buffers and children; for TorchScript, the tensors of all below it."""
    if issubclass(type(module), torch.jit.ScriptModule):
        return [*module.parameters()], [*module.buffers()], []
    tables = _attributes(module)
    parameters, buffers, children = (tables.get(name, {}) for name in ("_parameters", "_buffers", "_modules"))
    return (
        [each for each in parameters.values() if each is not None],
        [each for each in buffers.values() if each is not None],
        [(name, child) for name, child in children.items() if child is not None],
    )
