"""Counters that others read on an A100 with Nsight Compute, in the folder that the environment's ROOFPROF_NCU names.

Two of its files are ncu's own output: nn.MultiheadAttention, each kernel. The other two are tables that were made of
such output, of thousands of ReLUs and linears: here they become a table as ncu prints it, with a trace of the
operators. The truth is arithmetic on the sizes, and figures that hold between columns of the files.
"""

from __future__ import annotations

import csv
import functools
import gzip
import io
import json
import math
import os
import statistics
from pathlib import Path

import pytest
from gpu_traces import event, write_trace

import roofprof

FOLDER = Path(os.environ.get("ROOFPROF_NCU", "/nonexistent"))

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="ROOFPROF_NCU names no folder with counters of a GPU")

FLOAT = 4  # bytes
KERNEL = {"aten::relu": "vectorized_elementwise_kernel", "aten::linear": "ampere_sgemm_128x64_tn"}


def text_of(name):
    return gzip.decompress((FOLDER / name).read_bytes()).decode()


def rows_of(name):
    return list(csv.DictReader(io.StringIO(text_of(name))))


def trace_of(path, op, inputs, times_ns):
    """One call of the operator after another, each with one kernel."""
    events = []
    at = 1000.0
    for correlation, (dims, ns) in enumerate(zip(inputs, times_ns, strict=True), 1):
        args = {"Input Dims": dims, "Input type": ["float"] * len(dims), "Concrete Inputs": [""] * len(dims)}
        events.append(event("cpu_op", op, at, 2, **args))
        events.append(event("cuda_runtime", "cudaLaunchKernel", at + 1, 1, correlation=correlation))
        kernel = {
            "correlation": correlation,
            "device": 0,
            "stream": 7,
            "grid": [correlation, 1, 1],
            "block": [128, 1, 1],
        }
        events.append(event("kernel", KERNEL[op], at + 3, ns / 1000, **kernel))
        at += 5 + ns / 1000
    device = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8, "computeMinor": 0}
    write_trace(path, events, deviceProperties=[device])


