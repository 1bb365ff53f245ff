"""The table of what a counting call leaves behind: on the model, in torch, and in the process."""

from __future__ import annotations

import contextlib
import copy
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules import module as nn_module

from peer_runs import isolated
from peer_runs.accuracy import NOT_INSTALLED
from peer_runs.markdown import code, table
from peer_runs.tools import COUNT, Tool

PROCESSES = ("after a call", "after a model that raises")

ONE_CALL = "statistics of BatchNorm, as a plain call moves them"


class OwnError(RuntimeError):
    """The probe's error, which must come through unchanged."""


class Probe(nn.Module):
    """A model in training mode with one part in eval mode and one frozen, which draws random numbers."""

    def __init__(self, *, raises: bool) -> None:
        super().__init__()
        self.conv, self.norm = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)), nn.BatchNorm2d(8)
        self.parts = nn.Sequential(nn.ReLU(), nn.Dropout(0.5), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.out = nn.Linear(8, 4)
        self.raises = raises
        self.norm.eval()
        self.out.weight.requires_grad = False

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.parts(self.norm(self.conv(x))))
        if self.raises:
            raise OwnError("the model's own error")
        return self.out(y)


class Namespaces:
    """The functions of torch and its classes as they were, by where they stand."""

    def __init__(self) -> None:
        spaces: dict[str, Any] = {"torch": torch, "F": F, "torch.Tensor": torch.Tensor, "torch.nn.init": nn.init}
        spaces |= {name: kind for name, kind in vars(nn).items() if isinstance(kind, type)}
        self._before = {name: (space, dict(vars(space))) for name, space in spaces.items()}

    def changed(self) -> list[str]:
        """Names that are other functions now; new ones too where they stand on a class and hide an inherited one."""
        found = []
        for name, (space, before) in self._before.items():
            now = vars(space)
            added = [key for key in now if key not in before and isinstance(space, type) and callable(now[key])]
            added = [key for key in added if now[key] is not _inherited(space, key)]
            found += [f"{name}.{key}" for key in before if callable(before[key]) and now.get(key) is not before[key]]
            found += [f"{name}.{key}" for key in added]
        return found

    def restore(self) -> None:
        """Put them back."""
        for space, before in self._before.values():
            for key in [key for key in vars(space) if key not in before and isinstance(space, type)]:
                delattr(space, key)
            for key, value in before.items():
                if callable(value) and vars(space).get(key) is not value:
                    setattr(space, key, value)


def _inherited(kind: type, name: str) -> Any:
    return next((vars(base)[name] for base in kind.__mro__[1:] if name in vars(base)), None)


def _hooks(module: nn.Module) -> int:
    return sum(len(value) for name, value in vars(module).items() if name.endswith("_hooks") and value)


def _state(model: nn.Module) -> dict[str, Any]:
    """Return the state that is compared, by the table's words for a difference."""
    modules = list(model.modules())
    return {
        "hooks on modules": [_hooks(module) for module in modules],
        "global hooks": [
            len(value)
            for name, value in sorted(vars(nn_module).items())
            if name.startswith("_global_") and hasattr(value, "__len__")
        ],
        "attributes": [sorted(set(vars(module)) - {"_compiled_call_impl"}) for module in modules],
        "buffers": [name for name, _ in model.named_buffers()],
        "`state_dict` keys": sorted(model.state_dict()),
        "class of modules": [type(module).__name__ for module in modules],
        "mode": [module.training for module in modules],
        "`requires_grad`": [p.requires_grad for p in model.parameters()],
        "gradients": [p.grad is not None for p in model.parameters()],
        "device": [str(p.device) for p in model.parameters()],
        "grad mode": [torch.is_grad_enabled(), torch.is_inference_mode_enabled()],
        "Python's and NumPy's random numbers": [hash(random.getstate()), hash(np.random.get_state()[1].tobytes())],  # noqa: NPY002 (the global one)
        "fast path of attention": torch.backends.mha.get_fastpath_enabled(),
        "threads": torch.get_num_threads(),
        "default dtype": str(torch.get_default_dtype()),
    }


