"""What is true of any report, and counts that are worked out without roofprof."""

import math
from collections import Counter

import pytest
import torch
from torch import nn

import roofprof

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
COUNTS = ("macs", "causal_macs", "flops", "int_ops", "read_bytes", "write_bytes", "bytes")


def layer_macs(model, *args):
    """MACs of each convolution and linear layer in one call, by path, from the sizes that pass through it."""
    macs = Counter()

    def watch(path, layer):
        def hook(_, inputs, output):
            if isinstance(layer, nn.Linear):
                macs[path] += output.numel() * layer.in_features
            else:  # a weight is (out, in / groups, kernel...), transposed (in, out / groups, kernel...)
                positions = inputs[0] if isinstance(layer, TRANSPOSED) else output
                macs[path] += positions.numel() * math.prod(layer.weight.shape[1:])

        return layer.register_forward_hook(hook)

    kinds = (nn.Linear, *CONVOLUTIONS, *TRANSPOSED)
    handles = [watch(path, layer) for path, layer in model.named_modules() if isinstance(layer, kinds)]
    with torch.no_grad():
        model(*args)
    for handle in handles:
        handle.remove()
    return macs


def observe(model, closure):
    """The report of one run of `closure` inside a block, with no roofs: they cost ten seconds to measure."""
    profiler = roofprof.RooflineProfiler(model, ceilings=roofprof.Ceilings())
    with profiler:
        closure()
    return profiler.report()


def macs_by(report, *keys):
    """MACs of the groups that have any, by key or tuple of keys."""
    groups = {tuple(group.keys): group.macs for group in report.group(*keys) if group.macs}
    return {key[0]: macs for key, macs in groups.items()} if len(keys) == 1 else groups


def counts(figures):
    """Every count of a row or group."""
    return {name: getattr(figures, name) for name in COUNTS}


def assert_conserved(report):
    """Self values add up to every subtree and to the total: exactly for counts, up to float for times."""
    rows = report.rows
    groups = report.group("module", "op", "phase", "dtype")
    for name in COUNTS:
        subtrees = Counter()
        for row in rows:
            for path in paths_above(row.path):
                subtrees[path] += getattr(row, f"self_{name}")
        assert {row.path: getattr(row, name) for row in rows} == dict(subtrees), name
        total = getattr(report.total, name)
        assert sum(getattr(row, f"self_{name}") for row in rows) == total, name
        assert sum(getattr(group, name) for group in groups) == total, name
    assert report.total.bytes == report.total.read_bytes + report.total.write_bytes
    if report.total.time is not None:
        times = [row.self_time for row in rows if row.self_time is not None]  # None: never ran
        assert sum(times) == pytest.approx(report.total.time, rel=1e-9)


def paths_above(path):
    """The path itself and those of everything that it is in."""
    root = path.split(".")[0] if path.startswith("(") else ""
    below = path.removeprefix(root).removeprefix(".")
    parts = below.split(".") if below else []
    return [root, *(".".join(filter(None, [root, *parts[: depth + 1]])) for depth in range(len(parts)))]
