"""The sizes of a model's tensors, packed weights among them, and their sums in each subtree of its modules."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple, cast

import torch

from roofprof import _C
from roofprof.models.tree import NO_SIZES, ModelTree
from roofprof.state.state_roots import is_lazy, without_torch_function


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
        size = elements_and_bytes(held) if held is not None and not held.is_floating_point() else None
        if size is not None:  # if the number of elements is not known, the bytes count as those of one
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


def has_quant_state(tensor: torch.Tensor) -> bool:
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


class Sizes:
    """The sizes of subtrees. A tensor counts once in each, wherever and under however many names it stands in it."""

    def __init__(self, tree: ModelTree) -> None:
        self._tree = tree
        self._places: list[int] = []  # in the order of a walk: each subtree together, after its place
        # Each tensor by its identity, with the places that hold it; kept so that no other tensor gets this identity.
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
        sums = {place: [0] * 5 for place in self._places}  # in the order of NO_SIZES, with how many are not known
        for tensor, places in self._parameters.values():
            if size := elements_and_bytes(tensor):
                elements, held = size
                known = elements or 0
                trainable = known if known and _requires_grad(tensor) else 0
                self._add_once_in_each(places, (known, elements is None, trainable, held, 0), sums)
        for tensor, places in self._buffers.values():
            if size := elements_and_bytes(tensor):
                self._add_once_in_each(places, (0, 0, 0, 0, size[1]), sums)
        for place in reversed(self._places):
            facts, own = self._tree.modules[place], sums[place]
            if facts["parent"] >= 0:
                _add(sums[facts["parent"]], own)
            facts.update(zip(NO_SIZES, own, strict=True))
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


def _add(to: list[int], sizes: Sequence[int]) -> None:
    for place, size in enumerate(sizes):
        to[place] += size


def elements_and_bytes(tensor: torch.Tensor | PackedTensor) -> tuple[int | None, int] | None:
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
    return _elements_in_4_bits(tensor, elements, held) if has_quant_state(tensor) else elements, held


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
        parts = [elements_and_bytes(getattr(tensor, name)) for name in names]
    except Exception:  # the user's code, or there are none
        return None
    return sum(size for _, size in parts) if parts and all(parts) else None  # type: ignore[misc]  # none is None


def _requires_grad(tensor: torch.Tensor | PackedTensor) -> bool:
    if type(tensor) is PackedTensor:
        return False
    return bool(without_torch_function(vars(torch._C.TensorBase)["requires_grad"].__get__, tensor))
