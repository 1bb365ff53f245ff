"""How the page looks: dark and light, narrow, on paper; what its policy forbids; names that are hostile."""

from __future__ import annotations

import re

import chromium
import given_roofs
import pytest
import torch
from torch import nn

import roofprof

pytestmark = pytest.mark.integration

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<img src=x onerror=alert(3)>",
    "\"'`\\${alert(4)}",
    "__proto__",
    "constructor",
    "hasOwnProperty",
    "\u202eevil\u202c \u05d0\u05d1",
    "<b>%{x}</b> {{data}} {{script}}",
    "a" * 500,
    "\U0001f525 \u00b5\u2028\u2029",
    "&lt;script&gt;",
]


class Hostile(nn.Module):
    """Layers of any name: add_module refuses dots and the empty one alone."""

    def __init__(self) -> None:
        super().__init__()
        for name in HOSTILE:
            self.add_module(name, nn.Linear(4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.children():
            x = layer(x)
        return x


Hostile.__name__ = "</title><script>alert('model')</script>"


@pytest.fixture
def hostile():
    return given_roofs.profiler(Hostile()).run(torch.rand(2, 4))


def test_names_are_text(show, hostile):
    opened = show(hostile)
    opened.page.get_by_role("button", name="Unfold all").click()
    assert opened.paths() == ["", *HOSTILE]
    # Times decide which name has a star behind it.
    assert [row[0].removesuffix(" *") for row in opened.rows()] == [Hostile.__name__, *HOSTILE]
    assert Hostile.__name__ in opened.page.inner_text("h1")
    assert opened.page.title().startswith(Hostile.__name__)
    assert opened.page.locator("main script, main img, main b").count() == 0
    for name in HOSTILE:
        opened.line(name).click()
        assert opened.marked() == [name]
        assert opened.rings() == 1
        assert opened.page.evaluate("document.querySelector('#marked bdi').textContent") == name
    for dot in opened.dots():
        opened.page.mouse.move(dot["left"], dot["top"])
    opened.page.wait_for_selector("#tip:not([hidden])")
    assert opened.page.evaluate("document.querySelector('#tip bdi').textContent") in HOSTILE
    opened.page.get_by_label("Filter modules by text").fill("<script>")
    assert "__proto__" not in opened.paths()


def test_hostile_names_break_no_other_report(show, hostile):
    # In notes, ops, environment, roofs.
    report = hostile.to_dict()
    image, script, link = (
        "<img src=x onerror=alert(6)>",
        "</script><script>alert(5)</script>",
        "<a href='javascript:0'>",
    )
    report["environment"] = {"__proto__": script, "constructor": "</script>"}
    report["notes"] = [{"level": "warning", "code": "x", "where": HOSTILE, "text": f"{image} </script>", "count": 2}]
    for op in report["ops"]:
        op["op"] = script
    for roof in report["ceilings"]["memory"]:
        roof["level"] = f"{link}{roof['level']}</a>"
        roof["provenance"]["method"] = image
    opened = show(roofprof.Report.from_dict(report))
    assert opened.rows("ops")[0][0] == script
    assert image in opened.page.inner_text(".notes")
    assert script in opened.page.inner_text("#environment")
    assert image in opened.page.inner_text("#roofs")
    assert link in opened.page.text_content("#plot")
    assert opened.page.locator("#plot a, main img").count() == 0


def test_the_policy_forbids_what_is_not_in_the_file(browser, report, tmp_path):
    path = tmp_path / "page.html"
    report.to_html(path)
    opened = chromium.Opened(browser, path)
    answered = []
    opened.page.on("requestfinished", lambda request: answered.append(request.url))
    opened.page.evaluate("""() => {
        document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.mine = 1' }));
        document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.mine = 2">');
        document.body.append(Object.assign(document.createElement('img'), { src: 'http://127.0.0.1:9/x.png' }));
        document.body.append(Object.assign(document.createElement('iframe'), { src: 'http://127.0.0.1:9/' }));
    }""")
    assert opened.page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'loaded', () => 'refused')") == "refused"
    assert opened.page.evaluate("window.mine") is None
    assert any("Content Security Policy" in complaint for complaint in opened.complaints)
    assert not answered
    opened.page.close()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', path.read_text())[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy and "http" not in policy


# ---- looks


def lightness(opened, selector: str, what: str) -> float:
    colour = opened.page.evaluate(f"getComputedStyle(document.querySelector('{selector}')).{what}")
    return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3


def is_light(opened) -> bool:
    """Ground and the ink of the plot's axes."""
    ground, ink = lightness(opened, "body", "backgroundColor"), lightness(opened, "#plot .xtick", "fill")
    assert (ground < 60 and ink > 180) or (ground == 255 and ink < 60), (ground, ink)
    return ground > ink


def test_light_and_dark_and_on_paper(show, report):
    opened = show(report, color_scheme="dark")
    assert not is_light(opened)
    opened.page.emulate_media(color_scheme="light")
    assert is_light(opened)
    opened.page.emulate_media(color_scheme="dark", media="print")
    assert is_light(opened)
    assert not opened.page.locator("#modules .tools").is_visible()
    box = "document.querySelector('#modules .box')"  # with all rows
    assert opened.page.evaluate(f"getComputedStyle({box}).maxHeight") == "none"
    assert opened.page.pdf().startswith(b"%PDF")


@pytest.mark.parametrize("which", ["report", "hostile"])
def test_nothing_is_wider_than_a_narrow_screen(show, request, which):
    opened = show(request.getfixturevalue(which), viewport={"width": 400, "height": 800})
    opened.choose_every_column()
    opened.page.evaluate("document.querySelectorAll('details:not(.chooser)').forEach(part => (part.open = true))")
    for state in ("closed", "open"):
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= 400, state
        opened.page.evaluate("document.querySelectorAll('details').forEach(part => (part.open = true))")
    assert opened.page.evaluate("document.querySelector('#modules .box').scrollWidth") > 400  # it scrolls inside
