"""The documentation site: built without warnings, all pages in it, every public name, no dead link."""

import re
import subprocess
import sys
import zlib
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

import roofprof

pytestmark = pytest.mark.integration

for package in ("sphinx", "myst_parser", "furo"):
    pytest.importorskip(package)

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = tmp_path_factory.mktemp("site")
    options = ["--fail-on-warning", "--keep-going", "--nitpicky", "--quiet", "-d", made / "doctrees"]
    run = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, DOCS, made / "html"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return made / "html"


def test_every_public_name_is_in_the_reference(site):
    _, packed = (site / "objects.inv").read_bytes().split(b"using zlib.\n", 1)
    names = {line.split()[0] for line in zlib.decompress(packed).decode().splitlines() if " py:" in line}
    assert {f"roofprof.{name}" for name in [*roofprof.__all__, "time"]} <= names


def test_every_page_is_in_the_table_of_contents():
    listed = set()
    for tree in re.findall(r"^```{toctree}\n(.*?)^```", (DOCS / "index.md").read_text(), re.MULTILINE | re.DOTALL):
        listed |= {line for line in tree.splitlines() if line and not line.startswith(":")}
    assert listed == {page.stem for page in DOCS.glob("*.md")} - {"index"}


def test_every_header_is_in_the_reference():
    text = (DOCS / "reference-cpp.md").read_text()
    headers = {path.name for path in (ROOT / "csrc/include/roofprof").glob("*.h")}
    assert set(re.findall(r"^```{literalinclude} \.\./csrc/include/roofprof/(.*)$", text, re.MULTILINE)) == headers


def test_no_local_link_is_dead(site):
    text_of = {page: page.read_text() for page in site.rglob("*.html")}
    anchors = {page: {unescape(name) for name in re.findall(r'\bid="([^"]*)"', text)} for page, text in text_of.items()}
    dead = []
    for page, text in text_of.items():
        for link in re.findall(r'<(?:a|img|link|script)\b[^>]*?\b(?:href|src)="([^"]*)"', text):
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = unescape(link).partition("#")
            linked = (page.parent / unquote(target.partition("?")[0])).resolve() if target else page
            if not linked.exists() or (anchor and linked in anchors and unquote(anchor) not in anchors[linked]):
                dead.append((page.name, link))
    assert not dead
