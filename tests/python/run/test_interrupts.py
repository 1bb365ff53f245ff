"""Ctrl-C at any step of Python code leaves nothing behind: an interrupt is put before each step, one after another."""

import gc
import signal
import sys

import pytest
import torch
from given_roofs import profiler
from torch import nn
from torch.nn.modules import module as nn_module
from torch.optim import optimizer as optimizers

from roofprof import _C


@pytest.fixture(autouse=True)
def interrupts():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted_at(step, work):
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
                signal.raise_signal(signal.SIGINT)
                return None
            left -= 1
        return trace

    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
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


@pytest.mark.parametrize("door", [block, count])
def test_an_interrupt_at_any_step_leaves_nothing_behind(door):
    model, x = nn.Linear(4, 4), torch.ones(1, 4)
    door(model, x)()
    before = hooks()
    handler = signal.getsignal(signal.SIGINT)
    step = 0
    while interrupted_at(step, door(model, x)):
        assert hooks() == before, step
        assert signal.getsignal(signal.SIGINT) is handler
        assert profiler(model).count(x).total.macs == 16, step  # the thread is inside of no block
        step += 1
    assert step > 50


def test_a_dropped_profiler_ends_its_block():
    model, x = nn.Linear(4, 4), torch.ones(1, 4)
    before = hooks()
    profiler(model).__enter__()
    gc.collect()
    assert hooks() == before
    assert profiler(model).count(x).total.macs == 16


def test_an_interrupt_waits_for_what_holds_it():
    came = []

    @_C.uninterrupted
    def work(self):
        signal.raise_signal(signal.SIGINT)
        came.append("the end")

    class Some:
        method = work

    with pytest.raises(KeyboardInterrupt):
        Some().method()
        pytest.fail("it is raised by now")
    assert came == ["the end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
