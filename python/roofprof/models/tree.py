"""The tree of a model's modules: the place of each, its type, its sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, cast

import torch

from roofprof import _C
from roofprof.state.state_roots import is_lazy


class PackedTensor(NamedTuple):
    """A tensor of a quantized layer's packed weight, of which the sizes alone are kept."""

    elements: int
    bytes_of_each: int
    requires_grad: bool = False

    def numel(self) -> int:
        """Return the number of elements, like a tensor."""
        return self.elements

    def element_size(self) -> int:
        """Return the bytes of one element, like a tensor."""
        return self.bytes_of_each


_PLAIN = {torch.Tensor, torch.nn.Parameter, torch.nn.Buffer}
Tensors = dict[int, torch.Tensor | PackedTensor]  # by identity
T = TypeVar("T")


@dataclass
class ModelTree:
    """The places in the order that the compiled part expects: the model, two that are not modules, then the rest.

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
    has_packed_weights: bool = False
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
            "parent": parent,
            "has_forward": has_forward,
            "calls_visible": True,
            "forward_of_torch": forward_of_torch,
            "parameters_read": False,
            "inferred": False,
            "params_known": True,
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
        self.modules.append(facts | sizes_of({}, {}))
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


def sizes_of(parameters: Tensors, buffers: Tensors) -> dict[str, int]:
    """Return the sizes of a subtree that holds these, as facts of its place."""
    known = [(p, size) for p in parameters.values() if (size := _elements_and_bytes(p))]
    held = [size for b in buffers.values() if (size := _elements_and_bytes(b))]
    return {
        "params": sum(elements for _, (elements, _) in known),
        "trainable_params": sum(elements for p, (elements, _) in known if _requires_grad(p)),
        "param_bytes": sum(size for _, (_, size) in known),
        "buffer_bytes": sum(size for _, size in held),
    }


def _elements_and_bytes(tensor: torch.Tensor | PackedTensor) -> tuple[int, int] | None:
    """Return how many elements a tensor has and the bytes that it holds.

    None where that is not known: of a lazy one, of one that refuses.
    """
    if type(tensor) is PackedTensor:
        return tensor.elements, tensor.elements * tensor.bytes_of_each
    tensor = cast("torch.Tensor", tensor)
    if is_lazy(tensor):
        return None
    try:
        with torch._C.DisableTorchFunctionSubclass():  # the user's class may have methods of these names
            elements = torch.Tensor.numel(tensor)
            return elements, _bytes_of_parts(tensor) or elements * torch.Tensor.element_size(tensor)
    except Exception:  # a class of the user's may raise anything
        return None


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
    with torch._C.DisableTorchFunctionSubclass():
        return bool(vars(torch._C.TensorBase)["requires_grad"].__get__(tensor))
