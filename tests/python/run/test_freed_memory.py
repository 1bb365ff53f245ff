"""Storages that are shorter than their tensors say: a profile neither reads nor writes beyond them."""

from __future__ import annotations

import copy

import pytest
import torch
from given_roofs import profiler
from torch import nn

import roofprof

WEIGHT = 64 * 64 * 4  # bytes


def resize(tensor: torch.Tensor, size: int = 0) -> None:
    tensor.untyped_storage().resize_(size)


class Streamed(nn.Module):
    """Its weight is freed between calls, as FSDP and streamed weights are."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 64)
        self.host = self.fc.weight.detach().clone()
        resize(self.fc.weight)

    def forward(self, value):
        weight = self.fc.weight
        resize(weight, WEIGHT)
        weight.data.copy_(self.host)
        result = self.fc(value)
        resize(weight)
        return result


class FreedGradient(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 64)
        self.fc.weight.grad = torch.ones(64, 64)
        resize(self.fc.weight.grad)

    def forward(self, value):
        return self.fc(value)


class FreedParts(nn.Module):
    """A sparse and a nested tensor without the memory of their values."""

    def __init__(self):
        super().__init__()
        self.sparse = torch.rand(64, 64).to_sparse().coalesce()
        self.nested = torch.nested.nested_tensor([torch.ones(300), torch.ones(500)])
        self.fc = nn.Linear(64, 64)
        resize(self.sparse.values())
        resize(self.nested.values())

    def forward(self, value):
        return self.fc(value)


class Overlapping(nn.Module):
    """Views of one memory, each written in the call."""

    def __init__(self):
        super().__init__()
        base = torch.arange(100.0)
        self.register_buffer("first", base[:60])
        self.register_buffer("last", base[40:])
        self.register_buffer("windows", base.as_strided((10, 5), (3, 1)))
        self.register_buffer("columns", torch.zeros(10, 10)[:, 2:4])
        self.register_buffer("same", torch.zeros(1).expand(7))
        self.fc = nn.Linear(64, 64)

    def forward(self, value):
        self.first.add_(1)
        self.last.mul_(2)
        self.columns.add_(1)
        self.same[0].add_(1)
        return self.fc(value)


class FreesWeight(nn.Module):
    """Used once."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 64)

    def forward(self, value):
        result = self.fc(value)
        resize(self.fc.weight)
        return result


class FreesInput(FreesWeight):
    def forward(self, value):
        result = self.fc(value)
        resize(value)
        return result


REPEATED = [Streamed, FreedGradient, FreedParts, Overlapping]
ONCE = [FreesWeight, FreesInput]


def made(kind):
    torch.manual_seed(0)
    return kind(), torch.ones(2, 64)


def memory_of(model: nn.Module, value: torch.Tensor) -> list[bytes]:
    tensors = [*model.parameters(), *model.buffers(), *(p.grad for p in model.parameters()), value]
    return [bytes(tensor.untyped_storage()) for tensor in tensors if tensor is not None]


def after_one_call(kind) -> list[bytes]:
    model, value = made(kind)
    model(value)
    return memory_of(model, value)


def run(model, value):
    return profiler(model, repeat=2).run(value)


def run_step(model, value):
    return profiler(model, repeat=2).run_step(lambda: model(value))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("way", [run, run_step, roofprof.count])
@pytest.mark.parametrize("kind", [*REPEATED, *ONCE])
def test_all_memory_is_as_one_plain_call_leaves_it(kind, way):
    model, value = made(kind)
    report = way(model, value)
    assert memory_of(model, value) == after_one_call(kind)
    assert report.total.macs == 2 * 64 * 64


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("kind", REPEATED)
def test_calls_are_repeated_and_timed(kind):
    model, value = made(kind)
    report = run(model, value)
    assert len(report.run_times) == 2
    assert report.coverage.notes == []
    model, value = made(kind)
    latency = profiler(model).time(value, warmup=1, repeat=3)
    assert len(latency.times) == 3
    assert memory_of(model, value) == after_one_call(kind)


@pytest.mark.parametrize("kind", ONCE)
def test_a_call_that_frees_what_it_was_given_is_made_once_and_that_is_reported(kind):
    """A further one would compute on memory that is not there, which ends the process."""
    model, value = made(kind)
    report = run(model, value)
    assert len(report.run_times) == 1
    assert ["without the memory that it freed" in note.text for note in report.coverage.notes] == [True]
    model, value = made(kind)
    with pytest.raises(ValueError, match="without the memory that it freed"):
        profiler(model).time(value)
    assert memory_of(model, value) == after_one_call(kind)


def test_memory_that_is_too_large_to_keep_is_there_again_and_its_values_are_reported_to_be_lost(monkeypatch):
    monkeypatch.setattr(roofprof.state.snapshot, "_BYTES_KEPT", 0)
    model = copy.deepcopy(nn.Linear(64, 64))
    calls = []

    def late(value):
        calls.append(1)
        if len(calls) == 2:
            resize(model.weight)
        return value + 1

    report = profiler(late, warmup=1, repeat=1).run(torch.ones(3))
    assert model.weight.untyped_storage().nbytes() == WEIGHT
    assert any("not as it left them" in note for note in report.coverage.notes)


def test_batches_are_not_made_of_inputs_without_memory():
    value = torch.ones(2, 64)
    resize(value)
    with pytest.raises(ValueError, match="memory of a tensor among the inputs is freed"):
        profiler(nn.Linear(64, 64)).time_sweep(value, batches=[1, 2])
