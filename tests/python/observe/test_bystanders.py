"""Threads, hooks, exceptions, and code that is no module."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from attributed import MACS, Model, linear, macs, x
from given_roofs import profiler
from torch import nn

import roofprof

# ---- threads, hooks, exceptions


def test_threads_inside_forward():
    def forward(self, value):
        results = [None, None, None]

        def work(index):
            results[index] = self.branches[index](value)

        threads = [threading.Thread(target=work, args=(index,)) for index in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.head(sum(results))

    model = Model(forward, branches=nn.ModuleList(nn.Sequential(linear()) for _ in range(3)), head=nn.Linear(4, 4))
    report = profiler(model).run(x())
    assert macs(report) == {"branches.0.0": MACS, "branches.1.0": MACS, "branches.2.0": MACS, "head": 32}
    assert [report.row(f"branches.{index}").calls for index in range(3)] == [1, 1, 1]
    assert report.total.macs == 3 * MACS + 32


def test_threads_that_overlap_are_reported():
    """They take their time without the processors, so that they overlap however few of those there are."""
    model = nn.Sequential(Model(lambda _, value: (time.sleep(0.1), value @ value)[1]))
    with profiler(model) as prof:
        workers = [threading.Thread(target=model, args=(torch.rand(8, 8),)) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    report = prof.report()
    total = report.total
    assert total.macs == 4 * 8**3
    assert sum(row.self_time for row in report.rows) == pytest.approx(total.time), "times add up"
    # The block's own thread is in it for the whole wall time, and each of four calls for as long as it waits.
    assert total.time > total.wall
    assert report.row("0").time >= 4 * 0.9 * 0.1
    assert total.wasted_time == pytest.approx(total.wall - total.lower_bound_time)
    assert "threads-overlap" in {note.code for note in report.coverage.notes}


def test_a_thread_of_someone_else_is_not_counted():
    stop = threading.Event()
    other = linear()

    def work():
        while not stop.is_set():
            other(x())

    thread = threading.Thread(target=work)
    thread.start()
    try:
        reports = [roofprof.count(nn.Sequential(linear()), x()) for _ in range(20)]
    finally:
        stop.set()
        thread.join()
    assert all(macs(report) == {"0": MACS} for report in reports)


def test_ops_in_the_user_s_hooks():
    model = nn.Sequential(linear(), nn.ReLU())
    model[0].register_forward_pre_hook(lambda _, args: (args[0] + 1,))  # 16 FLOPs
    model[1].register_forward_hook(lambda _, __, output: output @ torch.ones(4, 3))
    report = roofprof.count(model, x())
    assert report.row("0").flops == 2 * MACS + 16
    # torch runs global hooks before a module's own: what those do after forward belongs to the caller.
    assert macs(report) == {"0": MACS, "": 2 * 4 * 3}


def test_exception_that_the_parent_catches():
    def fail(self, value):
        self.inner(value)
        raise ValueError("caught above")

    def forward(self, value):
        with contextlib.suppress(ValueError):
            self.bad(value)
        return self.good(value @ torch.ones(8, 8))

    model = Model(forward, bad=Model(fail, inner=linear()), good=linear())
    report = profiler(model).run(x())
    assert macs(report) == {"bad.inner": MACS, "": 2 * 8 * 8, "good": MACS}


# ---- what is no module


def test_function_that_uses_a_module_has_one_row():
    net = nn.Sequential(linear())
    report = roofprof.count(lambda value: net(value) + 1, x())
    assert [row.path for row in report.rows] == [""]
    assert report.total.macs == MACS


def test_block_without_a_model():
    prof = profiler(None)
    with prof:
        linear()(x())
    report = prof.report()
    assert macs(report) == {"(outside)": MACS}
    assert report.coverage.uncalled_modules == []
    with pytest.raises(TypeError, match="no model to run"):
        prof.run(x())


def test_ops_of_a_thread_pool_are_not_silently_missing():
    weight = torch.ones(3, 4)
    with ThreadPoolExecutor(1) as pool:
        report = roofprof.count(lambda value: pool.submit(torch.mm, value, weight).result(), torch.ones(2, 3))
        assert report.total.macs == 0
        assert any("ops ran on other threads" in note for note in report.coverage.notes)
        # Not of earlier ones, nor of those that modules and autograd nodes are known of.
        step = lambda value: linear()(value).sum().backward()  # noqa: E731
        assert not any("other threads" in note for note in roofprof.count(step, x()).coverage.notes)
