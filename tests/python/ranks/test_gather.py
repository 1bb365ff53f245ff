"""Reports of real ranks (gloo), brought to rank 0 and merged, and ranks that do not come."""

from pathlib import Path

import pytest
import torch
from real_ranks import torchrun

import roofprof

SUPPORT = Path(__file__).resolve().parents[1] / "support"
# Each rank has a batch of its own size, so that its work tells which it is.
PROGRAM = """
import pathlib, sys, time, warnings
sys.path.insert(0, {support!r})
import torch
import torch.distributed as dist
from torch import nn
import roofprof
from given_roofs import roofs

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)))
profiler = roofprof.RooflineProfiler(model, ceilings=roofs())
with profiler:
    for _ in range(3):
        model(torch.rand(2 + rank, 16)).sum().backward()
        profiler.step()
report = profiler.report()
called = []
for name in ("all_gather_object", "gather_object", "all_reduce", "barrier", "broadcast", "gather"):
    setattr(dist, name, lambda *args, name=name, **kwargs: called.append(name))
sent, over = pathlib.Path("sent"), pathlib.Path("over")
if rank == 2:
    assert roofprof.gather(report) is None
    sent.touch()
elif rank == 1:
    while not over.exists():
        time.sleep(0.02)
    raise KeyError("mine")
else:
    while not sent.exists():  # however long that takes
        time.sleep(0.02)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        merged = roofprof.gather(report, timeout=3)
    assert merged.missing_ranks == [1], merged.missing_ranks
    assert merged.partial
    assert merged.total.macs == report.total.macs + 3 * 4 * 1408, merged.total.macs
    assert "no report came within 3 s from rank 1" in str(caught[-1].message)
    assert not called
    over.touch()
"""


def test_a_rank_that_does_not_come_is_named(tmp_path):
    """As it raised, which torchrun says. Gathering is no collective."""
    program = tmp_path / "train.py"
    program.write_text(PROGRAM.format(support=str(SUPPORT)))
    done = torchrun(program, ranks=3, cwd=tmp_path, expected=1)
    assert "KeyError: 'mine'" in done.stderr
    assert (tmp_path / "over").exists()


def test_without_ranks_a_sentence_says_what_is_needed():
    report = roofprof.count(torch.nn.Linear(3, 4), torch.rand(2, 3))
    with pytest.raises(RuntimeError, match="call init_process_group first"):
        roofprof.gather(report)
    with pytest.raises(ValueError, match="timeout must be more than 0 seconds, not 0"):
        roofprof.gather(report, timeout=0)
