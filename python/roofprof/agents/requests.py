"""Reads messages on the standard input, and answers lines that are not messages, which the package mcp drops."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, BinaryIO

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from roofprof.agents.quoting import one_line

_LARGEST = 2**22  # bytes of a message

_Id = int | str | None


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Any, Any]]:
    """Serve the standard input and output: give a stream of what comes in and one of what goes out.

    Meanwhile descriptor 0 is at its end and 1 is the standard error, so that nothing else gets between the messages.
    """
    wire = [os.dup(0), os.dup(1)]
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    try:
        lines = _Lines(os.fdopen(wire[0], "rb", closefd=False))  # a thread may still wait there when all has ended
        out = anyio.wrap_file(os.fdopen(wire[1], "w", encoding="utf-8", newline="\n", closefd=False))
        async with stdio_server(lines, out) as (requests, answers):
            lines.answers = answers
            yield requests, answers
    finally:
        for number, kept in enumerate(wire):
            os.dup2(kept, number)


class _Lines:
    """Yields the lines that are messages, and answers the others."""

    answers: Any  # takes the answers to lines that are not messages

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await anyio.to_thread.run_sync(self._line, abandon_on_cancel=True):
            if not line.strip() and len(line) <= _LARGEST:
                continue
            text = line.decode(errors="replace")
            ids, code, why = _refused(text) if len(line) <= _LARGEST else _TOO_LARGE
            if not why:
                yield text
            for answered in ids:
                error = ErrorData(code=code, message=why)
                await self.answers.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=answered, error=error)))

    def _line(self) -> bytes:
        """Return the next line; if it is too large, only its beginning, which is longer than a message may be."""
        line = rest = self._file.readline(_LARGEST + 1)
        while len(line) > _LARGEST and rest and not rest.endswith(b"\n"):
            rest = self._file.readline(_LARGEST)
        return line


_TOO_LARGE: tuple[list[_Id], int, str] = ([None], INVALID_REQUEST, f"a message has at most {_LARGEST:,} bytes")


def _refused(line: str) -> tuple[list[_Id], int, str]:
    """Return the ids to answer, the error's code and its reason for a line that is not a message; "" if it is one."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return [None], PARSE_ERROR, "the line is no JSON"
    if isinstance(message, list):
        ids = [_id_of(one) for one in message if not isinstance(one, dict) or "id" in one]
        return ids or [None], INVALID_REQUEST, "several messages in one are not served: send one after the other"
    if not isinstance(message, dict):
        return [None], INVALID_REQUEST, "a message is a JSON object"
    if not (why := _why_no_message(message, line)):
        return [], 0, ""
    no_answer = ("method" in message and "id" not in message) or "result" in message or "error" in message
    return [] if no_answer else [_id_of(message)], INVALID_REQUEST, why  # a notification and a response have no answer


def _why_no_message(message: dict[str, Any], line: str) -> str:
    try:
        json.dumps(message, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return "the message has half of a surrogate pair, which is no character"
    if "method" in message and "id" in message and _id_of(message) is None:
        return "the id of a request is a string or an integer"
    try:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        wrong = error.errors()[0]
        return one_line(f"the message is none of JSON-RPC 2.0: {'.'.join(map(str, wrong['loc']))}: {wrong['msg']}")
    return ""


def _id_of(message: Any) -> _Id:
    found = message.get("id") if isinstance(message, dict) else None
    plain = (isinstance(found, str) and found.isprintable()) or (isinstance(found, int) and not isinstance(found, bool))
    return found if plain else None
