"""Memory roofs by reuse: an op is held against the level that holds what was touched since its memory was."""

from __future__ import annotations

import json

import pytest
import torch
from given_roofs import LEVELS, profiler
from torch import nn

import roofprof

L2, L3, DRAM = (LEVELS[level][0] for level in ("L2", "L3", "DRAM"))
NOT_KNOWN = "reuse-not-known"


def linears(width: int, count: int) -> nn.Module:
    return nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(count))).eval()


def run(model, *inputs, **options):
    with torch.no_grad():
        return profiler(model, **options).run(*inputs)


def block(model, *inputs):
    with torch.no_grad(), profiler(model) as prof:
        model(*inputs)
    return prof.report()


def codes(report) -> set[str]:
    return {note.code for note in report.coverage.notes}


@pytest.mark.parametrize("observed", [run, block])
@pytest.mark.parametrize(("width", "level", "rate"), [(128, "L3", L3), (512, "DRAM", DRAM)])
def test_layers_called_once_come_from_the_level_that_holds_them_all(observed, width, level, rate):
    """Each weight alone fits L2, or nearly; 48 are 3 MiB, or 48."""
    report = observed(linears(width, 48), torch.ones(1, width))
    weights = 48 * 4 * width * width
    activations = 48 * 2 * 4 * width
    assert report.total.bytes == weights + activations
    assert report.total.memory_time == pytest.approx(weights / rate + activations / L2, rel=0.05)
    assert report.total.memory_time >= weights / rate
    assert report.group("op")[0].bound in {f"memory {level}", "overhead"}
    assert NOT_KNOWN not in codes(report)


def test_one_layer_called_again_stays_in_its_cache():
    layer = nn.Linear(128, 128, bias=False).eval()
    report = run(lambda value: [value := layer(value) for _ in range(48)], torch.ones(1, 128))
    assert report.total.memory_time == pytest.approx(report.total.bytes / L2, abs=50e-9)


def test_a_chain_of_updates_comes_from_what_holds_its_tensor():
    """In place: nothing else is touched."""

    def chain(value):
        for _ in range(8):
            value.add_(1)
        return value

    for count, rate in ((1 << 17, L2), (1 << 20, L3), (1 << 23, DRAM)):
        report = run(chain, torch.zeros(count))
        assert report.total.memory_time == pytest.approx(8 * 2 * 4 * count / rate, rel=1e-4)


def test_steps_of_a_block_find_what_the_step_before_left():
    model = linears(128, 48)
    once = block(model, torch.ones(1, 128))
    with torch.no_grad(), profiler(model) as prof:
        for _ in range(5):
            model(torch.ones(1, 128))
            prof.step()
    assert prof.report().total.memory_time == pytest.approx(5 * once.total.memory_time, rel=0.05)


def test_what_moves_adds_up_to_what_is_counted():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Flatten(), nn.LazyLinear(4))
    model(torch.ones(2, 3, 16, 16))
    with profiler(model) as prof:
        model(torch.ones(2, 3, 16, 16)).sum().backward()
    report = prof.report()
    ops = [op for op in report.to_dict()["ops"] if op["work"]["read_bytes"] + op["work"]["write_bytes"]]
    assert len(ops) > 8
    for op in ops:
        assert op["reuse"], op["op"]
        moved = [sum(part.get(kind, 0) for part in op["reuse"]) for kind in ("read_bytes", "write_bytes")]
        assert moved[0] >= 0.99 * op["work"]["read_bytes"], op
        assert moved[1] >= 0.99 * op["work"]["write_bytes"], op
        distances = [part["distance_bytes"] for part in op["reuse"]]
        assert distances == sorted(distances)
    assert NOT_KNOWN not in codes(report)
    phases = report.by_phase().values()
    assert report.total.memory_time == pytest.approx(sum(phase.memory_time for phase in phases))


def test_reports_without_reuse_stand_at_footprints_and_say_so(tmp_path):
    report = run(linears(128, 48), torch.ones(1, 128))
    data = json.loads(report.to_json())
    for op in data["ops"]:
        op.pop("reuse", None)
    (tmp_path / "older.json").write_text(json.dumps(data))
    older = roofprof.Report.from_json(tmp_path / "older.json")
    assert older.total.memory_time == pytest.approx(older.total.bytes / L2, abs=50e-9)
    assert NOT_KNOWN in codes(older)
    (tmp_path / "again.json").write_text(report.to_json())
    again = roofprof.Report.from_json(tmp_path / "again.json")
    assert again.total.memory_time == report.total.memory_time
    assert NOT_KNOWN not in codes(again)


def test_work_that_is_declared_stands_at_its_footprint():
    def forward(value):
        with roofprof.work("spconv", bytes=1000):
            pass
        return value + 1

    report = run(forward, torch.ones(8))
    (note,) = (note for note in report.coverage.notes if note.code == NOT_KNOWN)
    assert "spconv" in str(note)
    assert "add" not in str(note)
