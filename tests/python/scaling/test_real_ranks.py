"""A real program of one and of two ranks (gloo)."""

from pathlib import Path

import pytest
from real_ranks import torchrun

import roofprof

SUPPORT = Path(__file__).resolve().parents[1] / "support"
PROGRAM = """
import sys
sys.path.insert(0, {support!r})
import torch
import torch.distributed as dist
from torch import nn
import roofprof
from given_roofs import roofs

torch.set_num_threads(1)
dist.init_process_group("gloo")
size = dist.get_world_size()
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 16)))
profiler = roofprof.RooflineProfiler(model, ceilings=roofs())
with profiler:
    for _ in range(6):
        model(torch.rand(32 // size, 32)).sum().backward()
        profiler.step()
merged = roofprof.gather(profiler.report())
if merged:
    merged.to_json(f"r{{size}}.json")
dist.barrier()
dist.destroy_process_group()
"""
MACS = 32 * (32 * 64 * 2 + 64 * 16 * 3)  # of a step: no gradient of the inputs


def test_one_and_two_ranks(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM.format(support=str(SUPPORT)))
    for ranks in (1, 2):
        torchrun("train.py", ranks=ranks, cwd=tmp_path)
    files = [tmp_path / "r1.json", tmp_path / "r2.json"]
    found = roofprof.scaling(files)
    assert (found.kind, found.per, found.unit, found.model) == ("strong", "step", "MACs", "Sequential")
    assert [point.work for point in found.points] == [MACS, MACS]
    steps = [max(rank.step for rank in roofprof.Report.from_json(file).ranks) for file in files]
    assert [point.time for point in found.points] == steps
    assert found.points[1].speed_up == pytest.approx(steps[0] / steps[1])
    assert found.points[1].loss == pytest.approx(2 * steps[1] - steps[0])
    assert sum(found.points[1].parts.values()) == pytest.approx(found.points[1].loss)
    assert found.points[1].intensity < found.points[0].intensity  # the weights are read for half as many samples
    assert found.points[1].hosts == 1
