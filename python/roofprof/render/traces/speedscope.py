"""speedscope's file format: https://www.speedscope.app/file-format-schema.json."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from roofprof.render.traces.timeline import Slice, Timeline, nested, stream_name, thread_name

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
    frames = _Frames()
    profiles = [_profile(track, slices, frames) for track, slices in tracks if slices]
    return json.dumps(
        {
            "$schema": SCHEMA,
            "name": name,
            "exporter": exporter,
            "activeProfileIndex": 0,
            "shared": {"frames": [{"name": frame} for frame in frames.known]},
            "profiles": profiles,
        }
    )


class _Frames:
    """Each name once, by its index."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def index(self, name: str) -> int:
        return self.known.setdefault(name, len(self.known))


def _profile(name: str, slices: Iterable[Slice], frames: _Frames) -> dict[str, Any]:
    """Return the profile of nested ``slices``, outer ones first. Ended slices close before the next one opens."""
    events: list[dict[str, Any]] = []
    open_: list[tuple[int, int]] = []  # frame and end
    for slice_ in slices:
        while open_ and open_[-1][1] <= slice_.begin_ns:
            _close(open_, events)
        frame = frames.index(slice_.name)
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
