"""``roofprof import``: traces recorded here, made by hand, or recorded by others on real GPUs."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

import roofprof
from roofprof.cli import main

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
"""
BATCH = 8
MACS = BATCH * (16 * 32 + 32 * 16 + 16 * 4)  # of one forward
TRACES = os.environ.get("ROOFPROF_TRACES")


@pytest.fixture(scope="module", name="recorded")
def _recorded(tmp_path_factory):
    """Two training steps, 2 and 3, with everything that a trace can have; and the model's file."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "net.py").write_text(MODELS)
    record(folder / "t.json.gz", record_shapes=True, with_stack=True)
    return folder


def net():
    names: dict[str, type] = {}
    exec(MODELS, names)
    return names["Net"]()


def record(path, **options):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=lambda prof: prof.export_chrome_trace(str(path)),
        **options,
    ) as prof:
        for _ in range(4):
            with record_function("a step"):
                model(torch.rand(BATCH, 16)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()


@pytest.fixture(name="run")
def _run(recorded, tmp_path, monkeypatch, capsys):
    """The command in a folder with the trace and the model's file: exit code, stdout, stderr."""
    for file in recorded.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def call(*words):
        code = main([str(word) for word in words])
        text = capsys.readouterr()
        return code, text.out, text.err

    return call


def imported(run, *words):
    code, _, err = run("import", *words, "-o", "r.json")
    assert (code, err.splitlines()[:1]) == (0, ["roofprof: written to r.json"])
    return roofprof.Report.from_json("r.json")


def refused(run, *words):
    """Return the sentence, which is all there is."""
    code, out, err = run("import", *words)
    assert (code, out) == (2, "")
    assert err.startswith("roofprof: ")
    assert err.count("\n") == 1
    return err.removeprefix("roofprof: ")


def peaks(ceilings):
    return {ceiling.dtype: ceiling.operations_per_second for ceiling in ceilings.compute}


def codes(report):
    return {note.code for note in report.coverage.notes}


# ---- what was recorded here


def test_it_prints_the_modules(run):
    code, out, err = run("import", "t.json.gz")
    assert (code, err) == (0, "")
    header, second, *_ = out.splitlines()
    assert header == "roofprof  Net on cpu"
    assert second.strip().startswith("a trace of torch.profiler, 2 steps")
    assert "  Sequential_0 " in out
    assert "    ReLU_0 " in out
    assert "every op of the trace was counted; work that bypasses torch's dispatcher is not in traces" in out


def test_the_count_is_the_models(run):
    report = imported(run, "t.json.gz")
    by_phase = report.by_phase()
    assert by_phase["forward"].macs == 2 * MACS
    # The input has no gradient, so the first layer's is of its weight alone.
    assert by_phase["backward"].macs == 2 * (2 * MACS - BATCH * 16 * 32)
    assert report.total.time is not None


@pytest.mark.parametrize("kind", ["module", "op", "scope", "phase", "op,phase", "dtype", "shapes", "kernel"])
def test_other_tables(run, kind):
    code, out, err = run("import", "t.json.gz", "--by", kind)
    assert (code, err) == (0, "")
    assert out.startswith("roofprof  Net on cpu")


def test_a_program_of_one_process_has_no_collectives(run):
    _, out, _ = run("import", "t.json.gz", "--by", "collective")
    assert "no collectives: the trace has no call of one" in out


def test_options_of_the_table(run):
    _, out, _ = run("import", "t.json.gz", "--depth", "1", "--no-legend", "--columns", "macs,time")
    assert "Sequential_0" in out
    assert "ReLU_0" not in out
    assert "columns   " not in out


def test_the_report_is_one_like_any_other(run):
    imported(run, "t.json.gz", "--device", "L40S", "--csv", "r.csv")
    Path("budget.toml").write_text('[total]\nmacs = "<= 1G"\n')
    assert Path("r.csv").read_text().startswith("path,type,")
    for words in (
        ("show", "r.json", "--by", "op"),
        ("trace", "r.json", "-o", "r.folded"),
        ("compare", "r.json", "r.json"),
        ("predict", "r.json", "--device", "L40S"),
        ("check", "r.json", "--budget", "budget.toml"),
    ):
        code, _, err = run(*words)
        assert code == 0, (words, err)


