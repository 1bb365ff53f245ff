"""What raises at any step of Python code leaves nothing behind: it is put before each step, one after another."""

import _thread
import asyncio
import gc
import signal
import subprocess
import sys

import pytest
import torch
from given_roofs import profiler
from torch import nn
from torch.nn.modules import module as nn_module
from torch.optim import optimizer as optimizers

from roofprof import _C


class ElapsedError(Exception):
    pass


def elapsed(*_):
    raise ElapsedError


@pytest.fixture(autouse=True)
def interrupts():
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGALRM: elapsed, signal.SIGUSR1: lambda *_: None}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def ctrl_c():
    signal.raise_signal(signal.SIGINT)


def timer():
    signal.raise_signal(signal.SIGALRM)


def two_signals():
    signal.raise_signal(signal.SIGUSR1)
    signal.raise_signal(signal.SIGALRM)


def other_thread():
    _thread.interrupt_main()


# Not an exception that a tracer raises, or PyThreadState_SetAsyncExc: it cannot wait.
COMING = [ctrl_c, timer, two_signals, other_thread]


def interrupted_at(step, work, come=ctrl_c):
    """Whether ``work()`` had so many steps of roofprof's and the standard library's Python code."""
    left = step
    came = False

    def trace(frame, event, _):
        nonlocal left, came
        if frame.f_code.co_filename.endswith("reach.py"):
            return None  # it reads only
        if "/roofprof/" not in frame.f_code.co_filename and "contextlib" not in frame.f_code.co_filename:
            return trace if frame.f_code is work.__code__ else None
        # None comes as a function returns; and CPython does not unwind what a tracer raises in an `except` clause.
        if event in {"call", "line"} and sys.exc_info()[0] is None:
            if left == 0:
                sys.settrace(None)
                came = True
                come()
                return None
            left -= 1
        return trace

    sys.settrace(trace)
    try:
        work()
    except (KeyboardInterrupt, ElapsedError):
        assert came
    finally:
        sys.settrace(None)
    return came


def hooks():
    return [
        len(table)
        for table in (
            nn_module._global_forward_pre_hooks,
            nn_module._global_forward_hooks,
            nn_module._global_forward_hooks_with_kwargs,
            nn_module._global_forward_hooks_always_called,
            optimizers._global_optimizer_pre_hooks,
            optimizers._global_optimizer_post_hooks,
        )
    ]


def block(model, x):
    prof = profiler(model)

    def work():
        with prof:
            model(x)

    return work


def count(model, x):
    prof = profiler(model)
    return lambda: prof.count(x)


def handlers():
    return [signal.getsignal(number) for number in sorted(signal.valid_signals())]


@pytest.mark.parametrize("come", COMING)
@pytest.mark.parametrize("entry", [block, count])
def test_an_interrupt_at_any_step_leaves_nothing_behind(entry, come):
    model, x = nn.Linear(4, 4), torch.ones(1, 4)
    entry(model, x)()
    before = hooks()
    handlers_before = handlers()
    step = 0
    while interrupted_at(step, entry(model, x), come):
        assert hooks() == before, step
        assert handlers() == handlers_before
        assert torch._C._is_torch_function_enabled(), step
        assert profiler(model).count(x).total.macs == 16, step  # the thread is inside of no block
        step += 1 if come is ctrl_c else 9  # each takes a while
    assert step > 50


def test_a_dropped_profiler_ends_its_block():
    model, x = nn.Linear(4, 4), torch.ones(1, 4)
    before = hooks()
    profiler(model).__enter__()
    gc.collect()
    assert hooks() == before
    assert profiler(model).count(x).total.macs == 16


def held(work):
    """Do it where signals wait."""

    class Some:
        @_C.uninterrupted
        def method(self):
            work()

    Some().method()


@pytest.mark.parametrize("where", ["begins", "ends"])
@pytest.mark.parametrize("come", [ctrl_c, timer, two_signals, other_thread])
def test_signals_wait_for_a_block_to_begin_and_to_end(come, where, monkeypatch):
    """They are raised in the block and after it, not in its beginning and end."""
    done = []

    def turn(now):
        if now == where:
            come()
        done.append(now)

    class Turn:
        def __enter__(self):
            turn("begins")

        def __exit__(self, *_):
            turn("ends")

    prof = profiler(nn.Linear(4, 4))
    monkeypatch.setattr(prof, "_turn", Turn)
    with pytest.raises((KeyboardInterrupt, ElapsedError)):
        with prof:
            done.append("inside")
            assert where == "ends", "it is raised by now"
        pytest.fail("it is raised by now")
    assert done == ["begins", "inside", "ends"]
    assert prof.report()


def test_an_event_loop_hears_once_of_a_signal():
    heard = []

    async def work():
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lambda: heard.append(1))
        held(lambda: signal.raise_signal(signal.SIGUSR1))
        await asyncio.sleep(0.05)

    asyncio.run(work())
    assert heard == [1]


ENDS = {
    "a code": "p.__enter__(); sys.exit(3)",
    "a daemon": "\ninside = threading.Event()\ndef work():\n    with p: inside.set(); time.sleep(99)\n"
    "threading.Thread(target=work, daemon=True).start(); inside.wait()",
    "a generator": "\ndef work():\n    with p: yield\nw = work(); next(w)",
    "a late handler": "p.__enter__(); atexit.register(lambda: p.__exit__(None, None, None))",
}


@pytest.mark.parametrize("how", ENDS)
def test_an_open_block_does_not_disturb_the_end_of_the_interpreter(how):
    program = (
        "import atexit, os, sys, threading, time, torch, roofprof\n"
        "m = torch.nn.Linear(4, 4); p = roofprof.RooflineProfiler(m)\n" + ENDS[how]
    )
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3 if how == "a code" else 0, "", "")
