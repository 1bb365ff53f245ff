"""Profiling from Python: one call, a repeated run, or a block of the user's own code."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from roofprof import _C, ceilings
from roofprof._arguments import copy_containers, tensors_in
from roofprof._model_tree import model_tree
from roofprof._state import ModelState, RandomState, Versions
from roofprof.report import Report

# Without a wish of the caller's, a run is repeated this often or for this many seconds, whichever ends first.
_REPEATS = 10
_SECONDS = 5.0

_Self = TypeVar("_Self", bound="RooflineProfiler")


def profile(model: Callable[..., Any], *args: Any, **kwargs: Any) -> Report:
    """Count and time one call ``model(*args, **kwargs)``, and hold it against the roofs of this machine.

    The model is called several times and left as one plain call leaves it. Raises whatever the model raises.
    """
    return RooflineProfiler(model).run(*args, **kwargs)


def count(model: Callable[..., Any], *args: Any, **kwargs: Any) -> Report:
    """Count MACs, FLOPs and bytes of exactly one call ``model(*args, **kwargs)``; nothing is timed or measured.

    Works on the meta device and on fake tensors as well, where nothing is allocated.
    """
    profiler = RooflineProfiler(model)
    profiler._reset("count")
    profiler._observe_call(args, kwargs)
    return profiler.report()


class RooflineProfiler:
    """Profiles a model, call by call or block by block.

    model: any callable; for a ``torch.nn.Module`` each submodule gets a row. None: a block's ops without a model.
    warmup: calls of :meth:`run` that are not timed.
    repeat: timed calls of :meth:`run`; None: at most 10 or 5 seconds.
    device: the device whose roofs count; None: where the model's parameters or inputs are.
    counters: "auto", or "off"; hardware counters need a GPU collector, which this version does not have.
    ceilings: roofs to use, or a file that ``roofprof ceilings`` wrote; None: this machine's own, measured once.
    """

    def __init__(
        self,
        model: Callable[..., Any] | None,
        warmup: int = 3,
        repeat: int | None = None,
        device: str | torch.device | None = None,
        counters: str = "auto",
        ceilings: _C.Ceilings | str | Path | None = None,
    ) -> None:
        if model is not None and not callable(model):
            raise TypeError(f"model must be callable or None, not a {type(model).__name__}")
        if warmup < 0 or (repeat is not None and repeat < 1):
            raise ValueError(f"warmup must be 0 or more and repeat 1 or more, not warmup={warmup}, repeat={repeat}")
        if counters not in {"auto", "off"}:
            raise ValueError(f"counters must be 'auto' or 'off', not {counters!r}")
        self._model = model
        self._warmup = warmup
        self._repeat = repeat
        self._device = None if device is None else str(device)
        self._ceilings = ceilings
        self._block: contextlib.ExitStack | None = None
        self._reset("run")

    def _reset(self, scope: str) -> None:
        tree = model_tree(self._model)
        self._session = _C.Session(tree.modules, tree.objects)
        self._scope = scope
        self._counting: _C.Pass | None = None
        self._bare_ns: list[int] = []
        self._warmed_up = 0
        self._steps = 0
        self._notes: list[str] = []
        self._partial = False
        self._seen_device: str | None = None
        self._report: Report | None = None

    # ---- one call, repeated

    def run(self, *args: Any, **kwargs: Any) -> Report:
        """Profile ``model(*args, **kwargs)``: one call counts, further ones warm up and are timed.

        The model, the random number generators and the caller's containers are left as ONE plain call leaves them.
        Raises whatever the model raises; :meth:`report` then gives what ran before, marked partial.
        """
        if self._model is None:
            raise TypeError("this profiler has no model to run; give it one, or use it in a `with` block")
        self._reset("run")
        pristine = copy_containers((args, kwargs))
        random_before = RandomState()
        parameters = list(self._model.parameters()) if isinstance(self._model, torch.nn.Module) else []
        versions = Versions([*parameters, *tensors_in((args, kwargs))])
        self._observe_call(args, kwargs)
        timed: list[_C.Pass] = []
        if self._can_be_timed():
            random_after = RandomState()
            written = versions.changed()
            state = ModelState(self._model, written)
            try:
                timed = self._time(pristine, random_before)
            finally:
                state.restore()
                random_after.restore()
        self._report = self._make_report(timed)
        return self._report

    def _observe_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The counting call, with the caller's own arguments."""
        if self._block is not None:
            raise RuntimeError("this profiler's block is open; end it before a run")
        self._seen_device = _device_of(self._model, args, kwargs)
        self._session.record_shapes = True
        try:
            self._counting = self._observed_pass(args, kwargs)
        finally:
            self._session.record_shapes = False

    def _observed_pass(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _C.Pass:
        """One observed call. When the model raises, what ran before is kept for :meth:`report`."""
        assert self._model is not None
        with self._hooks():
            self._session.start(outside=False)
            try:
                if isinstance(self._model, torch.nn.Module):
                    self._model(*args, **kwargs)
                else:
                    self._session.enter_model()
                    self._model(*args, **kwargs)
            except BaseException:
                self._partial = True
                self._counting = self._session.stop()
                raise
            return self._session.stop()

    def _can_be_timed(self) -> bool:
        device = self._seen_device or "cpu"
        if device == "meta":
            self._notes.append("not timed: tensors on the meta device hold no data")
        elif not device.startswith("cpu"):
            self._notes.append(f"not timed: kernel times on {device} need a device collector, which this version lacks")
        else:
            return True
        return False

    def _time(self, pristine: tuple[tuple[Any, ...], dict[str, Any]], random: RandomState) -> list[_C.Pass]:
        """Timed passes, each after a bare one, until the wished number or the default limits are reached."""
        assert self._counting is not None
        timed: list[_C.Pass] = []
        started = time.perf_counter()
        limited = self._repeat is None

        def call(observed: bool) -> _C.Pass | int:
            args, kwargs = copy_containers(pristine)
            random.restore()
            if observed:
                return self._observed_pass(args, kwargs)
            return self._bare_call(args, kwargs)

        def spent() -> float:
            return time.perf_counter() - started

        counting = self._counting
        try:
            for _ in range(self._warmup):
                if limited and spent() + counting.wall_ns * 1e-9 > _SECONDS / 2:
                    break
                call(observed=False)
                self._warmed_up += 1
            repeats = self._repeat if self._repeat is not None else _REPEATS
            while len(timed) < repeats and not (limited and timed and spent() > _SECONDS):
                bare = call(observed=False)
                observed = call(observed=True)
                assert isinstance(bare, int) and isinstance(observed, _C.Pass)
                if not _C.same_work(counting, observed):
                    self._notes.append(
                        f"timing stopped after {len(timed)} repeats: a further call did other work than the first "
                        "(a cache grew, or an input was consumed)"
                    )
                    break
                self._bare_ns.append(bare)
                timed.append(observed)
        except Exception as error:  # the first call went well, so its counts stand
            self._partial = False
            self._counting = counting
            self._notes.append(
                f"timing stopped after {len(timed)} repeats: a further call raised {type(error).__name__}: {error}"
            )
        return timed

    def _bare_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        assert self._model is not None
        start = time.perf_counter_ns()
        self._model(*args, **kwargs)
        return time.perf_counter_ns() - start

    # ---- a block

    def __enter__(self: _Self) -> _Self:
        if self._block is not None:
            raise RuntimeError("this profiler's block is already open; end it before it is entered again")
        self._reset("block")
        self._seen_device = _device_of(self._model, (), {})
        with contextlib.ExitStack() as stack:
            self._session.record_shapes = True
            stack.enter_context(self._hooks())
            self._session.start(outside=True)
            self._block = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._block is not None
        self._counting = self._session.stop()
        self._partial = error is not None
        block, self._block = self._block, None
        block.close()

    def step(self) -> None:
        """Mark the end of one step of a training or inference loop inside the block."""
        if self._block is None:
            raise RuntimeError("prof.step() marks the steps of a `with prof:` block; there is none open")
        self._steps += 1

    def report(self) -> Report:
        """The report of the last run or block; of one that raised, what ran before.

        Raises RuntimeError where nothing was profiled yet.
        """
        if self._block is not None:
            raise RuntimeError("the block is still open; ask for the report after it")
        if self._report is None:
            if self._counting is None:
                raise RuntimeError("nothing was profiled yet: call prof.run(...) or use `with prof:` first")
            # A block's one pass is counted and timed; a run that raised was not timed yet.
            self._report = self._make_report([self._counting] if self._scope == "block" else [])
        return self._report

    # ---- shared

    @contextlib.contextmanager
    def _hooks(self) -> Iterator[None]:
        """Global hooks: nothing is put on the model, and its modules' own fast paths stay on."""
        session = self._session
        handles = [
            register_module_forward_pre_hook(session.enter_hook),
            register_module_forward_hook(session.leave_hook, with_kwargs=True, always_call=True),
            register_optimizer_step_pre_hook(lambda optimizer, *_: session.enter_optimizer(optimizer)),
            register_optimizer_step_post_hook(lambda optimizer, *_: session.leave_optimizer(optimizer)),
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _make_report(self, timed: list[_C.Pass]) -> Report:
        assert self._counting is not None
        device = self._device or self._seen_device or "cpu"
        roofs = self._roofs(device) if timed else _C.Ceilings()
        info = {
            "model": _name_of(self._model),
            "device": device,
            "scope": self._scope,
            "partial": self._partial,
            "notes": self._notes,
            "bare_ns": self._bare_ns,
            "warmup": self._warmed_up,
            "steps": self._steps,
            "ceilings": roofs,
            "environment": list(_C.cpu_environment()),
        }
        return Report(_C.make_report(self._session, self._counting, timed, info))

    def _roofs(self, device: str) -> _C.Ceilings:
        if isinstance(self._ceilings, _C.Ceilings):
            return self._ceilings
        if self._ceilings is not None:
            return ceilings.load(self._ceilings)
        return ceilings.for_device(device)


def _name_of(model: object) -> str:
    if model is None:
        return ""
    return type(model).__name__ if isinstance(model, torch.nn.Module) else getattr(model, "__name__", type(model).__name__)


def _device_of(model: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Where the work runs: the device of the first input tensor, else of the first parameter."""
    for tensor in tensors_in((args, kwargs)):
        return str(tensor.device)
    if isinstance(model, torch.nn.Module):
        for parameter in model.parameters():
            return str(parameter.device)
    return "cpu"
