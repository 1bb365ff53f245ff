"""``roofprof import``: traces recorded here, made by hand, or recorded by others on real GPUs."""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

import roofprof

MODELS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.body(x))

class Other(nn.Module):
    def forward(self, x):
        return x + 1

class Unpacks(nn.Module):
    def forward(self, x):
        first, second = x.shape + (1,)
        return x
"""
BATCH = 8
MACS = BATCH * (16 * 32 + 32 * 16 + 16 * 4)  # of one forward
TRACES = os.environ.get("ROOFPROF_TRACES")


@pytest.fixture(scope="module", name="recorded")
def _recorded(tmp_path_factory):
    """Two training steps, 2 and 3, with everything that a trace can have; and the model's file."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "net.py").write_text(MODELS)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=lambda prof: prof.export_chrome_trace(str(folder / "t.json.gz")),
        record_shapes=True,
        with_stack=True,
    ) as prof:
        for _ in range(4):
            with record_function("a step"):
                model(torch.rand(BATCH, 16)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()
    return folder


def net():
    names: dict[str, type] = {}
    exec(MODELS, names)
    return names["Net"]()


@pytest.fixture(name="run")
def _run(shell, recorded, tmp_path, monkeypatch):
    """The command in a folder with the trace and the model's file."""
    for file in recorded.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delitem(sys.modules, "net", raising=False)
    return shell


def imported(run, *words):
    code, _, err = run("import", *words, "-o", "r.json")
    assert (code, err.splitlines()[:1]) == (0, ["roofprof: written to r.json"])
    return roofprof.Report.from_json("r.json")


def refused(run, *words):
    """Return the sentence, which is all there is."""
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.startswith("roofprof: ")
    assert err.count("\n") == 1
    return err.removeprefix("roofprof: ")


def peaks(ceilings):
    return {ceiling.dtype: ceiling.operations_per_second for ceiling in ceilings.compute}


def codes(report):
    return {note.code for note in report.coverage.notes}


# ---- what was recorded here


def test_it_prints_the_modules_and_the_numbers_of_steps(run):
    code, out, err = run("import", "t.json.gz")
    assert (code, err) == (0, "")
    header, second, *_ = out.splitlines()
    assert header == "roofprof  Net on cpu"
    assert second.strip().startswith("a trace of torch.profiler, 2 steps")
    assert "  Sequential_0 " in out
    assert "    ReLU_0 " in out
    assert "every op of the trace was counted; work that bypasses torch's dispatcher is not in traces" in out
    # Numbers are those of ProfilerStep, which --steps takes.
    message = " ".join(out.split())
    ((number, first, last),) = re.findall(r"\(step (\d+) of (\d+) to (\d+), by ProfilerStep's numbers\)", message)
    assert (int(first), int(last)) == (2, 3)
    slowest = imported(run, "t.json.gz", "--steps", number).total.wall
    assert slowest == max(imported(run, "t.json.gz", "--steps", step).total.wall for step in "23")
    sentence = refused(run, "import", "t.json.gz", "--steps", "7-9")
    assert sentence.startswith("t.json.gz: it has the steps 2 to 3")


def test_the_count_is_the_models(run):
    report = imported(run, "t.json.gz")
    by_phase = report.by_phase()
    assert by_phase["forward"].macs == 2 * MACS
    # The input has no gradient, so the first layer's is of its weight alone.
    assert by_phase["backward"].macs == 2 * (2 * MACS - BATCH * 16 * 32)
    assert report.total.time is not None
    one = imported(run, "t.json.gz", "--steps", "3")
    assert (report.steps, one.steps, one.total.macs) == (2, 1, report.total.macs / 2)


def test_tables_and_their_options(run):
    for kind in ("op", "scope", "op,phase", "kernel"):
        code, out, err = run("import", "t.json.gz", "--by", kind)
        assert (code, err) == (0, "")
        assert out.startswith("roofprof  Net on cpu")
    assert "no collectives: the trace has no call of one" in run("import", "t.json.gz", "--by", "collective")[1]
    _, out, _ = run("import", "t.json.gz", "--depth", "1", "--no-legend", "--columns", "macs,time")
    assert "Sequential_0" in out
    assert "ReLU_0" not in out
    assert "columns   " not in out


def test_the_report_is_one_like_any_other(run):
    imported(run, "t.json.gz", "--device", "L40S", "--csv", "r.csv")
    Path("budget.toml").write_text('[total]\nmacs = "<= 1G"\n')
    assert Path("r.csv").read_text().startswith("path,type,")
    for line in (
        "show r.json --by op",
        "trace r.json -o r.folded",
        "compare r.json r.json",
        "predict r.json --device L40S",
        "check r.json --budget budget.toml",
    ):
        code, _, err = run(*line.split())
        assert code == 0, (line, err)
    assert "batch" in refused(run, "predict", "r.json", "--device", "L40S", "--batch", "16")
    assert "its trace was recorded without torch.distributed" in refused(run, "merge", "r.json", "r.json")


def test_a_model_gives_names_and_parameters(run):
    report = imported(run, "t.json.gz", "--model", "net.py:Net", "--input", f"{BATCH}x16")
    plain = imported(run, "t.json.gz").row("Sequential_0.Linear_1")
    assert report.row("body.2").macs == plain.macs
    assert report.total.params == sum(parameter.numel() for parameter in net().parameters())
    assert "model-not-aligned" not in codes(report)
    other = imported(run, "t.json.gz", "--model", "net.py:Other", "--input", f"{BATCH}x16")
    assert "model-not-aligned" in codes(other)
    assert other.row("Sequential_0.Linear_1").macs == plain.macs
    sentence = refused(run, "import", "t.json.gz", "--model", "net.py:Unpacks", "--input", "8x16")
    assert sentence.startswith(
        "net.py:Unpacks raised ValueError when it was called on the meta device with a tensor of 8x16 (float32), to "
        "name the rows: too many values to unpack"
    )


# ---- made by hand: a GPU's, with a closed form


def traced(op, sizes, took, device="NVIDIA H100 80GB HBM3"):
    """One module Net_0 that calls an op of these sizes, which launches one kernel of so many microseconds."""
    args = {"Input Dims": sizes, "Input type": ["float"] * len(sizes), "External id": 1}
    of_kernel = {"correlation": 1, "device": 0, "stream": 7, "grid": [2, 1, 1], "block": [64, 1, 1]}
    host = [
        {"cat": "user_annotation", "name": "ProfilerStep#5", "ts": 0, "dur": 200},
        {"cat": "python_function", "name": "nn.Module: Net_0", "ts": 1, "dur": 198},
        {"cat": "cpu_op", "name": op, "ts": 100, "dur": 50, "args": args},
        {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 110, "dur": 5, "args": {"correlation": 1}},
    ]
    kernel = {"cat": "kernel", "name": f"kernel of {op}", "ts": 120, "dur": took, "args": of_kernel}
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": device, "computeMajor": 9, "computeMinor": 0}],
        "traceEvents": [*({"ph": "X", "pid": 1, "tid": 1} | event for event in host), {"ph": "X", "tid": 7} | kernel],
    }


