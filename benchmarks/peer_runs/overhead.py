"""The table of overhead: a counting call over the plain forward of the same round."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from common import seconds
from torch import Tensor, nn

from peer_runs import isolated
from peer_runs.accuracy import NOT_INSTALLED
from peer_runs.markdown import table
from peer_runs.side_effects import Namespaces
from peer_runs.tools import COUNT, Tool

ROUNDS = 9


class SmallOps(nn.Module):
    """Two hundred times a layer of 16, an activation and a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(16, 16), nn.ReLU()) for _ in range(200))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + layer(x)
        return x


def _resnet() -> tuple[nn.Module, Tensor]:
    import torchvision

    return torchvision.models.resnet18().eval(), torch.randn(1, 3, 224, 224)


MODELS: dict[str, Callable[[], tuple[nn.Module, Tensor]]] = {
    "resnet18": _resnet,
    "400 small layers and 200 sums": lambda: (SmallOps().eval(), torch.randn(1, 3, 16, 16)),
}


def ratios_of(tool: Tool, name: str, variants: Sequence[str], rounds: int) -> dict[str, list[float]]:
    """Return each variant's ratios of a whole counting call, one for each round; run in a new process with one thread.

    Each round has a plain forward and a call of each variant, one after the other, so that what slows the machine slows
    all of them. A tool gets a new model each time, and its changes of torch are undone.
    """
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for variant in variants:
        tool.load(variant)
    functions = Namespaces()
    ratios: dict[str, list[float]] = {variant: [] for variant in variants}
    for number in range(rounds + 1):
        plain_model, x = MODELS[name]()
        with torch.no_grad():
            plain_model(x)
            plain = seconds(lambda model=plain_model, x=x: model(x))
            for variant in list(ratios):
                model, x = MODELS[name]()
                model(x)
                try:
                    spent = seconds(lambda variant=variant, model=model, x=x: _count(tool, variant, model, x))
                except Exception:  # noqa: BLE001 (any of a tool's; the table of inputs says why)
                    del ratios[variant]
                    continue
                finally:
                    functions.restore()
                if number > 0:  # the first one sets up what there is to set up
                    ratios[variant].append(spent / plain)
    return ratios


def _count(tool: Tool, variant: str, model: nn.Module, x: Tensor) -> None:
    # torchstat fails at its last line, after the work.
    with contextlib.suppress(AttributeError) if tool.rescue else contextlib.nullcontext():
        tool.ask(variant, model, (x,), {})


@dataclass
class Overhead:
    """The ratios of the rounds by model, tool and variant, or why they are missing."""

    ratios: dict[tuple[str, str, str], list[float] | str] = field(default_factory=dict)

    def words(self, model: str, tool: str, variant: str) -> str:
        """A cell: the median."""
        found = self.ratios.get((model, tool, variant), "-")
        return found if isinstance(found, str) else f"{statistics.median(found):.2f}"


def run(tools: Sequence[Tool], limits: isolated.Limits, say: Callable[[str], None], rounds: int = ROUNDS) -> Overhead:
    """Every tool on both models."""
    result = Overhead()
    for tool in (*tools, COUNT):
        say(f"overhead: {tool.name}")
        variants = ["original"] if tool is not COUNT and tool.version else []
        for name in MODELS:
            keys = [(name, tool.name, variant) for variant in (*variants, "ours")]
            outcome = isolated.run(ratios_of, tool, name, [*variants, "ours"], rounds, limits=limits)
            for key in keys:
                result.ratios[key] = (outcome.value or {}).get(key[2], "refused")
            if not variants and tool is not COUNT:
                result.ratios[name, tool.name, "original"] = NOT_INSTALLED
    return result


def overhead_table(overhead: Overhead, tools: Sequence[Tool]) -> list[str]:
    """Tools x models."""
    header = ["a call of", *(word for name in MODELS for word in (f"{name}: original", "ours"))]
    rows = [
        [tool.name, *(overhead.words(name, tool.name, variant) for name in MODELS for variant in ("original", "ours"))]
        for tool in (*tools, COUNT)
    ]
    return table(header, rows, right=range(1, 1 + 2 * len(MODELS)))
