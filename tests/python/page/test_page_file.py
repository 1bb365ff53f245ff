"""The file, without a browser: what is in it, and how it is written."""

import fnmatch
import json
import re
from pathlib import Path

import pytest

import roofprof
from roofprof.cli import main
from roofprof.render.html import json_in_html
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


@pytest.mark.integration
def test_the_file_is_small_loads_nothing_and_is_that_of_the_same_report(report, tmp_path):
    path = tmp_path / "page.html"
    report.to_html(path)
    text = path.read_text()
    outside = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"""(src|href)\s*=|url\(|@import""", outside)
    assert text.count("<script") == 2
    assert "{{" not in outside
    assert len(text) < 200_000
    report.to_json(tmp_path / "r.json")
    assert main(["html", str(tmp_path / "r.json")]) == 0
    assert (tmp_path / "r.html").read_text() == text


def test_parts_make_no_markup_of_data_and_are_installed():
    project = (PACKAGE.parents[1] / "pyproject.toml").read_text()
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(|fetch\(|://"
    for part in PARTS:
        assert not re.search(forbidden, part.read_text()), part
        package = ".".join(part.parent.relative_to(PACKAGE.parent).parts)
        patterns = json.loads(re.search(rf'^"{package}" = (\[.*\])$', project, re.MULTILINE)[1])
        assert any(fnmatch.fnmatch(part.name, pattern) for pattern in patterns)
    assert {"page.html", "page.css", "main.js"} <= {part.name for part in PARTS}
