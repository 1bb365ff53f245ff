"""Programs that are graphs: torch.export's, fx's, dynamo's. Their nodes still name the modules that they came from."""

from __future__ import annotations

import contextlib
import copy
import re
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from roofprof import _C
from roofprof.models.tree import ModelTree

_CALLS = {"call_function", "call_method", "call_module"}


def runnable(model: Any) -> Any:
    """Return the module of an ExportedProgram, which cannot be called itself; other values unchanged."""
    exported = sys.modules.get("torch.export.exported_program")
    return model.module() if exported is not None and isinstance(model, exported.ExportedProgram) else model


def type_name(module: torch.nn.Module) -> str:
    """Return the module's type; for a part of an unflattened program and in TorchScript, the one that it had before."""
    unflatten = sys.modules.get("torch.export.unflatten")
    if unflatten is not None and isinstance(module, (unflatten.InterpreterModule, unflatten.UnflattenedModule)):
        return _last_name(module.type_name()) or type(module).__name__
    if isinstance(module, torch.jit.ScriptModule):
        return str(module._c._type().name())
    return type(module).__name__


def is_part_of_export(module: torch.nn.Module) -> bool:
    """Return True for a module that torch.export added to check the inputs."""
    return type(module).__module__ == "torch.export._unlift" and type(module).__name__ == "GuardsFn"


@dataclass
class Call:
    """One call of a module in a graph: the nodes that came from it, others' inputs and outputs among them."""

    place: int
    nodes: list[fx.Node]

    @property
    def inputs(self) -> list[fx.Node]:
        """Return the nodes outside that these nodes read."""
        inside = set(self.nodes)
        given = [source for node in self.nodes for source in node.all_input_nodes if source.op != "get_attr"]
        return list(dict.fromkeys(source for source in given if source not in inside))

    @property
    def outputs(self) -> list[fx.Node]:
        """Return the nodes that others read, or nobody."""
        inside = set(self.nodes)
        return [node for node in self.nodes if not inside.issuperset(node.users)]


def add_places(tree: ModelTree, graph_module: fx.GraphModule, root: int) -> None:
    """Add a place for each module that nodes of the graph came from, below the graph's own."""
    places = _places_below(tree, root)
    for node in graph_module.graph.nodes:
        for _, path, kind in _origins(node):
            if path not in places:
                parent = places.get(path.rpartition(".")[0], root)
                full = ".".join(filter(None, (tree.modules[root]["path"], path)))
                stand_in = torch.nn.Module()  # only its identity counts
                places[path] = tree.add(full, kind, parent, stand_in, has_forward=True)
            tree.modules[places[path]] |= {"type": kind, "has_forward": True}
    tree.graphs.append((graph_module, places))


class GraphScopes:
    """Opens and closes the scopes of modules while the graphs that they were traced into run."""

    def __init__(self, tree: ModelTree, session: _C.ModuleHooks) -> None:
        self._graphs = tree.graphs
        self._objects = tree.objects
        self._enter_hook, self._leave_hook = session.enter_hook, session.leave_hook
        self._forwards: list[tuple[fx.GraphModule, Callable[..., Any]]] | None = None

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Replace in here the forwards of the graphs' modules by forwards that report the module of each node."""
        if self._forwards is None:
            self._forwards = [(module, self._observed(module, places)) for module, places in self._graphs]
        before = [vars(module).get("forward") for module, _ in self._forwards]
        try:
            for module, forward in self._forwards:
                vars(module)["forward"] = forward
            yield
        finally:
            for (module, _), own in zip(self._forwards, before, strict=True):
                vars(module).pop("forward", None)
                if own is not None:
                    vars(module)["forward"] = own

    def _observed(self, module: fx.GraphModule, places: dict[str, int]) -> Callable[..., Any]:
        """Return the module's forward, with a call before and after the nodes that came from each module."""

        def roofprof_enter(place: int) -> None:
            self._enter_hook(self._objects[place])

        def roofprof_leave(place: int, inputs: Any, outputs: Any) -> None:
            self._leave_hook(self._objects[place], inputs, {}, outputs)

        graph = copy.deepcopy(module.graph)
        for call in _calls_in(graph, places):
            # Calls may begin or end at one node: the outer one comes first, and must enclose the others.
            with graph.inserting_before(call.nodes[0]):
                graph.call_function(roofprof_enter, (call.place,))
            last, inputs, outputs = call.nodes[-1], call.inputs, call.outputs
            with graph.inserting_after(last):
                graph.call_function(roofprof_leave, (call.place, inputs, outputs))
        observed = fx.GraphModule(module, graph)
        return types.MethodType(type(observed).forward, module)


def _calls_in(graph: fx.Graph, places: dict[str, int]) -> list[Call]:
    """Return every call of a module that the graph still shows, outer ones first."""
    open_calls: list[tuple[str, Call]] = []
    calls: list[Call] = []
    for node in graph.nodes:
        if node.op not in _CALLS:
            continue
        origins = _origins(node)
        kept = 0
        while kept < min(len(origins), len(open_calls)) and origins[kept][0] == open_calls[kept][0]:
            kept += 1
        del open_calls[kept:]
        for key, path, _ in origins[kept:]:
            calls.append(Call(places[path], []))
            open_calls.append((key, calls[-1]))
        for _, call in open_calls:
            call.nodes.append(node)
    return calls


def _origins(node: fx.Node) -> list[tuple[str, str, str]]:
    """Return the modules that the node came from, outermost first, without the program: call, path and type of each.

    A module that the node calls itself is left to its hooks.
    """
    stack = node.meta.get("nn_module_stack") or {}
    found = [(key, _plain_path(path), _last_name(kind)) for key, (path, kind) in stack.items()]
    called = node.target if node.op == "call_module" else None
    return [origin for origin in found if origin[1] and origin[1] != called]


def root_type(graph_module: fx.GraphModule) -> str | None:
    """Return the type of the module that the graph was traced from, if its nodes say."""
    for node in graph_module.graph.nodes:
        for path, kind in (node.meta.get("nn_module_stack") or {}).values():
            if not _plain_path(path):
                return _last_name(kind)
    return None


def _places_below(tree: ModelTree, root: int) -> dict[str, int]:
    prefix = tree.modules[root]["path"]
    start = len(prefix) + 1 if prefix else 0
    below = {root}
    places = {}
    for place, facts in enumerate(tree.modules):
        if facts["parent"] in below:
            below.add(place)
            places[facts["path"][start:]] = place
    return places


def _plain_path(path: str) -> str:
    """Return ``layer.0`` for dynamo's ``L['self']._modules['layer'][0]``."""
    path = re.sub(r"^L(\['self'\]|__self__)", "", path)
    path = re.sub(r"(\._modules)?\[['\"]?(\w+)['\"]?\]", r".\2", path)
    return path.strip(".")


def _last_name(kind: Any) -> str:
    return (kind.__name__ if isinstance(kind, type) else str(kind or "")).rpartition(".")[2]
