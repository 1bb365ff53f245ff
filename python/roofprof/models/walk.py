"""The walk through a model that gives its tree, and what the reader should know of modules without rows."""

from __future__ import annotations

import functools
import types
from typing import Any

import torch

from roofprof import _C
from roofprof.models import exported, script
from roofprof.models.compiled import compiled_places, original
from roofprof.models.location import Location, location_of
from roofprof.models.tree import ModelTree, Tensors, packed_in, sizes_of
from roofprof.state.state_roots import own_tables


def model_tree(model: object) -> ModelTree:
    """Return the tree of a module, or of any callable (a tree of one place)."""
    tree = ModelTree()
    module = module_of(model)
    tree.add("", name_of(model) or "NoneType", -1, module, has_forward=model is not None)
    tree.add_wrapper(model, module, 0)
    tree.add("(outside)", "", -1, None, has_forward=False)
    tree.add("(optimizer)", "", -1, None, has_forward=False)
    if module is not None:
        _add_below(tree, module)
        _add_graphs(tree)
    return tree


def module_of(model: object) -> torch.nn.Module | None:
    """Return the module that a call of ``model`` calls, or whose method it calls; None where there is none."""
    called = original(model)
    while isinstance(called, functools.partial):
        called = original(called.func)
    owner = called.__self__ if isinstance(called, types.MethodType) else called
    return owner if isinstance(owner, torch.nn.Module) else None


class KnownModel:
    """A model's tree and location, which are derived again only where something changed since the last look."""

    def __init__(self) -> None:
        self._model: object = None
        self._fingerprint: _C.Fingerprint | None = None
        self._tree: ModelTree | None = None
        self._locations: dict[str | None, Location] = {}

    def tree(self, model: object) -> ModelTree:
        """Return the present tree; the same object as at the last look where nothing changed."""
        module = model if isinstance(model, torch.nn.Module) else module_of(model)
        # Before the walk: what another thread changes meanwhile is found at the next look.
        now = _C.Fingerprint(module) if module is not None else None
        if self._tree is None or now is None or now != self._fingerprint or model is not self._model:
            self._model, self._tree, self._locations = model, model_tree(model), {}
            # Graphs, TorchScript and packed weights hold more than a fingerprint covers.
            held_elsewhere = self._tree.graphs or self._tree.scripts or self._tree.has_packed_weights
            self._fingerprint = None if held_elsewhere else now
        return self._tree

    def location(self, requested: str | None) -> Location:
        """Return the location of the model's own parameters at the last look."""
        if requested not in self._locations:
            self._locations[requested] = location_of(self._model, (), {}, requested)
        return self._locations[requested]


def _add_graphs(tree: ModelTree) -> None:
    """Add places for the modules that graphs were traced from, except below compiled code, which would recompile."""
    compiled = compiled_places(tree)
    for place, module in enumerate(list(tree.objects)):
        if place not in compiled and isinstance(module, torch.fx.GraphModule):
            exported.add_places(tree, module, place)
            tree.modules[place]["type"] = exported.root_type(module) or tree.modules[place]["type"]


def name_of(model: object) -> str:
    """Return a module's type, a function's name, "" for None."""
    if model is None:
        return ""
    called = original(model)
    while isinstance(called, functools.partial):
        called = original(called.func)
    if isinstance(called, torch.nn.Module):
        return exported.type_name(called)
    name = str(getattr(called, "__name__", type(called).__name__))
    owner = module_of(called)
    return f"{exported.type_name(owner)}.{name}" if owner is not None else name


def changed_facts(before: ModelTree, now: ModelTree) -> dict[int, dict[str, Any]]:
    """Return the facts that have changed, by place: lazy modules get their type and sizes in their first call."""
    if now is before:
        return {}
    latest = {facts["path"]: facts for facts in now.modules}
    return {
        place: latest[facts["path"]]
        for place, facts in enumerate(before.modules)
        if latest.get(facts["path"], facts) != facts
    }


def notes_on(before: ModelTree, now: ModelTree) -> list[_C.Note]:
    """Return notes on modules that have no rows."""
    notes: list[_C.Note] = []
    for module, place in before.scripts:
        frozen = _C.frozen_note(module._c, before.modules[place]["path"])
        notes += [frozen] if frozen else []
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


class _Open:
    """A module whose children are being added, and what its subtree holds so far."""

    def __init__(self, tree: ModelTree, place: int, module: torch.nn.Module) -> None:
        self.place = place
        self.module = module
        self.path = tree.modules[place]["path"]
        parameters, buffers, children = own_tables(module)
        packed = packed_in(module)
        tree.has_packed_weights = tree.has_packed_weights or bool(packed)
        self.parameters: Tensors = {**{id(p): p for p in parameters}, **packed}
        self.buffers: Tensors = {id(b): b for b in buffers}
        self.children = iter(children)
        self.seen: set[int] = set()  # a second name for the same child under the same parent is the same place
        if isinstance(module, torch.jit.ScriptModule):
            script.add_places(tree, module, place)


def _add_below(tree: ModelTree, model: torch.nn.Module) -> None:
    """Add everything below the model, and the sizes of each subtree. It may be nested deeper than Python's calls."""
    around = [_Open(tree, 0, model)]
    while around:
        parent = around[-1]
        name, given = next(parent.children, ("", None))
        if given is None:
            tree.modules[parent.place] |= sizes_of(parent.parameters, parent.buffers)
            around.pop()
            if around:
                around[-1].parameters |= parent.parameters
                around[-1].buffers |= parent.buffers
            continue
        child = original(given)
        # A child above itself is a loop.
        if id(given) in parent.seen or any(child is each.module for each in around):
            continue
        if exported.is_part_of_export(child):
            continue
        parent.seen.add(id(given))
        place = tree.add(
            f"{parent.path}.{name}" if parent.path else name,
            exported.type_name(child),
            parent.place,
            child,
            has_forward=_has_forward(child),
            forward_of_torch=has_forward_of_torch(child),
        )
        tree.add_wrapper(given, child, place)
        around.append(_Open(tree, place, child))


def _has_forward(module: torch.nn.Module) -> bool:
    # These types of torch.ao hold a weight, and their forward only returns its input.
    if type(module).__name__ in {"LinearPackedParams", "EmbeddingPackedParams"}:
        return False
    forward = getattr(type(module), "forward", None)  # TorchScript gives it to instances alone
    return forward is not torch.nn.Module.forward or "forward" in vars(module)


def has_forward_of_torch(module: torch.nn.Module) -> bool:
    """Return whether it computes what torch.nn says, not the user."""
    forward = vars(module).get("forward", getattr(type(module), "forward", None))
    return str(getattr(forward, "__module__", "")).startswith("torch.nn.")
