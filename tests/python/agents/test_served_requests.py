"""Every line on the server's standard input gets the answer that JSON-RPC 2.0 wants, whatever is in it."""

import json
import os
import subprocess
import sys

import pytest
import torch
from mcp_pipes import Pipes
from torch import nn

import roofprof

pytest.importorskip("mcp")
pytestmark = pytest.mark.integration

REPORTS = '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"reports","arguments":{}}}'


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    roofprof.count(nn.Linear(4, 2), torch.rand(1, 4)).to_json(folder / "r.json")
    return folder


@pytest.fixture(name="server", scope="module")
def _server(folder):
    server = Pipes(folder)
    yield server
    server.close()


CALL = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"rows","arguments":{"report":"%s"}}}'
REFUSED = {
    "half of a surrogate pair": [
        (CALL % "\\ud800", [7]),
        ('{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', [None]),
    ],
    "no JSON": [("{", [None]), ("x", [None]), ("[" * 200_000, [None]), ('{"a":' * 200_000, [None])],
    "a JSON object": [("3", [None]), ('"ping"', [None]), ("null", [None])],
    "none of JSON-RPC 2.0": [
        ("{}", [None]),
        ('{"id":8,"method":"ping"}', [8]),
        ('{"jsonrpc":"1.0","id":8,"method":"ping"}', [8]),
        ('{"jsonrpc":"2.0","id":8,"method":3}', [8]),
        ('{"jsonrpc":"2.0","id":8,"method":"ping","params":[1]}', [8]),
    ],
    "a string or an integer": [
        (f'{{"jsonrpc":"2.0","id":{wrong},"method":"ping"}}', [None]) for wrong in ("null", "1.5", "true", "[1]")
    ],
    "several messages in one": [
        ("[]", [None]),
        (f"[{REPORTS % 1},{REPORTS % 2}]", [1, 2]),
        (f'[{REPORTS % 1},{{"jsonrpc":"2.0","method":"x"}},3]', [1, None]),
    ],
    "at most 4,194,304 bytes": [(" " * (2**22 + 1), [None]), (CALL % ("x" * 2**23), [None])],
    "Method not found": [('{"jsonrpc":"2.0","id":9,"method":"no/such"}', [9])],
    "": [
        ('{"jsonrpc":"2.0","id":9,"method":"tools/call"}', [9]),
        ('{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"rows","arguments":[]}}', [9]),
    ],
}


@pytest.mark.parametrize("says", REFUSED)
def test_what_cannot_be_served_is_answered_with_an_error(server, says):
    for line, ids in REFUSED[says]:
        server.send(line)
        answers = [server.answer() for _ in ids]
        assert [answer["id"] for answer in answers] == ids
        for answer in answers:
            assert says in answer["error"]["message"]
            assert "\n" not in answer["error"]["message"]
    assert "r.json" in server.ask(REPORTS % 10)["result"]["content"][0]["text"]  # and it goes on


def test_what_asks_for_nothing_is_not_answered(server):
    for line in (
        "",
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}',
        '{"jsonrpc":"2.0","method":"notifications/initialized","params":[1]}',
        '{"jsonrpc":"2.0","method":"\\ud800"}',
        '{"jsonrpc":"2.0","id":5,"result":3}',
        '{"jsonrpc":"2.0","id":5,"error":{}}',
    ):
        server.send(line)
    assert server.ask(REPORTS % 11)["id"] == 11


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"report": "x" * 9000}, "is not in the folder of reports"),
        ({"report": "x" * 3000}, "there is no report 'xxx"),
        ({"report": "x" * 20_000}, "none need more than 10,000"),
        ({"report": "r.json", "x\n1. do: y" * 20: 1}, "the tool 'rows' takes no 'x 1. do: yx"),
        ({"report": 3}, "the argument 'report'"),
        ({"report": None}, "the argument 'report'"),
        ({"report": "r.json", "limit": -(10**30)}, "limit must be 1 or more"),
        ({"report": "r.json", "limit": 1e400}, "the argument 'limit'"),
        ({"report": "a\u202eb\u2028c.json"}, "there is no report 'a\ufffdb c.json'"),
    ],
)
def test_arguments_that_nothing_takes_are_answered_in_a_sentence(server, arguments, says):
    server.call(12, "rows", **arguments)
    answer = server.answer()
    result = answer["result"]
    assert (answer["id"], result["isError"]) == (12, True)
    (text,) = [part["text"] for part in result["content"]]
    assert says in text
    assert "\n" not in text
    assert len(text) < 600


def test_bytes_that_are_no_utf_8_are_answered(server):
    server.send((CALL % "@").encode().replace(b"@", b"\xff\xed\xa0\x80"))
    assert "there is no report" in server.answer()["result"]["content"][0]["text"]


def test_answers_before_initialize_are_errors(folder):
    command = [sys.executable, "-m", "roofprof", "mcp", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ)) as process:
        process.stdin.write((REPORTS % 1).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.stdin.close()
