"""What the Python of the pages takes for given: small models under the names that the pages speak of."""

from __future__ import annotations

import re
import types
from pathlib import Path
from typing import Any

import torch
from given_roofs import profiler
from scaled_reports import scaled_report
from torch import nn

import roofprof

ROOT = Path(__file__).resolve().parents[3]


class Detector(nn.Module):
    """Has the names and the output that the pages speak of."""

    def __init__(self):
        super().__init__()
        self.layer1 = nn.Sequential(nn.ModuleDict({"conv1": nn.Conv2d(3, 4, 3)}))

    def forward(self, image):
        return {"loss": self.layer1[0]["conv1"](image).mean()}


class ResNet(nn.Module):
    """Takes an image in each form that other tools give it: alone, with features, in a dict, by a keyword."""

    def __init__(self):
        super().__init__()
        self.layer1 = nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.ReLU())
        self.head = nn.Linear(4, 10)

    def forward(self, image=None, features=None, *, batch=None):
        given = image if batch is None else batch
        pooled = self.layer1(given["image"] if isinstance(given, dict) else given).mean((2, 3))
        return self.head(pooled) + (0 if features is None else features)


def names_of(page: str) -> dict[str, Any]:
    """Of this page; the working folder may be written to."""
    model = Detector()
    batch = torch.rand(1, 3, 8, 8)
    names = {
        "roofprof": roofprof,
        "torch": torch,
        "model": model,
        "args": (batch,),
        "kwargs": {},
        "x": batch,
        "batch": batch,
        "batches": [batch, batch],
        "optimizer": torch.optim.SGD(model.parameters(), 0.1),
        "macs": 10,
        "moved": 40,
        "scores": batch,
        "features": batch,
        "decode": torch.relu,
        "spconv_ext": types.SimpleNamespace(forward=torch.relu),
    }
    return names | _OF_PAGE.get(page, dict)()


def _image_model() -> dict[str, Any]:
    return {"model": ResNet(), "batch": {"image": torch.rand(1, 3, 16, 16)}, "x": torch.rand(1, 3, 16, 16)}


def _gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(n_embd=32, n_layer=2, n_head=2, vocab_size=100, n_positions=256)).eval()


def _compat() -> dict[str, Any]:
    steps = [(torch.rand(2, 3, 16, 16), torch.tensor([0, 1]))] * 7
    return {**_image_model(), "batches": steps, "loss_of": nn.functional.cross_entropy, "llm": _gpt2()}


def _report() -> dict[str, Any]:
    given = _image_model()
    return {**given, "report": profiler(given["model"]).run(given["x"])}


def _two_reports() -> dict[str, Any]:
    model = Detector()
    return {name: profiler(model).run(torch.rand(size, 3, 8, 8)) for size, name in enumerate(("before", "after"), 1)}


def _budget() -> dict[str, Any]:
    from torchvision.models import resnet50

    # The page's own budget; what it says of times holds on one machine and no other.
    (budget,) = re.findall(r"^```toml\n(.*?)^```", (ROOT / "docs/budgets.md").read_text(), re.MULTILINE | re.DOTALL)
    lines = [line for line in budget.splitlines() if not line.startswith(("time", "percent_of_roof"))]
    Path("budget.toml").write_text("\n".join([*lines, 'params = "<= 1 base"']))
    roofprof.count(resnet50(), torch.rand(1, 3, 224, 224)).to_json("base.json")
    return {"build": resnet50}


def _ranks_files() -> dict[str, Any]:
    for ranks in (1, 2, 4):
        scaled_report(ranks, 0.08 / ranks + 0.01).to_json(f"r{ranks}.json")
    return {}


def _trainers() -> dict[str, Any]:
    train_set = [{"image": image} for image in torch.rand(64, 3, 8, 8)]
    return {"train_set": train_set, "batch": {"image": torch.rand(1, 3, 8, 8)}}


def _language_model() -> dict[str, Any]:
    return {"model": _gpt2(), "ids": torch.zeros(1, 8, dtype=torch.int64)}


_OF_PAGE = {
    "docs/findings.md": _report,
    "docs/budgets.md": _budget,
    "docs/callbacks.md": _trainers,
    "docs/compare.md": _two_reports,
    "docs/compat.md": _compat,
    "python/roofprof/compat/README.md": _compat,
    "docs/language-models.md": _language_model,
    "docs/latency.md": _image_model,
    "docs/outputs.md": _report,
    "docs/ranks.md": _ranks_files,
}
