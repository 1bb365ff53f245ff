"""What Nsight Compute counted, joined with a trace of the same program or alone: both are made here.

The program is a step of an elementwise kernel, a product and a reduction; every figure of theirs is stated below.
"""

from __future__ import annotations

import csv
import gzip
import io
import re

import pytest
from gpu_traces import event, write_trace

import roofprof
from roofprof import _report
from roofprof.cli import main

US = 1_000_000  # where the trace begins, in microseconds

# Names as a trace has them and as ncu prints them.
CLAMP = "launch_clamp_scalar(at::TensorIteratorBase{}&)::"
RELU = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::"
    + CLAMP.format("")
    + "{lambda()#1}::operator()() const::{lambda(float)#2}, std::array<char*, 2ul> >(int, float)",
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::<unnamed>::"
    + CLAMP.format(" ")
    + "[lambda() (instance 1)]::operator ()() const::[lambda(float) (instance 2)], "
    + "std::array<char *, (unsigned long)2>>(int, T2, T3)",
)
GEMM = ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn")
OF_SUM = "at::native::ReduceOp<float, float, unsigned int, float, {}>"
SUM = (
    f"void at::native::reduce_kernel<512, 1, {OF_SUM.format('4')} >(T3)",
    f"void at::native::reduce_kernel<(int)512, (int)1, {OF_SUM.format('(int)4')}>(T3)",
)
N = 1024
STEP = [
    # op, inputs, names, grid, block, us, DRAM read, DRAM written, L2, L1, ffma, fadd, fmul
    ("aten::relu", [[N, N]], RELU, (N, 1, 1), (256, 1, 1), 10, 4 * N * N, 0, 9 * N * N, 8 * N * N, 0, 0, 0),
    ("aten::mm", 2 * [[N, N]], GEMM, (8, 16, 1), (128, 1, 1), 200, 8 * N * N, 4 * N * N, 1e8, 1e8, N**3, 7, N * N),
    ("aten::sum", [[N, N]], SUM, (64, 1, 1), (32, 16, 1), 20, 4 * N * N, 32, 4 * N * N, 4 * N * N, 0, N * N, 0),
]
FLOPS = [2 * ffma + fadd + fmul for *_, ffma, fadd, fmul in STEP]
DRAM = [line[6] + line[7] for line in STEP]


def trace(path, lines, steps=1, ranges=()):
    """Each of the ranges is around one step's lines, in place of the profiler's marks."""
    events = []
    at = US
    correlation = 0
    for step in range(steps):
        first = at
        for op, dims, names, grid, block, us, *_ in lines:
            correlation += 1
            types = ["float"] * len(dims)
            args = {"Input Dims": dims, "Input type": types, "Concrete Inputs": [""] * len(dims)}
            events.append(event("cpu_op", op, at, 5, **args))
            events.append(event("cuda_runtime", "cudaLaunchKernel", at + 1, 1, correlation=correlation))
            device = {"device": 0, "stream": 7, "grid": list(grid), "block": list(block), "correlation": correlation}
            events.append(event("kernel", names[0], at + 10, us, **device))
            at += us + 20
        name = ranges[step] if ranges else f"ProfilerStep#{step}"
        events.append(event("user_annotation", name, first, at - first - 1))
    device = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "computeMinor": 0}
    return write_trace(path, events, deviceProperties=[device])


FIXED = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size"]
SASS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
TENSOR = ["fp16_dst_fp16", "fp16_dst_fp32", "bf16_dst_fp32", "tf32_dst_fp32", "int8", "fp64"]
METRICS = [
    "dram__bytes.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_bytes.sum",
    "l1tex__t_bytes.sum",
    "gpu__time_duration.sum",
    *(SASS.format(kind + what) for kind in "fhd" for what in ("add", "mul", "fma")),
    *(f"sm__ops_path_tensor_src_{types}.sum" for types in TENSOR),
]


def values(line):
    *_, us, read, written, l2, l1, ffma, fadd, fmul = line
    known = dict.fromkeys(METRICS, 0)
    known |= {"dram__bytes.sum": read + written, "dram__bytes_read.sum": read, "dram__bytes_write.sum": written}
    known |= {"lts__t_bytes.sum": l2, "l1tex__t_bytes.sum": l1, "gpu__time_duration.sum": 1500 * us}
    return known | {SASS.format("ffma"): ffma, SASS.format("fadd"): fadd, SASS.format("fmul"): fmul}


def unit(metric):
    return "byte" if "bytes" in metric else "ns" if "duration" in metric else "inst" if "sass" in metric else ""


