"""The tree of a model's modules: where each stands, what it is, which parameters it holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass
class ModelTree:
    """Places in the order that the compiled part expects: the model, two that are no modules, then the rest.

    ``modules[i]`` are the facts of place ``i``; ``objects[i]`` is the module that stands there, or None.
    """

    modules: list[dict[str, Any]] = field(default_factory=list)
    objects: list[torch.nn.Module | None] = field(default_factory=list)

    def add(
        self, path: str, type_name: str, parent: int, module: torch.nn.Module | None, *, has_forward: bool
    ) -> int:
        """Append a place and return its number."""
        facts = {
            "path": path,
            "type": type_name,
            "parent": parent,
            "has_forward": has_forward,
            "calls_visible": True,
            "inferred": False,
            "input_shapes": [],
            "output_shapes": [],
            "output_bytes": None,
        }
        self.modules.append(facts | _sizes({}, {}))
        self.objects.append(module)
        return len(self.modules) - 1


def model_tree(model: object) -> ModelTree:
    """The tree of a module, or of any callable (a tree of one place)."""
    tree = ModelTree()
    module = model if isinstance(model, torch.nn.Module) else None
    tree.add("", name_of(model) or "NoneType", -1, module, has_forward=model is not None)
    tree.add("(outside)", "", -1, None, has_forward=False)
    tree.add("(optimizer)", "", -1, None, has_forward=False)
    if module is not None:
        _add_children(tree, 0, module, [module])
    return tree


def name_of(model: object) -> str:
    """A module's type, a function's name, "" for None."""
    if model is None:
        return ""
    kind = type(model).__name__
    return kind if isinstance(model, torch.nn.Module) else getattr(model, "__name__", kind)


def changed_facts(tree: ModelTree) -> dict[int, dict[str, Any]]:
    """What is no longer so: lazy modules get their type and sizes in their first call."""
    now = {facts["path"]: facts for facts in model_tree(tree.objects[0]).modules}
    changed = {}
    for place, facts in enumerate(tree.modules):
        latest = {key: now.get(facts["path"], facts)[key] for key in ("type", *_sizes({}, {}))}
        if tree.objects[place] is not None and latest != {key: facts[key] for key in latest}:
            changed[place] = latest
    return changed


def notes_on(tree: ModelTree) -> list[str]:
    """What the reader should know of modules that came after the tree was made."""
    model = tree.objects[0]
    known = {id(module) for module in tree.objects}
    new = [] if model is None else [path for path, module in model.named_modules() if id(module) not in known]
    if not new:
        return []
    names = ", ".join(new[:3]) + (", ..." if new[3:] else "")
    return [f"modules came while it ran ({names}): they have no rows, their work stands in what called them"]


_Tensors = dict[int, torch.Tensor]


def _add_children(
    tree: ModelTree, place: int, module: torch.nn.Module, ancestors: list[torch.nn.Module]
) -> tuple[_Tensors, _Tensors]:
    """Add everything below ``module`` and return the subtree's distinct parameters and buffers."""
    parameters: _Tensors = {id(p): p for p in module._parameters.values() if p is not None}
    buffers: _Tensors = {id(b): b for b in module._buffers.values() if b is not None}
    path = tree.modules[place]["path"]
    seen: set[int] = set()
    for name, child in module._modules.items():
        # A second name for the same child under the same parent is the same place; a child above itself is a loop.
        if child is None or id(child) in seen or any(child is ancestor for ancestor in ancestors):
            continue
        seen.add(id(child))
        child_place = tree.add(
            f"{path}.{name}" if path else name,
            type(child).__name__,
            place,
            child,
            has_forward=_has_forward(child),
        )
        child_parameters, child_buffers = _add_children(tree, child_place, child, [*ancestors, child])
        parameters |= child_parameters
        buffers |= child_buffers
    tree.modules[place] |= _sizes(parameters, buffers)
    return parameters, buffers


def _has_forward(module: torch.nn.Module) -> bool:
    return type(module).forward is not torch.nn.Module.forward or "forward" in vars(module)


def _sizes(parameters: _Tensors, buffers: _Tensors) -> dict[str, int]:
    known = [p for p in parameters.values() if not torch.nn.parameter.is_lazy(p)]
    return {
        "params": sum(p.numel() for p in known),
        "trainable_params": sum(p.numel() for p in known if p.requires_grad),
        "param_bytes": sum(p.numel() * p.element_size() for p in known),
        "buffer_bytes": sum(
            b.numel() * b.element_size() for b in buffers.values() if not torch.nn.parameter.is_lazy(b)
        ),
    }
