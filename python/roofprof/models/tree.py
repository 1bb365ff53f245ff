"""The tree of a model's modules: place, type and sizes of each; what changed in it, and the notes on that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from roofprof import _C
from roofprof.models.source import line_of_forward

T = TypeVar("T")

NO_SIZES = {"params": 0, "params_known": True, "trainable_params": 0, "param_bytes": 0, "buffer_bytes": 0}
"""The facts of a place whose sizes are not known yet."""


@dataclass
class ModelTree:
    """The places in the order that the compiled part expects: the model, two that are not modules, then the rest.

    ``modules[i]`` are the facts of place ``i``; ``objects[i]`` is the module that stands there, or None. ``wrappers``
    are what torch.compile put around modules: the wrapper, its module, their place. ``graphs`` are traced modules, each
    with the places of the modules that its nodes came from, by path. ``scripts`` are TorchScript modules that Python
    calls, and ``packages`` those of AOTInductor, with their places. ``packed_unknown`` are the paths of modules that
    hold packed weights of which nothing tells how many they are.
    """

    modules: list[dict[str, Any]] = field(default_factory=list)
    objects: list[torch.nn.Module | None] = field(default_factory=list)
    wrappers: list[tuple[torch.nn.Module, torch.nn.Module, int]] = field(default_factory=list)
    graphs: list[tuple[torch.fx.GraphModule, dict[str, int]]] = field(default_factory=list)
    scripts: list[tuple[torch.jit.ScriptModule, int]] = field(default_factory=list)
    packages: list[tuple[Any, int]] = field(default_factory=list)
    has_packed_weights: bool = False
    packed_unknown: list[str] = field(default_factory=list)
    _first_places: dict[int, int] = field(default_factory=dict)
    _derived: dict[Callable[[ModelTree], Any], Any] = field(default_factory=dict)

    def add(
        self,
        path: str,
        type_name: str,
        parent: int,
        module: torch.nn.Module | None,
        *,
        has_forward: bool,
        forward_of_torch: bool = False,
    ) -> int:
        """Append a place and return its number."""
        facts = {
            "path": path,
            "type": type_name,
            "source": "" if module is None else line_of_forward(type(module), forward_of(module)),
            "parent": parent,
            "has_forward": has_forward,
            "calls_visible": True,
            "forward_of_torch": forward_of_torch,
            "parameters_read": False,
            "parameters_tied": False,
            "inferred": False,
            "same_as": self._first_places.get(id(module), -1),
            "compiled_region": -1,
            "input_shapes": [],
            "output_shapes": [],
            "output_bytes": None,
            "peak_memory": None,
            "kept_memory": None,
        }
        if module is not None:
            self._first_places.setdefault(id(module), len(self.modules))
        self.modules.append(facts | NO_SIZES)
        self.objects.append(module)
        return len(self.modules) - 1

    def add_wrapper(self, wrapper: object, module: torch.nn.Module | None, place: int) -> None:
        """Add the wrapper around a module in the model's tree, if there is one."""
        if module is not None and isinstance(wrapper, torch.nn.Module) and wrapper is not module:
            self.wrappers.append((wrapper, module, place))

    def once(self, derive: Callable[[ModelTree], T]) -> T:
        """Return ``derive(self)``, which depends on the whole tree alone and is computed at the first call."""
        if derive not in self._derived:
            self._derived[derive] = derive(self)
        result: T = self._derived[derive]
        return result


def changed_facts(before: ModelTree, now: ModelTree) -> dict[int, dict[str, Any]]:
    """Return the facts that have changed, by place: lazy modules get their type and sizes in their first call.

    Where a call replaced or deleted a module, it and all around it keep the facts of what was called.
    """
    if now is before:
        return {}
    latest = {facts["path"]: (facts, module) for facts, module in zip(now.modules, now.objects, strict=True)}
    gone = set[int]()  # places, parents after what they hold
    for place in range(len(before.modules) - 1, -1, -1):
        facts = before.modules[place]
        if place in gone or latest.get(facts["path"], (facts, None))[1] is not before.objects[place]:
            gone |= {place, facts["parent"]}
    return {
        place: latest[facts["path"]][0]
        for place, facts in enumerate(before.modules)
        if place not in gone and latest[facts["path"]][0] != facts
    }


def notes_on(before: ModelTree, now: ModelTree) -> list[_C.Note]:
    """Return notes on modules that have no rows."""
    notes: list[_C.Note] = []
    for module, place in before.scripts:
        frozen = _C.frozen_note(module._c, before.modules[place]["path"])
        notes += [frozen] if frozen else []
    if now.packed_unknown:
        text = (
            f"{_some([path or now.modules[0]['type'] for path in now.packed_unknown])}: nothing tells how many weights "
            "are packed in its tensors (a 4-bit weight has no quant_state), so the parameters of it and of what is "
            "around it are not known"
        )
        notes.append(_C.Note("params-not-known", text, now.packed_unknown))
    known = {id(module) for module in before.objects}
    # The modules that a graph was traced from do not exist as objects.
    traced = {before.modules[place]["path"] for _, places in before.graphs for place in places.values()}
    new = [
        facts["path"]
        for facts, module in zip(now.modules, now.objects, strict=True)
        if module is not None and id(module) not in known and facts["path"] not in traced
    ]
    if new:
        added = f"modules were added during the run ({_some(new)})"
        text = f"{added}: they have no rows, their work is in the rows of their callers"
        notes.append(_C.Note("modules-added", text, new))
    return notes


def notes_on_deferred(tree: ModelTree, places: set[int]) -> list[_C.Note]:
    """Return a note on the modules at ``places``, whose calls returned before their work was done."""
    if not places:
        return []
    paths = [tree.modules[place]["path"] for place in sorted(places)]
    text = (
        f"a call of {_some([path or tree.modules[0]['type'] for path in paths])} returned a generator, a coroutine or "
        "a future: what it does later is in the row of the module that runs then, or in (outside)"
    )
    return [_C.Note("deferred-work", text, paths)]


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if names[3:] else "")


def has_forward_of_torch(module: torch.nn.Module) -> bool:
    """Return whether it computes what torch.nn says, not the user."""
    if isinstance(module, torch.jit.ScriptModule):  # its class says nothing of its forward
        return False
    return str(getattr(forward_of(module), "__module__", "")).startswith("torch.nn.")


def forward_of(module: torch.nn.Module) -> Any:
    """Return the function that a call of the module runs: its own, or its class's."""
    return vars(module).get("forward", getattr(type(module), "forward", None))
