"""The tree of a model's modules (place, type and sizes of each), the walk that makes it, and the device of the work."""

from __future__ import annotations

import functools
import itertools
import math
import types
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar, cast

import torch
from torch._subclasses.fake_tensor import FakeTensor

from roofprof import _C
from roofprof.models import exported, packages, script
from roofprof.models.compiled import compiled_places, original
from roofprof.models.source import line_of_forward
from roofprof.state.state_roots import (
    Contents,
    is_lazy,
    own_tables,
    tensors_of_modules,
    used_by,
    without_torch_function,
)


class Location(NamedTuple):
    """A device, why calls on it cannot be timed ("": they can), and whether what is called holds data.

    Parameters may rest on the meta device while the call runs elsewhere (they are loaded for it, or nothing calls
    their module). The ops that ran decide then: `otherwise` is the device and the reason if it was not as guessed.
    """

    device: str
    untimed: str = ""
    holds_data: bool = True
    otherwise: tuple[str, str] | None = None

    @property
    def is_sure(self) -> bool:
        """Return True when all tensors hold data."""
        return self.holds_data and self.otherwise is None


def location_of(model: object, args: tuple[Any, ...], kwargs: dict[str, Any], requested: str | None = None) -> Location:
    """Return the requested device; if none is requested, that of a parameter or an input off the CPU, else the CPU."""
    held = tensors_of_modules(model) if isinstance(model, torch.nn.Module) else used_by(model)
    inputs = Contents(args, kwargs).tensors
    tensors = Contents(held, inputs).tensors
    devices = list(filter(None, map(_device_of, tensors)))
    device = next((name for name in devices if name not in {"cpu", "meta"}), "cpu")
    if any(issubclass(type(tensor), FakeTensor) for tensor in tensors):
        found = next((name for name in devices if name != "cpu"), "cpu")
        return Location(requested or found, "not timed: fake tensors hold no data", holds_data=False)
    with_data = (requested or device, _C.untimed_on(device) or _C.untimed_on(requested or device))
    if "meta" not in devices:
        return Location(*with_data)
    without = (requested or "meta", _C.untimed_on("meta"))
    if set(devices) == {"meta"} or any(_device_of(tensor) == "meta" for tensor in inputs):
        return Location(*without, holds_data=False, otherwise=with_data)
    return Location(*with_data, otherwise=without)


def _device_of(tensor: torch.Tensor) -> str:
    """Return the tensor's device, without the user's code; "" if unknown. A fake tensor gives the imitated device."""
    return str(tensor.device) if issubclass(type(tensor), FakeTensor) else _C.device_of(tensor)


class PackedTensor(NamedTuple):
    """A tensor of a quantized layer's packed weight or of a package, of which the sizes alone are kept.

    elements: None where they are not known.
    """

    elements: int | None
    bytes_of_each: int | Fraction
    requires_grad: bool = False

    def numel(self) -> int:
        """Return the number of elements, like a tensor."""
        return self.elements or 0

    def element_size(self) -> int:
        """Return the bytes of one element, like a tensor."""
        return int(self.bytes_of_each)


_PLAIN = {torch.Tensor, torch.nn.Parameter, torch.nn.Buffer}
Tensors = dict[int, torch.Tensor | PackedTensor]  # by identity
T = TypeVar("T")


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
            "source": "" if module is None else line_of_forward(type(module), _forward_of(module)),
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
        self.modules.append(facts | _NO_SIZES)
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


def packed_in(module: torch.nn.Module) -> Tensors:
    """Return the tensors of packed weights that the module itself holds: they are not torch parameters.

    For TorchScript they include those of all modules below it.
    """
    if isinstance(module, torch.jit.ScriptModule):
        weights = _C.packed_in_script(module._c)
    else:
        held = [value for value in vars(module).values() if issubclass(type(value), torch.ScriptObject)]
        weights = {id(value): sizes for value in held if (sizes := _packed_sizes(value))}
        if vars(module).get("dtype") is torch.float16:  # unpacked they are floats
            weights = {key: [(elements, 2), *bias] for key, [(elements, _), *bias] in weights.items()}
    # No other object begins within one.
    return {
        key + place: PackedTensor(*sizes) for key, all_sizes in weights.items() for place, sizes in enumerate(all_sizes)
    }


