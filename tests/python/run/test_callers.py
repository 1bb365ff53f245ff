"""A model that others call while it is profiled: a run has its own calls alone, with what they do on other threads."""

import contextlib
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from attributed import Model
from given_roofs import profiler
from torch import nn

import roofprof

ROWS = 10
LAYER = ROWS * 16 * 8
MACS = 2 * LAYER


class Servant:
    """A thread that was there before and is handed work through a queue: nobody tells for whom it works."""

    def __init__(self):
        self._handed = queue.Queue()
        self._done = queue.Queue()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        for work, arguments in iter(self._handed.get, None):
            self._done.put(work(*arguments))

    def call(self, work, *arguments):
        self._handed.put((work, arguments))
        return self._done.get()


def rows():
    return torch.rand(ROWS, 16)


def sequential():
    return nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 16))


def threaded():
    """Works on a thread that each call starts."""

    def forward(self, value):
        results = {}

        def work():
            results["left"] = self.left(value)

        thread = threading.Thread(target=work)
        thread.start()
        right = self.right(value)
        thread.join()
        return right + results["left"]

    return Model(forward, left=nn.Linear(16, 8), right=nn.Linear(16, 8))


def pooled(pool):
    """Works on a pool that was there before."""

    def forward(self, value):
        left = pool.submit(self.left, value)
        return self.right(value) + left.result()

    return Model(forward, left=nn.Linear(16, 8), right=nn.Linear(16, 8))


def codes(report):
    return {note.code for note in report.coverage.notes}


@contextlib.contextmanager
def called_by_others(call):
    """In here, two threads do that again and again."""
    stop = threading.Event()
    begun = [threading.Event(), threading.Event()]

    def work(event):
        while not stop.is_set():
            call()
            event.set()

    threads = [threading.Thread(target=work, args=(event,)) for event in begun]
    for thread in threads:
        thread.start()
    for event in begun:
        event.wait()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


