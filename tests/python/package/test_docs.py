"""The pages: their Python runs as it stands there, their links lead somewhere, the README stays short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from names_of_docs import names_of

from roofprof import _C
from roofprof.pytest_plugin import Roofprof

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = [".", "docs", "benchmarks", "benchmarks/prediction", "csrc", "examples", "python/roofprof/compat"]
PAGES = sorted(page for folder in [*FOLDERS, "tests", "tests/gpu"] for page in (ROOT / folder).glob("*.md"))
LONGEST_README = 150

# No server is asked, and nothing is written beside the test's folder.
TRACKERS = {
    "MLFLOW_ALLOW_FILE_STORE": "true",
    "MLFLOW_TRACKING_URI": "file://{}/mlruns",
    "WANDB_MODE": "offline",
    "WANDB_SILENT": "true",
}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def snippets(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def without_costs_afterwards():
    """Costs of operators that a page gives are not to count in other tests."""
    yield
    for cost in _C.op_costs():
        if cost["family"] == "own":
            _C.remove_op_cost(cost["op"])


@pytest.mark.integration
# The first snippet of docs/agents.md is a file that the others import: tests/python/agents/test_skill.py runs them.
@pytest.mark.parametrize("page", [page for page in map(name, PAGES) if snippets(page) and page != "docs/agents.md"])
@pytest.mark.filterwarnings("ignore")  # of trainers, about small models on a CPU; of compat, about conventions
@pytest.mark.usefixtures("without_costs_afterwards")
def test_the_python_of_the_pages_runs(page, tmp_path, monkeypatch):
    for variable, value in TRACKERS.items():
        monkeypatch.setenv(variable, value.format(tmp_path))
    monkeypatch.chdir(tmp_path)
    names = names_of(page)
    for code in snippets(page):
        # What a program had before is another tool's, which need not be installed.
        after = re.sub(r"^from .*# before$", "", code, flags=re.MULTILINE)
        exec(compile(after, page, "exec"), names)
    for test in [value for given, value in names.items() if given.startswith("test_")]:
        test(Roofprof(tmp_path))  # as pytest calls what the page defines


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", text):
        linked = page.parent / target if target else page
        assert linked.exists(), target
        headings = re.findall(r"^#+ (.*)", linked.read_text(), re.MULTILINE)
        assert not anchor or anchor in {heading.lower().replace(" ", "-") for heading in headings}


def test_every_module_in_place_of_a_tool_is_in_the_table_of_imports_and_the_readme_is_short():
    section = (ROOT / "docs/compat.md").read_text().split("## Which import replaces which", 1)[1].split("\n## ", 1)[0]
    listed = re.findall(r"^\| `.*\| `(\w+)` \|$", section, re.MULTILINE)
    files = (ROOT / "python/roofprof/compat").glob("[a-z]*.py")
    assert sorted(listed) == sorted(file.stem for file in files)
    assert len((ROOT / "README.md").read_text().splitlines()) <= LONGEST_README