def _packed_sizes(weight: Any) -> list[tuple[int, int]]:
    if not weight._type().qualified_name().endswith(".rnn.CellParamsBase"):
        return _C.packed_sizes(weight)
    (*_, products), _ = weight.__getstate__()  # a recurrent cell holds a packed weight for each of its products
    return [sizes for product in products for sizes in _C.packed_sizes(product)]


# The names that hqq, compressed-tensors, and GPTQ and AWQ layers give to integers that hold several weights each.
_PACKED_NAMES = ("W_q", "weight_packed", "qweight")


def unpacked_in(module: torch.nn.Module) -> Tensors:
    """Return the weights that these packages pack in the module's tensors, by the identity of what holds them."""
    own = vars(module)
    in_parameters, in_buffers = (own.get(name, {}) for name in ("_parameters", "_buffers"))
    if type(in_parameters) is not dict or type(in_buffers) is not dict:  # of TorchScript
        return {}
    weights = _weights_of(own)
    found: Tensors = {}
    for name in _PACKED_NAMES:
        held = in_parameters.get(name)
        size = _elements_and_bytes(held) if held is not None and not held.is_floating_point() else None
        if size is not None:  # where the elements are not known, the bytes are told as those of one
            found[id(held)] = PackedTensor(weights, Fraction(size[1], weights or 1))
        elif weights is not None and in_buffers.get(name) is not None:
            found[id(in_buffers[name])] = PackedTensor(weights, 0)  # the bytes are the buffer's
    return found


def _weights_of(layer: dict[str, Any]) -> int | None:
    """Return how many weights a layer with these attributes has, by what it says of their shape."""
    meta = layer.get("meta")
    if isinstance(meta, dict) and "shape" in meta:
        return math.prod(meta["shape"])
    for names in (("in_features", "out_features"), ("infeatures", "outfeatures")):
        sizes = [layer.get(name) for name in names]
        if all(isinstance(size, int) for size in sizes):
            return math.prod(cast("list[int]", sizes))
    return None


def _has_quant_state(tensor: torch.Tensor) -> bool:
    """Return whether it is a 4-bit weight of bitsandbytes, quantized or not yet."""
    if type(tensor) in _PLAIN:
        return False
    try:
        return "quant_state" in object.__getattribute__(tensor, "__dict__")  # without asking a class of the user's
    except AttributeError:
        return False


def _elements_in_4_bits(tensor: torch.Tensor, elements: int, held: int) -> int | None:
    """Return how many weights such a tensor has, which is quantized when it is moved to a device, or in a checkpoint.

    None where nothing tells: packed weights may be padded. What was cut from one has two weights in each byte.
    """
    facts = vars(tensor)
    states = (facts["quant_state"], getattr(facts.get("module"), "quant_state", None))
    shape = next((state.shape for state in states if state is not None), None)
    if shape is not None:
        return min(int(math.prod(shape)), 2 * held)
    is_packed = facts.get("bnb_quantized") or not torch.Tensor.is_floating_point(tensor)
    return None if is_packed else elements


class _Sizes:
    """The sizes of subtrees. A tensor counts once in each, wherever and under however many names it stands in it."""

    def __init__(self, tree: ModelTree) -> None:
        self._tree = tree
        self._places: list[int] = []  # in the order of a walk: each subtree together, after its place
        # By identity: the tensor, which is kept so that no other gets its identity, and the places that hold it.
        self._parameters: dict[int, tuple[torch.Tensor | PackedTensor, list[int]]] = {}
        self._buffers: dict[int, tuple[torch.Tensor | PackedTensor, list[int]]] = {}

    def add(self, place: int, parameters: Tensors, buffers: Tensors) -> None:
        """Add a place and what its module itself holds, after those before it in the walk."""
        self._places.append(place)
        for known, tensors in ((self._parameters, parameters), (self._buffers, buffers)):
            for key, tensor in tensors.items():
                known.setdefault(key, (tensor, []))[1].append(place)

    def write(self) -> None:
        """Write the sizes of all subtrees into the facts of their places."""
        sums = {place: [0] * 5 for place in self._places}  # in the order of _NO_SIZES, with how many are not known
        for tensor, places in self._parameters.values():
            if size := _elements_and_bytes(tensor):
                elements, held = size
                known = elements or 0
                trainable = known if known and _requires_grad(tensor) else 0
                self._add_once_in_each(places, (known, elements is None, trainable, held, 0), sums)
        for tensor, places in self._buffers.values():
            if size := _elements_and_bytes(tensor):
                self._add_once_in_each(places, (0, 0, 0, 0, size[1]), sums)
        for place in reversed(self._places):
            facts, own = self._tree.modules[place], sums[place]
            if facts["parent"] >= 0:
                _add(sums[facts["parent"]], own)
            facts.update(zip(_NO_SIZES, own, strict=True))
            facts["params_known"] = not own[1]

    def _add_once_in_each(self, places: list[int], of_tensor: Sequence[int], sums: dict[int, list[int]]) -> None:
        """Add a tensor's sizes where it is held, such that each subtree that holds it adds up to them.

        In subtrees that hold two places which follow each other it would count twice, so the innermost of these gets
        it less once.
        """
        _add(sums[places[0]], of_tensor)
        for before, place in itertools.pairwise(places):
            _add(sums[place], of_tensor)
            a, b = before, place
            while a != b:  # what stands above has the smaller number
                a, b = min(a, b), self._tree.modules[max(a, b)]["parent"]
            _add(sums[a], [-size for size in of_tensor])


