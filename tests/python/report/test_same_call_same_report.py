"""One call gives one report, whatever the process allocated and freed before."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from given_roofs import profiler
from torch import nn

import roofprof

COUNTS = 6
Call = Callable[..., Any]


class Disturbed:
    """Makes the allocator's free memory another one each time."""

    def __init__(self) -> None:
        self._random = random.Random(43)
        self._kept: list[object] = []

    def __iter__(self) -> Iterator[int]:
        for count in range(COUNTS):
            for _ in range(self._random.randrange(40)):
                size = self._random.choice([1, 16, 64, 500, 4000, 40_000, 300_000])
                self._kept.append(torch.empty(size * self._random.randrange(1, 4)))
                self._kept.append(bytearray(self._random.randrange(1, 100_000)))
            self._random.shuffle(self._kept)
            del self._kept[len(self._kept) // 2 :]
            yield count


def conv() -> nn.Module:
    layers = (nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU())
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


class OnThreads(nn.Module):
    """Each of its parts runs on a thread of its own, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(64, 64) for _ in range(3))

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        results: list[torch.Tensor] = []
        for part in self.parts:
            thread = threading.Thread(target=lambda part=part: results.append(torch.relu(part(value)) + 1))
            thread.start()
            thread.join()
        return torch.stack(results)


def transformer() -> nn.Module:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2)


def training() -> Call:
    model = transformer()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

    def step(batch: torch.Tensor) -> None:
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()

    step(torch.ones(2, 16, 64))  # makes the optimizer's state
    return step


def sparse() -> Call:
    matrix = torch.eye(64).to_sparse()
    return lambda value: torch.sparse.mm(matrix, value).relu()


def numpys(value: torch.Tensor) -> torch.Tensor:
    """Several storages in one memory."""
    array = value.numpy()
    return (torch.from_numpy(array) + torch.from_numpy(array[1024:]).sum()) * value


IMAGES, TOKENS = torch.ones(2, 3, 32, 32), torch.ones(2, 16, 64)
KINDS: dict[str, tuple[Callable[[], Call], Any]] = {
    "conv in training": (conv, IMAGES),
    "lstm": (lambda: nn.LSTM(64, 32, 2), TOKENS),
    "training step": (training, TOKENS),
    "TorchScript": (lambda: torch.jit.script(conv().eval()), IMAGES),
    "compiled": (lambda: torch.compile(conv().eval(), backend="eager"), IMAGES),
    "threads": (OnThreads, torch.ones(8, 64)),
    "sparse": (sparse, torch.ones(64, 32)),
    "numpy": (lambda: numpys, torch.ones(4096)),
}


@pytest.mark.parametrize(("make", "given"), KINDS.values(), ids=KINDS)
def test_counts_and_blocks_have_the_same_work_from_the_same_distances(make, given):
    model = make()
    for _ in range(3):  # TorchScript optimises what it runs
        model(given)
    counts, blocks = set(), set()
    for _ in Disturbed():
        counts.add(roofprof.count(model, given).to_json())
        with profiler(None) as prof:
            for _ in range(2):
                model(given)
                prof.step()
        ops = prof.report().to_dict()["ops"]
        facts = ("op", "calls", "work", "reuse", "crossings")
        blocks.add(json.dumps([{name: op.get(name) for name in facts} for op in ops]))
    assert (len(counts), len(blocks)) == (1, 1)
