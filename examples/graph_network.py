"""Profile a graph network on a graph of Cora's size (2,708 nodes, 10,556 edges): torch_geometric's GCN.

pip install torch_geometric
python examples/graph_network.py
roofprof profile examples/graph_network.py:build --inputs examples/graph_network.py:batch
"""

from __future__ import annotations

import torch
from torch_geometric.nn import GCN

import roofprof

NODES, EDGES = 2708, 10_556
FEATURES, HIDDEN, CLASSES = 1433, 64, 7


def build() -> GCN:
    return GCN(FEATURES, HIDDEN, num_layers=2, out_channels=CLASSES).eval()


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    """Return features of the nodes, and source and target of each edge, at random and without loops."""
    source = torch.randint(NODES, (EDGES,))
    target = (source + torch.randint(1, NODES, (EDGES,))) % NODES
    return torch.rand(NODES, FEATURES), torch.stack([source, target])


def adjacency(edges: torch.Tensor) -> torch.Tensor:
    """Return the same edges as one sparse matrix, target by source."""
    return torch.sparse_coo_tensor(edges.flip(0), torch.ones(edges.shape[1]), (NODES, NODES)).coalesce()


def main() -> None:
    torch.manual_seed(0)
    nodes, edges = batch()
    with torch.no_grad():
        for form, graph in (("a list of edges", edges), ("a sparse matrix", adjacency(edges).to_sparse_csr())):
            report = roofprof.profile(build(), nodes, graph)
            print(f"\n=== {form}\n")
            print(report.table(depth=1, legend=False))
            print(report.table(by="op", sort="wasted_time", limit=5, legend=False))


if __name__ == "__main__":
    main()
