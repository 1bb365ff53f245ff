"""What holds for the fused bound and for the kernels of every model."""

from __future__ import annotations

import os

import pytest
from given_roofs import roofs

# No core does more in a second, so that no row of real work is above these roofs.
_CORES = os.cpu_count() or 1
UNREACHED = roofs(
    peaks={"fp32": 4e11 * _CORES, "fp64": 2e11 * _CORES, "int8": 2e12 * _CORES},
    levels={"L2": (6e11 * _CORES, 1 << 20), "L3": (3e11 * _CORES, 16 << 20), "DRAM": (5e11, 0)},
)


def assert_bounded(report):
    """Assert that a row needs no more as one op than op by op, and took at least that.

    A report that calls its kernels' times doubtful may give a row too little time.
    """
    doubtful = any(note.code == "kernels-doubtful" for note in report.coverage.notes)
    for row in [*report.rows, report.total]:
        assert 0 <= row.fused_bytes <= row.bytes, row.path
        if row.lower_bound_time is not None:
            assert 0 <= row.fused_bound_time <= row.lower_bound_time, row.path
        if row.percent_of_roof is not None:
            assert row.percent_of_fused <= row.percent_of_roof, row.path
            assert row.percent_of_fused <= 100 or doubtful, row.path


def assert_not_known(report):
    for row in [*report.rows, report.total]:
        assert row.fused_bytes is row.fused_bound_time is row.percent_of_fused is None


def assert_kernels_add_up(report, least_known=0.95):
    """Assert that rows add up to the time, that kernels take a part of it, and that their modules are known."""
    times = [row.self_time for row in report.rows if row.self_time is not None]
    assert min(times) >= 0
    assert sum(times) == pytest.approx(report.total.time, rel=1e-9)
    by_op, by_module = report.group("op"), report.group("module")
    for groups in (by_op, by_module):
        wasted = sum(group.wasted_time or 0 for group in groups)
        outside = report.total.time - report.total.op_time
        assert wasted + outside == pytest.approx(report.total.wasted_time, abs=1e-9)
    kernels = sum(kernel.total for kernel in report.kernels)
    least = [(kernel.min * kernel.instances, bool(kernel.modules)) for kernel in report.kernels]  # nothing held it up
    assert sum(time for time, known in least if known) >= least_known * sum(time for time, _ in least)
    for kernel in report.kernels:
        assert kernel.total > 0
        assert kernel.code
        for middle in (kernel.median, kernel.average):
            assert kernel.min - 1e-12 <= middle <= kernel.max + 1e-12, kernel.name
    of_op = {row.op: row for row in by_op}
    inside, outside = of_op["compiled region"], of_op["(outside kernels)"]
    assert inside.calls == sum(kernel.instances for kernel in report.kernels)
    assert outside.calls > 0
    assert inside.time > 0
    assert inside.time == pytest.approx(kernels, abs=1e-9)
    assert outside.time >= 0
    for row in report.rows:
        assert 0 <= row.shared_time <= report.total.time, row.path
