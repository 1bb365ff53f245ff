"""Finds out how a program trains: which calls a backward followed, when its optimizers have stepped, and whose."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch.optim import optimizer as torch_optimizer

from roofprof import _C
from roofprof.profiling.script.calls import Seen

_MOST_CALLS = 10_000  # of one step, those whose backward is looked for: the last ones
_WITHOUT_UPDATE = 100  # calls, after which an optimizer that has not stepped is not waited for
_MOST_REPEATS = 10  # steps of one optimizer for one step of another


class Kind(NamedTuple):
    """The kind of a module's call: a rollout has other sizes than a batch, an evaluation another mode."""

    module: int
    in_training_mode: bool
    sizes: tuple[int, ...]  # of the first tensor


class _Call(NamedTuple):
    number: int
    seen: Seen
    kind: Kind
    in_step: bool  # of the window


class Cycle:
    """Tells when all optimizers of a step have stepped: those of the step before, and new ones after these."""

    def __init__(self) -> None:
        self._known: set[int] = set()
        self._last: Counter[int] = Counter()
        self._now: Counter[int] = Counter()
        self.is_settled = True  # the last step had the same optimizers as the one before

    def ends_with(self, optimizer: int) -> bool:
        """Note that the optimizer has stepped; return whether a step ends with it."""
        is_new, is_first = optimizer not in self._known, not self._known
        self._known.add(optimizer)
        self._now[optimizer] += 1
        most = _MOST_REPEATS * max(self._last.values(), default=1)
        if not is_new and not set(self._last) <= set(self._now) and self._now[optimizer] <= most:
            return False
        self.is_settled = is_first or not is_new
        if is_new:
            self._now |= self._last
        self._last, self._now = self._now, Counter()
        return True


class Training:
    """Watches backward passes and optimizers.

    updated: called after each step of an optimizer that is not part of another one's.
    """

    def __init__(self, updated: Callable[[torch.optim.Optimizer], None]) -> None:
        self._updated = updated
        self._backwards = _C.BackwardRuns()
        self._nodes = self._backwards.nodes
        self._hook = 0  # the number of ours after steps
        self._under_way: list[torch.optim.Optimizer] = []
        self._calls: deque[_Call] = deque(maxlen=_MOST_CALLS)  # of this step, those that a backward can follow
        self._earlier: list[_Call] = []  # of the step before
        self._follows: dict[Kind, bool] = {}
        self._modes: set[bool] = set()  # of calls that a backward followed: in training mode
        self._optimizers: dict[int, weakref.ref[torch.optim.Optimizer]] = {}
        self._models: tuple[frozenset[int], list[weakref.ref[torch.nn.Module]]] | None = None
        self._parts: set[int] = set()
        self.cycle = Cycle()
        self.by_updates = False  # steps end with updates; else with backward passes
        self.unfollowed: Counter[str] = Counter()  # calls in steps, by the types of modules that are trained

    @contextlib.contextmanager
    def watched(self, is_ours: Callable[[], bool]) -> Iterator[None]:
        """Watch in here. ``is_ours``: whether this process began it; in a child the callbacks are left alone."""

        def before(optimizer: torch.optim.Optimizer, *_: object) -> None:
            self._under_way.append(optimizer)
            self._come_last()

        def after(optimizer: torch.optim.Optimizer, *_: object) -> None:
            while self._under_way and self._under_way.pop() is not optimizer:
                pass  # its step raised
            if not self._under_way and self._is_last():
                self._optimizers[id(optimizer)] = weakref.ref(optimizer)
                self._updated(optimizer)

        with contextlib.ExitStack() as made:
            made.callback(torch_optimizer.register_optimizer_step_pre_hook(before).remove)
            after_hook = torch_optimizer.register_optimizer_step_post_hook(after)
            self._hook = after_hook.id
            made.callback(after_hook.remove)
            self._backwards.watch()
            made.callback(lambda: self._backwards.ignore() if is_ours() else None)
            yield

    @contextlib.contextmanager
    def deaf(self) -> Iterator[None]:
        """Leave backward passes unwatched in here: a profile that begins takes other watchers into account."""
        self._backwards.ignore()
        try:
            yield
        finally:
            self._backwards.watch()
            self._come_last()

    # A window that begins or ends changes torch's hooks, which only the last hook may do while they are called.

    def _is_last(self) -> bool:
        return next(reversed(torch_optimizer._global_optimizer_post_hooks)) == self._hook

    def _come_last(self) -> None:
        if not self._is_last():
            torch_optimizer._global_optimizer_post_hooks.move_to_end(self._hook)  # type: ignore[attr-defined]

    # ---- calls

    @property
    def next_node(self) -> int:
        """The number of the next autograd node of this thread."""
        return self._backwards.next_node

    def add_call(self, seen: Seen, kind: Kind, first_node: int, *, in_step: bool) -> int:
        """Add a call that ended, and made the nodes since that one; return its number, -1 if it made none."""
        number = self._backwards.add(first_node)
        if number >= 0:
            self._calls.append(_Call(number, seen, kind, in_step))
        return number

    def are_followed(self, calls: Iterable[int]) -> list[bool]:
        """Return for each of these numbers whether a backward went through the call."""
        return [self._backwards.reached(number) for number in calls]

    def any_followed(self) -> bool:
        """Return whether a backward went through a call of this step."""
        if self._nodes == self._backwards.nodes:
            return False
        self._nodes = self._backwards.nodes
        return any(self._backwards.reached(call.number) for call in self._calls)

    def has_optimizer(self) -> bool:
        """Return whether there is an optimizer of the modules that a backward went through in this step."""
        followed = [call.seen.module() for call in self._calls if self._backwards.reached(call.number)]
        needed = {id(each) for module in followed if module is not None for each in module.parameters()}
        return not needed.isdisjoint(_parameters(optimizers()))

    def waits_in_vain(self) -> bool:
        """Return whether so many calls came without an update that none is to be expected."""
        return not self.by_updates and len(self._calls) > _WITHOUT_UPDATE

    def end_step(self) -> bool:
        """Learn which calls a backward followed; return whether it followed one of this step.

        A backward may come in the step after the call's: a generator's is after the discriminator's update.
        """
        followed = self.are_followed(call.number for call in self._calls)
        for call, is_followed in zip(self._calls, followed, strict=True):
            if is_followed:
                self._learn(call)
        for call in self._earlier:
            if self._backwards.reached(call.number):
                self._learn(call)
            else:
                self._follows.setdefault(call.kind, False)
                if call.seen.is_trained and call.in_step:
                    self.unfollowed[call.seen.type] += 1
        self._earlier = list(self._calls)
        self._calls.clear()
        self._backwards.forget_before(self._earlier[0].number if self._earlier else 0)
        return any(followed)

    def _learn(self, call: _Call) -> None:
        self._follows[call.kind] = call.seen.is_trained = True
        self._modes.add(call.kind.in_training_mode)

    def begins_step(self, seen: Seen, kind: Kind) -> bool:
        """Return whether a call of that kind, with gradients, is one that a backward will follow."""
        known = self._follows.get(kind)
        if known is not None:
            return known
        return self.is_trained(seen) and kind.in_training_mode in self._modes

    # ---- models

    def is_trained(self, seen: Seen) -> bool:
        """Return whether the module is one of those that train, or part of one."""
        return seen.is_trained or id(seen.module()) in self._parts

    def _known(self) -> list[torch.nn.Module]:
        found = [] if self._models is None else [known() for known in self._models[1]]
        return [model for model in found if model is not None]

    def has_new_optimizer(self) -> bool:
        """Return whether an optimizer has stepped that :meth:`models` did not know."""
        return self._models is not None and self._models[0] != frozenset(self._optimizers)

    def ends_step(self, optimizer: torch.optim.Optimizer) -> bool:
        """Return whether a step ends with this update."""
        first = next((each for group in optimizer.param_groups for each in group["params"]), optimizer)
        return self.cycle.ends_with(id(first))  # a new optimizer of the same parameters is the same

    def trains(self, optimizer: torch.optim.Optimizer, model: torch.nn.Module) -> bool:
        """Return whether the optimizer has parameters of the model."""
        return not _parameters([optimizer]).isdisjoint(id(each) for each in model.parameters())

    def models(self, called: list[torch.nn.Module]) -> list[torch.nn.Module]:
        """Return the outermost modules whose parameters the optimizers have.

        ``called``: modules that a backward followed; one that has all the parameters below an outermost one is taken in
        its place, and without optimizers they are taken as they are.
        """
        if self._models is None or not self._optimizers or self.has_new_optimizer():
            alive = [optimizer for each in self._optimizers.values() if (optimizer := each()) is not None]
            found = _outermost(_parameters(alive)) or called
            found = [_called_in_place_of(model, called, _parameters(alive)) for model in found]
            self._models = (frozenset(self._optimizers), [weakref.ref(model) for model in found])
            self._parts = {id(part) for model in found for part in model.modules()}
        return self._known()


