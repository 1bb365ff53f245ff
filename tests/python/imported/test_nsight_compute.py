"""Texts as ncu prints them: both layouts, units, numbers, lines around the table, and texts that are none."""

from __future__ import annotations

import io
import math
import random

import pytest

from roofprof.errors import NcuError
from roofprof.profiling.counted_kernels import alone
from roofprof.profiling.nsight_compute import read

RAW = (
    "==PROF== Connected to process 7 (/usr/bin/python3)\n"
    'loss 0.5, "fine"\n'
    '"ID","Process ID","Kernel Name","Stream","Block Size","Grid Size","Device","CC","dram__bytes.sum",'
    '"gpu__time_duration.sum","sm__warps_active.avg.pct_of_peak_sustained_active"\n'
    '"","","","","","","","","Mbyte","usecond","%"\n'
    '"0","7","void f<(int)4, float>(T1, ""x"")","13","(256, 1, 1)","(1,024, 2, 1)","1","8.0","1,234.50",'
    '"1,002.25","50"\n'
    "==PROF== Disconnected from process 7\n"
)


def table(text):
    return read(io.BufferedReader(io.BytesIO(text.encode())))


def test_a_kernel_a_row():
    for text in (RAW, RAW.replace("\n", "\r\n"), "\ufeff" + RAW):
        found = table(text)
        (kernel,) = found.kernels
        assert kernel.name == 'void f<(int)4, float>(T1, "x")'
        assert (kernel.grid, kernel.block) == ((1024, 2, 1), (256, 1, 1))
        assert (kernel.device, kernel.process, found.capability) == (1, "7", "8.0")
        assert found.metrics == {"dram__bytes.sum": [1234.5e6], "gpu__time_duration.sum": [1_002_250]}
        assert found.rounded
        assert not found.notes


def test_a_metric_a_row():
    head = '"ID","Process ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name"\r\n'
    found = table(
        head + '"0","7","a","s","dram__bytes.sum","byte","41,088"\r\n'
        '"0","7","a","Occupancy","","","","a rule"\r\n'
        '"0","7","a","GPU Speed Of Light Throughput","Duration","us","1.5"\r\n'
        '"1","7","a","s","dram__bytes.sum","byte","n/a"\r\n'
        '"1","8","b","s","dram__bytes.sum","byte","7"\r\n'
    )
    assert [(kernel.name, kernel.grid) for kernel in found.kernels] == [("a", ()), ("a", ()), ("b", ())]
    assert found.metrics["dram__bytes.sum"] == pytest.approx([41_088, math.nan, 7], nan_ok=True)
    assert found.metrics["gpu__time_duration.sum"] == pytest.approx([1500, math.nan, math.nan], nan_ok=True)
    assert not found.notes  # ncu said that it is not known


def of(metric, unit, value):
    """One value of one metric, in that unit."""
    head = f'"ID","Kernel Name","{metric}","l1tex__t_bytes.sum"\n'
    found = table(f'{head}"","","{unit}","byte"\n"0","k","{value}","7"\n')
    return found.metrics.get(metric, [math.nan])[0]


BYTES, TIME, RATE = "lts__t_bytes.sum", "gpu__time_duration.sum", "sm__cycles_elapsed.avg.per_second"
FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"


@pytest.mark.parametrize(
    ("metric", "units"),
    [
        (BYTES, {"byte": 1, "B": 1, "Kbyte": 1e3, "KB": 1e3, "Mbyte": 1e6, "GB": 1e9, "Tbyte": 1e12, "KiB": 1024}),
        (TIME, {"nsecond": 1, "ns": 1, "usecond": 1e3, "us": 1e3, "msecond": 1e6, "ms": 1e6, "second": 1e9, "s": 1e9}),
        (FFMA, {"inst": 1, "": 1, "Kinst": 1e3}),
        (RATE, {"cycle/nsecond": 1e9, "cycle/second": 1, "Ghz": 1e9, "hz": 1}),
        # A unit of another kind is not guessed at.
        (BYTES, {"sector": None, "": None, "furlong": None}),
        (TIME, {"cycle": None, "": None}),
        (RATE, {"cycle": None, "cycle/furlong": None}),
    ],
)
def test_units(metric, units):
    for unit, factor in units.items():
        for text, number in (("2.5", 2.5), ("1,234,567", 1_234_567)):
            expected = math.nan if factor is None else number * factor
            assert of(metric, unit, text) == pytest.approx(expected, nan_ok=True), unit


def test_other_texts_are_no_numbers():
    for value in ("-5", "(!) n/a", "1e400", "five", "", "0x10", "\u0661"):
        assert math.isnan(of(BYTES, "byte", value)), value
    for value in ("1.5.", "1.234,5", "12,5", "1.234.567", "1,23,456", "1234,5"):
        with pytest.raises(NcuError, match="LC_ALL=C"):
            of(BYTES, "byte", value)
    assert of(BYTES, "byte", "12,345.5") == 12_345.5


def test_ranges_of_both_kinds():
    columns = ",".join(
        f'"{kind}:PL_Type:Msg"' for kind in ("thread Domain:Push/Pop_Range", "Id:Domain:Start/Stop_Range")
    )
    rest = ":none:none:none:none:none:none"
    pushed = f'1  ""<default domain>:epoch 1{rest}""  ""nccl:a::b{rest}""  ""<default domain>:epoch 1{rest}"" '
    started = f"7:<default domain>:step{rest}"
    rows = f'"0","k","{pushed}","{started}","5"\n"1","k","","","5"\n"2","k","1  ""{started}""","","5"\n'
    found = table(f'"ID","Kernel Name",{columns},"dram__bytes.sum"\n"","","","","byte"\n{rows}')
    assert [kernel.ranges for kernel in found.kernels] == [("epoch 1", "a::b", "step"), (), ("step",)]


def test_a_text_that_ends_in_a_row_is_refused():
    found = table(RAW + '"1","7","g"\n"2","7","cut"\n\n')
    assert len(found.kernels) == 1
    assert found.notes == [("ncu-lacks", "2 rows of ncu's table have too few or too many fields: left out")]
    row = RAW.index('"0","7"')
    for cut in (row + 3, RAW.index("1,002.25") + 4, RAW.index('"50"') + 2):
        with pytest.raises(NcuError, match="^it is cut off: its last row is not whole$"):
            table(RAW[:cut])
    assert len(table(RAW[: RAW.index('"50"') + 4]).kernels) == 1  # without the line's end alone


def test_damaged_texts_end_in_a_sentence():
    numbers = random.Random(7)
    whole = 0
    for _ in range(3000):
        damaged = list(RAW[: numbers.randint(0, len(RAW))] if numbers.random() < 0.7 else RAW)
        for _ in range(numbers.randint(0, 3)):
            if damaged:
                damaged[numbers.randrange(len(damaged))] = numbers.choice('",\n\0(9=.x')
        try:
            alone(table("".join(damaged)))
            whole += 1
        except NcuError as error:
            assert str(error)
            assert "\n" not in str(error)
    assert whole > 100
