"""Children of fork(), forked wherever a profile is: plain torch runs in them, and so do profiles of their own."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
import torch
from given_roofs import profiler
from torch import nn

import roofprof

SUPPORT = Path(__file__).resolve().parents[1] / "support"
MACS = 2 * 8 * 4
HANGS = 120  # seconds: a limit for what never ends, on whatever machine

pytestmark = [
    pytest.mark.usefixtures("one_thread"),  # OpenMP's threads are not in a child
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]


def linear():
    return nn.Linear(8, 4, bias=False)


def x():
    return torch.ones(2, 8)


def status_of_child(body):
    """How a child ends that does that: 0 where the body gives True; killed where it hangs."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if body() is True else 2
        finally:
            os._exit(status)
    end = time.monotonic() + HANGS
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child hung")
        time.sleep(0.001)
    return os.waitstatus_to_exitcode(ended[1])


def plain_torch_runs():
    layer = linear()
    with torch.no_grad():
        layer.weight.fill_(1)
    return layer(x()).sum().item() == 2 * 8 * 4


def own_profiles_work():
    assert roofprof.count(linear(), x()).total.macs == MACS
    report = profiler(linear()).run(x())
    assert report.total.macs == MACS and report.total.time > 0
    model = linear()
    with profiler(model) as prof:
        model(x())
        model(x())
    assert prof.report().row("").macs == 2 * MACS
    return True


def all_is_well():
    return plain_torch_runs() and own_profiles_work() and plain_torch_runs()


def test_a_child_forked_in_a_block_counts_and_the_block_is_the_parents():
    model = linear()
    prof = profiler(model)
    with prof:
        model(x())

        def body():
            prof.step()  # as the program goes on
            prof.__exit__(None, None, None)
            with pytest.raises(RuntimeError, match="forked inside of what was profiled, and the report is its parent"):
                prof.report()
            with prof:  # it can be used again
                model(x())
            return prof.report().total.macs == MACS and all_is_well()

        assert status_of_child(all_is_well) == 0
        assert status_of_child(body) == 0
        model(x())
    assert prof.report().row("").macs == 2 * MACS


@pytest.mark.parametrize("way", ["count", "run", "run_step"])
def test_a_child_forked_in_a_call_counts(way):
    statuses = []

    class Forks(nn.Linear):
        def forward(self, value):
            statuses.append(status_of_child(all_is_well))
            return super().forward(value)

    model = Forks(8, 4, bias=False)
    prof = profiler(model, warmup=0, repeat=1)
    report = prof.run_step(lambda: model(x())) if way == "run_step" else getattr(prof, way)(x())
    assert set(statuses) == {0}
    assert report.total.macs == MACS


def test_a_call_that_returns_in_the_child_says_whose_its_profile_is():
    parent = os.getpid()
    child = []

    class Forks(nn.Linear):
        def forward(self, value):
            child.append(os.fork())
            return super().forward(value)

    try:
        roofprof.count(Forks(8, 4), x())
    except RuntimeError as error:
        os._exit(0 if "this process was forked inside of a call that is profiled" in str(error) else 1)
    finally:
        if os.getpid() != parent:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child[0], 0)[1]) == 0


def test_workers_of_a_data_loader():
    data = torch.utils.data.TensorDataset(torch.ones(8, 8))
    model = linear()
    with profiler(model) as prof:
        for (batch,) in torch.utils.data.DataLoader(data, batch_size=4, num_workers=2, timeout=HANGS):
            model(batch)
    assert prof.report().row("").macs == 8 * 8 * 4


def test_children_that_are_forked_while_other_threads_profile():
    done = threading.Event()

    def profile_on():
        model = linear()
        while not done.is_set():
            roofprof.count(model, x())
            with profiler(model) as prof:
                model(x()).sum().backward()
            assert prof.report().row("").macs == 2 * MACS

    threads = [threading.Thread(target=profile_on) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(60):
            assert status_of_child(lambda: plain_torch_runs() and roofprof.count(linear(), x()).total.macs == MACS) == 0
    finally:
        done.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize(("leaving", "status"), [("sys.exit(3)", 3), ("raise KeyError('mine')", 1)])
def test_a_child_leaves_a_block_as_it_would_without(tmp_path, leaving, status):
    program = f"""
        import os, sys
        sys.path.insert(0, {str(SUPPORT)!r})
        import torch
        import roofprof
        from given_roofs import profiler

        model = torch.nn.Linear(8, 4, bias=False)
        with profiler(model) as prof:
            child = os.fork()
            if child == 0:
                model(torch.ones(2, 8))
                {leaving}
            else:
                model(torch.ones(2, 8))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), prof.report().total.macs)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=10 * HANGS,
    )
    assert done.stdout.split() == [str(status), str(MACS)], done.stderr
    assert ("KeyError: 'mine'" in done.stderr) == ("KeyError" in leaving)
    assert "roofprof" not in done.stderr.replace(str(tmp_path), "")
