"""A timeline in two formats: the Trace Event Format, which Perfetto and chrome://tracing read, and speedscope's.

https://www.speedscope.app/file-format-schema.json describes the second.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from roofprof.render.traces.timeline import Slice, Timeline, nested, stream_name, thread_name

HOST = 1  # the process of the host; devices come after it


def chrome_trace(timeline: Timeline, facts: dict[str, Any]) -> str:
    """Return the file's text: a process for the host and each device, a track for modules, for ops and for each stream.

    ``facts``: of the report, for the file's head. Times are microseconds.
    """
    facts = facts | ({"events left out": timeline.left_out} if timeline.left_out else {})
    events = ",\n".join(json.dumps(event) for event in _events(timeline))
    return f'{{"displayTimeUnit": "ns", "otherData": {json.dumps(facts)}, "traceEvents": [\n{events}\n]}}\n'


def _events(timeline: Timeline) -> Iterator[dict[str, Any]]:
    places: dict[int, tuple[int, Slice]] = {}  # of ops by id: their track, and where they begin
    yield from _process(HOST, "host")
    for thread, (scopes, ops) in enumerate(zip(timeline.scopes, timeline.ops, strict=True)):
        for tid, what, slices in ((2 * thread + 1, "modules", scopes), (2 * thread + 2, "ops", ops)):
            if not slices:
                continue
            yield from _track(HOST, tid, f"{thread_name(thread)}: {what}")
            yield from (_complete(slice_, HOST, tid) for slice_ in slices)
        for op in ops:
            places.setdefault(op.id, (2 * thread + 2, op))
    for device in sorted({device for device, _, _ in timeline.lanes}):
        yield from _process(HOST + 1 + device, f"device {device}")
    arrows = 0
    tids: dict[int, int] = {}  # the last one given, by device
    for (device, stream, lane), launches in timeline.lanes.items():
        pid = HOST + 1 + device
        tid = tids[device] = tids.get(device, 0) + 1
        yield from _track(pid, tid, stream_name(stream, lane))
        for launch in launches:
            yield _complete(launch, pid, tid)
            if launch.launched_by in places:
                arrows += 1
                track, op = places[launch.launched_by]
                arrow = {"name": "launch", "cat": "launch", "id": arrows}
                yield arrow | {"ph": "s", "pid": HOST, "tid": track, "ts": op.begin_ns / 1000}
                yield arrow | {"ph": "f", "bp": "e", "pid": pid, "tid": tid, "ts": launch.begin_ns / 1000}


def _complete(slice_: Slice, pid: int, tid: int) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": slice_.name,
        "cat": slice_.kind,
        "pid": pid,
        "tid": tid,
        "ts": slice_.begin_ns / 1000,
        "dur": (slice_.end_ns - slice_.begin_ns) / 1000,
        "args": slice_.facts,
    }


def _process(pid: int, name: str) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
    yield {"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": pid}}


def _track(pid: int, tid: int, name: str) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}
    yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": {"sort_index": tid}}


# ---- speedscope

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def speedscope(timeline: Timeline, name: str, exporter: str) -> str:
    """Return the file's text: an evented profile for each thread, ops inside of their modules, and for each stream."""
    tracks = [
        (thread_name(thread), nested([*scopes, *ops]))
        for thread, (scopes, ops) in enumerate(zip(timeline.scopes, timeline.ops, strict=True))
    ]
    tracks += [
        (f"device {device}, {stream_name(stream, lane)}", launches)
        for (device, stream, lane), launches in timeline.lanes.items()
    ]
    frames: dict[str, int] = {}  # numbers, by name
    profiles = [_profile(track, slices, frames) for track, slices in tracks if slices]
    return json.dumps(
        {
            "$schema": SCHEMA,
            "name": name,
            "exporter": exporter,
            "activeProfileIndex": 0,
            "shared": {"frames": [{"name": frame} for frame in frames]},
            "profiles": profiles,
        }
    )


def _profile(name: str, slices: Iterable[Slice], frames: dict[str, int]) -> dict[str, Any]:
    """Return the profile of nested ``slices``, outer ones first. Ended slices close before the next one opens."""
    events: list[dict[str, Any]] = []
    open_: list[tuple[int, int]] = []  # frame and end
    for slice_ in slices:
        while open_ and open_[-1][1] <= slice_.begin_ns:
            _close(open_, events)
        frame = frames.setdefault(slice_.name, len(frames))
        events.append({"type": "O", "frame": frame, "at": slice_.begin_ns})
        open_.append((frame, slice_.end_ns))
    while open_:
        _close(open_, events)
    return {
        "type": "evented",
        "name": name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": events[-1]["at"],
        "events": events,
    }


def _close(open_: list[tuple[int, int]], events: list[dict[str, Any]]) -> None:
    frame, end = open_.pop()
    events.append({"type": "C", "frame": frame, "at": end})
