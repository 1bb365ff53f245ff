"""What must hold for every report that an H100 recorded, with the roofs that were measured there put in.

The truths are the recorded times of calls without a profiler, and of kernels: a device is idle for what such a call
takes beyond the time in which kernels ran.
"""

import statistics

import pytest
import recorded_gpus
from bare_speed import SAME, broken_promises

VIEWS = ("phase", "op", "dtype", "module,op")
TIMES = ("time", "lower_bound_time", "wasted_time")


@pytest.fixture(params=recorded_gpus.NAMES)
def name(request):
    return request.param


@pytest.fixture
def report(name):
    return recorded_gpus.report(name)


def in_ns(seconds):
    return None if seconds is None else seconds * 1e9


def cells_of_total(report, by, columns):
    """Return the cells of a table's line for the total, by the names of their columns."""
    tables = [
        block
        for block in report._compiled.document(by=by, columns=list(columns)).blocks
        if hasattr(block, "columns") and "total" in block.marks
    ]
    (table,) = tables
    last = table.rows[len(table.marks) - 1 - table.marks[::-1].index("total")]
    return {column.figure: cell for column, cell in zip(table.columns, last, strict=True) if column.figure in columns}


def test_the_device_is_idle_for_what_a_bare_call_takes_longer_than_its_kernels(name, report):
    recorded = recorded_gpus.as_dict(name)
    bare, busy = statistics.median(recorded["runs"]["bare_ns"]) / 1e9, recorded["busy_ns"] / 1e9
    assert report.total.idle == pytest.approx(max(0, bare - busy), abs=SAME)
    assert report.total.utilization == pytest.approx(100 * busy / max(bare, busy), abs=0.01)
    assert broken_promises(report, bare, busy, max(0, bare - busy)) == []


def test_rows_add_up_to_the_total(report):
    """Of what was costed: a kernel of no op has time and no lower bound."""
    total = report.total
    assert sum(row.self_time or 0 for row in report.rows) == pytest.approx(total.time, abs=SAME)
    if total.lower_bound_time is not None:
        own = sum(row.self_lower_bound_time or 0 for row in report.rows)
        assert own == pytest.approx(total.lower_bound_time, abs=SAME)
        assert total.wasted_time == pytest.approx(total.time - total.lower_bound_time, abs=SAME)
        assert total.percent_of_roof == pytest.approx(100 * total.lower_bound_time / total.time)


def test_every_view_has_the_same_total(report):
    for by in VIEWS:
        cells = cells_of_total(report, by, ("bound", "percent_of_roof", *TIMES))
        assert cells.pop("bound").text == report.total.bound
        assert cells.pop("percent_of_roof").value == pytest.approx(report.total.percent_of_roof)
        assert {figure: cell.value for figure, cell in cells.items()} == pytest.approx(
            {figure: in_ns(getattr(report.total, figure)) for figure in TIMES}, abs=1
        )
    assert cells_of_total(report, "kernel", ("total",))["total"].value == pytest.approx(report.total.time * 1e9, abs=1)


def test_a_product_at_its_roof_has_no_finding():
    """A bf16 product of 4096 at 812 TFLOP/s, the fastest of that card's recorded runs."""
    assert [finding.rule for finding in recorded_gpus.report("flops_bf16").findings] == []


def test_copies_and_fills_are_on_neither_side_of_a_ratio():
    """A triad and a scaling of 2 GiB arrays, a copy and a fill of 2 GiB between them; by hand from their records.

    With the copy's and the fill's time and bytes in one place alone the same kernels would have 0.714 and 1.92 TB/s.
    """
    array = 2**31
    counted = 4295022336 + 2149816320 + 2147578624 + 2145702656  # DRAM's bytes read and written by the two kernels
    must = (2 + 1 + 1 + 1) * array
    report = recorded_gpus.report("fills_between")
    total = report.total
    assert total.dram_bytes == counted
    assert total.dram_bytes_ratio == pytest.approx(counted / must) == pytest.approx(1.0001, abs=5e-5)
    kernels = 2108895e-9 + 1419295e-9
    assert total.dram_bandwidth == pytest.approx(counted / kernels) == pytest.approx(3.043e12, rel=1e-3)
    everything = kernels + 1420991e-9 + 657888e-9
    assert counted / (must + 2 * array) == pytest.approx(0.714, abs=5e-4)
    assert counted / everything == pytest.approx(1.915e12, rel=1e-3)
    # What the kernels and the copy moved, over the time of all four.
    assert (must + 2 * array) / everything == pytest.approx(2.68e12, rel=1e-3)
    between = report.row("between")
    assert between.dram_bytes_ratio is None
    assert between.dram_bandwidth is None


def test_a_ratio_to_next_to_nothing_is_none():
    """A sum over 2 GiB writes 4 bytes; DRAM wrote 22 MB then, which the kernel before had left in the cache."""
    total = recorded_gpus.report("traffic_sum").total
    assert total.write_bytes == 4
    assert total.dram_write_bytes > 20e6
    assert total.dram_write_ratio is None
    assert total.dram_read_ratio == pytest.approx(1, abs=0.02)
