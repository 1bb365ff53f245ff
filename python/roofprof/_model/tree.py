"""The tree of a model's modules: the place of each, its type, its sizes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

Tensors = dict[int, torch.Tensor]  # by identity


@dataclass
class ModelTree:
    """Places in the order that the compiled part expects: the model, two that are no modules, then the rest.

    ``modules[i]`` are the facts of place ``i``; ``objects[i]`` is the module that stands there, or None. ``wrappers``
    are what torch.compile put around modules: the wrapper, its module, their place. ``graphs`` are traced modules, each
    with the places of the modules that its nodes came from, by path. ``scripts`` are TorchScript modules that Python
    calls, with their places.
    """

    modules: list[dict[str, Any]] = field(default_factory=list)
    objects: list[torch.nn.Module | None] = field(default_factory=list)
    wrappers: list[tuple[torch.nn.Module, torch.nn.Module, int]] = field(default_factory=list)
    graphs: list[tuple[torch.fx.GraphModule, dict[str, int]]] = field(default_factory=list)
    scripts: list[tuple[torch.jit.ScriptModule, int]] = field(default_factory=list)
    _first_places: dict[int, int] = field(default_factory=dict)

    def add(self, path: str, type_name: str, parent: int, module: torch.nn.Module | None, *, has_forward: bool) -> int:
        """Append a place and return its number."""
        facts = {
            "path": path,
            "type": type_name,
            "parent": parent,
            "has_forward": has_forward,
            "calls_visible": True,
            "inferred": False,
            "same_as": self._first_places.get(id(module), -1),
            "compiled_region": -1,
            "input_shapes": [],
            "output_shapes": [],
            "output_bytes": None,
        }
        if module is not None:
            self._first_places.setdefault(id(module), len(self.modules))
        self.modules.append(facts | sizes_of({}, {}))
        self.objects.append(module)
        return len(self.modules) - 1

    def add_wrapper(self, wrapper: object, module: torch.nn.Module | None, place: int) -> None:
        """Note the wrapper around a module in the model's own tree, if there is one."""
        if module is not None and isinstance(wrapper, torch.nn.Module) and wrapper is not module:
            self.wrappers.append((wrapper, module, place))


def sizes_of(parameters: Tensors, buffers: Tensors) -> dict[str, int]:
    """The sizes of a subtree that holds these, as facts of its place."""
    known = [p for p in parameters.values() if not torch.nn.parameter.is_lazy(p)]
    return {
        "params": sum(p.numel() for p in known),
        "trainable_params": sum(p.numel() for p in known if p.requires_grad),
        "param_bytes": sum(p.numel() * p.element_size() for p in known),
        "buffer_bytes": sum(
            b.numel() * b.element_size() for b in buffers.values() if not torch.nn.parameter.is_lazy(b)
        ),
    }
