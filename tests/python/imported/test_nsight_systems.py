"""Exports of Nsight Systems, made here by the published schema: times, kernels, copies, launches and ranges."""

from __future__ import annotations

import sqlite3

import pytest

import roofprof
from roofprof.cli import main

# As the user guide's "SQLite schema reference" lists them (the columns that are read, and some others).
SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER, name TEXT, busLocation TEXT, totalMemory INTEGER,
    computeMajor INTEGER, computeMinor INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER,
    globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,
    launchType INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER,
    graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable'),
    (1, 'CUDA_MEMOPR_MEMORY_KIND_PINNED', 'Pinned'), (2, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device');
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    value INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL,
    callchainId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,
    category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER,
    domainId INTEGER);
"""
PROCESS = 4711 << 24
THREAD = PROCESS | 4712


class Export:
    """A database, table by table. Times are nanoseconds."""

    def __init__(self, path):
        self.path = path
        self._connection = sqlite3.connect(path)
        self._connection.executescript(SCHEMA)
        self._texts: dict[str, int] = {}
        self.insert("TARGET_INFO_GPU", id=0, name="NVIDIA A100-SXM4-80GB", computeMajor=8, computeMinor=0)

    def insert(self, table, **values):
        names = ", ".join(f'"{name}"' for name in values)
        marks = ", ".join("?" * len(values))
        self._connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(values.values()))
        self._connection.commit()

    def text(self, value):
        if value not in self._texts:
            self._texts[value] = len(self._texts) + 1
            self.insert("StringIds", id=self._texts[value], value=value)
        return self._texts[value]

    def launch(self, begin, correlation, thread=THREAD, name="cudaLaunchKernel_v7000"):
        self.insert(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            start=begin,
            end=begin + 100,
            eventClass=0,
            globalTid=thread,
            correlationId=correlation,
            nameId=self.text(name),
            returnValue=0,
        )

    def kernel(self, name, begin, ns, correlation, process=PROCESS, stream=7):
        self.launch(begin - 500, correlation, process | 4712)
        self.insert(
            "CUPTI_ACTIVITY_KIND_KERNEL",
            **self.activity(begin, ns, correlation, process, stream),
            demangledName=self.text(f"void {name}<float>(float*)"),
            shortName=self.text(name),
            **dict(zip(("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"), (8, 2, 1, 256, 1, 1), strict=True)),
        )

    def activity(self, begin, ns, correlation, process=PROCESS, stream=7):
        place = {"deviceId": 0, "contextId": 1, "streamId": stream, "globalPid": process}
        return {"start": begin, "end": begin + ns, "correlationId": correlation, **place}

    def copy(self, begin, ns, correlation, size, kinds=(1, 1, 2)):
        self.launch(begin - 500, correlation, name="cudaMemcpyAsync_v3020")
        copy, source, to = kinds
        self.insert(
            "CUPTI_ACTIVITY_KIND_MEMCPY",
            **self.activity(begin, ns, correlation),
            bytes=size,
            copyKind=copy,
            srcKind=source,
            dstKind=to,
        )

    def fill(self, begin, ns, correlation, size):
        self.launch(begin - 500, correlation, name="cudaMemsetAsync_v3020")
        self.insert("CUPTI_ACTIVITY_KIND_MEMSET", **self.activity(begin, ns, correlation), bytes=size, value=0)

    def range(self, name, begin, end, by_id=False, kind=59):
        text = {"textId": self.text(name)} if by_id else {"text": name}
        self.insert("NVTX_EVENTS", start=begin, end=end, eventType=kind, globalTid=THREAD, domainId=0, **text)


@pytest.fixture(name="export")
def _export(tmp_path):
    return Export(tmp_path / "report.sqlite")


def rows(report):
    return {row.path: row for row in report.rows}


def test_kernels_copies_and_ranges(export):
    export.range("step", 1_000, 90_000)
    export.range("inner", 20_000, 60_000, by_id=True)
    export.range("mark", 1_000, None, kind=34)
    export.kernel("gemm", 10_000, 5_001, 1)
    export.kernel("gemm", 30_000, 7_000, 2)
    export.kernel("norm", 40_000, 2_003, 3)
    export.copy(50_000, 4_000, 4, 12_345)
    export.fill(95_000, 300, 5, 4_096)  # after the ranges
    report = roofprof.from_trace(export.path)
    names = {kernel.name: kernel for kernel in report.kernels}
    inside = rows(report)
    assert inside["(outside).step"].time == pytest.approx(5_001e-9 + 7_000e-9 + 2_003e-9 + 4_000e-9)
    assert inside["(outside).step"].self_time == pytest.approx(5_001e-9)
    assert inside["(outside).step.inner"].self_time == pytest.approx(7_000e-9 + 2_003e-9 + 4_000e-9)
    assert report.total.time == pytest.approx(18_304e-9)
    assert report.total.kernel_count == 3
    norm = names["void norm<float>(float*)"]
    assert (tuple(norm.grid), tuple(norm.block), norm.device) == ((8, 2, 1), (256, 1, 1), 0)
    assert names["[memcpy pinned to device]"].bytes == 12_345
    assert names["[memset]"].bytes == 4_096
    assert report.ceilings  # of the card that the file names
    assert report.environment["gpu_device"] == "NVIDIA A100-SXM4-80GB"
    (text,) = [note.text for note in report.coverage.notes if note.code == "trace-lacks"]
    assert text.startswith("Nsight Systems records no operators")
    assert report.total.incomplete


def test_processes_have_their_own_correlations_and_emit_nvtx_names_operators(export):
    export.range("aten::mm, seq = 0, op_id = 7, sizes = [[3, 4]]", 1_000, 90_000)
    export.kernel("a", 10_000, 1_000, 1)
    export.kernel("b", 20_000, 2_000, 1, process=4800 << 24)
    report = roofprof.from_trace(export.path)
    assert rows(report)["(outside).aten::mm"].time == pytest.approx(1e-6)
    assert report.total.time == pytest.approx(3e-6)


def test_steps_are_ranges_of_that_name(export):
    for step in range(3):
        export.range(f"ProfilerStep#{step}", 100_000 * step + 1_000, 100_000 * step + 90_000)
        export.kernel("k", 100_000 * step + 10_000, 1_000 * (step + 1), step + 1)
    assert roofprof.from_trace(export.path, steps="1-2").total.time == pytest.approx(5e-6)
    assert roofprof.from_trace(export.path, steps="mean").total.time == pytest.approx(2e-6)


def test_older_exports(export):
    """They lack columns and tables."""
    old = sqlite3.connect(export.path.with_name("old.sqlite"))
    old.executescript(
        """
        CREATE TABLE StringIds (id INTEGER, value TEXT);
        INSERT INTO StringIds VALUES (1, 'k');
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
            correlationId INTEGER, shortName INTEGER);
        INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 3500, 0, 7, 1, 1);
        """
    )
    old.commit()
    report = roofprof.from_trace(export.path.with_name("old.sqlite"))
    assert report.total.time == pytest.approx(2.5e-6)
    assert [kernel.name for kernel in report.kernels] == ["k"]


def test_what_is_refused(tmp_path, capsys):
    with sqlite3.connect(tmp_path / "another.sqlite") as other:
        other.execute("CREATE TABLE t (a INTEGER)")
    (tmp_path / "damaged.sqlite").write_bytes(b"SQLite format 3\0" + b"\xff" * 2000)
    (tmp_path / "r.nsys-rep").write_bytes(b"NSYS" + b"\0" * 100)
    for name, reason in {
        "another.sqlite": "without the tables of Nsight Systems",
        "damaged.sqlite": "cannot be read",
        "r.nsys-rep": "nsys export --type sqlite",
    }.items():
        assert main(["import", str(tmp_path / name)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        assert reason in err
