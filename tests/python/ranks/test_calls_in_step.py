"""Ranks that wait for each other make the same number of calls: slow, dead and raising ones among them (gloo)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

SUPPORT = Path(__file__).resolve().parents[1] / "support"
HANGS = 600  # seconds: ends what would wait for ever
PROGRAM = """
import contextlib, os, sys, time
sys.path.insert(0, {support!r})
import torch
import torch.distributed as dist
from torch import nn
import roofprof
from given_roofs import roofs

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
ddp = nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
calls = 0

def step(batch, at=lambda: None):
    global calls
    calls += 1
    at()
    optimizer.zero_grad()
    ddp(batch).sum().backward()
    optimizer.step()

def codes(report):
    return [note.code for note in report.coverage.notes]

batch = torch.rand(4 + rank, 16)
profiler = roofprof.RooflineProfiler(ddp, ceilings=roofs())
{rest}
print("end of rank", rank)
"""


def run(tmp_path, rest: str, ranks: int = 2) -> list[subprocess.CompletedProcess[str]]:
    """Run the program as ranks that nobody ends when one of them has ended, as torchrun would."""
    program = tmp_path / "ranks.py"
    program.write_text(PROGRAM.format(support=str(SUPPORT), rest=textwrap.dedent(rest)))
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    group = {"MASTER_ADDR": "localhost", "MASTER_PORT": port, "WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, str(program)],
            env={**os.environ, **group, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    try:
        return [
            subprocess.CompletedProcess(one.args, one.returncode, out, errors)
            for one in started
            for out, errors in [one.communicate(timeout=HANGS)]
        ]
    finally:
        for one in started:
            one.kill()


def test_all_entries_fix_the_number_of_calls(tmp_path):
    """Rank 0 is far slower: by its own clock it would stop sooner.

    It does other work from its second step on, compiles, and profiles alone what waits for nobody.
    """
    done = run(
        tmp_path,
        """
        plain = step
        made = 0
        part = torch.compile(lambda value: value * 2 + 1, backend="eager")

        def step(batch):
            if rank == 0:
                time.sleep(3 if calls in {2, 6} else 0.1)
                if calls > 2:
                    part(torch.ones(calls % 5 + 1, calls % 3 + 1))
            plain(batch)

        def makes(expected):
            global made
            assert calls - made == expected, (calls, made)
            made = calls

        report = profiler.run_step(step, batch)
        makes(1 + 3 + 2 * 5)
        assert rank == 0 or len(report.run_times) == 5, report.run_times  # those of rank 0 differ in their work
        assert "fixed-calls" in codes(report)
        merged = roofprof.gather(report)
        assert rank or "fixed-calls" in codes(merged)
        roofprof.RooflineProfiler(ddp, warmup=1, repeat=2, ceilings=roofs()).run_step(step, batch)
        makes(1 + 1 + 2 * 2)
        timed = roofprof.RooflineProfiler(step).time(batch, warmup=1, repeat=2, seconds=0.001)
        makes(1 + 1 + 2)
        assert len(timed.times) == 2
        assert "fixed-calls" in [note.code for note in timed.notes]
        roofprof.RooflineProfiler(step).time_sweep(batch, batches=[1, 2], warmup=1, repeat=2, seconds=0.001)
        makes(1 + 2 * (1 + 1 + 2))
        try:
            roofprof.RooflineProfiler(step).time_sweep(batch)
        except ValueError as error:
            assert "give a list of batch sizes, the same on all ranks" in str(error), error
        else:
            raise AssertionError("it was not refused")
        makes(0)
        roofprof.time(plain, batch)
        makes(1 + 5 + 20)

        def accumulate(batch):  # gradients are summed in each fourth step alone
            global calls
            calls += 1
            with ddp.no_sync() if calls % 4 else contextlib.nullcontext():
                ddp(batch).sum().backward()

        profiler.run_step(accumulate, batch)
        makes(1 + 3 + 2 * 5)
        if rank == 0:
            alone = roofprof.RooflineProfiler(net, ceilings=roofs()).run(batch)
            assert len(alone.run_times) == 5
        """,
    )
    for rank, one in enumerate(done):
        assert one.returncode == 0, one.stderr
        assert f"end of rank {rank}" in one.stdout


def test_a_rank_that_raises_or_dies_ends_with_its_error_and_the_others_with_theirs(tmp_path):
    """Nothing stays open, and what was counted is there."""
    done = run(
        tmp_path,
        """
        def fails():
            if rank == 1 and calls == 6:
                raise KeyError("mine")
            if rank == 2 and calls == 6:
                os._exit(7)

        try:
            profiler.run_step(step, batch, at=fails)
        except BaseException as error:
            print("raised", type(error).__mro__, error)
            report = profiler.report()
            assert report.total.macs > 0
            assert not report.partial
            with profiler:
                net(batch)
            assert profiler.report().total.macs == (4 + rank) * (16 * 32 + 32 * 4)
            if rank == 1:
                os._exit(3)  # the others are waiting for it
        """,
        ranks=3,
    )
    assert [one.returncode for one in done] == [0, 3, 7], [one.stderr for one in done]
    assert "KeyError" in done[1].stdout
    assert "'mine'" in done[1].stdout
    assert "RuntimeError" in done[0].stdout
