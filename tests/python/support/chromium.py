"""Pages in headless Chromium, as a reader has them; what a page must not do is noted meanwhile."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


def launched():
    """A running browser, for a fixture; skips where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"none of {', '.join(NAMES)} is on the PATH: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """A page that is ready."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page = browser.new_page(**{"viewport": {"width": 1200, "height": 900}} | options)
        self.page.set_default_timeout(60_000)  # of a busy machine
        self.page.on(
            "console", lambda printed_text: self.complaints.append(f"{printed_text.type}: {printed_text.text}")
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready=yes]", state="attached")
        self.path = path

    def close(self) -> None:
        """It said nothing and asked for nothing."""
        self.page.close()
        assert not self.complaints
        assert self.requests == [self.path.as_uri()]

    # ---- tables

    def rows(self, section: str = "modules") -> list[list[str]]:
        """The texts of the lines that are in the document."""
        return self.page.evaluate(
            "id => [...document.querySelectorAll(`#${id} tbody tr`)].map(r => [...r.cells].map(c => c.textContent))",
            section,
        )

    def paths(self, section: str = "modules") -> list[str]:
        """Whole names of these lines."""
        return self.page.evaluate(
            "id => [...document.querySelectorAll(`#${id} tbody tr`)].map(r => r.cells[0].title)", section
        )

    def columns(self, section: str = "modules") -> list[str]:
        """Names of the figures that are shown."""
        return self.page.evaluate(
            "id => [...document.querySelectorAll(`#${id} thead button`)].slice(1).map(b => b.dataset.column)", section
        )

    def choose_every_column(self, section: str = "modules") -> None:
        """Also the self figures."""
        self.page.evaluate(
            "id => document.querySelectorAll(`#${id} .chooser input:not(:checked)`).forEach(box => box.click())",
            section,
        )

    def line(self, path: str, section: str = "modules") -> Any:
        """The line of that module, in the document."""
        return self.page.locator(f"#{section} tbody tr").nth(self.paths(section).index(path))

    def marked(self, section: str = "modules") -> list[str]:
        """Names of the lines that are marked."""
        return self.page.evaluate(
            "id => [...document.querySelectorAll(`#${id} tbody tr[aria-selected=true]`)].map(r => r.cells[0].title)",
            section,
        )

    # ---- the plot

    def dots(self) -> list[dict[str, Any]]:
        """Each dot that is shown: its row, kind, place in data and its middle on the screen."""
        return self.page.evaluate("""() => {
          document.getElementById('plot').scrollIntoView({ block: 'center' });
          const { rooflines } = JSON.parse(document.getElementById('data').textContent);
          const by = { Modules: 'module', Operators: 'op', Kernels: 'kernel' };
          const chosen = document.querySelector('#roofline-by [aria-pressed=true]');
          const known = new Map(rooflines[chosen ? by[chosen.textContent] : 'module'].dots.map(dot => [dot.row, dot]));
          return [...document.querySelectorAll('#plot .dot')].map(mark => {
            const { a, e, f } = mark.getScreenCTM();
            const dot = known.get(Number(mark.dataset.row));
            return { row: dot.row, kind: dot.kind, x: dot.intensity, y: dot.rate, size: 2 * a, left: e, top: f }; });
        }""")

    def rings(self) -> int:
        """How many dots are marked."""
        return self.page.locator("#plot .ring").count()
