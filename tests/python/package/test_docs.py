"""The pages: their Python runs as it stands there, their links lead somewhere, the README stays short."""

from __future__ import annotations

import re
import types
from pathlib import Path

import pytest
import torch
from torch import nn

import roofprof

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted(
    page for folder in (".", "docs", "benchmarks", "tests", "tests/gpu") for page in (ROOT / folder).glob("*.md")
)
LONGEST_README = 175
RUN = [
    "README.md",
    "docs/first-hour.md",
    "docs/guide-compiled.md",
    "docs/guide-inputs.md",
    "docs/guide-training.md",
    "docs/index.md",
    "docs/python.md",
]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def snippets(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


class Detector(nn.Module):
    """Has the names and the output that the pages speak of."""

    def __init__(self):
        super().__init__()
        self.layer1 = nn.Sequential(nn.ModuleDict({"conv1": nn.Conv2d(3, 4, 3)}))

    def forward(self, image):
        return {"loss": self.layer1[0]["conv1"](image).mean()}


@pytest.fixture
def names(tmp_path, monkeypatch):
    """What the snippets take for given, in a folder that they may write to."""
    monkeypatch.chdir(tmp_path)
    model = Detector()
    batch = torch.rand(1, 3, 8, 8)
    return {
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


@pytest.mark.parametrize("page", RUN)
def test_the_python_of_the_pages_runs(page, names):
    for code in snippets(page):
        exec(compile(code, page, "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", text):
        linked = page.parent / target if target else page
        assert linked.exists(), target
        headings = re.findall(r"^#+ (.*)", linked.read_text(), re.MULTILINE)
        assert not anchor or anchor in {heading.lower().replace(" ", "-") for heading in headings}


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= LONGEST_README
