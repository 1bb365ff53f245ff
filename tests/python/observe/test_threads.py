"""Several threads that call one model in a block."""

from __future__ import annotations

import threading
import time

import pytest
import torch
from given_roofs import profiler
from torch import nn

WAITS = 0.1  # seconds


class Waits(nn.Module):
    """Takes its time without the processors, so that threads overlap however few of those there are."""

    def forward(self, value):
        time.sleep(WAITS)
        return value @ value


def block(threads: int):
    model = nn.Sequential(Waits())
    with profiler(model) as prof:
        workers = [threading.Thread(target=model, args=(torch.rand(8, 8),)) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if not workers:
            model(torch.rand(8, 8))
    return prof.report()


def test_the_total_is_judged_by_the_wall_time():
    report = block(threads=4)
    total = report.total
    assert total.macs == 4 * 8**3
    assert sum(row.self_time for row in report.rows) == pytest.approx(total.time), "times add up"
    # The block's own thread is in it for the whole wall time, and each of four calls for as long as it waits.
    assert total.time > total.wall
    assert report.row("0").time >= 4 * 0.9 * WAITS
    assert total.wasted_time == pytest.approx(total.wall - total.lower_bound_time)
    assert total.percent_of_roof == pytest.approx(100 * total.lower_bound_time / total.wall)
    assert total.achieved_flops == pytest.approx(total.flops / total.wall)
    row = report.row("0")
    assert row.wasted_time == pytest.approx(row.time - row.lower_bound_time)
    (note,) = (note for note in report.coverage.notes if note.code == "threads-overlap")
    assert "several threads ran, or waited for others, at once" in note


def test_one_thread_says_nothing_of_threads():
    report = block(threads=0)
    assert report.total.wasted_time == pytest.approx(report.total.time - report.total.lower_bound_time)
    assert not any(note.code == "threads-overlap" for note in report.coverage.notes)
