"""Hooks, flags and modes of torch around a profile."""

import queue
import random

import numpy as np
import pytest
import torch
from given_roofs import profiler
from leavers import Buffers
from sameness import WAYS, assert_nothing_observes
from torch import nn

import roofprof


@pytest.mark.parametrize("way", WAYS)
def test_hooks_are_gone_and_the_model_s_own_stay(way):
    model = nn.Sequential(nn.Linear(8, 4))
    calls = []
    handles = [
        model.register_forward_hook(lambda *_: calls.append("after")),
        model[0].register_forward_pre_hook(lambda *_: calls.append("before")),
        model[0].register_full_backward_hook(lambda *_: calls.append("backward")),
    ]
    tables = [dict(vars(module)) for module in model.modules()]
    WAYS[way](model, (torch.ones(2, 8, requires_grad=True),), {})
    assert_nothing_observes()
    assert tables == [dict(vars(module)) for module in model.modules()]
    calls.clear()
    model(torch.ones(2, 8, requires_grad=True)).sum().backward()
    assert calls == ["before", "after", "backward"]
    for handle in handles:
        handle.remove()


def bfloat16():
    return torch.autocast("cpu", dtype=torch.bfloat16)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode, bfloat16, None])
def test_modes_around_the_profile(way, mode):
    def modes():
        return (
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            torch.is_autocast_enabled("cpu"),
            torch.get_autocast_dtype("cpu"),
            torch.get_default_dtype(),
            torch.get_num_threads(),
        )

    outside = modes()
    model, inputs = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4)), (torch.ones(2, 8),)
    with mode() if mode else torch.set_grad_enabled(True):
        inside = modes()
        report = WAYS[way](model, inputs, {})
        assert modes() == inside
        assert report.total.macs == 64
        if way == "run":
            assert len(report.run_times) == 3, report.coverage.notes
    assert modes() == outside


def test_inference_tensors_written_in_place():
    with torch.inference_mode():
        given = torch.ones(3)
        model = Buffers()
        profiler(model).run(given[None])
        assert model.written.tolist() == [1, 1, 1]
        profiler(lambda value: value.add_(1)).run(given)
        assert given.tolist() == [2, 2, 2]
    profiler(lambda value: value + 1).run(given)
    assert given.tolist() == [2, 2, 2]


def test_every_call_draws_the_same_random_numbers():
    drawn = queue.SimpleQueue()  # which is not put back between calls

    def model(value):
        drawn.put((torch.rand(3).tolist(), random.random(), float(np.random.rand())))  # noqa: NPY002
        return value + 1

    report = profiler(model, warmup=1, repeat=2).run(torch.ones(3))
    assert drawn.qsize() == 1 + 1 + 2 * 2
    first = drawn.get()
    assert all(drawn.get() == first for _ in range(drawn.qsize()))
    assert report.coverage.notes == []


class JoinsLate(nn.Module):
    """Branches whose results wait while the next ones run: on the interpreter's stack, below an op's own inputs."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, width) for width in (4, 16, 2)])

    def forward(self, x):
        return torch.cat([layer(x) for layer in self.layers], dim=-1)


@pytest.mark.parametrize("convert", [torch.jit.script, lambda model: torch.jit.trace(model, torch.ones(3, 8))])
def test_what_waits_on_torchscripts_stack_is_no_input(convert):
    report = roofprof.count(convert(JoinsLate()), torch.ones(3, 8))
    shapes = {group.keys[1] for group in report.group("op", "shapes") if group.keys[0] == "aten::linear"}
    assert shapes == {"3x8, 4x8, 4", "3x8, 16x8, 16", "3x8, 2x8, 2"}
    assert report.total.macs == 3 * 8 * (4 + 16 + 2)