@pytest.mark.integration
def test_the_report_has_pictures(run):
    name = "aten::mm</script><b>"
    write("gpu.json", traced([(name, [[4, 4]], 3)]))
    for trace in ("t.json.gz", "gpu.json"):
        imported(run, trace, "--device", "L40S")
        assert run("html", "r.json", "-o", "r.html")[0] == run("plot", "r.json", "-o", "r.svg")[0] == 0
        assert "torch.profiler" in Path("r.html").read_text()
    assert "</script><b>" not in Path("r.html").read_text()


def test_steps_are_chosen_by_their_numbers(run):
    one, both = imported(run, "t.json.gz", "--steps", "3"), imported(run, "t.json.gz", "--steps", "2-3")
    assert (one.steps, both.steps) == (1, 2)
    assert both.total.macs == 2 * one.total.macs
    assert refused(run, "t.json.gz", "--steps", "7-9").startswith("t.json.gz: it has the steps 2 to 3")


def test_a_model_gives_names_and_parameters(run):
    report = imported(run, "t.json.gz", "--model", "net.py:Net", "--input", f"{BATCH}x16")
    assert report.row("body.2").macs == imported(run, "t.json.gz").row("Sequential_0.Linear_1").macs
    assert report.total.params == sum(parameter.numel() for parameter in net().parameters())
    assert "model-not-aligned" not in codes(report)


UNPACKS = """
from torch import nn


class Unpacks(nn.Module):
    def forward(self, x):
        first, second = x.shape + (1,)
        return x


def function():
    return len
"""


def test_what_the_model_raises_names_it_and_the_call(run):
    Path("m.py").write_text(UNPACKS)
    sentence = refused(run, "t.json.gz", "--model", "m.py:Unpacks", "--input", "8x16")
    assert sentence.startswith(
        "m.py:Unpacks raised ValueError when it was called on the meta device with a tensor of 8x16 (float32), to name "
        "the rows: too many values to unpack"
    )
    sentence = refused(run, "t.json.gz", "--model", "m.py:function", "--input", "8x16")
    assert sentence == "m.py:function: the model of a trace is a torch.nn.Module, not a builtin_function_or_method\n"


def test_roofs_of_a_gpu_for_a_trace_of_a_cpu_are_said(run):
    report = imported(run, "t.json.gz", "--device", "H100")
    (note,) = [note.text for note in report.coverage.notes if note.code == "roofs-of-another"]
    assert note.startswith("the times of the trace are those of a CPU, and the roofs those of H100")
    assert "roofs-of-another" not in codes(imported(run, "t.json.gz"))
    write("gpu.json", traced([("aten::mm", [[4, 4], [4, 4]], 3)], device="NVIDIA L40S"))
    assert "roofs-of-another" not in codes(imported(run, "gpu.json", "--device", "L40S"))
    assert "roofs-of-another" in codes(imported(run, "gpu.json", "--device", "H100"))


def test_the_header_has_the_numbers_of_steps(run):
    """Those of ProfilerStep, which --steps takes."""
    _, out, _ = run("import", "t.json.gz")
    ((number, first, last),) = re.findall(
        r"\(step (\d+) of (\d+) to (\d+), by ProfilerStep's numbers\)", " ".join(out.split())
    )
    assert (int(first), int(last)) == (2, 3)
    assert int(number) in {2, 3}
    slowest = imported(run, "t.json.gz", "--steps", number).total.wall
    assert slowest == max(imported(run, "t.json.gz", "--steps", step).total.wall for step in "23")


def test_another_model_is_said(run):
    report = imported(run, "t.json.gz", "--model", "net.py:Other", "--input", f"{BATCH}x16")
    assert "model-not-aligned" in codes(report)
    assert report.row("Sequential_0").macs  # as without it