def fixed(index, line, form):
    return [index, 4711, "python3.11", "127.0.0.1", form(line[2]), 1, 7, str(line[4]), str(line[3]), 0, "8.0"]


MESSAGES = '==PROF== Connected to process 4711\nstep 0, "loss", 0.5\n==PROF== Profiling "x": 0%....100% - 3 passes\n'


def as_text(rows):
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return MESSAGES + text.getvalue()


NVTX = [
    "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
    "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
]


def raw(lines, form=lambda names: names[1], metrics=METRICS, ranges=()):
    """A row a kernel, as --page raw prints it; with --nvtx it has a column for each kind of range."""
    nvtx = NVTX if ranges else []
    header = [*FIXED, "Device", "CC", *nvtx, *metrics]
    rows = [header, [""] * (11 + len(nvtx)) + [unit(metric) for metric in metrics]]
    for index, line in enumerate(lines):
        known = values(line)
        around = ranges[index] if ranges else ()
        rows.append([*fixed(index, line, form), *around, *(f"{known[metric]:,}" for metric in metrics)])
    return as_text(rows)


def pushed(*names):
    """The cells of ranges that a thread pushed, as public exports have them, and of none that were started."""
    return "4711  " + "  ".join(f'"<default domain>:{name}:none:none:none:none:none:none"' for name in names) + " ", ""


def details(lines, form=lambda names: names[1], metrics=METRICS):
    """A row a metric, as --page details prints it, with rules between them."""
    rows = [[*FIXED, "Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name"]]
    for index, line in enumerate(lines):
        head = fixed(index, line, form)
        known = values(line)
        rows += [
            [*head, "Command line profiler metrics", metric, unit(metric), f"{known[metric]:,}"] for metric in metrics
        ]
        rows.append([*head, "Occupancy", "", "", "", "a rule, with a comma"])
    return as_text(rows)


