"""A server of the Model Context Protocol as a process, asked line by line."""

from __future__ import annotations

import json
import subprocess
import sys

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": "first",
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


class Pipes:
    """A server, its requests and answers as lines."""

    def __init__(self, *arguments):
        command = [sys.executable, "-m", "roofprof", "mcp", *map(str, arguments)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.ask(json.dumps(INITIALIZE))["result"]["serverInfo"]["name"] == "roofprof"
        self.send('{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def send(self, line):
        self.process.stdin.write(line.encode() if isinstance(line, str) else line)
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read().decode()
        return json.loads(line)

    def ask(self, line):
        self.send(line)
        return self.answer()

    def call(self, number, tool, **arguments):
        params = {"name": tool, "arguments": arguments}
        self.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}))

    def close(self):
        self.process.stdin.close()
        message = self.process.stderr.read().decode()
        assert (self.process.wait(60), self.process.stdout.read(), message) == (0, b"", "")