def test_a_batch_is_not_guessed(run):
    imported(run, "t.json.gz")
    code, _, err = run("predict", "r.json", "--device", "L40S", "--batch", "16")
    assert code == 2
    assert "batch" in err


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ({"with_stack": True}, "record with record_shapes=True"),
        ({"record_shapes": True}, "record with with_stack=True"),
    ],
)
def test_what_was_not_recorded_is_named_with_its_option(run, options, note):
    record("less.json", **options)
    report = imported(run, "less.json")
    assert any(note in said for said in report.coverage.notes if said.code == "trace-lacks")
    assert report.total.incomplete == ("record_shapes" not in options)
    if "with_stack" not in options:
        assert report.row("(outside).a step").macs


# ---- from Python


def test_a_profiler_gives_its_trace_once(tmp_path):
    with profile(record_shapes=True, with_stack=True) as prof:
        net()(torch.rand(BATCH, 16))
    assert roofprof.from_trace(prof).total.macs == MACS
    exported = str(tmp_path / "t.json")
    with profile(record_shapes=True) as prof:
        torch.rand(3).exp()
    prof.export_chrome_trace(exported)
    assert roofprof.from_trace(exported).total.flops
    with pytest.raises(ValueError, match="must have ended, and gives it once"):
        roofprof.from_trace(prof)


def test_a_handler_writes_a_report_of_each_trace(tmp_path):
    handler = roofprof.trace_handler(tmp_path / "r{step}.{rank}.json")
    with profile(schedule=schedule(wait=0, warmup=1, active=1), on_trace_ready=handler, record_shapes=True) as prof:
        for _ in range(4):
            torch.rand(4, 4).exp()
            prof.step()
    written = sorted(file.name for file in tmp_path.iterdir())
    assert written == ["r2.0.json", "r4.0.json"]
    assert roofprof.Report.from_json(tmp_path / "r2.0.json").by_operator()["aten::exp"].calls == 1


def test_what_docs_say_cannot_be_known():
    x = torch.rand(4, 4)
    with profile(record_shapes=True) as prof:
        x * x
        x[torch.tensor([0, 2])]
    report = roofprof.from_trace(prof)
    assert report.by_operator()["aten::mul"].bytes == 3 * x.nbytes
    assert roofprof.count(lambda: x * x).total.bytes == 2 * x.nbytes
    assert report.by_operator()["aten::index"].incomplete
    assert any("argument indices" in note for note in report.coverage.notes if note.code == "cost-failed")


# ---- made by hand: a GPU's, with a closed form


def traced(ops, device="NVIDIA H100 80GB HBM3", **document):
    """One module Net_0 that calls ops (name, sizes, kernel's microseconds), each of which launches one kernel."""
    end = 100 * (len(ops) + 1)
    step = {"cat": "user_annotation", "name": "ProfilerStep#5", "ts": 0, "dur": end}
    module = {"cat": "python_function", "name": "nn.Module: Net_0", "ts": 1, "dur": end - 2}
    events = [{"ph": "X", "pid": 1, "tid": 1, **event} for event in (step, module)]
    for number, (op, sizes, took) in enumerate(ops, 1):
        args = {"Input Dims": sizes, "Input type": ["float"] * len(sizes), "External id": number}
        host = {"ph": "X", "pid": 1, "tid": 1}
        launched = {"correlation": number}
        events += [
            {**host, "cat": "cpu_op", "name": op, "ts": 100 * number, "dur": 50, "args": args},
            {**host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 100 * number + 10, "dur": 5}
            | {"args": launched},
            {"ph": "X", "pid": 0, "tid": 7, "cat": "kernel", "name": f"kernel of {op}", "ts": 100 * number + 20}
            | {"dur": took, "args": {**launched, "device": 0, "stream": 7, "grid": [2, 1, 1], "block": [64, 1, 1]}},
        ]
    properties = [{"id": 0, "name": device, "computeMajor": 9, "computeMinor": 0}]
    return {"schemaVersion": 1, "deviceProperties": properties, "traceEvents": events, **document}


def write(path, document):
    Path(path).write_text(json.dumps(document))
    return path


