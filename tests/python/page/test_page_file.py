"""The file, without a browser: what is in it, and how it is written."""

import fnmatch
import json
import re
from pathlib import Path

import pytest

import roofprof
from roofprof.render.html import el, joined, json_in_html
from roofprof.render.page.tables import exact

PACKAGE = Path(roofprof.__file__).parent
PARTS = sorted(path for path in (PACKAGE / "render").rglob("*") if path.suffix in {".html", ".css", ".js"})


def test_no_name_ends_the_data():
    names = ["</script>", "<!--", "<script", "]]>", "&amp;", "\u2028", "\udc80", "__proto__"]
    text = json_in_html(names)
    assert not set("<>&") & set(text)
    assert text.isascii()
    assert json.loads(text) == names


def test_numbers_are_read_as_they_are():
    assert exact(2**53 - 1) == 2**53 - 1
    assert exact(2**63 - 1) == str(2**63 - 1)  # JavaScript would round it
    assert exact(0.1) == 0.1
    assert exact(3.0) == 3 and isinstance(exact(3.0), int)
    assert exact(float("inf")) is exact(float("nan")) is None


def test_what_is_no_html_is_escaped():
    assert el("p", "<b>", el("i", "&"), None, title='"<') == '<p title="&quot;&lt;">&lt;b&gt;<i>&amp;</i></p>'
    assert joined("<", el("b"), by="&") == "&lt;&amp;<b></b>"
    assert el("p", "" + el("b")) == "<p>&lt;b&gt;&lt;/b&gt;</p>"  # put together by hand, it is a text


@pytest.mark.integration
def test_the_file_is_small_and_loads_nothing(report, tmp_path):
    path = tmp_path / "page.html"
    report.to_html(path)
    text = path.read_text()
    outside = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"""(src|href)\s*=|url\(|@import""", outside)
    assert text.count("<script") == 2
    assert "{{" not in outside
    assert len(text) < 200_000


@pytest.mark.integration
def test_the_same_report_gives_the_same_file(report, tmp_path):
    report.to_json(tmp_path / "r.json")
    for name, of in (("a.html", report), ("b.html", roofprof.Report.from_json(tmp_path / "r.json"))):
        of.to_html(tmp_path / name)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


@pytest.mark.integration
def test_a_page_that_cannot_be_written_leaves_nothing(report, tmp_path):
    with pytest.raises(OSError, match="page.html"):
        report.to_html(tmp_path / "none" / "page.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_parts_are_short_and_make_no_markup_of_data(part):
    text = part.read_text()
    assert len(text.splitlines()) <= 350
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
        "fetch(",
        "://",
    ):
        assert word not in text, word


def test_an_installed_package_has_the_parts():
    project = (PACKAGE.parents[1] / "pyproject.toml").read_text()
    for part in PARTS:
        package = ".".join(part.parent.relative_to(PACKAGE.parent).parts)
        patterns = json.loads(re.search(rf'^"{package}" = (\[.*\])$', project, re.MULTILINE)[1])
        assert any(fnmatch.fnmatch(part.name, pattern) for pattern in patterns)
    assert {"page.html", "page.css", "main.js"} <= {part.name for part in PARTS}
