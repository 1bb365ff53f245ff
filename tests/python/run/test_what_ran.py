"""What ran decides, not where parameters lie; methods of modules; work that a call leaves to be done later."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import sys

import pytest
import torch
from given_roofs import profiler
from torch import nn

import roofprof

MACS = 2 * 8 * 4


def linear_on_meta() -> nn.Module:
    return nn.Linear(8, 4, device="meta")


# ---- tensors on the meta device


class WithDead(nn.Module):
    """One layer is never loaded, and never called."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)
        self.dead = linear_on_meta()

    def forward(self, value):
        return self.fc(value)


class Offloaded(nn.Module):
    """All its parameters rest on meta; each call loads them, as accelerate's hooks do."""

    def __init__(self):
        super().__init__()
        self.fc = linear_on_meta()
        self.host = {"weight": torch.rand(4, 8), "bias": torch.rand(4)}

    def forward(self, value):
        for name, values in self.host.items():
            self.fc._parameters[name] = nn.Parameter(values.clone())
        result = self.fc(value)
        for name in self.host:
            self.fc._parameters[name] = nn.Parameter(self.fc._parameters[name].to("meta"))
        return result


@pytest.mark.parametrize("kind", [WithDead, Offloaded])
def test_what_rests_on_meta_costs_no_times(kind):
    value = torch.ones(2, 8)
    model = kind()
    ways = {
        "run": lambda prof: prof.run(value),
        "run_step": lambda prof: prof.run_step(lambda: model(value)),
    }
    for way in ways.values():
        report = way(profiler(model, repeat=2))
        assert report.total.macs == MACS
        assert len(report.run_times) == 2
        assert report.device == "cpu"
        assert not any(note.code == "not-timed" for note in report.coverage.notes)
    prof = profiler(model)
    with prof:
        model(value)
    assert prof.report().total.time > 0
    assert len(profiler(model).time(value, warmup=1, repeat=3).times) == 3


def test_what_runs_on_meta_has_no_times():
    class Constant(nn.Module):
        """A buffer on the CPU, beside all else on meta."""

        def __init__(self):
            super().__init__()
            self.fc = linear_on_meta()
            self.register_buffer("constant", torch.ones(1))

        def forward(self, value):
            return self.fc(value)

    for value, model in ((torch.ones(2, 8, device="meta"), Constant()), (torch.ones(2, 8), linear_on_meta())):
        report = profiler(model).run(value)
        assert report.total.macs == MACS
        assert report.total.time is None
        assert report.device == "meta"
        assert any(note.code == "not-timed" for note in report.coverage.notes)


# ---- methods of modules


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.head = nn.Linear(16, 4)

    def forward(self, value):
        return self.head(self.body(value))

    def act(self, value):
        return self.head(self.body(value)).argmax(-1)

    def rollout(self, value, steps=3):
        return [self(value) for _ in range(steps)]


@pytest.mark.parametrize("way", [lambda call, *args: profiler(call, repeat=2).run(*args), roofprof.count])
def test_a_method_has_the_rows_of_its_module(way):
    agent, value = Agent(), torch.ones(2, 8)
    for call in (
        agent.act,
        functools.partial(agent.act, value),
        functools.partial(functools.partial(agent.act), value),
    ):
        report = way(call, *(() if isinstance(call, functools.partial) else (value,)))
        rows = {row.path: row for row in report.rows}
        assert {path: rows[path].macs for path in ("", "body", "head")} == {
            "": 2 * (8 * 16 + 16 * 4),
            "body": 2 * 8 * 16,
            "head": 2 * 16 * 4,
        }
        assert rows[""].calls == rows["body"].calls == 1
        assert report.total.params == sum(p.numel() for p in agent.parameters())
        assert report.total.macs == rows[""].macs
        assert report.model == "Agent.act"


# ---- work that is left to be done


class Deferred(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)


class Generates(Deferred):
    def forward(self, value):
        for _ in range(3):
            yield self.fc(value)


class Awaits(Deferred):
    async def forward(self, value):
        await asyncio.sleep(0)
        return [self.fc(value) for _ in range(3)]


class Streams(Deferred):
    async def forward(self, value):
        for _ in range(3):
            await asyncio.sleep(0)
            yield self.fc(value)


class Submits(Deferred):
    def __init__(self):
        super().__init__()
        self.pool = concurrent.futures.ThreadPoolExecutor(1)

    def forward(self, value):
        return self.pool.submit(lambda: [self.fc(value) for _ in range(3)])


KINDS = {Generates: "a generator", Awaits: "a coroutine", Streams: "an asynchronous generator", Submits: "a future"}


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_call_leaves_to_be_done_is_done_and_counted(kind):
    model, value = kind(), torch.ones(2, 8)
    for report in (roofprof.count(model, value), profiler(model, repeat=2).run(value)):
        rows = {row.path: row for row in report.rows}
        assert (report.total.macs, rows["fc"].macs, rows["fc"].calls) == (3 * MACS, 3 * MACS, 3)
        assert rows[""].calls == 1
        assert [note.text.split(":")[0] for note in report.coverage.notes if note.code == "deferred-work"] == [
            f"the call returned {KINDS[kind]}"
        ]
    assert len(report.run_times) == 2
    calls = []
    model.fc.register_forward_hook(lambda *_: calls.append(1))
    assert len(profiler(model).time(value, warmup=1, repeat=3).times) == 3
    assert len(calls) == 3 * (1 + 1 + 3)


def test_a_generator_that_never_ends_is_cut():
    def endless():
        while True:
            yield torch.ones(1) + 1

    report = roofprof.count(endless)
    assert report.total.flops == 10_000
    assert any("up to 10,000 items" in note.text for note in report.coverage.notes)


@pytest.mark.filterwarnings("error")
def test_in_a_running_loop_a_coroutine_is_not_counted_and_that_is_reported():
    async def program():
        return roofprof.count(Awaits(), torch.ones(2, 8))

    report = asyncio.run(program())
    assert report.total.macs == 0
    assert any("its work is not counted" in note.text for note in report.coverage.notes)


# ---- depth


@pytest.mark.parametrize("depth", [200, 240])
def test_models_as_deep_as_python_can_call_are_profiled(depth):
    model: nn.Module = nn.Linear(8, 4)
    for _ in range(depth):
        model = nn.Sequential(model)
    limit = sys.getrecursionlimit()
    frames = 0
    frame = sys._getframe()
    while frame:
        frames, frame = frames + 1, frame.f_back
    sys.setrecursionlimit(1000 + frames)  # as for a program of its own
    try:
        value = torch.ones(2, 8)
        model(value)
        for report in (roofprof.count(model, value), profiler(model, repeat=1).run(value)):
            assert report.total.macs == MACS
            assert max(row.path.count(".") for row in report.rows) == depth - 1
        prof = profiler(model)
        with prof:
            model(value)
        assert prof.report().total.macs == MACS
        assert sys.getrecursionlimit() == 1000 + frames
        str(report)
        report.to_json()
    finally:
        sys.setrecursionlimit(limit)