def test_kernels_roofs_and_counts_of_a_gpu(run):
    report = imported(run, write("gpu.json", traced([("aten::mm", [[64, 128], [128, 32]], 30)])))
    total = report.total
    assert total.macs == 64 * 128 * 32
    assert total.bytes == 4 * (64 * 128 + 128 * 32 + 64 * 32)
    assert total.time == pytest.approx(30e-6)
    assert report.kernels[0].name == "kernel of aten::mm"
    assert peaks(report.ceilings) == peaks(roofprof.Ceilings.published("H100 SXM"))
    other = imported(run, "gpu.json", "--device", "A100 SXM 80GB")
    assert other.total.percent_of_roof > total.percent_of_roof
    assert "aten::mm" in run("import", "gpu.json", "--by", "kernel", "--width", "160")[1]


def test_advice_is_of_python_programs_and_not_for_compiled_ones(run):
    eager = [("aten::mm", [[4, 4], [4, 4]], 3), ("aten::exp", [[4, 4]], 3)]
    assert "torch.compile" in run("import", write("gpu.json", traced(eager)), "--width", "400")[1]
    compiled = [*eager, ("triton_poi_fused_exp_0", [[4, 4]], 3)]
    _, out, _ = run("import", write("gpu.json", traced(compiled)), "--width", "400")
    assert "CUDA graphs" in out
    assert "torch.compile" not in out


def test_roofs_from_a_file(run):
    assert run("ceilings", "--published", "L40S", "--json", "roofs.json")[0] == 0
    report = imported(run, write("gpu.json", traced([("aten::mm", [[4, 4], [4, 4]], 3)])), "--device", "roofs.json")
    assert peaks(report.ceilings) == peaks(roofprof.Ceilings.published("L40S"))


def test_a_device_without_published_roofs_is_named(run):
    report = imported(run, write("gpu.json", traced([("aten::mm", [[4, 4], [4, 4]], 3)], device="Abacus 1")))
    assert any("Abacus 1" in note and "--device" in note for note in report.coverage.notes if note.code == "no-roof")
    assert report.total.percent_of_roof is None


def test_a_cost_by_name_counts_for_operators_that_torch_does_not_have(run):
    write("gpu.json", traced([("elsewhere::norm", [[64, 32], [32]], 10)]))
    assert imported(run, "gpu.json").by_operator()["elsewhere::norm"].incomplete

    @roofprof.op_cost("elsewhere::norm")
    def norm(x, weight):
        return roofprof.Work(flops=6 * x.numel(), read_bytes=x.nbytes + weight.nbytes, write_bytes=x.nbytes)

    row = roofprof.from_trace("gpu.json").by_operator()["elsewhere::norm"]
    assert (row.flops, row.bytes, row.incomplete) == (6 * 64 * 32, 4 * (2 * 64 * 32 + 32), False)


def test_ranks_are_merged(run):
    for rank in range(2):
        document = traced([("aten::mm", [[4, 4], [4, 4]], 3)], distributedInfo={"rank": rank, "world_size": 2})
        code, _, err = run("import", write(f"t{rank}.json", document), "-o", f"r{rank}.json")
        assert code == 0, err
    code, out, err = run("merge", "r0.json", "r1.json", "--by", "rank")
    assert code == 0, err
    assert len([line for line in out.splitlines() if line.split()[:1] in (["0"], ["1"])]) == 2


def test_without_ranks_nothing_is_merged(run):
    imported(run, "t.json.gz")
    code, _, err = run("merge", "r.json", "r.json")
    assert code == 2
    assert "its trace was recorded without torch.distributed" in err


def test_names_are_text(run):
    name = "aten::mm\x1b[31m\n</script><b>"
    write("gpu.json", traced([(name, [[4, 4]], 3)]))
    for kind in ("op", "kernel"):
        _, out, _ = run("import", "gpu.json", "--by", kind, "--width", "200", "-o", "r.json")
        assert "\x1b" not in out


# ---- wrong arguments


