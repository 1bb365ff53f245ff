"""The measured latency of one call, and the throughput that follows from it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from roofprof import _report
from roofprof.errors import Error
from roofprof.figures import cell, fields
from roofprof.render.results import StoredResult

SHORTEST_FOR_CPU_TIME_NS = 100_000_000  # the system splits user from system time by ticks of up to 10 ms
TOO_SHORT = "the clock cannot tell so short a latency from none"
KERNEL_SHARE_NOT_KNOWN = (
    "no kernels were traced while the calls were timed; roofprof profile traces them, and its column utilization is "
    "the share of time in which one ran"
)


@dataclass(frozen=True, repr=False)
class Latency(StoredResult):
    """The latencies of one call, made again and again, and the throughput that follows from their median.

    Latency is the time of ONE call. Throughput is samples or tokens per second: those of a call / the median latency.
    Times are float seconds; unknown figures are None, and :attr:`not_available` gives the reasons.

    Quantiles lie between the two nearest calls, by linear interpolation (type 7 of Hyndman and Fan 1996, numpy's and
    torch's default). Quantiles with less than one call beyond them are None: p10 and p90 need 10 calls, p99 100.
    """

    SCHEMA = "roofprof.latency"

    model: str
    device: str
    clock: str
    """"perf_counter" on a CPU, "device events" on a GPU."""
    times_ns: tuple[int, ...]
    """The latency of each timed call, by that clock."""
    wall_times_ns: tuple[int, ...]
    """The same by perf_counter, waiting for the device included; on a CPU the same figures."""
    warmup: int
    """Calls before them that were not timed, the first one included."""
    samples: int | None
    """The batch: the number of samples in one call."""
    samples_from: str
    """The source of that number; where it is None, the reason."""
    tokens: int | None
    """The number of tokens in one call, where the user gave it."""
    user_ns: int
    """User time of this process, of all its threads, while the timed calls ran."""
    system_ns: int
    processors: float
    """The number of processors that the process may use at once, by its affinity and its control groups."""
    gc_collections: int = 0
    """Collections by Python's garbage collector while the calls were timed; their time is in the latencies."""
    queued_calls: int = 0
    """On a GPU: calls made back to back, without waiting for the one before."""
    queued_ns: int = 0
    """All of those together."""
    environment: dict[str, str | int | float] = field(default_factory=dict, hash=False)
    notes: tuple[_report.Note, ...] = ()

    def __post_init__(self) -> None:
        if not (self.times_ns and self.wall_times_ns):
            raise Error("times_ns or wall_times_ns is empty")

    # ---- latency: the time of one call

    def quantile(self, percent: float) -> float | None:
        """Return the seconds that so many percent of the calls did not exceed; None where the calls are too few."""
        return _quantile(self.times_ns, percent)

    def wall_quantile(self, percent: float) -> float | None:
        """Return the same quantile of the wall times."""
        return _quantile(self.wall_times_ns, percent)

    @property
    def times(self) -> list[float]:
        """The latency of each timed call."""
        return [ns * 1e-9 for ns in self.times_ns]

    @property
    def wall_times(self) -> list[float]:
        """The same by the wall clock."""
        return [ns * 1e-9 for ns in self.wall_times_ns]

    @property
    def median(self) -> float:
        """The latency that half of the calls did not exceed."""
        return quantile(self.times_ns, 50) * 1e-9

    @property
    def p10(self) -> float | None:
        """The latency that a tenth of the calls did not exceed."""
        return self.quantile(10)

    @property
    def p90(self) -> float | None:
        """The latency that nine tenths of the calls did not exceed."""
        return self.quantile(90)

    @property
    def p99(self) -> float | None:
        """The latency that all but one of a hundred calls did not exceed."""
        return self.quantile(99)

    @property
    def min(self) -> float:
        """The shortest latency."""
        return min(self.times_ns) * 1e-9

    @property
    def max(self) -> float:
        """The longest latency."""
        return max(self.times_ns) * 1e-9

    @property
    def mean(self) -> float:
        """The mean latency."""
        return sum(self.times_ns) / len(self.times_ns) * 1e-9

    # ---- throughput: how much per second

    @property
    def samples_per_second(self) -> float | None:
        """Throughput of calls one after the other: samples / median latency."""
        return self._rate(self.samples)

    @property
    def tokens_per_second(self) -> float | None:
        """Throughput of calls one after the other: tokens / median latency."""
        return self._rate(self.tokens)

    def _rate(self, of_a_call: int | None) -> float | None:
        return None if of_a_call is None or not self.median else of_a_call / self.median

    @property
    def queued_samples_per_second(self) -> float | None:
        """Throughput of calls that do not wait for one another: samples of all / the time of all. On a GPU alone."""
        return self._queued(self.samples)

    @property
    def queued_tokens_per_second(self) -> float | None:
        """Throughput of calls that do not wait for one another, in tokens. On a GPU alone."""
        return self._queued(self.tokens)

    def _queued(self, of_a_call: int | None) -> float | None:
        if of_a_call is None or not self.queued_ns:
            return None
        return of_a_call * self.queued_calls / (self.queued_ns * 1e-9)

    # ---- the process

    @property
    def real_time(self) -> float:
        """Wall seconds of all timed calls together."""
        return sum(self.wall_times_ns) * 1e-9

    @property
    def user_time(self) -> float | None:
        """Processor seconds of this process in its own code, all threads added up; None for less than 0.1 s."""
        return self.user_ns * 1e-9 if self._long_enough else None

    @property
    def system_time(self) -> float | None:
        """Processor seconds of this process in the system's code; None for less than 0.1 s."""
        return self.system_ns * 1e-9 if self._long_enough else None

    @property
    def cpu_utilization(self) -> float | None:
        """100 x (user + system time) / (real time x processors that may be used)."""
        if not self._long_enough:
            return None
        return 100 * (self.user_ns + self.system_ns) / (sum(self.wall_times_ns) * self.processors)

    @property
    def _long_enough(self) -> bool:
        return sum(self.wall_times_ns) >= SHORTEST_FOR_CPU_TIME_NS

    @property
    def on_gpu(self) -> bool:
        """Return True when device events took the times."""
        return self.clock != "perf_counter"

    # ---- missing figures

    @property
    def not_available(self) -> dict[str, str]:
        """Each figure that is None, and why."""
        reasons: dict[str, str] = {}
        calls = len(self.times_ns)
        for percent in (10, 90, 99):
            if calls < fewest_for(percent):
                reasons[f"p{percent}"] = f"needs {fewest_for(percent)} timed calls, and there are {calls}"
        if self.samples is None:
            reasons["samples_per_second"] = self.samples_from
        elif not self.median:
            reasons["samples_per_second"] = TOO_SHORT
        if self.tokens is None:
            reasons["tokens_per_second"] = "how many tokens a call has was not given (tokens=, --tokens)"
        if not self._long_enough:
            reasons["cpu_utilization"] = (
                "the timed calls took less than 0.1 s together, and the system counts processor time in ticks"
            )
        if self.on_gpu:
            reasons["gpu_utilization"] = KERNEL_SHARE_NOT_KNOWN
        if not self.queued_ns:
            reasons["queued_samples_per_second"] = (
                "no calls were queued" if self.on_gpu else "calls on a CPU end before the next can begin"
            )
        return reasons

    # ---- printed and written

    def document(self) -> _report.Document:
        """Return what is shown, as data: the latency, the throughput, what the process did, what is not known."""
        document = begun(self, self.notes, self._calls_words())
        percents = {"median": 50, "p10": 10, "p90": 90, "p99": 99}
        columns = ["latency", *percents, "min", "max", "mean"]
        clocks = [(self.clock, self.times, self.quantile)]
        clocks += [("wall", self.wall_times, self.wall_quantile)] if self.on_gpu else []
        rows = [
            [
                _report.Cell(clock),
                *(cell("time", quantile_of(percent)) for percent in percents.values()),
                *(cell("time", value) for value in (min(times), max(times), sum(times) / len(times))),
            ]
            for clock, times, quantile_of in clocks
        ]
        document.add_table([_report.TableColumn(name, left=not place) for place, name in enumerate(columns)], rows)
        document.add_paragraph("throughput", self._throughput_words())
        document.add_paragraph("process", self._process_words())
        if self.on_gpu:
            document.add_paragraph("GPU", f"busy n/a: {self.not_available['gpu_utilization']}")
        document.add_paragraph(
            "terms",
            "latency: the time of one call; throughput: samples of a call / the median latency; pN: N% of the calls "
            "took no longer, interpolated between the two nearest",
        )
        for name, reason in self.not_available.items():
            if name in {"p10", "p90", "p99"}:
                document.add_paragraph("n/a", f"{name} {reason}")
        add_notes(document, self.notes)
        return document

    def _calls_words(self) -> str:
        calls = len(self.times_ns)
        batch = f"{self.samples} samples in each" if self.samples != 1 else "1 sample in each"
        if self.samples is None:
            batch = "samples n/a"
        tokens = f", {self.tokens} tokens in each" if self.tokens is not None else ""
        return (
            f"{calls} timed call{'' if calls == 1 else 's'} after {self.warmup} for warm-up; {batch}"
            f" ({self.samples_from}){tokens}"
        )

    def _throughput_words(self) -> str:
        if self.samples_per_second is None and self.tokens_per_second is None:
            return f"n/a: {self.not_available['samples_per_second']}"
        text = _rates_text(self.samples_per_second, self.tokens_per_second) + ", one call after the other"
        if self.queued_ns:
            queued = _rates_text(self.queued_samples_per_second, self.queued_tokens_per_second)
            text += f"; {queued} back to back ({self.queued_calls} calls without waiting)"
        return text

    def _process_words(self) -> str:
        seconds = fields["time"].text
        if self.user_time is None:
            why = self.not_available["cpu_utilization"]
            return f"real {seconds(self.real_time)}; user and system time n/a: {why}"
        collections = self.gc_collections
        return (
            f"real {seconds(self.real_time)}, user {seconds(self.user_time)}, system {seconds(self.system_time)}: "
            f"{fields['percent_of_roof'].text(self.cpu_utilization)} of {self.processors:g} "
            f"processor{'' if self.processors == 1 else 's'}"
            + (f"; {collections} garbage collection{'' if collections == 1 else 's'} by Python" if collections else "")
        )

    def _about(self) -> str:
        return f"{self.model} on {self.device}: {len(self.times_ns)} calls"

    def _content(self) -> dict[str, Any]:
        """Return the figures that follow from the fields, for other readers, and the fields, which are read again."""

        def ns(seconds: float | None) -> int | None:
            return None if seconds is None else round(seconds * 1e9)

        names = ("median", "p10", "p90", "p99", "min", "max", "mean")
        return {
            "latency": {f"{name}_ns": ns(getattr(self, name)) for name in names},
            "throughput": {
                "samples_per_second": self.samples_per_second,
                "tokens_per_second": self.tokens_per_second,
                "queued_samples_per_second": self.queued_samples_per_second,
                "queued_tokens_per_second": self.queued_tokens_per_second,
            },
            "process": {
                "real_time_ns": ns(self.real_time),
                "user_time_ns": ns(self.user_time),
                "system_time_ns": ns(self.system_time),
                "cpu_utilization": self.cpu_utilization,
            },
            "not_available": self.not_available,
            **super()._content(),
        }


def begun(of: Latency, notes: Iterable[_report.Note], about: str) -> _report.Document:
    """Return a document that begins with what must be read first, what was timed, and where."""
    document = _report.Document()
    for note in notes:
        if note.level == "attention":
            document.add_paragraph("ATTENTION", note.text, role="warning")
    machine = of.environment.get("gpu_device") or of.environment.get("device")
    threads = of.environment.get("torch_threads")
    words = [
        str(machine) if machine and machine != of.device else "",
        f"{threads} thread{'' if threads == 1 else 's'}" if threads else "",
        f"torch {of.environment['torch']}" if "torch" in of.environment else "",
    ]
    where = ", ".join(word for word in words if word)
    document.add_title(f"{of.model} on {of.device}" + (f" ({where})" if where else ""))
    document.add_paragraph("", about)
    return document


def add_notes(document: _report.Document, notes: Iterable[_report.Note]) -> None:
    """Add the notes that :func:`begun` did not begin with."""
    for note in notes:
        if note.level != "attention":
            document.add_paragraph("note", note.text, role="note")


def _rates_text(samples: float | None, tokens: float | None) -> str:
    rates = ((samples, "samples/s"), (tokens, "tokens/s"))
    return ", ".join(f"{fields['achieved_flops'].text(rate)} {unit}" for rate, unit in rates if rate is not None)


def _quantile(times_ns: tuple[int, ...], percent: float) -> float | None:
    return None if len(times_ns) < fewest_for(percent) else quantile(times_ns, percent) * 1e-9


def quantile(values: Sequence[float], percent: float) -> float:
    """Return the quantile, linear between the two nearest values: type 7 of Hyndman and Fan 1996, numpy's default."""
    if not 0 <= percent <= 100:
        raise Error(f"a quantile is asked for in percent, 0 to 100, not {percent}")
    ordered = sorted(values)
    place = percent / 100 * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def fewest_for(percent: float) -> int:
    """Return the fewest values of which one lies beyond that quantile; the median needs one value."""
    beyond = min(percent, 100 - percent)
    if percent == 50 or beyond <= 0:
        return 1
    return math.ceil(round(100 / beyond, 9))