def of_gpu(run, *words, **options):
    Path("gpu.json").write_text(json.dumps(traced("aten::mm", [[64, 128], [128, 32]], 30, **options)))
    return imported(run, "gpu.json", *words)


def test_kernels_roofs_and_counts_of_a_gpu(run):
    report = of_gpu(run)
    total = report.total
    assert total.macs == 64 * 128 * 32
    assert total.bytes == 4 * (64 * 128 + 128 * 32 + 64 * 32)
    assert total.time == pytest.approx(30e-6)
    assert report.kernels[0].name == "kernel of aten::mm"
    assert "aten::mm" in run("import", "gpu.json", "--by", "kernel", "--width", "160")[1]
    assert peaks(report.ceilings) == peaks(roofprof.Ceilings.published("H100 SXM"))
    assert run("ceilings", "--published", "A100 SXM 80GB", "--json", "roofs.json")[0] == 0
    other = of_gpu(run, "--device", "roofs.json")
    assert other.total.percent_of_roof > total.percent_of_roof
    assert peaks(other.ceilings) == peaks(roofprof.Ceilings.published("A100 SXM 80GB"))


def test_roofs_that_are_not_the_devices_are_reported(run):
    of_cpu = imported(run, "t.json.gz", "--device", "H100")
    (note,) = [note.text for note in of_cpu.coverage.notes if note.code == "roofs-of-another"]
    assert note.startswith("the times of the trace are those of a CPU, and the roofs those of H100")
    assert "roofs-of-another" not in codes(of_gpu(run, "--device", "L40S", device="NVIDIA L40S"))
    assert "roofs-of-another" in codes(of_gpu(run, "--device", "H100", device="NVIDIA L40S"))
    unknown = of_gpu(run, device="Abacus 1")
    assert any("Abacus 1" in note and "--device" in note for note in unknown.coverage.notes if note.code == "no-roof")
    assert unknown.total.percent_of_roof is None