def test_what_is_no_trace_is_refused_in_a_sentence(run, recorded):
    packed = (recorded / "t.json.gz").read_bytes()
    text = gzip.decompress(packed)
    files = {
        "empty.json": (b"", "it is empty"),
        "cut.json.gz": (packed[: len(packed) // 2], "it is packed by gzip, and cut off or damaged"),
        "damaged.json.gz": (b"\x1f\x8b" + b"no archive", "it is packed by gzip, and cut off or damaged"),
        "cut.json": (text[: len(text) // 2], "it is cut off after"),
        "two.json": (text + text, "give each trace its own file"),
        "list.json": (b"[1, 2]", "it has no event of torch.profiler's"),
        "other.json": (b'{"a": 1}', 'it has no "traceEvents"'),
        "text.json": (b"hello", "it is not the JSON of a trace"),
        "nothing.json": (b'{"traceEvents": []}', "nothing ran while it was recorded"),
    }
    for name, (content, sentence) in files.items():
        Path(name).write_bytes(content)
        said = refused(run, name)
        assert said.startswith(f"{name}: ")
        assert sentence in said
    assert "No such file" in refused(run, "absent.json")
    Path("folder").mkdir()
    assert refused(run, "folder") == "folder has no trace of torch.profiler\n"
    os.mkfifo("pipe")
    assert "not a regular file but a pipe" in refused(run, "pipe")
    imported(run, "t.json.gz")
    assert refused(run, "r.json").startswith("r.json: it is a report of roofprof, no trace: `roofprof show` prints it")
    said = refused(run, "t.json.gz", "--capture", "r.json")
    assert "its capture 'r.json': it is a report of roofprof, no trace" in said


@pytest.mark.parametrize(
    "words",
    [
        ("show",),
        ("show", "--brief"),
        ("html",),
        ("plot", "-o", "p.svg"),
        ("trace", "-o", "f.folded"),
        ("compare", "r.json"),
        ("merge", "-o", "m.json"),
        ("scaling", "r.json"),
        ("check", "--budget", "b.toml"),
        ("predict", "--device", "A100 SXM 80GB"),
    ],
    ids=" ".join,
)
def test_a_trace_in_place_of_a_report_is_told_by_every_command(run, words):
    imported(run, "t.json.gz")
    Path("b.toml").write_text("[total]\nmacs = '<= 1'\n")
    Path("t.json").write_bytes(gzip.decompress(Path("t.json.gz").read_bytes()))
    for name, what in (("t.json", "a trace"), ("t.json.gz", "packed by gzip")):
        code, out, err = run(words[0], name, *words[1:])
        assert (code, out) == (2, "")
        assert f"{name}: not a roofprof report, but {what}: `roofprof import` makes a report of " in err


@pytest.mark.parametrize("steps", ["9-3", "x", "", "1-2-3", "3-"])
def test_steps_that_are_none(run, steps):
    assert refused(run, "t.json.gz", f"--steps={steps}").startswith("steps are given as '3' or '1-3'")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--device", "nonsense"), "no published peaks of 'nonsense' are known"),
        (("--device", "absent.json"), "cannot read 'absent.json'"),
        (("--device", "net.json"), "cannot read ceilings from net.json: "),
        (("--model", "net.py:Net"), "net.py:Net is called with x, and no input was given"),
        (("--model", "net.py:Absent", "--input", "8x16"), "net.py has no 'Absent'"),
        (("--model", "net.py:Net", "--input", "8x5"), "net.py:Net raised "),
        (("--input", "8x16"), "name the model, or leave them out"),
        (("--dtype", "float16"), "name the model, or leave them out"),
        (("-o", "absent/a.json"), "there is no folder 'absent'"),
    ],
)
def test_options_that_cannot_be_met(run, words, sentence):
    Path("net.json").write_text('{"a": 1}')
    assert sentence in refused(run, "t.json.gz", *words)


# ---- recorded by others on real GPUs

ON_REAL_DEVICES = [] if TRACES is None else sorted(Path(TRACES).rglob("*.json.gz"))
needs_traces = pytest.mark.skipif(not ON_REAL_DEVICES, reason="ROOFPROF_TRACES names no folder with traces of GPUs")


@needs_traces
@pytest.mark.parametrize("path", ON_REAL_DEVICES, ids=lambda path: path.name[:30])
def test_traces_of_real_devices_become_reports(run, path):
    code, out, err = run("import", path, "-o", "r.json")
    assert code == 0, err
    assert out.startswith("roofprof  ")
    for words in (("show", "r.json", "--by", "op"), ("show", "r.json", "--by", "kernel")):
        assert run(*words)[0] == 0


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
