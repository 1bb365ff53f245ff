"""The events of a report's run as slices with names, by track."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from roofprof import _report
from roofprof.errors import Error

REGION_ROW = "region"  # the type of a region's row

# What a slice shows of its row, where the row has it.
FIGURES = ("calls", "flops", "bytes", "percent_of_roof", "bound")

NOT_KEPT = (
    "this report keeps no events to make a trace of: profile with RooflineProfiler(model, keep_events=True), or with "
    "`roofprof profile --trace FILE`; a file that ends in .folded needs none (roofprof docs outputs#traces)"
)
NOT_TIMED = (
    "this report has no times to make a trace of, as counts have none and calls that raised: profile one that is timed"
)


@dataclass(slots=True)
class Slice:
    """A span of time, in nanoseconds since the run's start, or since the first launch before it, and what ran in it."""

    id: int  # of an event of the host; 0: a launch
    kind: str  # "module", "region", "op", "transparent", "kernel", "copy", "fill"
    name: str
    begin_ns: int
    end_ns: int
    facts: dict[str, Any] = field(default_factory=dict)  # what else is known of it, by name
    launched_by: int = 0  # a launch: the id of the op; 0: not known


@dataclass
class Timeline:
    """All that was kept. Slices of one list nest: each two of them are apart or one inside the other."""

    scopes: list[list[Slice]]  # modules and regions, by thread
    ops: list[list[Slice]]  # by thread; those that are looked through have their kernels, the ops inside their work
    lanes: dict[tuple[int, int, int], list[Slice]]  # launches, by device, stream and lane, as some run side by side
    left_out: int  # events for which the report had no room


def timeline(report: _report.Report) -> Timeline:
    """Return the events that a report keeps of its run. Raises ValueError, with what to do, where it keeps none."""
    events = _report.events_of(report)
    if events is None:
        raise Error(NOT_TIMED if report.total.time is None else NOT_KEPT)
    words = _Words(report, events)
    host = events["host"]
    threads = 1 + max(host["thread"], default=-1)
    first_ns = min(0, min(events["device"]["begin_ns"], default=0))  # formats have no time before 0
    scopes: list[list[Slice]] = [[] for _ in range(threads)]
    ops: list[list[Slice]] = [[] for _ in range(threads)]
    for event in _rows(host):
        is_op = event["kind"] in {"op", "transparent"}
        name = words.names[event["name"]] if is_op else words.scope(event)
        shown = Slice(
            event["id"],
            event["kind"],
            name,
            event["begin_ns"] - first_ns,
            event["end_ns"] - first_ns,
            words.facts(event),
        )
        (ops if is_op else scopes)[event["thread"]].append(shown)
    by_stream: dict[tuple[int, int], list[Slice]] = {}
    for launch in _rows(events["device"]):
        name = words.names[launch["name"]]
        shown = Slice(
            0, launch["kind"], name, launch["begin_ns"] - first_ns, launch["end_ns"] - first_ns, words.facts(launch)
        )
        shown.launched_by = launch["event"]
        by_stream.setdefault((launch["device"], launch["stream"]), []).append(shown)
    lanes = {(*at, i): lane for at in sorted(by_stream) for i, lane in enumerate(side_by_side(by_stream[at]))}
    return Timeline([nested(track) for track in scopes], [nested(track) for track in ops], lanes, events["left_out"])


def nested(slices: Iterable[Slice]) -> list[Slice]:
    """Return the same time in slices that nest, outer ones first: a slice is cut where the one around it ends.

    An op can end after the scope that it began in: the rest of it becomes a slice after the scope.
    """
    waiting = [(_outer_first(slice_), i, slice_) for i, slice_ in enumerate(slices)]
    heapq.heapify(waiting)
    result: list[Slice] = []
    open_: list[Slice] = []
    count = len(waiting)
    while waiting:
        _, _, current = heapq.heappop(waiting)
        while open_ and open_[-1].end_ns <= current.begin_ns:
            open_.pop()
        if open_ and current.end_ns > open_[-1].end_ns:
            rest = _part(current, open_[-1].end_ns, current.end_ns)
            current = _part(current, current.begin_ns, open_[-1].end_ns)
            count += 1
            heapq.heappush(waiting, (_outer_first(rest), count, rest))
        result.append(current)
        open_.append(current)
    return result


