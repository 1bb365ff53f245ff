"""The walk through a model that makes the tree of its modules, and what the model is called."""

from __future__ import annotations

import functools
import itertools
import types
from collections import Counter

import torch

from roofprof import _C
from roofprof.models import exported, packages, script
from roofprof.models.compiled import compiled_places, original
from roofprof.models.location import Location, location_of
from roofprof.models.sizes import (
    PackedTensor,
    Sizes,
    Tensors,
    elements_and_bytes,
    has_quant_state,
    packed_in,
    unpacked_in,
)
from roofprof.models.tree import ModelTree, has_forward_of_torch
from roofprof.state.state_roots import own_tables


def model_tree(model: object) -> ModelTree:
    """Return the tree of a module, or of any callable (a tree of one place)."""
    tree = ModelTree()
    module = module_of(model)
    of_torch = module is not None and has_forward_of_torch(module)
    tree.add("", name_of(model) or "NoneType", -1, module, has_forward=model is not None, forward_of_torch=of_torch)
    tree.add_wrapper(model, module, 0)
    tree.add("(outside)", "", -1, None, has_forward=False)
    tree.add("(optimizer)", "", -1, None, has_forward=False)
    if module is not None:
        _add_below(tree, module)
        _add_graphs(tree)
    if packages.is_package(model):
        packages.add_places(tree, model, 0)
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
            # Graphs, TorchScript, packages and packed weights hold more than a fingerprint covers.
            tree = self._tree
            held_elsewhere = tree.graphs or tree.scripts or tree.packages or tree.has_packed_weights
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


class _Open:
    """A module whose children are being added."""

    def __init__(self, tree: ModelTree, place: int, module: torch.nn.Module, sizes: Sizes) -> None:
        self.place = place
        self.module = module
        self.path = tree.modules[place]["path"]
        parameters, buffers, children = own_tables(module)
        packed = packed_in(module) | unpacked_in(module)
        is_packed = bool(packed) or any(map(has_quant_state, parameters))
        tree.has_packed_weights = tree.has_packed_weights or is_packed
        self.own = {id(p) for p in parameters}
        held: Tensors = {**{id(p): p for p in parameters}, **packed}
        held |= {key: PackedTensor(*each) for key, each in packages.sizes_in(module).items()}
        if is_packed and any(size and size[0] is None for size in map(elements_and_bytes, held.values())):
            tree.packed_unknown.append(self.path)
        sizes.add(place, held, {id(b): b for b in buffers})
        self.children = iter(children)
        self.seen: set[int] = set()  # a second name for the same child under the same parent is the same place
        if isinstance(module, torch.jit.ScriptModule):
            script.add_places(tree, module, place)
        for name, package in packages.held_by(module):
            path = f"{self.path}.{name}" if self.path else name
            own = tree.add(path, type(package).__name__, place, None, has_forward=True)
            packages.add_places(tree, package, own)


def _add_below(tree: ModelTree, model: torch.nn.Module) -> None:
    """Add everything below the model, and the sizes of each subtree. It may be nested deeper than Python's calls."""
    sizes = Sizes(tree)
    around = [_Open(tree, 0, model, sizes)]
    modules_around = {id(model)}
    own_parameters = {id(model): around[0].own}  # by module
    while around:
        parent = around[-1]
        name, given = next(parent.children, ("", None))
        if given is None:
            modules_around.discard(id(around.pop().module))
            continue
        child = original(given)
        # A child above itself is a loop.
        if id(given) in parent.seen or id(child) in modules_around:
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
        around.append(_Open(tree, place, child, sizes))
        modules_around.add(id(child))
        own_parameters[id(child)] = around[-1].own
    sizes.write()
    owners = Counter(itertools.chain.from_iterable(own_parameters.values()))
    for facts, module in zip(tree.modules, tree.objects, strict=True):
        own = own_parameters.get(id(module), ())
        facts["parameters_tied"] = bool(own) and all(owners[parameter] > 1 for parameter in own)


def _has_forward(module: torch.nn.Module) -> bool:
    # These types of torch.ao hold a weight, and their forward only returns its input.
    if type(module).__name__ in {"LinearPackedParams", "EmbeddingPackedParams"}:
        return False
    forward = getattr(type(module), "forward", None)  # TorchScript gives it to instances alone
    return forward is not torch.nn.Module.forward or "forward" in vars(module)
