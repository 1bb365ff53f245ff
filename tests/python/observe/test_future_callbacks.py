"""Callbacks of futures: their work is counted where they were given, whichever thread completes the future."""

import contextlib
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
import torch
from torch import nn
from truths import observe

import roofprof

pytestmark = pytest.mark.usefixtures("one_thread")

ROWS, WIDTH = 4, 8
LINEAR, CALLBACK = ROWS * WIDTH * WIDTH, WIDTH * WIDTH * WIDTH


@contextlib.contextmanager
def worker():
    """A thread that was there before the profile, as a backend's is."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        yield pool.submit


class AsksLater(nn.Module):
    """Its product is in the callback of a future that `complete` completes, before or after the callback is given."""

    def __init__(self, complete, *, before):
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH)
        self.complete, self.before = complete, before

    def forward(self, x):
        future = torch.futures.Future()
        matrix = torch.ones(WIDTH, WIDTH)
        if self.before:
            future.set_result(matrix)
        product = future.then(lambda done: done.value() @ matrix)
        if not self.before:
            self.complete(lambda: future.set_result(matrix))
        return self.inner(x) @ product.wait()


def new_thread(job):
    threading.Thread(target=job).start()


@pytest.fixture(params=["before", "here", "new thread", "old thread"])
def model(request):
    with worker() as put:
        ways = {"before": None, "here": lambda job: job(), "new thread": new_thread, "old thread": put}
        yield AsksLater(ways[request.param], before=request.param == "before")


OWN = CALLBACK + LINEAR  # and the product with what comes of it


def rows_of(report):
    return {row.path: row.self_macs for row in report.rows if row.self_macs}


def in_a_run(model, x):
    return roofprof.RooflineProfiler(model, ceilings=roofprof.Ceilings()).run(x)


@pytest.mark.parametrize("way", [in_a_run, lambda model, x: observe(model, lambda: model(x))])
def test_the_work_is_that_of_the_module_that_requested_it(model, way):
    report = way(model, torch.rand(ROWS, WIDTH))
    assert rows_of(report) == {"": OWN, "inner": LINEAR}
    assert not [note for note in report.coverage.notes if "other threads" in note.text]


def test_pythons_own_futures_are_alike():
    def step(complete):
        future, done = Future(), threading.Event()
        future.add_done_callback(lambda ready: (ready.result() @ ready.result(), done.set()))
        complete(lambda: future.set_result(torch.ones(WIDTH, WIDTH)))
        assert done.wait(60)

    with worker() as put:
        counted = [roofprof.count(step, way).total.macs for way in (put, lambda job: job())]
    assert counted == [CALLBACK, CALLBACK]


def test_what_runs_after_the_call_is_not_counted():
    future = torch.futures.Future()
    report = roofprof.count(lambda: future.then(lambda done: done.value() @ done.value()) and None)
    assert report.total.macs == 0
    future.set_result(torch.ones(WIDTH, WIDTH))


def test_the_methods_are_torchs_again_and_errors_the_users():
    kinds = ((torch._C.Future, "then"), (torch._C.Future, "add_done_callback"), (Future, "add_done_callback"))
    before = [vars(kind)[name] for kind, name in kinds]

    def fails():
        future = torch.futures.Future()
        future.set_result(1)
        future.then(lambda done: [][done.value()]).wait()

    with pytest.raises(RuntimeError, match="IndexError: list index out of range"):
        roofprof.count(fails)
    assert [vars(kind)[name] for kind, name in kinds] == before
