"""The calls of a language model that are prefill and those that are decode; the cache that they get decides."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch

from roofprof import _C
from roofprof.models.tree import ModelTree

PHASES = ("prefill", "decode")
# transformers and its followers name the parameters of a forward so; with an encoder and a decoder, the decoder's.
# "cache" is transformers' name since 5.24; others give other parameters that name, but then have no `use_cache`.
_CACHES = ("past_key_values", "past_key_value", "layer_past", "cache")
_TOKENS = ("decoder_input_ids", "input_ids")
_EMBEDDINGS = ("decoder_inputs_embeds", "inputs_embeds")


class Model(NamedTuple):
    """A module that takes a cache, and its place."""

    place: int
    signature: inspect.Signature


def models_with_cache(tree: ModelTree) -> dict[int, Model]:
    """Return by identity the outermost modules whose forward takes a cache; not those that torch.compile wraps."""
    wrapped = {id(module) for _, module, _ in tree.wrappers}
    found: dict[int, Model] = {}
    inside: set[int] = set()  # places of these modules, and of all below them
    for place, (facts, module) in enumerate(zip(tree.modules, tree.objects, strict=True)):
        if facts["parent"] in inside:
            inside.add(place)
            continue
        if module is None or id(module) in wrapped or isinstance(module, torch.jit.ScriptModule):
            continue
        signature = _signature(module)
        if signature and _takes_cache(signature):
            inside.add(place)
            found.setdefault(id(module), Model(place, signature))
    return found


def _takes_cache(signature: inspect.Signature) -> bool:
    named = [name for name in _CACHES if name in signature.parameters]
    return bool(named) and (named != ["cache"] or "use_cache" in signature.parameters)


def _signature(module: torch.nn.Module) -> inspect.Signature | None:
    try:
        return inspect.signature(module.forward)
    except (TypeError, ValueError, RecursionError):  # the last: it wraps itself
        return None


class TokenCalls:
    """The calls of one run or block; torch calls :meth:`hook` as each call of a module begins."""

    def __init__(self, session: _C.ModuleHooks, models: Mapping[int, Model], tree: ModelTree) -> None:
        self._session = session
        self._models = models
        self._tree = tree
        self._counted: dict[str, dict[str, Any]] = {}

    def __bool__(self) -> bool:
        """Return True when a model takes a cache."""
        return bool(self._models)

    @property
    def modules(self) -> set[int]:
        """The ids of the models whose calls are looked at."""
        return set(self._models)

    def counted(self) -> list[dict[str, Any]]:
        """Return the counts of each phase, in the order of their first calls."""
        return list(self._counted.values())

    def hook(self, module: torch.nn.Module, args: tuple[Any, ...]) -> None:
        """Name the call before a forward; torch calls this. A call that is neither of the two gets no region."""
        model = self._models.get(id(module))
        if model is None:
            return
        # torch gives keywords to no global hook: they are in the frame that calls this one.
        kwargs = sys._getframe(1).f_locals.get("kwargs")
        if not isinstance(kwargs, dict):
            return
        call = _call_of(model.signature, args, kwargs, self._session)
        if call is None:
            return
        # A region of the user's wins: the one of the same name, else the other.
        names = (call.phase, *PHASES)
        name = next((each for each in names if _C.is_region_open(each)), call.phase)
        if self._session.name_call(module, name) and self._session.record_shapes:
            self._count(name, call, self._tree.modules[model.place]["param_bytes"])

    def _count(self, name: str, call: Call, weight_bytes: int) -> None:
        new = dict.fromkeys(("calls", "sequences", "tokens", "cache_bytes", "weight_bytes"), 0)
        known = self._counted.setdefault(name, {"region": name, **new, "least_context": sys.maxsize, "most_context": 0})
        known["calls"] += 1
        known["sequences"] += call.sequences
        known["tokens"] += call.sequences * call.new
        known["cache_bytes"] = max(known["cache_bytes"], call.cache_bytes)
        known["weight_bytes"] = max(known["weight_bytes"], weight_bytes)
        context = -1 if call.cached is None else call.cached + call.new
        known["least_context"] = min(known["least_context"], context)
        known["most_context"] = -1 if -1 in (context, known["most_context"]) else max(known["most_context"], context)


class Call(NamedTuple):
    """The size of a language model's call: the number of new tokens of a number of sequences."""

    sequences: int
    new: int
    cached: int | None  # tokens of each sequence; None: not known
    cache_bytes: int

    @property
    def phase(self) -> str:
        """One new token of a sequence that is in the cache is decode; all else fills the cache."""
        return "decode" if self.new == 1 and self.cached != 0 else "prefill"


def _call_of(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], session: _C.ModuleHooks
) -> Call | None:
    """Return the size of a call; None if it neither has nor requests a cache, or the new tokens are not found."""
    try:
        given = signature.bind_partial(*args, **kwargs).arguments
        given = {**given, **given.get("kwargs", {})}
        cache = next((given[name] for name in _CACHES if given.get(name) is not None), None)
        if cache is None and given.get("use_cache") is not True:
            return None
        new = _new_tokens(given)
        return None if new is None else Call(*new, _length(cache, session), _bytes_of(cache))
    except Exception:  # caches are classes of others, and may raise anything where they are asked
        return None


def _new_tokens(given: dict[str, Any]) -> tuple[int, int] | None:
    """Return the number of sequences, and of the new tokens of each."""
    for names, inner in ((_TOKENS, 0), (_EMBEDDINGS, 1)):
        for name in names:
            tensor = given.get(name)
            if isinstance(tensor, torch.Tensor) and tensor.dim() in {1 + inner, 2 + inner}:
                *batch, tokens = tensor.shape[: tensor.dim() - inner]
                return int(batch[0]) if batch else 1, int(tokens)
    return None


def _length(cache: Any, session: _C.ModuleHooks) -> int | None:
    """Return the tokens of each sequence in the cache; None for a length on a device, which is not waited for."""
    if cache is None:
        return 0
    if not hasattr(cache, "get_seq_length"):  # a tuple of (keys, values) for each layer, tokens last but one
        first = next(iter(cache), None)
        return 0 if first is None else int(first[0].shape[-2])
    if type(cache).__name__ == "DynamicCache":
        return int(cache.get_seq_length())
    session.pause()  # others may compute it
    try:
        length = cache.get_seq_length()
        waits = isinstance(length, torch.Tensor) and (type(length) is not torch.Tensor or length.device.type != "cpu")
        return None if waits else int(length)
    finally:
        session.resume()


def _bytes_of(cache: Any) -> int:
    return sum(tensor.nbytes for tensor in {id(each): each for each in _tensors(cache)}.values())


def _tensors(cache: Any) -> Iterator[torch.Tensor]:
    """Yield keys and values: of tuples, and of the layers of transformers' caches."""
    if isinstance(cache, torch.Tensor):
        if cache.dim() > 1:  # else a length
            yield cache
    elif isinstance(cache, (tuple, list)):
        for part in cache:
            yield from _tensors(part)
    elif cache is not None:
        names = ("layers", "self_attention_cache", "cross_attention_cache")
        parts = [getattr(cache, name) for name in names if hasattr(cache, name)]
        yield from _tensors(parts or [each for each in vars(cache).values() if isinstance(each, torch.Tensor)])