CALLS = {
    "the model": lambda model: model(rows()),
    "its forward": lambda model: model.forward(rows()),
    "training": lambda model: model(rows()).sum().backward(),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("how", ["run", "count"])
def test_calls_of_others_are_left_out(call, how):
    model = sequential()
    with called_by_others(lambda: CALLS[call](model)):
        for _ in range(20):
            report = roofprof.count(model, rows()) if how == "count" else profiler(model, repeat=3).run(rows())
            assert report.total.macs == MACS
            assert report.row("0").calls == 1
            assert not codes(report) & {"first-call", "timing-stopped"}


def test_calls_that_began_before_the_run_are_left_out():
    """The other one is in the middle of its call when the run begins."""
    go_on, in_the_middle = threading.Event(), threading.Event()

    def forward(self, value):
        value = self.first(value)
        if threading.current_thread() is other:
            in_the_middle.set()
            go_on.wait()
        else:
            go_on.set()
            done.wait()
        return self.second(value)

    model = Model(forward, first=nn.Linear(16, 8), second=nn.Linear(8, 16))
    done = threading.Event()

    def call():
        model(rows())
        done.set()

    other = threading.Thread(target=call)
    other.start()
    in_the_middle.wait()
    report = roofprof.count(model, rows())
    other.join()
    assert report.total.macs == MACS
    (note,) = (note for note in report.coverage.notes if note.code == "other-calls")
    assert "called once" in note


def test_the_compilers_stance_is_the_users_after_counts_at_once():
    import torch._dynamo

    stance = torch._dynamo.eval_frame._stance
    first_is_inside, second_is_over = threading.Event(), threading.Event()

    def first(_module, _inputs):
        first_is_inside.set()
        second_is_over.wait(10)

    slow, quick = sequential(), sequential()
    slow.register_forward_pre_hook(first)
    with ThreadPoolExecutor(1) as pool:
        counted = pool.submit(roofprof.count, slow, rows())
        first_is_inside.wait(10)

        def leave_first(_module, _inputs, _output):
            second_is_over.set()
            counted.result(10)

        quick.register_forward_hook(leave_first)
        assert roofprof.count(quick, rows()).total.macs == MACS
        assert counted.result().total.macs == MACS
    assert torch._dynamo.eval_frame._stance == stance


@pytest.mark.parametrize("kind", ["threads", "a pool"])
def test_the_model_s_own_threads_count(kind):
    with ThreadPoolExecutor(1) as pool:
        model = threaded() if kind == "threads" else pooled(pool)
        model(rows())
        report = profiler(model, repeat=3).run(rows())
        assert report.total.macs == MACS
        assert not codes(report) & {"first-call", "timing-stopped"}
        assert report.row("left").calls == 1
        assert "other-calls" not in codes(report)
        assert roofprof.count(model, rows()).total.macs == MACS


@pytest.mark.parametrize("call", ["count", "run"])
def test_calls_of_a_module_on_threads_that_were_there_are_reported(call):
    """A pool of the model's, or another model that shares the module: it cannot be known."""
    model, servant = sequential(), Servant()

    def call_elsewhere(module, _inputs):
        if threading.current_thread() is threading.main_thread():
            servant.call(module, rows())

    model[0].register_forward_pre_hook(call_elsewhere)
    report = roofprof.count(model, rows()) if call == "count" else profiler(model, repeat=1).run(rows())
    assert report.row("0").calls == 2
    assert "calls-unclear" in codes(report)


@pytest.mark.parametrize("way", ["count", "run", "block"])
def test_what_is_submitted_to_a_pool_is_the_callers_own(way):
    """Also where the pool and its threads were there before; what others submit to it is theirs."""
    model, others = sequential(), sequential()
    with ThreadPoolExecutor(1) as pool, called_by_others(lambda: pool.submit(others, rows()).result()):
        pool.submit(int).result()

        def forward(self, value):
            return self.last(pool.submit(self.first, value).result())

        model = Model(forward, first=nn.Linear(16, 8), last=nn.Linear(8, 16))
        for _ in range(5):
            prof = profiler(model, repeat=2)
            if way == "count":
                report = roofprof.count(model, rows())
            elif way == "run":
                report = prof.run(rows())
            else:
                with prof:
                    model(rows())
                report = prof.report()
            assert report.total.macs == MACS
            assert report.row("first").macs == LAYER
            assert report.row("first").calls == 1


def test_a_block_has_the_threads_that_it_starts():
    model = sequential()
    start = threading.Thread.start

    def nested():
        inner = threading.Thread(target=model, args=(rows(),))
        inner.start()
        inner.join()

    class Own(threading.Thread):
        def run(self):
            model(rows())

    with profiler(model) as prof, ThreadPoolExecutor(1) as pool:
        model(rows())
        pool.submit(model, rows()).result()
        threads = [threading.Thread(target=nested), Own()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with pytest.raises(RuntimeError, match="threads can only be started once"):
            threads[1].start()
        assert "run" not in vars(threads[1])
    assert prof.report().row("").calls == 4
    assert prof.report().total.macs == 4 * MACS
    assert not codes(prof.report()) & {"other-calls", "calls-unclear"}
    assert threading.Thread.start is start


@pytest.mark.parametrize("way", ["own", "all"])
@pytest.mark.parametrize("inside", [1, 3])
def test_calls_under_way_when_a_block_ends_are_reported(inside, way):
    class Waits(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(16, 8), nn.Linear(8, 16)
            self.reached, self.end = threading.Semaphore(0), threading.Event()

        def forward(self, value):
            value = self.first(value)
            self.reached.release()
            self.end.wait()
            return self.second(value)

    model = Waits()
    prof = profiler(model, threads=way)
    threads = [threading.Thread(target=model, args=(rows(),)) for _ in range(inside)]
    with prof:
        for thread in threads:
            thread.start()
        for _ in threads:
            model.reached.acquire()
    report = prof.report()
    model.end.set()
    for thread in threads:
        thread.join()
    assert (report.row("").calls, report.total.macs) == (inside, inside * LAYER)
    (note,) = (note for note in report.coverage.notes if note.code == "calls-under-way")
    assert ("1 other thread was" if inside == 1 else "3 other threads were") in note
    with prof:
        model(rows())
    assert prof.report().total.macs == MACS
    assert "calls-under-way" not in codes(prof.report())


@pytest.mark.parametrize("way", ["block", "step"])
def test_all_threads_are_counted_on_request(way):
    """A thread that was there before is another's."""
    model, servant = sequential(), Servant()

    def step(value):
        model(value)
        servant.call(model, value)

    def report(threads):
        prof = profiler(model, repeat=3, threads=threads)
        if way == "step":
            return prof.run_step(step, rows())
        with prof:
            step(rows())
        return prof.report()

    own, every = report("own"), report("all")
    assert own.total.macs == MACS
    (note,) = (note for note in own.coverage.notes if note.code == "other-calls")
    # A step is counted once and timed three times, with nobody looking in between.
    assert ("called once" if way == "block" else "called 4 times") in note
    assert every.total.macs == 2 * MACS
    assert "other-calls" not in codes(every)
    with pytest.raises(ValueError, match="^threads must be 'own' or 'all', not 'every'$"):
        profiler(model, threads="every")