def optimizers() -> list[torch.optim.Optimizer]:
    """Return the program's optimizers."""
    found = [each for each in gc.get_objects() if issubclass(type(each), torch.optim.Optimizer)]
    return [each for each in found if hasattr(each, "param_groups")]  # another thread may be making one


def _parameters(of: list[torch.optim.Optimizer]) -> set[int]:
    return {id(each) for one in of for group in one.param_groups for each in group["params"]}


def _outermost(parameters: set[int]) -> list[torch.nn.Module]:
    """Return the modules that hold these parameters and are in no other module, in the order of their making."""
    known = [each for each in gc.get_objects() if issubclass(type(each), torch.nn.Module)]
    modules = [each for each in known if "_modules" in vars(each) and not isinstance(each, StepModels)]
    inside = {id(child) for each in modules for child in each._modules.values() if child is not None}
    outer = [each for each in modules if id(each) not in inside]
    return [each for each in outer if any(id(one) in parameters for one in each.parameters())]


def outermost(models: list[torch.nn.Module]) -> list[torch.nn.Module]:
    """Return the models that are not inside another one of them."""
    inside = {id(part) for model in models for part in model.modules() if part is not model}
    return [each for each in {id(model): model for model in models}.values() if id(each) not in inside]


def _called_in_place_of(model: torch.nn.Module, called: list[torch.nn.Module], parameters: set[int]) -> torch.nn.Module:
    below = {id(each) for each in model.modules()}
    needed = parameters & {id(each) for each in model.parameters()}
    whole = [each for each in called if id(each) in below and needed <= {id(one) for one in each.parameters()}]
    return max(whole, key=lambda each: sum(1 for _ in each.modules()), default=model)


class StepModels(torch.nn.Module):
    """Holds the models of a step, each under a different name."""


def together(models: list[torch.nn.Module], variables: Mapping[str, Any]) -> torch.nn.Module | None:
    """Return the only model, or one that has all of them as children, by the names that the program has for them."""
    if len(models) < 2:
        return models[0] if models else None
    names: dict[str, torch.nn.Module] = {}
    for model in models:
        known = [name for name, value in variables.items() if value is model]
        name = known[0] if known else type(model).__name__
        while name in names:
            name += "_"
        names[name] = model
    # The type's name is the model's in the report.
    holder: torch.nn.Module = type(" and ".join(names), (StepModels,), {})()
    holder._modules.update(names)
    return holder
