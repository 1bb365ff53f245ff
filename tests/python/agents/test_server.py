"""The server as clients see it: the package's own, in memory and over the standard input and output."""

import asyncio
import json
import os
import subprocess
import sys

import pytest
import torch
from given_roofs import profiler

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


def answers_to(client, *calls):
    """Each answer with whether it is an error; and the tools."""

    async def ask():
        async with client as session:
            tools = (await session.list_tools()).tools
            answers = [await session.call_tool(name, arguments) for name, arguments in calls]
        return [(answer.content[0].text, bool(answer.is_error)) for answer in answers], tools

    return asyncio.run(ask())


@pytest.mark.parametrize("way", [in_memory, over_pipes])
def test_tools_answer_as_they_do_in_python_and_refuse_what_is_outside(folder, way):
    calls = [
        ("reports", {}),
        ("brief", {"report": "r.json"}),
        ("findings", {"report": "r.json"}),
        ("rows", {"report": "r.json", "by": "op", "limit": 3}),
        ("explain", {"name": "macs", "report": "r.json"}),
        ("compare", {"before": "r.json", "after": "r.json"}),
        ("docs", {"page": "definitions#kernels"}),
    ]
    outside = ["../outside.json", str(folder.parent / "outside.json"), "link.json", "/etc/passwd"]
    answers, listed = answers_to(way(folder), *calls, *(("rows", {"report": name}) for name in outside))
    tools = Tools(Folder(folder))
    assert answers[: len(calls)] == [(getattr(tools, name)(**arguments), False) for name, arguments in calls]
    assert [tool.name for tool in listed] == NAMES
    assert all(tool.annotations.read_only_hint and tool.description for tool in listed)
    for (text, failed), name in zip(answers[len(calls) :], outside, strict=True):
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
    ((text, failed),), _ = answers_to(in_memory(folder), (name, arguments))
    assert failed
    assert says in text
    assert "\n" not in text


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


def test_what_is_missing_is_reported(monkeypatch, capsys, tmp_path):
    assert main(["mcp", str(tmp_path / "absent")]) == 2
    assert capsys.readouterr().err == f"roofprof: {tmp_path / 'absent'}: there is no such folder\n"
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert main(["mcp", str(tmp_path)]) == 2
    needs = "roofprof: roofprof mcp needs the package mcp: run `pip install 'roofprof[mcp]'`\n"
    assert capsys.readouterr().err == needs
