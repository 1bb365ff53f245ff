"""The server as clients see it: the package's own, in memory and over the standard input and output."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from given_roofs import profiler

import roofprof
from roofprof.cli import main

mcp = pytest.importorskip("mcp")

from mcp import Client, StdioServerParameters, stdio_client  # noqa: E402

from roofprof.agents.folder import Folder  # noqa: E402
from roofprof.agents.server import Server  # noqa: E402
from roofprof.agents.tools import Tools  # noqa: E402

pytestmark = pytest.mark.integration

NAMES = ["reports", "brief", "findings", "rows", "kernels", "compare", "predict", "explain", "docs"]


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    profiler(torch.nn.Linear(64, 32)).run(torch.rand(8, 64)).to_json(folder / "r.json")
    profiler(torch.nn.Linear(64, 32)).run(torch.rand(8, 64)).to_json(folder.parent / "outside.json")
    (folder / "link.json").symlink_to(folder.parent / "outside.json")
    return folder


def in_memory(folder):
    return Client(Server(Tools(Folder(folder))))


def over_pipes(folder):
    command = [sys.executable, "-m", "roofprof", "mcp", str(folder)]
    return Client(stdio_client(StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))))


def asked(client, *calls):
    """Each answer with whether it is an error; and the tools."""

    async def ask():
        async with client as session:
            tools = (await session.list_tools()).tools
            answers = [await session.call_tool(name, arguments) for name, arguments in calls]
        return [(answer.content[0].text, bool(answer.is_error)) for answer in answers], tools

    return asyncio.run(ask())


@pytest.mark.parametrize("way", [in_memory, over_pipes])
def test_tools_answer_as_they_do_in_python(folder, way):
    tools = Tools(Folder(folder))
    answers, listed = asked(
        way(folder),
        ("reports", {}),
        ("brief", {"report": "r.json"}),
        ("findings", {"report": "r.json"}),
        ("rows", {"report": "r.json", "by": "op", "limit": 3}),
        ("explain", {"name": "macs", "report": "r.json"}),
        ("compare", {"before": "r.json", "after": "r.json"}),
        ("docs", {"page": "definitions#kernels"}),
    )
    assert [text for text, _ in answers] == [
        tools.reports(),
        tools.brief("r.json"),
        tools.findings("r.json"),
        tools.rows("r.json", by="op", limit=3),
        tools.explain("macs", "r.json"),
        tools.compare("r.json", "r.json"),
        tools.docs("definitions#kernels"),
    ]
    assert not any(failed for _, failed in answers)
    assert [tool.name for tool in listed] == NAMES
    assert all(tool.annotations.read_only_hint and tool.description for tool in listed)


@pytest.mark.parametrize("way", [in_memory, over_pipes])
def test_what_is_outside_is_refused_in_one_sentence(folder, way):
    outside = ["../outside.json", str(folder.parent / "outside.json"), "link.json", "/etc/passwd"]
    answers, _ = asked(way(folder), *(("rows", {"report": name}) for name in outside))
    for (text, failed), name in zip(answers, outside, strict=True):
        assert failed, name
        assert "is not in the folder of reports" in text or "links are not followed" in text
        assert "\n" not in text


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("rows", {"report": "q.json"}, "there is no report 'q.json'; the nearest are "),
        ("rows", {}, "the argument 'report': "),
        ("rows", {"report": "r.json", "limit": "many"}, "the argument 'limit': "),
        ("rows", {"report": "r.json", "limti": 3}, "the tool 'rows' takes no 'limti': it has report, by, "),
        ("row", {}, "there is no tool 'row'; the nearest are rows"),
        ("explain", {"name": "tiem"}, "the nearest are "),
        ("profile", {"target": "m.py:build", "name": "x.json"}, "there is no tool 'profile'"),
    ],
)
def test_errors_are_one_sentence(folder, name, arguments, says):
    ((text, failed),), _ = asked(in_memory(folder), (name, arguments))
    assert failed
    assert says in text
    assert "\n" not in text


def test_a_model_runs_only_if_it_is_named(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("m.py").write_text("import torch\n\n\ndef build():\n    return torch.nn.Linear(64, 32)\n")
    (tmp_path / "reports").mkdir()
    client = Client(Server(Tools(Folder("reports"), ["m.py:build --count"])))
    answers, listed = asked(
        client,
        ("profile", {"target": "m.py:other", "name": "x.json"}),
        ("profile", {"target": "m.py:build", "name": "x.json", "input": ["4x64"]}),
    )
    assert not listed[-1].annotations.read_only_hint
    assert answers[0] == ("'m.py:other' may not run; allowed are m.py:build", True)
    assert not answers[1][1], answers
    assert roofprof.Report.from_json("reports/x.json").total.macs == 4 * 64 * 32


def test_descriptions_are_short(folder, capsys):
    assert main(["mcp", str(folder), "--json"]) == 0
    text = capsys.readouterr().out
    assert [tool["name"] for tool in json.loads(text)] == NAMES
    assert len(json.dumps(json.loads(text))) < 7000
    arguments = [one for tool in json.loads(text) for one in tool["inputSchema"]["properties"].values()]
    assert next(one["description"] for one in arguments if one["title"] == "Limit") == "how many, most gain first"
    assert all(one["description"] for one in arguments)


def test_the_server_loads_no_torch_and_ends_with_its_input(folder):
    program = (
        "import sys\nfrom roofprof.cli import main\n"
        "code = main(sys.argv[1:])\nassert 'torch' not in sys.modules\nsys.exit(code)"
    )
    command = [sys.executable, "-c", program, "mcp", str(folder)]
    run = subprocess.run(command, input="", capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_without_the_package_it_says_what_to_install(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert main(["mcp", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        "roofprof: roofprof mcp needs the package mcp: run `pip install 'roofprof[mcp]'`\n"
    )


def test_a_folder_that_is_not_there_is_said(capsys, tmp_path):
    assert main(["mcp", str(tmp_path / "absent")]) == 2
    assert capsys.readouterr().err == f"roofprof: {tmp_path / 'absent'}: there is no such folder\n"