_NO_SIZES = {"params": 0, "params_known": True, "trainable_params": 0, "param_bytes": 0, "buffer_bytes": 0}


def _add(to: list[int], sizes: Sequence[int]) -> None:
    for place, size in enumerate(sizes):
        to[place] += size


def _elements_and_bytes(tensor: torch.Tensor | PackedTensor) -> tuple[int | None, int] | None:
    """Return how many elements a tensor has (None: what it packs is not known) and the bytes that it holds.

    None where neither is known: of a lazy one, of one that refuses.
    """
    if type(tensor) is PackedTensor:
        elements = 1 if tensor.elements is None else tensor.elements
        return tensor.elements, int(elements * tensor.bytes_of_each)
    tensor = cast("torch.Tensor", tensor)
    if is_lazy(tensor):
        return None
    try:
        return without_torch_function(_size_of, tensor)  # the user's class may have methods of these names
    except Exception:  # a class of the user's may raise anything
        return None


def _size_of(tensor: torch.Tensor) -> tuple[int | None, int]:
    elements = torch.Tensor.numel(tensor)
    held = _bytes_of_parts(tensor) or elements * torch.Tensor.element_size(tensor)
    return _elements_in_4_bits(tensor, elements, held) if _has_quant_state(tensor) else elements, held


def _bytes_of_parts(tensor: torch.Tensor) -> int | None:
    """Return what the tensors hold that a subclass wraps (a quantized weight); None where it wraps none.

    A DTensor has the size of the whole, whichever part of it is here.
    """
    if type(tensor) in _PLAIN or hasattr(type(tensor), "full_tensor"):
        return None
    flatten = getattr(type(tensor), "__tensor_flatten__", None)
    if flatten is None:
        return None
    try:
        names, _ = flatten(tensor)
        parts = [_elements_and_bytes(getattr(tensor, name)) for name in names]
    except Exception:  # the user's code, or there are none
        return None
    return sum(size for _, size in parts) if parts and all(parts) else None  # type: ignore[misc]  # none is None


def _requires_grad(tensor: torch.Tensor | PackedTensor) -> bool:
    if type(tensor) is PackedTensor:
        return False
    return bool(without_torch_function(vars(torch._C.TensorBase)["requires_grad"].__get__, tensor))


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


class _Open:
    """A module whose children are being added."""

    def __init__(self, tree: ModelTree, place: int, module: torch.nn.Module, sizes: _Sizes) -> None:
        self.place = place
        self.module = module
        self.path = tree.modules[place]["path"]
        parameters, buffers, children = own_tables(module)
        packed = packed_in(module) | unpacked_in(module)
        is_packed = bool(packed) or any(map(_has_quant_state, parameters))
        tree.has_packed_weights = tree.has_packed_weights or is_packed
        self.own = {id(p) for p in parameters}
        held: Tensors = {**{id(p): p for p in parameters}, **packed}
        held |= {key: PackedTensor(*each) for key, each in packages.sizes_in(module).items()}
        if is_packed and any(size and size[0] is None for size in map(_elements_and_bytes, held.values())):
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
    sizes = _Sizes(tree)
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


def has_forward_of_torch(module: torch.nn.Module) -> bool:
    """Return whether it computes what torch.nn says, not the user."""
    if isinstance(module, torch.jit.ScriptModule):  # its class says nothing of its forward
        return False
    return str(getattr(_forward_of(module), "__module__", "")).startswith("torch.nn.")


def _forward_of(module: torch.nn.Module) -> Any:
    return vars(module).get("forward", getattr(type(module), "forward", None))