def side_by_side(launches: list[Slice]) -> list[list[Slice]]:
    """Return the fewest lanes in each of which one launch ends before the next one begins; sorted by begin."""
    lanes: list[list[Slice]] = []
    free: list[tuple[int, int]] = []  # when each lane's last launch ends
    for launch in launches:
        if free and free[0][0] <= launch.begin_ns:
            _, lane = heapq.heappop(free)
        else:
            lane = len(lanes)
            lanes.append([])
        lanes[lane].append(launch)
        heapq.heappush(free, (launch.end_ns, lane))
    return lanes


def thread_name(index: int) -> str:
    """Return a thread's name: its number, in the order of the threads' first events."""
    return f"thread {index + 1}"


def stream_name(stream: int, lane: int) -> str:
    """Return the name of a device's track."""
    return f"stream {stream}" + (f" (beside {lane})" if lane else "")


# ---- parts


class _Words:
    """Names for the numbers of events."""

    def __init__(self, report: _report.Report, events: dict[str, Any]) -> None:
        self.names: list[str] = events["names"]
        self._model = report.model or "model"
        self._modules: list[tuple[str, str, int]] = events["modules"]
        self._regions: list[str] = events["regions"]
        self._ops: list[tuple[str, str, str]] = events["ops"]
        self._facts: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._rows = {row.path: row for row in report.rows}
        self._groups = {
            tuple(group.keys): group for group in report.group(["module", "phase", "op", "shapes", "dtype"])
        }

    def scope(self, event: dict[str, Any]) -> str:
        module: int = event["module"]
        region: int = event["region"]
        path, kind, parent = self._modules[module]
        if event["kind"] == "region":  # a row below the module that opened it; without one it has a path alone
            above = self._modules[parent][0] if parent >= 0 else ""
            return path.removeprefix(f"{above}.") if kind == REGION_ROW else self._regions[region - 1]
        name = path or self._model
        phase: str = event["phase"]
        return name if phase in {"forward", "optimizer"} else f"{name} ({phase})"

    def facts(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return the event's facts; events of one bucket share a dict, as there may be a million of them."""
        key = event["kind"], event["module"], event["phase"], event["region"], event["bucket"]
        if key not in self._facts:
            self._facts[key] = self._new_facts(event)
        return self._facts[key]

    def _new_facts(self, event: dict[str, Any]) -> dict[str, Any]:
        path, kind, _ = self._modules[event["module"]]
        _, shapes, dtype = self._ops[event["bucket"]] if event["bucket"] >= 0 else ("", "", "")
        facts = {
            "module": path or self._model,
            "type": kind,
            "phase": event["phase"],
            "region": self._regions[event["region"] - 1] if event["region"] else "",
            "shapes": shapes,
            "dtype": dtype,
        }
        known = {name: value for name, value in facts.items() if value}
        row = self._row(event)
        if row is not None:
            figures = {name: getattr(row, name) for name in FIGURES}
            known["row"] = {name: value for name, value in figures.items() if value not in (None, "unknown")}
        return known

    def _row(self, event: dict[str, Any]) -> _report.Row | _report.GroupRow | None:
        """Return the row of a module; of an op and its kernels that of its calls with these shapes."""
        path = self._modules[event["module"]][0]
        bucket: int = event["bucket"]
        if bucket >= 0:
            return self._groups.get((path, event["phase"], *self._ops[bucket]))
        return self._rows.get(path) if event["kind"] == "module" else None


def _rows(columns: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


_RANK = {"module": 0, "region": 1, "transparent": 2, "op": 2}


def _outer_first(slice_: Slice) -> tuple[int, int, int, int]:
    return slice_.begin_ns, -slice_.end_ns, _RANK.get(slice_.kind, 3), slice_.id


def _part(slice_: Slice, begin_ns: int, end_ns: int) -> Slice:
    return Slice(slice_.id, slice_.kind, slice_.name, begin_ns, end_ns, slice_.facts, slice_.launched_by)