@pytest.fixture(name="write")
def _write(tmp_path):
    def write(text, name="metrics.csv"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return write


def notes(report, code):
    return [note.text for note in report.coverage.notes if note.code == code]


def by_name(report):
    return {kernel.name: kernel for kernel in report.kernels}


@pytest.mark.parametrize(("layout", "name"), [(raw, "metrics.csv"), (details, "metrics.csv.gz")])
def test_joined(tmp_path, write, layout, name):
    """Bytes and operations of each operator and of the whole are those that ncu counted; times are the trace's."""
    report = roofprof.from_trace(trace(tmp_path / "t.json", STEP), ncu=write(layout(STEP), name))
    for line, flops, dram in zip(STEP, FLOPS, DRAM, strict=True):
        row = report.by_operator()[line[0]]
        kernel = by_name(report)[line[2][0]]
        assert (row.dram_bytes, row.executed_flops, row.l2_bytes, row.l1_bytes) == (dram, flops, line[8], line[9])
        assert (kernel.dram_bytes, kernel.executed_flops) == (dram, flops)
        assert kernel.total == pytest.approx(line[5] * 1e-6)
        assert kernel.dram_bandwidth == pytest.approx(dram / (line[5] * 1e-6))
        assert row.dram_bytes_ratio == pytest.approx(dram / row.bytes)
    assert report.total.dram_bytes == sum(DRAM)
    assert report.total.executed_flops == sum(FLOPS)
    (text,) = notes(report, "ncu-matched")
    assert "3 launches of the trace have the counters of 3 of the 3 launches that ncu counted" in text
    assert not notes(report, "ncu-not-matched")
    assert not notes(report, "counter-not-measured")
    assert roofprof.Report.from_dict(report.to_dict()).total.executed_flops == sum(FLOPS)


def test_the_roofline_of_kernels(write):
    """Without a trace: the longer of operations / peak and DRAM bytes / bandwidth; the L2 counts requests."""
    report = roofprof.from_ncu(write(raw(STEP)), "A100 SXM 80GB")
    roofs = report.ceilings
    peak = next(roof.operations_per_second for roof in roofs.compute if roof.dtype == "fp32")
    memory = {roof.level: roof.bytes_per_second for roof in roofs.memory}
    kernels = by_name(report)
    for line, flops, dram in zip(STEP, FLOPS, DRAM, strict=True):
        kernel = kernels[line[2][1]]
        assert (kernel.dram_bytes, kernel.executed_flops, kernel.flops) == (dram, flops, flops)
        seconds = 1.5e-6 * line[5]
        assert kernel.total == pytest.approx(seconds)
        needed = {"compute fp32": flops / peak, "memory DRAM": dram / memory["DRAM"]}
        bound = max(needed, key=lambda roof: needed[roof])
        assert kernel.percent_of_roof == pytest.approx(100 * needed[bound] / seconds)
        assert kernel.bound == bound
    assert report.total.time == pytest.approx(1.5e-6 * sum(line[5] for line in STEP))
    assert report.total.dram_bytes == sum(DRAM)
    assert report.total.busy is report.total.utilization is None
    assert len(notes(report, "ncu-times")) == 1


def test_one_step_against_several(tmp_path, write):
    """Further steps get the counters of the one that ncu counted, and so does their mean."""
    path = trace(tmp_path / "t.json", STEP, steps=3)
    report = roofprof.from_trace(path, ncu=write(raw(STEP)))
    assert report.total.dram_bytes == 3 * sum(DRAM)
    assert "6 of them, in further steps" in notes(report, "ncu-matched")[0]
    mean = roofprof.from_trace(path, steps="mean", ncu=write(raw(STEP)))
    assert mean.total.dram_bytes == sum(DRAM)
    assert mean.total.executed_flops == sum(FLOPS)


def twice(line):
    return (*line[:6], *(2 * count for count in line[6:]))


def test_ambiguous_launches_are_refused(tmp_path, write):
    """Two like steps in the table of which the trace has one, or the other way round: nothing tells which it is."""
    path = trace(tmp_path / "t.json", STEP)
    with pytest.raises(ValueError, match="which of the 6 that ncu counted are the 3 launches of the trace") as refused:
        roofprof.from_trace(path, ncu=write(raw([*STEP, *map(twice, STEP)])))
    assert "metrics.csv: " in str(refused.value)
    assert "record_function" in str(refused.value)
    with pytest.raises(ValueError, match="1 and 2 of them are ampere_sgemm_128x64_tn"):
        roofprof.from_trace(path, ncu=write(raw([STEP[1], STEP[1], STEP[0]])))
    several = raw(STEP).replace('"4711"', '"4712"', 1)
    with pytest.raises(ValueError, match="its kernels are of 2 processes"):
        roofprof.from_trace(trace(tmp_path / "t.json", STEP), ncu=write(several))


def test_ranges_tell_like_launches_apart(tmp_path, write):
    """The trace's record_function has the name of ncu's range: the second of three like steps is the recorded one."""
    lines = [*STEP, *map(twice, STEP), *STEP]
    cells = [pushed("warm-up"), pushed("epoch", "step: 2"), pushed("epoch", "step 3")]
    table = write(raw(lines, ranges=[cells[index // len(STEP)] for index in range(len(lines))]))
    report = roofprof.from_trace(trace(tmp_path / "t.json", STEP, ranges=["step: 2"]), ncu=table)
    assert report.total.dram_bytes == 2 * sum(DRAM)
    assert "ncu counted: matched by range, name, grid, block" in notes(report, "ncu-matched")[0]
    with pytest.raises(ValueError, match="ambiguous"):
        roofprof.from_trace(trace(tmp_path / "t.json", STEP, ranges=["another"]), ncu=table)


def test_the_kernels_of_the_traces_device(tmp_path, write):
    """Others of the table are left out; alone, it shows those of the device that ran most."""
    other = raw([*STEP, twice(STEP[1])])
    table = write(other.replace('"0","8.0"', '"1","8.0"').replace('"1","8.0"', '"0","8.0"', 3))
    assert roofprof.from_trace(trace(tmp_path / "t.json", STEP), ncu=table).total.dram_bytes == sum(DRAM)
    report = roofprof.from_ncu(table)
    assert report.total.dram_bytes == sum(DRAM)
    assert notes(report, "counters-of-one-device") == ["1 kernel that ran on another device is left out"]


def test_what_does_not_match_is_reported(tmp_path, write):
    """A part is never shown as the whole: the rows that lack it have no figure, the others have theirs."""
    report = roofprof.from_trace(trace(tmp_path / "t.json", STEP), ncu=write(raw([STEP[0], STEP[2]])))
    operators = report.by_operator()
    assert operators["aten::mm"].dram_bytes is None
    assert operators["aten::relu"].dram_bytes == DRAM[0]
    assert " DRAM " in report.table(by="op", width=200)  # though no module has all of it
    assert report.total.dram_bytes is None
    (text,) = notes(report, "ncu-not-matched")
    assert "1 of the trace's 3 launches of kernels, 87% of their time" in text
    assert GEMM[0] in text


def test_executed_flops_need_all_counters(tmp_path, write):
    """Without those of tensor cores nothing says how many were executed; the note names what lacks, and bytes stand."""
    sass = [metric for metric in METRICS if "tensor" not in metric]
    report = roofprof.from_trace(trace(tmp_path / "t.json", STEP), ncu=write(raw(STEP, metrics=sass)))
    assert report.total.executed_flops is None
    assert report.total.dram_bytes == sum(DRAM)
    assert any("tensor_bf16_flops" in text for text in notes(report, "counter-not-measured"))
    memory = [metric for metric in METRICS if "__t_bytes" in metric or "dram" in metric]
    report = roofprof.from_trace(trace(tmp_path / "t.json", STEP), ncu=write(raw(STEP, metrics=memory)))
    assert (report.total.executed_flops, report.total.dram_bytes) == (None, sum(DRAM))
    assert not notes(report, "counter-not-measured")  # nobody asked for more


# ---- as a user meets it


@pytest.fixture(name="run")
def _run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")

    def call(*words):
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return call


def test_the_command(run, tmp_path, write):
    trace(tmp_path / "t.json", STEP)
    write(raw(STEP))
    code, out, err = run("import", "t.json", "--ncu", "metrics.csv", "--by", "op", "-o", "r.json")
    assert (code, err.splitlines()[0]) == (0, "roofprof: written to r.json")
    assert "aten::mm" in out
    assert roofprof.Report.from_json("r.json").total.dram_bytes == sum(DRAM)
    code, out, _ = run("import", "--ncu", "metrics.csv", "--device", "A100 SXM 80GB")
    assert code == 0
    assert "Nsight Compute" in out
    assert "compute fp32" in next(line for line in out.splitlines() if "ampere_sgemm" in line)


def test_the_help_has_the_command_for_ncu(run):
    """Its expression matches each metric of the table with its suffix, on any chip, and none of their parts."""
    _, out, _ = run("import", "--help")
    both, memory = re.findall(r"--metrics 'regex:(.*)'", out)
    sets = _report.counter_metrics()
    for metric in sets["memory"]:
        assert re.search(memory, f"{metric}.sum")
    for metric in (*sets["memory"], *sets["sass"], *sets["tensor"]):
        assert re.search(both, f"{metric}.sum")
        assert not re.search(both, f"{metric}.sum.per_second")
        assert not re.search(both, f"{metric}_sparsity_on.sum")
    assert not re.search(memory, f"{sets['sass'][0]}.sum")


BAD = {
    "it is empty": "",
    "it is a report of Nsight Compute": "NVR\0\1\2",
    "UTF-16": "\ufeff",
    "it is JSON": '{"traceEvents": []}',
    "ncu says 'No kernels were profiled.'": "==PROF== Connected\n==WARNING== No kernels were profiled.\n",
    "--print-summary": '"Kernel Name","Metric Name","Metric Unit","Minimum","Maximum"\n"k","a","b","1","2"\n',
    "no row of units": '"ID","Kernel Name","dram__bytes.sum"\n"0","k","1"\n',
    "its table has no kernels": '"ID","Kernel Name","dram__bytes.sum"\n"","","byte"\n',
    "none of the metrics of bytes": '"ID","Kernel Name","gpu__time_duration.sum"\n"","","ns"\n"0","k","5"\n',
    "LC_ALL=C": '"ID","Kernel Name","dram__bytes.sum"\n"","","byte"\n"0","k","1.234,5"\n',
    "gpu__time_duration.sum": '"ID","Kernel Name","dram__bytes.sum"\n"","","byte"\n"0","k","1,234"\n',
    "no table of kernels": "hello\n",
}


@pytest.mark.parametrize("reason", BAD)
def test_what_is_refused(run, tmp_path, reason):
    text = BAD[reason]
    (tmp_path / "m.csv").write_bytes(text.encode("utf-16-le" if reason == "UTF-16" else "utf-8"))
    code, out, err = run("import", "--ncu", "m.csv")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert reason in err
    assert "m.csv" in err


def test_wrong_arguments(run, tmp_path, write):
    write(raw(STEP))
    write_trace(tmp_path / "cpu.json", [event("cpu_op", "aten::relu", 1, 1)])
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(raw(STEP).encode())[:-20])
    for arguments, words in (
        ((), "give the trace"),
        (("--ncu", "metrics.csv", "--steps", "1"), "--steps"),
        (("--ncu", "absent.csv"), "absent.csv"),
        (("metrics.csv",), "--ncu"),
        (("cpu.json", "--ncu", "metrics.csv"), "no kernels"),
        (("--ncu", "cut.csv.gz"), "cut off or damaged"),
    ):
        code, _, err = run("import", *arguments)
        assert code == 2
        assert words in err