def table_of(path, op, rows, metrics):
    """A kernel a row, as `ncu --csv --page raw` prints it."""
    fixed = ["ID", "Process ID", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size"]
    text = io.StringIO()
    write = csv.writer(text, quoting=csv.QUOTE_ALL).writerow
    write([*fixed, *metrics])
    units = {"bytes": "byte", "inst": "inst", "duration": "nsecond"}
    write([*[""] * len(fixed), *(next(unit for part, unit in units.items() if part in metric) for metric in metrics)])
    for index, row in enumerate(rows):
        grid = f"({index + 1}, 1, 1)"
        write([index, 1, KERNEL[op], 1, 7, "(128, 1, 1)", grid, *(f"{float(row[metric]):,.0f}" for metric in metrics)])
    path.write_text(text.getvalue())


# ---- ReLUs


@functools.cache
def relus():
    rows = rows_of("nsight_result.csv.gz")
    sizes = json.loads(text_of("a100_4237.json.gz"))["input_size"]
    assert len(rows) == len(sizes) == 4237
    return rows, sizes


@pytest.fixture(scope="module", name="reports")
def _reports(tmp_path_factory):
    """With the counters and without. The index of a kernel is its grid."""
    folder = tmp_path_factory.mktemp("relu")
    rows, sizes = relus()
    times = [float(row["gpu__time_duration.sum"]) for row in rows]
    trace_of(folder / "t.json", "aten::relu", [[size] for size in sizes], times)
    table_of(folder / "m.csv", "aten::relu", rows, ["dram__bytes.sum", "lts__t_bytes.sum", "l1tex__t_bytes.sum"])
    report = roofprof.from_trace(folder / "t.json", ncu=folder / "m.csv")
    (text,) = [note.text for note in report.coverage.notes if note.code == "ncu-matched"]
    assert text.startswith("4237 launches of the trace have the counters of 4237 of the 4237 launches")
    return report, roofprof.from_trace(folder / "t.json")


@pytest.fixture(name="relu")
def _relu(reports):
    return reports[0]


def test_every_relu_has_its_counters(relu):
    """Each kernel's bytes are the file's, whatever the order in which the report lists them."""
    rows, sizes = relus()
    kernels = {kernel.grid[0] - 1: kernel for kernel in relu.kernels}
    assert len(kernels) == len(rows)
    for index, row in enumerate(rows):
        kernel = kernels[index]
        assert kernel.dram_bytes == float(row["dram__bytes.sum"])
        assert kernel.l2_bytes == float(row["lts__t_bytes.sum"])
        assert kernel.l1_bytes == float(row["l1tex__t_bytes.sum"])
        assert round(kernel.total * 1e9) == float(row["gpu__time_duration.sum"])
    assert relu.total.dram_bytes == sum(float(row["dram__bytes.sum"]) for row in rows)
    assert relu.total.bytes == sum(2 * FLOAT * math.prod(size) for size in sizes)


# The median of DRAM bytes / compulsory bytes around each size of what is read and written together (within an eighth).
RATIOS = {4: 0.500, 8: 0.500, 16: 0.500, 32: 0.500, 64: 0.690, 128: 0.845, 256: 0.92, 512: 0.96, 1024: 0.98}


def by_footprint(relu):
    """Bytes that are read and written by one call, its DRAM bytes, and the memory level that its roof stands at."""
    rows, sizes = relus()
    groups = {row.keys[0]: row for row in relu.group("shapes")}
    return [
        (2 * FLOAT * math.prod(size), float(row["dram__bytes.sum"]), groups["x".join(map(str, size))])
        for row, size in zip(rows, sizes, strict=True)
    ]


def test_dram_bytes_of_relus(relu):
    """ncu empties the caches first, so all that is read comes from DRAM. What is written stays in the L2 of 40 MB: half
    of the bytes are measured up to 32 MB, and more and more beyond."""
    calls = by_footprint(relu)
    for megabytes, ratio in RATIOS.items():
        near = [dram / size for size, dram, _ in calls if abs(math.log2(size / (megabytes * 2**20))) < 1 / 8]
        assert len(near) > 5
        assert statistics.median(near) == pytest.approx(ratio, abs=0.012)
    for size, dram, group in calls:
        if size > 1e5:
            assert 0.4999 < dram / size < 1
            assert group.dram_bytes_ratio * group.bytes == pytest.approx(group.dram_bytes)
        if 1e6 < size < 32e6:
            assert dram / size == pytest.approx(0.5, abs=2e-3)


def test_the_level_that_the_model_takes(reports):
    """Without counters an op that fits the L2 is held against it. The measurement agrees: nothing that such a ReLU
    wrote reached DRAM, but for those that fill nearly all of it. Of what does not fit, the L2 keeps half of its size,
    which the next call would evict. Where DRAM's bytes were counted they decide: half of each ReLU's came from there.
    """
    relu, uncounted = reports
    levels = {row.keys[0]: row.bound for row in uncounted.group("shapes")}
    cache = next(level.capacity_bytes for level in relu.ceilings.memory if level.level == "L2")
    assert cache == 40 * 2**20
    kept = []
    for size, dram, group in by_footprint(relu):
        written_to_dram = (dram - size / 2) / (size / 2)
        bound = levels[group.keys[0]]
        assert group.bound in ("memory DRAM", "latency/code")
        if size > cache:
            assert bound in ("memory DRAM", "latency/code")
            kept.append((1 - written_to_dram) * size / 2 if size > 1.5 * cache else None)
        elif size > 1e6:
            assert bound in ("memory L2", "latency/code")
            assert written_to_dram < (0.01 if size < 0.85 * cache else 0.1)
    kept = [size / cache for size in kept if size]
    assert len(kept) > 500
    assert 0.44 < min(kept) < max(kept) < 0.5


def test_cycles_tell_the_time():
    """The identity by which times are known where only cycles were counted."""
    for row in relus()[0]:
        seconds = float(row["sm__cycles_elapsed.avg"]) / float(row["sm__cycles_elapsed.avg.per_second"])
        assert seconds * 1e9 == pytest.approx(float(row["gpu__time_duration.sum"]), rel=2e-6)


# ---- linears

SASS = "sm__sass_thread_inst_executed_op_{}_pred_on.sum"


def test_linears(tmp_path):
    """The operations that were executed are 2 FFMA + FMUL + FADD; FFMA are the MACs, with what fills tiles up."""
    rows = rows_of("linear_para_metric.csv.gz")
    sizes = [(int(row["N"]), int(row["cin"]), int(row["cout"])) for row in rows]
    inputs = [[[n, cin], [cout, cin]] for n, cin, cout in sizes]
    trace_of(tmp_path / "t.json", "aten::linear", inputs, [1e9 * float(row["Time"]) for row in rows])
    kinds = [SASS.format(kind + what) for kind in "dfh" for what in ("fma", "mul", "add")]
    metrics = [*kinds, "sm__inst_executed_pipe_tensor.sum", "dram__bytes.sum", "lts__t_bytes.sum", "l1tex__t_bytes.sum"]
    table_of(tmp_path / "m.csv", "aten::linear", rows, metrics)
    report = roofprof.from_trace(tmp_path / "t.json", ncu=tmp_path / "m.csv")
    assert report.total.macs == sum(math.prod(size) for size in sizes)
    kernels = {kernel.grid[0] - 1: kernel for kernel in report.kernels}
    ratios = []
    for index, (row, size) in enumerate(zip(rows, sizes, strict=True)):
        ffma, fmul, fadd = (float(row[SASS.format(kind)]) for kind in ("ffma", "fmul", "fadd"))
        assert kernels[index].executed_flops == 2 * ffma + fmul + fadd == float(row["all FLOPs"])
        assert kernels[index].dram_bytes == float(row["dram__bytes.sum"])
        ratios.append((kernels[index].executed_flops - fmul - fadd) / 2 / math.prod(size))
    assert statistics.median(ratios) == pytest.approx(1.017, abs=5e-4)
    assert min(ratios) == 1
    assert report.total.executed_flops == sum(float(row["all FLOPs"]) for row in rows)


# ---- MultiheadAttention

# Tokens (batch x length), width, heads; the tile of the projections' kernel.
ATTENTION = {"bert_torch_nsight": (2, 20, 256, 8, 32), "gpt2_torch_nsight": (2, 32, 768, 12, 32)}
# What one call of the module runs, after three random tensors and two fills.
PROJECTION = ["elementwise_kernel", "sgemm", "splitKreduce_kernel", "elementwise_kernel"]
CALL = [*PROJECTION * 3, "vectorized_elementwise_kernel", "sgemm", "softmax_warp_forward", "sgemm", *PROJECTION[:3]]
CALL += ["reduce_kernel", "vectorized_elementwise_kernel"]


def counted(name):
    """What the file says of each kernel, read without roofprof."""
    kernels: dict[str, dict[str, str]] = {}
    for row in csv.DictReader(io.StringIO(text_of(f"{name}.csv.gz"))):
        kernel = kernels.setdefault(row["ID"], {"name": row["Kernel Name"]})
        kernel[row["Metric Name"]] = row["Metric Value"].replace(",", "")
    return list(kernels.values())


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name, tmp_path):
    """Each kernel of ncu's own output: how many, in which order, and what the products read and compute."""
    batch, length, width, heads, tile = ATTENTION[name]
    truth = counted(name)
    assert len(truth) == 26
    assert all(part in kernel["name"] for part, kernel in zip(CALL, truth[5:], strict=True))
    report = roofprof.from_ncu(FOLDER / f"{name}.csv.gz", "A100 SXM 40GB")
    assert sum(kernel.instances for kernel in report.kernels) == 26
    cycles = [float(k["sm__cycles_elapsed.avg"]) / float(k["sm__cycles_elapsed.avg.per_second"]) for k in truth]
    assert report.total.time == pytest.approx(sum(cycles), abs=26e-9)
    assert report.total.dram_bytes == sum(int(k["dram__bytes.sum"]) for k in truth)

    tokens = batch * length
    executed = [float(k[SASS.format("ffma")]) for k in truth if "sgemm" in k["name"]]
    rows = math.ceil(tokens / tile) * tile
    tiles = batch * heads * 128 * 128  # of a kernel that computes 128 x 128 of each head's product
    head = width // heads
    assert executed == [
        *[rows * width * width] * 3,
        tiles * head,
        tiles * math.ceil(length / 8) * 8,
        rows * width * width,
    ]
    of_products = [k for k in truth if "sgemm" in k["name"]]
    flops = sum(
        factor * int(k[SASS.format(kind)])
        for k in of_products
        for kind, factor in (("ffma", 2), ("fmul", 1), ("fadd", 1))
    )
    assert sum(kernel.executed_flops for kernel in report.kernels if "sgemm" in kernel.name) == flops
    # A projection reads its weights and its input from DRAM, once; what it writes stays in the L2.
    for kernel in of_products[:3]:
        assert int(kernel["dram__bytes.sum"]) == pytest.approx(FLOAT * (width * width + tokens * width), rel=2e-3)
