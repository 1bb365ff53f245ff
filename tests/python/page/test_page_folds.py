"""Equal siblings in the page: one line that opens, one dot that has their sums."""

from __future__ import annotations

import given_roofs
import pytest
import torch
from stages import Stage
from torch import nn

import roofprof

pytestmark = pytest.mark.integration

LAYERS = [f"layers.{i}" for i in range(6)]
PARTS = ("conv", "norm", "act")


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(Stage(8, 3) for _ in LAYERS))
        self.head = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(x).mean((2, 3)))


@pytest.fixture(scope="module")
def deep():
    return given_roofs.profiler(Deep().eval(), repeat=3).run(torch.rand(2, 8, 16, 16))


def test_they_are_one_line_with_the_mean_and_the_spread(show, deep):
    opened = show(deep)
    assert opened.paths() == ["", "layers", "layers.0-5", "head"]
    (group,) = deep.siblings
    line = dict(zip(["name", *opened.columns()], opened.rows()[2], strict=True))
    spread = roofprof.fields["time_spread"].text(group.spread)
    assert line["name"].startswith(f"0-5 x6, their mean, spread {spread}")
    assert line["time"] == roofprof.fields["time"].cell(group.mean)
    assert line["macs"] == roofprof.fields["macs"].cell(group.mean)
    assert f"{len(deep.rows)} modules" in opened.page.inner_text("#modules .tools")


def test_it_opens_by_mouse_and_by_keyboard(show, deep):
    opened = show(deep)
    line = opened.line("layers.0-5")
    assert line.get_attribute("aria-expanded") == "false"
    line.locator(".twisty").click()
    assert opened.paths() == ["", "layers", "layers.0-5", *LAYERS, "head"]
    assert [row[0].split()[0] for row in opened.rows()[3:9]] == [str(i) for i in range(6)]
    opened.line("layers.0-5").focus()
    opened.page.keyboard.press("ArrowLeft")
    assert opened.paths() == ["", "layers", "layers.0-5", "head"]
    opened.page.keyboard.press("ArrowRight")
    opened.page.keyboard.press("ArrowRight")
    assert opened.page.evaluate("document.activeElement.cells[0].title") == "layers.0"


def test_all_can_be_unfolded_and_a_flat_list_has_members_alone(show, deep):
    opened = show(deep)
    opened.page.get_by_label("Filter modules by text").fill("layers.3.conv")
    assert opened.paths() == ["", "layers", "layers.0-5", "layers.3", "layers.3.conv"]
    opened.page.get_by_label("Filter modules by text").fill("")
    opened.page.get_by_role("button", name="Unfold all").click()
    members = [path for layer in LAYERS for path in (layer, *(f"{layer}.{part}" for part in PARTS))]
    assert opened.paths() == ["", "layers", "layers.0-5", *members, "head"]
    opened.line("layers.4.conv").click()
    assert opened.rings() == 1
    opened.line("layers.0-5").click()
    assert opened.rings() == 4
    opened.page.locator(".flat input").click()
    assert opened.paths() == ["", "layers", *members, "head"]


def test_they_are_one_dot_which_shows_a_row(show, deep):
    opened = show(deep)
    dots = opened.dots()
    assert len(dots) == 3 + 1 + 2  # conv, norm and act; own ops of the layers; head and the model's own
    conv = next(dot for dot in dots if dot["kind"] == "convolution")
    opened.page.mouse.click(conv["left"], conv["top"])
    opened.page.wait_for_selector("#modules tr[aria-selected=true]")
    assert opened.marked() == ["layers.0.conv"], "the first of them"
    assert opened.rings() == 1
    data = opened.page.evaluate("JSON.parse(document.getElementById('data').textContent)")
    assert "layers.0-5.conv x6" in [dot["label"] for dot in data["rooflines"]["module"]["dots"]]
