"""What must hold of a report at bare speed: what its findings may promise, and when idle time may be spoken of."""

from __future__ import annotations

from collections.abc import Iterator

import roofprof

BUSY = 0.95  # of a call without a profiler: from here on nobody waits for launches
SAME = 1e-6  # seconds: shares of nanoseconds are rounded


def broken_promises(report: roofprof.Report, call: float, busy: float, between: float) -> list[str]:
    """Return what does not hold, in words.

    call: seconds of a call without a profiler. busy: those of it in which the device ran something. between: those in
    which it ran nothing between two launches.
    """
    return [*_about_gains(report, call, between), *(_about_idle_time(report) if busy >= BUSY * call else ())]


def _about_gains(report: roofprof.Report, call: float, between: float) -> Iterator[str]:
    for finding in report.findings:
        if not 0 <= finding.gain_low <= finding.gain_high <= call + SAME:
            yield f"{finding.id} gains {finding.gain_low} to {finding.gain_high} s of a call of {call} s"
        if finding.rule == "idle-device" and finding.gain_high > between + SAME:
            yield f"{finding.id} gains {finding.gain_high} s of {between} s between launches"
        if finding.rule == "idle-outside" and finding.gain_high > 0:
            yield f"{finding.id} gains {finding.gain_high} s where no kernel waits"


def _about_idle_time(report: roofprof.Report) -> Iterator[str]:
    for row in (*report.rows, report.total):
        if row.time and row.bound == "overhead":
            yield f"{row.path!r} is called overhead on a busy device"
    for finding in report.findings:
        if finding.rule == "idle-device":
            yield f"{finding.id} speaks of idle time on a busy device"
