"""A profile leaves everything as ONE plain call leaves it, bit by bit."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch
from given_roofs import profiler
from leavers import CASES, Gradients, state_after
from sameness import WAYS, difference, seed
from torch import nn

import roofprof


def made(case: str):
    model, inputs = CASES[case]
    seed()
    return model(), *inputs()


def once(model, args, kwargs):
    model(*args, **kwargs)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_all_is_as_one_plain_call_leaves_it(case, way):
    def profiled(model, args, kwargs):
        report = WAYS[way](model, args, kwargs)
        assert not any("not as it left them" in note for note in report.coverage.notes)

    assert difference(state_after(case, profiled), state_after(case, once)) is None


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("case", sorted(set(CASES) - {"autocast inside", "consumed inputs"}))
def test_the_comparison_tells_one_call_from_two(case):
    def twice(model, args, kwargs):
        model(*args, **kwargs)
        model(*args, **kwargs)

    assert difference(state_after(case, twice), state_after(case, once))


# ---- identity


def test_gradient_that_the_first_call_made_is_the_one_that_stays():
    model = Gradients()
    added, seen = model.added.grad, []
    model.register_forward_hook(lambda *_: seen.append(model.fresh.grad))
    profiler(model).run(torch.ones(3))
    assert model.fresh.grad is seen[0]
    assert model.added.grad is added


def test_sentinels_are_handed_over_as_they_are():
    class Sentinel:
        def __init__(self, name):
            self.name = name

    missing = Sentinel("missing")

    def forward(option, *, options):
        assert option is missing
        assert options["a"] is missing
        return torch.ones(3) + 1

    report = profiler(forward).run(missing, options={"a": missing})
    assert report.coverage.notes == []


# ---- functions, and state that lies outside the model


def test_function_in_wrappers_and_helpers():
    model = nn.BatchNorm1d(3)

    def helper(value):
        return model(value)

    @torch.no_grad()
    def function(value):
        return helper(value)

    profiler(function).run(torch.rand(4, 3))
    assert model.num_batches_tracked == 1


def test_a_profiler_in_reach_of_its_own_model():
    model = nn.Linear(8, 4)
    model.profiler = profiler(model)
    report = model.profiler.run(torch.ones(2, 8))
    assert len(report.run_times) == 2
    assert model.profiler.report() is report


def largest_tensor(call):
    """The most bytes that torch allocated at once, by any of its operators, also by those below all dispatch modes."""
    with torch.autograd.profiler.profile(profile_memory=True) as profile:
        call()
    return max(event.cpu_memory_usage for event in profile.function_events)


@pytest.mark.parametrize(("function", "copied"), [(lambda x: x[:2] + 1, False), (lambda x: x.add_(1), True)])
def test_large_inputs_are_copied_only_where_they_are_written(function, copied):
    large = torch.ones(1000, 1000)
    assert (largest_tensor(lambda: profiler(function).run(large)) >= large.nbytes) == copied


@pytest.mark.parametrize("kept", [100, 2**30])
def test_arrays_and_models_are_copied_up_to_a_size(kept, monkeypatch, tmp_path):
    monkeypatch.setattr(roofprof.state.snapshot, "_BYTES_KEPT", kept)
    array = np.memmap(tmp_path / "large", np.float32, "w+", shape=(4_000_000,))
    with torch.inference_mode():  # where torch does not tell of writes
        model = nn.Linear(100, 100)
        model.array = array
        profiler(model).run(torch.ones(2, 100))  # loads what is loaded once
        tracemalloc.start()
        try:
            largest = largest_tensor(lambda: profiler(model).run(torch.ones(2, 100)))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (largest >= model.weight.nbytes) == (kept > model.weight.nbytes)
    assert (peak >= array.nbytes) == (kept > array.nbytes)


def test_writes_of_later_calls_to_what_is_too_large_to_keep_are_reported(monkeypatch):
    monkeypatch.setattr(roofprof.state.snapshot, "_BYTES_KEPT", 0)

    class Late(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(3))
            self.calls = 0

        def forward(self, value):
            self.calls += 1
            with torch.no_grad():
                (self.weight if self.calls > 2 else value).add_(0)
            return value * self.weight

    report = profiler(Late()).run(torch.ones(3))
    assert any("wrote to 1 tensors that the first did not" in note for note in report.coverage.notes)
