"""Reports whose every figure is given, so that pictures and pages are held against closed forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from given_roofs import roofs
from torch import nn

import roofprof
from roofprof import _C


@dataclass(frozen=True)
class Did:
    """What a module's one op did, and how long that took."""

    flops: float
    bytes: float
    seconds: float
    op: str = "aten::conv2d"
    int_ops: float = 0


class _Declared(nn.Module):
    def __init__(self, did: Did) -> None:
        super().__init__()
        self.did = did

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        roofprof.work("declared", flops=self.did.flops, bytes=self.did.bytes, int_ops=self.did.int_ops)
        return x


def as_dict(modules: dict[str, Did], ceilings: _C.Ceilings | None = None) -> dict[str, Any]:
    """One call of a model with these children; what they did takes exactly that long, all else nothing."""
    net = nn.Sequential()
    for name, did in modules.items():
        net.add_module(name, _Declared(did))
    profiler = roofprof.RooflineProfiler(net, warmup=0, repeat=1, ceilings=roofs() if ceilings is None else ceilings)
    report = profiler.run(torch.ones(1)).to_dict()
    paths = [module["path"] for module in report["modules"]]
    ns = {path: round(did.seconds * 1e9) for path, did in modules.items()}
    for entry in report["times"]:
        entry["self_ns"] = [ns.get(paths[entry["module"]], 0)]
    for op in report["ops"]:
        path = paths[op["module"]]
        op["time_ns"], op["op"] = ns[path], modules[path].op
    report["runs"] |= {"total_ns": [sum(ns.values())], "bare_ns": [], "chosen": 0}
    report["notes"] = []
    return report


def report_of(modules: dict[str, Did], ceilings: _C.Ceilings | None = None) -> roofprof.Report:
    """The report of :func:`as_dict`."""
    return roofprof.Report.from_dict(as_dict(modules, ceilings))


def with_counters() -> roofprof.Report:
    """Simulated: no GPU has run this. The kernel of "gemm" has counters (intensity 4, 16, 64), that of "relu" none."""
    report = as_dict({"gemm": Did(6.4e9, 1e9, 1), "relu": Did(1e9, 1e9, 1)})
    paths = [module["path"] for module in report["modules"]]
    counters = {"dram_bytes": 1e8, "l2_bytes": 4e8, "l1_bytes": 1.6e9}
    kernel = {"kind": "kernel", "phase": "forward", "op": "aten::conv2d", "attributed": True, "in_graph": False}
    kernel |= {"grid": [1, 1, 1], "block": [1, 1, 1], "device": 0, "from": "unknown", "to": "unknown", "bytes": 0}
    kernel |= {"instances": 1, "mismatched": False, "stddev_ns": 0.0}
    kernel |= dict.fromkeys(("total_ns", "min_ns", "max_ns", "median_ns"), 10**9)
    counted = {"gemm": {"counters": counters, "counted": 1}, "relu": {"counters": {}, "counted": 0}}
    report["kernel_buckets"] = [
        kernel | {"name": name, "module": paths.index(name), "bucket": bucket} | counts
        for bucket, (name, counts) in enumerate(counted.items())
    ]
    report["counters"] = [
        {"counter": name, "metrics": ["a metric"], "formula": "a metric", "missing": ""} for name in counters
    ]
    report |= {"device_timed": True, "busy_ns": 2 * 10**9, "counter_passes": 1}
    return roofprof.Report.from_dict(report)
