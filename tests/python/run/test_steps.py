"""The user's code around calls of a model, called again and again: training steps."""

from __future__ import annotations

import copy

import pytest
import torch
from given_roofs import profiler
from torch import nn

import roofprof

# Of the model below on four images: forward, and backward without the gradient of the input.
FORWARD = 4 * (8 * 16 + 16 * 3)
BACKWARD = 4 * (8 * 16 + 2 * 16 * 3)


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))


def images() -> torch.Tensor:
    return torch.rand(4, 8)


def test_a_step_is_warmed_up_and_repeated():
    model = mlp()

    def step(x):
        model.zero_grad()
        model(x).square().mean().backward()

    report = profiler(model, warmup=2, repeat=3).run_step(step, images())
    assert len(report.run_times) == len(report.bare_times) == 3
    assert report.to_dict()["runs"]["warmup"] == 2
    assert report.total.macs == FORWARD + BACKWARD
    assert report.row("").macs == FORWARD + BACKWARD
    assert (report.row("").calls, report.row("0").calls) == (1, 1)
    assert report.row("(outside)").flops > 0, "the loss"
    assert report.row("(outside)").macs == 0
    assert report.by_phase()["backward"].macs == BACKWARD
    assert {note.code for note in report.coverage.notes} <= {"no-roof", "roof-by-bytes-alone", "above-roof"}


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_everything_is_left_as_one_step_leaves_it(optimizer):
    model, x = mlp(), images()
    twin = copy.deepcopy(model)

    def stepping(of_model):
        chosen = optimizer(of_model.parameters(), lr=0.1)

        def step(batch):
            chosen.zero_grad()
            of_model(batch).square().mean().backward()
            chosen.step()

        return chosen, step

    chosen, step = stepping(model)
    report = profiler(model).run_step(step, x)
    plain, plain_step = stepping(twin)
    plain_step(x)
    assert all(map(torch.equal, model.parameters(), twin.parameters()))
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(model.parameters(), twin.parameters(), strict=True))
    assert str(chosen.state_dict()["state"]) == str(plain.state_dict()["state"])
    assert report.row("(optimizer)").flops > 0
    assert len(report.run_times) == 2


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_torchscript_is_counted_as_its_executor_runs_it():
    model = torch.jit.script(mlp())

    def step(x):
        model.zero_grad()
        model(x).sum().backward()

    report = profiler(model, warmup=3).run_step(step, images())
    assert report.total.macs == FORWARD + BACKWARD
    assert all(row.time for row in report.rows if row.macs), "what has work has its time"
    assert not any(note.code == "script-other-ops" for note in report.coverage.notes)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match="step must be a callable that calls the model, and this is of type int"):
        roofprof.RooflineProfiler(mlp()).run_step(3)
