"""A model may take and return anything."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from attributed import MACS, Model, linear, macs, x
from given_roofs import profiler

import roofprof


@dataclass
class Batch:
    image: torch.Tensor
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FrozenBatch:
    image: torch.Tensor
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SlotsBatch:
    image: torch.Tensor
    extra: dict[str, Any] = field(default_factory=dict)


class ModelOutput(OrderedDict):
    """Fields that are items as well, and a class that forbids to take any away."""

    def __init__(self, **items):
        super().__init__(**items)
        for name, item in items.items():
            object.__setattr__(self, name, item)

    def __setitem__(self, name, item):
        super().__setitem__(name, item)
        object.__setattr__(self, name, item)

    def __delitem__(self, name):
        raise TypeError("fields stay")

    def clear(self):
        raise TypeError("fields stay")


Pair = namedtuple("Pair", "image extra")  # noqa: PYI024


class PlainObject:
    def __init__(self, image, extra):
        self.image = image
        self.extra = extra


EXTRA = {"boxes": [torch.ones(3), {"deep": (torch.zeros(2, 2), None, "name", 7)}], "id": None}
HOLDERS = {
    "dict": lambda image, extra: {"image": image, "extra": extra},
    "nested list": lambda image, extra: [[[image]], extra],
    "dataclass": Batch,
    "frozen dataclass": FrozenBatch,
    "dataclass with slots": SlotsBatch,
    "namedtuple": Pair,
    "ModelOutput": lambda image, extra: ModelOutput(image=image, extra=extra),
    "plain object": PlainObject,
}


def image_of(holder: Any) -> torch.Tensor:
    if isinstance(holder, list):
        return holder[0][0][0]
    return holder["image"] if isinstance(holder, dict) else holder.image


@pytest.mark.parametrize("keyword", [False, True], ids=["positional", "keyword"])
@pytest.mark.parametrize("holder", HOLDERS)
def test_any_container_goes_in_and_out(holder, keyword):
    def forward(self, batch, scale=None, mode="sum", *, flags=()):
        assert scale is None
        assert mode == "mean"
        assert flags == (1, 2)
        return make(self.fc(image_of(batch)), EXTRA)

    make = HOLDERS[holder]
    model = Model(forward, fc=linear())
    batch = make(x(), EXTRA)
    if keyword:
        reports = [
            roofprof.count(model, batch=batch, mode="mean", flags=(1, 2)),
            profiler(model).run(batch=batch, mode="mean", flags=(1, 2)),
        ]
    else:
        reports = [
            roofprof.count(model, batch, None, "mean", flags=(1, 2)),
            profiler(model).run(batch, None, "mean", flags=(1, 2)),
        ]
    for report in reports:
        assert macs(report) == {"fc": MACS}
        assert report.total.macs == MACS
        assert report.coverage.notes == []


@pytest.mark.parametrize("name", ["model", "args", "kwargs", "warmup", "ceilings", "session"])
def test_keyword_named_like_one_of_ours(name):
    model = Model(lambda net, **given: net.fc(given[name]), fc=linear())
    assert roofprof.count(model, **{name: x()}).total.macs == MACS
    assert profiler(model).run(**{name: x()}).total.macs == MACS


def test_profile_takes_a_keyword_called_model(monkeypatch):
    monkeypatch.setattr(roofprof.roofs.ceilings, "for_device", lambda *_: roofprof._C.Ceilings())
    net = Model(lambda self, model: self.fc(model), fc=linear())
    assert roofprof.profile(net, model=x()).total.macs == MACS


def test_shapes_of_what_goes_in_and_out():
    model = Model(lambda self, batch, *, mask: {"a": [self.fc(batch["x"])], "mask": mask}, fc=linear())
    row = roofprof.count(model, {"x": x(), "meta": "text"}, mask=torch.ones(5)).row("")
    assert row.input_shapes == [[2, 8], [5]]
    assert row.output_shapes == [[2, 4], [5]]
    assert row.output_bytes == (2 * 4 + 5) * 4
