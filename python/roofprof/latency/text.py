"""Latencies and sweeps as text, in the words and units of the tables of reports."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from roofprof import _report
from roofprof.figures import fields
from roofprof.render.printable import printable

if TYPE_CHECKING:
    from roofprof.latency.measured import Latency
    from roofprof.latency.sweep import LatencySweep

_LABEL = 12  # characters before what a line says
_BETWEEN = "  "


def seconds_text(value: float | None) -> str:
    """Return a time, as tables write it."""
    return fields["time"].text(value)


def rate_text(value: float | None) -> str:
    """Return a number per second as text."""
    return fields["achieved_flops"].text(value)


def percent_text(value: float | None) -> str:
    """Return a share as text."""
    return fields["percent_of_roof"].text(value)


def latency_text(latency: Latency, width: int) -> str:
    """Return the text of ``print(latency)``."""
    lines = [*_attention(latency.notes, width), *_header(latency.model, latency.device, latency.environment)]
    lines += _block("", _calls_words(latency), width)
    lines += ["", *_latency_table(latency), ""]
    lines += _block("throughput", _throughput_words(latency), width)
    lines += _block("process", _process_words(latency), width)
    if latency.on_gpu:
        lines += _block("GPU", f"busy n/a: {latency.not_available['gpu_utilization']}", width)
    lines += _block(
        "terms",
        "latency: the time of one call; throughput: samples of a call / the median latency; pN: N% of the calls took "
        "no longer, interpolated between the two nearest",
        width,
    )
    for name, reason in latency.not_available.items():
        if name in {"p10", "p90", "p99"}:
            lines += _block("n/a", f"{name} {reason}", width)
    return _joined([*lines, *_notes(latency.notes, width)])


def sweep_text(sweep: LatencySweep, width: int) -> str:
    """Return the text of ``print(sweep)``."""
    first = sweep.points[0]
    notes = _notes_of(sweep)
    calls = sorted({len(point.times_ns) for point in sweep.points})
    between = f"{calls[0]}" if len(calls) == 1 else f"{calls[0]} to {calls[-1]}"
    lines = [*_attention(notes, width), *_header(first.model, first.device, first.environment)]
    lines += _block("", f"{len(sweep.points)} batch sizes, {between} timed calls each; clock: {first.clock}", width)
    lines += ["", *_sweep_table(sweep), ""]
    lines += _block("knee", sweep.knee_text, width)
    lines += _block("ended", sweep.ended, width)
    lines += _block(
        "terms",
        "latency: the time of one call with that batch; throughput: its samples / the median latency; CPU: 100 x (user "
        "+ system time) / (real time x processors); knee: the smallest batch whose throughput is within 10% of the "
        "highest",
        width,
    )
    return _joined([*lines, *_notes(notes, width)])


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(map(printable, lines)).rstrip()


def _notes_of(sweep: LatencySweep) -> list[_report.Note]:
    """Return one note of each code, with its batches; timing-stopped is left out: the table has the number of calls."""
    first: dict[str, _report.Note] = {}
    batches: dict[str, list[str]] = {}
    for point in sweep.points:
        for note in point.notes:
            if note.code != "timing-stopped":
                first.setdefault(note.code, note)
                batches.setdefault(note.code, []).append(str(point.samples))
    return [_report.Note(code, f"batch {', '.join(batches[code])}: {note.text}") for code, note in first.items()]


def _header(model: str, device: str, environment: dict[str, str | int | float]) -> list[str]:
    machine = environment.get("gpu_device") or environment.get("device")
    threads = environment.get("torch_threads")
    words = [
        str(machine) if machine and machine != device else "",
        f"{threads} thread{'' if threads == 1 else 's'}" if threads else "",
        f"torch {environment['torch']}" if "torch" in environment else "",
    ]
    where = ", ".join(word for word in words if word)
    return [f"{'roofprof':{_LABEL}}{model} on {device}" + (f" ({where})" if where else "")]


def _calls_words(latency: Latency) -> str:
    calls = len(latency.times_ns)
    batch = f"{latency.samples} samples in each" if latency.samples != 1 else "1 sample in each"
    if latency.samples is None:
        batch = "samples n/a"
    tokens = f", {latency.tokens} tokens in each" if latency.tokens is not None else ""
    return (
        f"{calls} timed call{'' if calls == 1 else 's'} after {latency.warmup} for warm-up; {batch}"
        f" ({latency.samples_from}){tokens}"
    )


def _latency_table(latency: Latency) -> list[str]:
    percents = {"median": 50, "p10": 10, "p90": 90, "p99": 99}
    rows = [["latency", *percents, "min", "max", "mean"]]
    rows.append(
        [
            latency.clock,
            *(seconds_text(latency.quantile(percent)) for percent in percents.values()),
            *(seconds_text(value) for value in (latency.min, latency.max, latency.mean)),
        ]
    )
    if latency.on_gpu:
        wall = latency.wall_times
        rows.append(
            [
                "wall",
                *(seconds_text(latency.wall_quantile(percent)) for percent in percents.values()),
                *(seconds_text(value) for value in (min(wall), max(wall), sum(wall) / len(wall))),
            ]
        )
    return _table(rows, left=1)


def _throughput_words(latency: Latency) -> str:
    if latency.samples_per_second is None and latency.tokens_per_second is None:
        return f"n/a: {latency.not_available['samples_per_second']}"
    one = [(latency.samples_per_second, "samples/s"), (latency.tokens_per_second, "tokens/s")]
    queued = [(latency.queued_samples_per_second, "samples/s"), (latency.queued_tokens_per_second, "tokens/s")]
    text = _rates(one) + ", one call after the other"
    if latency.queued_ns:
        text += f"; {_rates(queued)} back to back ({latency.queued_calls} calls without waiting)"
    return text


def _rates(rates: Iterable[tuple[float | None, str]]) -> str:
    return ", ".join(f"{rate_text(rate)} {unit}" for rate, unit in rates if rate is not None)


def _process_words(latency: Latency) -> str:
    real = f"real {seconds_text(latency.real_time)}"
    if latency.user_time is None:
        return f"{real}; user and system time n/a: {latency.not_available['cpu_utilization']}"
    collections = latency.gc_collections
    return (
        f"{real}, user {seconds_text(latency.user_time)}, system {seconds_text(latency.system_time)}: "
        f"{percent_text(latency.cpu_utilization)} of {latency.processors:g} "
        f"processor{'' if latency.processors == 1 else 's'}"
        + (f"; {collections} garbage collection{'' if collections == 1 else 's'} by Python" if collections else "")
    )


def _sweep_table(sweep: LatencySweep) -> list[str]:
    tokens = any(point.tokens is not None for point in sweep.points)
    rows = [["batch", "median latency", "p10", "p90", "samples/s", *(["tokens/s"] if tokens else []), "CPU", "calls"]]
    for point in sweep.points:
        rates = [point.samples_per_second, *([point.tokens_per_second] if tokens else [])]
        rows.append(
            [
                str(point.samples),
                *(seconds_text(value) for value in (point.median, point.p10, point.p90)),
                *(rate_text(rate) for rate in rates),
                percent_text(point.cpu_utilization),
                str(len(point.times_ns)),
            ]
        )
    lines = _table(rows, left=0)
    knee = sweep.knee
    if knee is not None:
        place = 2 + sweep.points.index(knee)  # below the heading and its rule
        lines[place] += f"{_BETWEEN}<- knee"
    return lines


def _table(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Return the lines of columns, of which the first ``left`` begin at the left; a rule below the heading."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        _BETWEEN.join(
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return [lines[0], "─" * (sum(widths) + len(_BETWEEN) * (len(widths) - 1)), *lines[1:]]


def _attention(notes: Iterable[_report.Note], width: int) -> list[str]:
    lines = [_block("ATTENTION", note.text, width) for note in notes if note.level == "attention"]
    return [line for block in lines for line in block]


def _notes(notes: Iterable[_report.Note], width: int) -> list[str]:
    lines = [_block("note", note.text, width) for note in notes if note.level != "attention"]
    return [line for block in lines for line in block]


def _block(label: str, text: str, width: int) -> list[str]:
    """Return the lines of a text that is wrapped to the right of its label."""
    lines = textwrap.wrap(text, width - _LABEL, break_long_words=False, break_on_hyphens=False)
    return [f"{label if number == 0 else '':{_LABEL}}{line}" for number, line in enumerate(lines)]