# ---- wrong files


def test_what_is_no_trace_is_refused_in_a_sentence(run, recorded):
    packed = (recorded / "t.json.gz").read_bytes()
    text = gzip.decompress(packed)
    files = {
        "empty.json": (b"", "it is empty"),
        "cut.json.gz": (packed[: len(packed) // 2], "it is packed by gzip, and cut off or damaged"),
        "cut.json": (text[: len(text) // 2], "it is cut off after"),
        "two.json": (text + text, "give each trace its own file"),
        "other.json": (b'{"a": 1}', 'it has no "traceEvents"'),
        "text.json": (b"hello", "it is not the JSON of a trace"),
        "nothing.json": (b'{"traceEvents": []}', "nothing ran while it was recorded"),
    }
    for name, (content, sentence) in files.items():
        Path(name).write_bytes(content)
        message = refused(run, "import", name)
        assert message.startswith(f"{name}: ")
        assert sentence in message
    Path("folder").mkdir()
    assert refused(run, "import", "folder") == "folder has no trace of torch.profiler\n"
    imported(run, "t.json.gz")
    why = "it is a report of roofprof, no trace"
    assert refused(run, "import", "r.json").startswith(f"r.json: {why}: `roofprof show` prints it")
    assert f"its capture 'r.json': {why}" in refused(run, "import", "t.json.gz", "--capture", "r.json")


def test_a_trace_in_place_of_a_report_is_reported_by_every_command(run):
    imported(run, "t.json.gz")
    Path("b.toml").write_text("[total]\nmacs = '<= 1'\n")
    Path("t.json").write_bytes(gzip.decompress(Path("t.json.gz").read_bytes()))
    for line in (
        *("show t", "html t", "plot t -o p.svg", "trace t -o f.folded", "compare t r.json", "merge t -o m.json"),
        *("scaling t r.json", "check t --budget b.toml", "predict t --device T4"),
    ):
        for name, what in (("t.json", "a trace"), ("t.json.gz", "packed by gzip")):
            message = refused(run, *[name if word == "t" else word for word in line.split()])
            assert f"{name}: not a roofprof report, but {what}: `roofprof import` makes a report of " in message


# ---- recorded by others on real GPUs

ON_REAL_DEVICES = [] if TRACES is None else sorted(Path(TRACES).rglob("*.json.gz"))
needs_traces = pytest.mark.skipif(not ON_REAL_DEVICES, reason="ROOFPROF_TRACES names no folder with traces of GPUs")


@needs_traces
@pytest.mark.parametrize("path", ON_REAL_DEVICES, ids=lambda path: path.name[:30])
def test_traces_of_real_devices_become_reports(run, path):
    code, out, err = run("import", path, "-o", "r.json", "--by", "kernel")
    assert code == 0, err
    assert out.startswith("roofprof  ")
    assert run("show", "r.json", "--by", "op")[0] == 0


@needs_traces
def test_the_page_of_docs_shows_what_is_printed(run):
    """Its rows up to the columns of roofs, which may be known better one day."""
    (path,) = [path for path in ON_REAL_DEVICES if "timesformer" in path.name]
    page, _, _ = (Path(__file__).parents[3] / "docs" / "import.md").read_text().partition("## How to record")
    code, out, _ = run("import", path, "--depth", "5", "--columns", "macs,bytes,intensity,time,utilization")
    assert code == 0
    printed = {" ".join(line.replace(" * ", " ").split()) for line in out.splitlines()}
    rows = re.findall(r"^ *Time[sS]former.*?%", page, re.MULTILINE)
    shown = [" ".join(row.replace(" * ", " ").split()) for row in rows]
    assert len(shown) >= 9
    assert set(shown) <= printed