def _values(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def left_by(tool: Tool, variant: str, process: str) -> list[str]:
    """Return the changes that are left behind; run in a new process."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    tool.load(variant)  # what loading it changes is not what a call leaves
    model = Probe(raises=process == PROCESSES[1]).train()
    model.norm.eval()
    args = (torch.randn(1, 3, 16, 16),)
    random_before = torch.get_rng_state()
    by_itself = copy.deepcopy(model)  # as a plain call leaves it
    with contextlib.suppress(OwnError):
        by_itself(*args)
    random_states = [random_before, torch.get_rng_state()]  # a call of the model may draw, a tool may not
    torch.set_rng_state(random_before)
    untouched = copy.deepcopy(model)
    before, functions, printed = _state(model), Namespaces(), isolated.printed_bytes()
    error: BaseException | None = None
    try:
        tool.ask(variant, model, args, {})
    except Exception as raised:  # noqa: BLE001 (any of a tool's)
        error = raised
    printed = isolated.printed_bytes() - printed
    after = _state(model)
    left = [_described(name, before[name], after[name]) for name in before if before[name] != after[name]]
    now, moved = _values(model), _values(by_itself if tool.is_block else untouched)
    if any(not torch.equal(moved[name], now[name]) for name in moved if name in now):
        as_called = all(torch.equal(one, now[name]) for name, one in _values(by_itself).items() if name in now)
        left.append(ONE_CALL if as_called else "statistics of BatchNorm")
    if not any(torch.equal(torch.get_rng_state(), state) for state in random_states):
        left.append("torch's random numbers")
    if patched := functions.changed():
        more = f" and {len(patched) - 1} more" if len(patched) > 1 else ""
        left.append(f"patched: {code(patched[0])}{more}")
    if printed and not tool.prints:
        left.append("prints")
    return left + _of_error(error, process, tool, model)


def _described(name: str, before: Any, after: Any) -> str:
    if name in {"attributes", "buffers", "`state_dict` keys"}:
        old = {str(one) for one in _flat(before)}
        new = sorted({str(one).rpartition(".")[2] for one in _flat(after) if str(one) not in old})
        return f"{name}: {', '.join(map(code, new[:3]))}{' ...' if len(new) > 3 else ''}" if new else f"{name} lost"
    return name


def _flat(value: Any) -> list[Any]:
    return [x for one in value for x in _flat(one)] if isinstance(value, list) else [value]


def _of_error(error: BaseException | None, process: str, tool: Tool, model: nn.Module) -> list[str]:
    if process != PROCESSES[1]:
        done = error is None or (tool.rescue is not None and tool.rescue(model, isolated.first_line(error)))
        return [] if done else [f"fails: {code(isolated.first_line(error), 60)}" if error else ""]
    if error is None or (not isinstance(error, OwnError) and error.__cause__ is None and error.__context__ is None):
        return ["the model's exception is lost"]
    return [] if isinstance(error, OwnError) else [f"the exception becomes {code(type(error).__name__)}"]


@dataclass
class SideEffects:
    """The changes that were left by tool, variant and process; a string says why they are not known."""

    found: dict[tuple[str, str, str], list[str] | str] = field(default_factory=dict)

    @property
    def faults(self) -> list[str]:
        """Return the changes that roofprof left. `roofprof.count` makes one call, whose own effects stay."""
        found = []
        for (tool, variant, when), left in self.found.items():
            lasting = [one for one in left if tool != COUNT.name or one != ONE_CALL] if isinstance(left, list) else left
            if variant == "ours" and lasting:
                found.append(f"{tool}, {when}: ours leaves {lasting}")
        return found

    def words(self, tool: str, variant: str, process: str) -> str:
        """A cell."""
        left = self.found.get((tool, variant, process), "-")
        return left if isinstance(left, str) and left else "; ".join(left) or "none"


def run(tools: Sequence[Tool], limits: isolated.Limits, say: Callable[[str], None]) -> SideEffects:
    """Every tool, once with a model that works and once with one that raises."""
    result = SideEffects()
    for tool in (*tools, COUNT):
        say(f"side effects: {tool.name}")
        for variant in ("original", "ours") if tool is not COUNT else ("ours",):
            for process in PROCESSES:
                key = tool.name, variant, process
                if variant == "original" and not tool.version:
                    result.found[key] = NOT_INSTALLED
                    continue
                outcome = isolated.run(left_by, tool, variant, process, limits=limits)
                result.found[key] = outcome.value if outcome.succeeded else outcome.error
    return result


def effects_table(effects: SideEffects, tools: Sequence[Tool]) -> list[str]:
    """Tools x what is left."""
    rows = [
        [
            tool.name,
            *(effects.words(tool.name, variant, when) for when in PROCESSES for variant in ("original", "ours")),
        ]
        for tool in (*tools, COUNT)
    ]
    return table(["tool", PROCESSES[0], "ours", PROCESSES[1], "ours"], rows)
