"""docs/agents.md: what it tells agents to type runs, as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from given_roofs import roofs

from roofprof import manual
from roofprof.agents.folder import Folder
from roofprof.agents.tools import Tools

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "agents.md").read_text()
LONGEST = 150


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(name="folder")
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my_model.py").write_text(blocks("python")[0])
    roofs().save("roofs.json")
    monkeypatch.setenv("ROOFPROF_CEILINGS", str(tmp_path / "roofs.json"))
    return tmp_path


@pytest.mark.integration  # the package mcp is in it
def test_every_command_runs(folder):
    commands = "".join(blocks("bash"))
    assert commands.count("roofprof ") >= 12
    run = subprocess.run(
        ["bash", "-e", "-c", f'roofprof() {{ "{sys.executable}" -m roofprof "$@"; }}\n{commands}'],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr
    reports = {path.name for path in (folder / "reports").iterdir()}
    assert reports == {"before.json", "after.json", "counted.json"}


def test_its_python_runs(folder, monkeypatch):
    monkeypatch.syspath_prepend(str(folder))
    sys.modules.pop("my_model", None)
    names = {}
    for code in blocks("python")[1:]:
        exec(compile(code, "agents.md", "exec"), names)
    sys.modules.pop("my_model", None)


def test_what_it_names_can_be_explained_and_the_tools_are_those_that_there_are(tmp_path):
    for line in re.findall(r"^roofprof explain (.*)$", PAGE, re.MULTILINE):
        assert all(manual.explain(name) for name in line.split())
    tools = [tool.__name__ for tool in Tools(Folder(tmp_path)).all()]
    (listed,) = re.findall(r"The tools (.*?) read that folder", PAGE, re.DOTALL)
    assert re.findall(r"`(\w+)`", listed) == tools
    assert len(PAGE.splitlines()) <= LONGEST
