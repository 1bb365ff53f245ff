"""Profile a recommender like DLRM (Naumov et al. 2019): dense features, bags of embeddings, products by pairs.

Written out here in a few lines, as torch has all its parts; the forward takes one dict.

    python examples/recommender.py
    roofprof profile examples/recommender.py:build --inputs examples/recommender.py:batch
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor, nn

import roofprof

TABLES, ROWS, WIDTH = 26, 20_000, 64
DENSE = 13
BATCH, BAG = 512, 8  # examples, and indices of each example in a table


def perceptron(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Recommender(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bottom = perceptron(DENSE, 512, 256, WIDTH)
        self.bags = nn.ModuleDict({f"table{i}": nn.EmbeddingBag(ROWS, WIDTH, mode="sum") for i in range(TABLES)})
        vectors = TABLES + 1
        self.register_buffer("pairs", torch.tril_indices(vectors, vectors, -1))
        self.top = perceptron(WIDTH + vectors * (vectors - 1) // 2, 512, 256, 1)

    def forward(self, features: dict[str, Any]) -> Tensor:
        dense = self.bottom(features["dense"])
        vectors = [dense] + [self.bags[name](*bags) for name, bags in features["sparse"].items()]
        stacked = torch.stack(vectors, dim=1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        return self.top(torch.cat([dense, products[:, self.pairs[0], self.pairs[1]]], dim=1))


def build() -> Recommender:
    return Recommender().eval()


def batch() -> dict[str, Any]:
    """Return dense features, and for each table the indices (BATCH x BAG) and the begin of each example's."""
    offsets = torch.arange(0, BATCH * BAG, BAG)
    sparse = {f"table{i}": (torch.randint(ROWS, (BATCH * BAG,)), offsets) for i in range(TABLES)}
    return {"dense": torch.rand(BATCH, DENSE), "sparse": sparse}


def main() -> None:
    torch.manual_seed(0)
    with torch.no_grad():
        report = roofprof.profile(build(), batch())
    print(report.table(depth=1, legend=False))
    print(report.table(by="op", sort="wasted_time", limit=5, legend=False))


if __name__ == "__main__":
    main()
