"""Peak and kept memory: against closed forms of small models, and against what torch.profiler saw."""

from __future__ import annotations

import threading

import pytest
import torch
from memory_of_mlp import BATCH, HELD, HIDDEN, INPUTS, RETURNED, images, mlp
from torch import nn
from torch.profiler import ProfilerActivity
from torch.utils.checkpoint import checkpoint

import roofprof


def memory_of(report, figure: str) -> dict[str, int | None]:
    return {row.path: getattr(row, figure) for row in report.rows}


def test_inference(place):
    with torch.no_grad():
        report = roofprof.count(mlp(), images())
    # Beside a layer's result, only its input is still there.
    assert memory_of(report, "peak_memory") == {"": 2 * HELD, "0": HELD, "1": HELD, "2": RETURNED}
    assert memory_of(report, "kept_memory") == dict.fromkeys(["", "0", "1", "2"], 0)
    assert report.total.peak_memory == 2 * HELD
    assert ("peak memory 512 B by the sizes of tensors" in report.table()) == (place in {"meta", "by sizes"})
    assert ("memory-by-sizes" in [note.code for note in report.coverage.notes]) == (place == "by sizes")


def test_what_the_forward_keeps(place):
    # ReLU saves its result, which the next layer saves too: it counts once. Outputs are not kept.
    report = roofprof.count(mlp(), images())
    assert memory_of(report, "kept_memory") == {"": HELD, "0": 0, "1": 0, "2": 0}
    assert report.row("").peak_memory == 2 * HELD
    assert report.total.peak_memory == report.row("").peak_memory
    # GELU saves its input.
    assert roofprof.count(mlp(nn.GELU()), images()).row("").kept_memory == 2 * HELD


class Segments(nn.Module):
    def __init__(self, *, again: bool):
        super().__init__()
        self.again = again
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.GELU()) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False, preserve_rng_state=False) if self.again else layer(x)
        return x


def test_checkpointing_keeps_the_inputs_of_segments(place):
    x = torch.rand(BATCH, HIDDEN)
    reports = {again: roofprof.count(Segments(again=again), x) for again in (False, True)}
    # Each GELU's input, and the input of each layer but the first, which was there before.
    assert reports[False].row("").kept_memory == (3 + 2) * HELD
    assert reports[True].row("").kept_memory == 2 * HELD


def step_of(model):
    def step(x):
        model.zero_grad()
        model(x).square().mean().backward()

    return step


def peak_by_torch(call) -> int:
    with torch.profiler.profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
        call()
    events = [event for event in prof.profiler.kineto_results.events() if event.name() == "[memory]"]
    live = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    return peak


@pytest.mark.parametrize("again", [False, True])
def test_a_training_steps_peak_is_what_torch_reports(again):
    model = Segments(again=again)
    x = torch.rand(64, HIDDEN)
    report = roofprof.RooflineProfiler(model, warmup=0, repeat=0).run_step(step_of(model), x)
    model.zero_grad()
    assert report.total.peak_memory == peak_by_torch(lambda: step_of(model)(x))


def test_sizes_are_those_of_results(place):
    """Shape functions compute by other ops than kernels, and size some results after they were allocated."""

    class Results(nn.Module):
        def forward(self, x):
            joined = torch.cat([x, x]).tril()  # two of 2 x HIDDEN meanwhile, one afterwards
            steps = torch.arange(10, device=x.device)
            return joined, steps, x.roll(1), nn.functional.gelu(x)

    x = torch.rand(BATCH, HIDDEN)
    with torch.no_grad():
        row = roofprof.count(Results(), x).row("")
    assert row.peak_memory == max(4 * HELD, 2 * HELD + 80 + 2 * HELD)
    assert row.kept_memory == 0


def test_a_module_that_calls_itself_keeps_each_byte_once(place):
    class Nested(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(HIDDEN, HIDDEN, bias=False)

        def forward(self, x, depth=4):
            return self.layer(x) if depth == 1 else self.layer(self(x, depth - 1))

    report = roofprof.count(Nested(), torch.rand(BATCH, HIDDEN))
    # The inputs of all layers but the first, which was there before.
    assert report.row("").kept_memory == 3 * HELD
    assert report.row("").peak_memory == 4 * HELD


def test_a_model_that_raises_leaves_the_allocator_as_it_was():
    class Raises(nn.Module):
        def forward(self, x):
            x.relu()
            raise KeyError("mine")

    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            roofprof.count(Raises(), images())
    assert roofprof.count(nn.ReLU(), images()).total.peak_memory == BATCH * INPUTS * 4


def test_memory_of_other_threads_is_not_the_models():
    go, done = threading.Event(), threading.Event()
    kept = []

    def other():
        go.wait()
        kept.append(torch.empty(1_000_000))
        done.set()

    class Waits(nn.Module):
        def forward(self, x):
            go.set()
            done.wait()
            return x.relu()

    thread = threading.Thread(target=other)
    thread.start()
    report = roofprof.count(Waits(), images())
    thread.join()
    assert report.total.peak_memory == BATCH * INPUTS * 4
