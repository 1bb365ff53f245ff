"""What the formats of traces demand, by their published descriptions.

Trace Event Format: "Trace Event Format" by Google (the document that catapult's tracing links to), for the events that
are written: complete (X), metadata (M) and flow (s, f). speedscope: src/lib/file-format-spec.ts of jlfwong/speedscope,
from which https://www.speedscope.app/file-format-schema.json is generated.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

NUMBER = (int, float)
UNITS = {"none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"}


def has(value: Any, needed: dict[str, Any], optional: dict[str, Any] | None = None) -> None:
    """An object with these members and no others, each of its type."""
    types = needed | (optional or {})
    assert isinstance(value, dict)
    assert set(needed) <= set(value) <= set(types), value
    for name, member in value.items():
        assert isinstance(member, types[name]), (name, member)
        assert not isinstance(member, bool)


def check_speedscope(file: Any) -> None:
    has(
        file,
        {"$schema": str, "shared": dict, "profiles": list},
        {"name": str, "exporter": str, "activeProfileIndex": int},
    )
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    has(file["shared"], {"frames": list})
    frames = file["shared"]["frames"]
    for frame in frames:
        has(frame, {"name": str}, {"file": str, "line": NUMBER, "col": NUMBER})
    assert not file["profiles"] or 0 <= file["activeProfileIndex"] < len(file["profiles"])
    for profile in file["profiles"]:
        has(
            profile,
            {"type": str, "name": str, "unit": str, "startValue": NUMBER, "endValue": NUMBER, "events": list},
        )
        assert profile["type"] == "evented"
        assert profile["unit"] in UNITS
        assert profile["startValue"] <= profile["endValue"]
        _check_balanced(profile, len(frames))


def _check_balanced(profile: dict[str, Any], frames: int) -> None:
    """Each close is that of the frame opened last, times never fall, and nothing stays open."""
    stack = []
    last = profile["startValue"]
    for event in profile["events"]:
        has(event, {"type": str, "frame": int, "at": NUMBER})
        assert 0 <= event["frame"] < frames
        assert last <= event["at"] <= profile["endValue"]
        last = event["at"]
        if event["type"] == "O":
            stack.append(event["frame"])
        else:
            assert event["type"] == "C"
            assert stack.pop() == event["frame"]
    assert not stack


def check_trace_events(file: Any) -> None:
    assert set(file) <= {"traceEvents", "displayTimeUnit", "otherData"}
    assert file["displayTimeUnit"] in {"ms", "ns"}
    tracks = defaultdict(list)
    arrows = defaultdict(list)
    for event in file["traceEvents"]:
        place = {"ph": str, "name": str, "pid": int}
        if event["ph"] == "M":
            has(event, place | {"args": dict}, {"tid": int})
            name, value = {
                "process_name": ("name", str),
                "thread_name": ("name", str),
                "process_sort_index": ("sort_index", int),
                "thread_sort_index": ("sort_index", int),
            }[event["name"]]
            has(event["args"], {name: value})
            assert ("tid" in event) == event["name"].startswith("thread")
        elif event["ph"] == "X":
            has(event, place | {"tid": int, "ts": NUMBER, "dur": NUMBER, "cat": str}, {"args": dict})
            assert event["dur"] >= 0
            tracks[event["pid"], event["tid"]].append(event)
        else:
            assert event["ph"] in {"s", "f"}
            has(event, place | {"tid": int, "ts": NUMBER, "cat": str, "id": int}, {"bp": str})
            assert event.get("bp") == ("e" if event["ph"] == "f" else None)
            arrows[event["cat"], event["id"]].append(event)
    for events in tracks.values():
        _check_nested(events)
    for start, finish in arrows.values():
        assert (start["ph"], finish["ph"]) == ("s", "f")
        assert start["name"] == finish["name"]
        for end in (start, finish):  # what it is bound to
            assert any(e["ts"] <= end["ts"] <= e["ts"] + e["dur"] for e in tracks[end["pid"], end["tid"]])


def _check_nested(events: list[dict[str, Any]]) -> None:
    """Slices of a track are apart, or one is inside of the other."""
    open_until: list[int] = []
    for event in events:
        begin, end = round(event["ts"] * 1000), round(event["ts"] * 1000) + round(event["dur"] * 1000)
        while open_until and open_until[-1] <= begin:
            open_until.pop()
        assert not open_until or end <= open_until[-1], event
        open_until.append(end)
    begins = [event["ts"] for event in events]
    assert begins == sorted(begins)


def slices(file: dict[str, Any], category: str) -> list[dict[str, Any]]:
    return [event for event in file["traceEvents"] if event["ph"] == "X" and event["cat"] == category]
