"""Traces that others recorded on GPUs, where the environment variable ROOFPROF_TRACES names their folder.

Its README states the sums of kernel times; the tables of TraceLens (MIT) beside the traces state FLOPs and bytes.
"""

import ast
import csv
import json
import math

import gpu_traces
import pytest
import torch
from fused_checks import assert_bounded, assert_not_known
from gpu_traces import events_of, path_of

import roofprof

pytestmark = gpu_traces.needs_traces


H100 = ("gaunernst_bert-small", "Falconsai", "Qwen", "facebook_timesformer")

# Kernels (no copies, no fills) and the sum of their times in microseconds, as the folder's README says.
KERNELS = {
    "tracelens/h100/gaunernst_bert-small": (60, 307.2),
    "tracelens/h100/Falconsai": (154, 1_220.9),
    "tracelens/h100/Qwen": (1_465, 45_432.7),
    "tracelens/h100/facebook_timesformer": (446, 154_855.6),
    "tracelens/mi300/Qwen": (1_516, 43_062.0),
    "tracelens/mi300/resnet_act_checkpoint": (2_995, 97_255.8),
    "tracelens/mi300/normalization_layer_test": (168, 992.0),
    "tracelens/b200/eager_trace": (768, 10_862.9),
    "tracelens/compiled/triton": (12, 12_549.0),
    "tracelens/sglang_decode/sglang": (555, 9_765.4),
    "tracelens/vllm_decode/graph_execution": (425, 10_674.5),
    "hta/control": (8_568, None),
    "hta/test": (9_876, None),
    "hta/nccl_data": (2_700, None),
}


def read(beginning):
    return gpu_traces.read(path_of(beginning))


def left_out_ns(report):
    """What was launched before the window: of how many launches, and their time."""
    texts = [note.text for note in report.coverage.notes if note.code == "launched-before"]
    if not texts:
        return 0
    (text,) = texts
    return round(float(text.partition("that took ")[2].partition(" µs")[0]) * 1000)


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_times_are_those_of_the_trace(name):
    """The sum over kernels, and what was left out, is exactly the trace's; rows lack hidden communication."""
    number, microseconds = KERNELS[name]
    report = read(name)
    events = [event for event in events_of(path_of(name)) if event.get("cat") in gpu_traces.ON_DEVICE]
    whole = sum(round(float(event["dur"]) * 1000) for event in events)
    kept = sum(bucket["total_ns"] for bucket in report.to_dict()["kernel_buckets"])
    assert kept + left_out_ns(report) == pytest.approx(whole, abs=100)  # the note has tenths of a microsecond
    assert (report.total.time + (report.total.hidden_communication or 0)) * 1e9 == pytest.approx(kept, abs=1)
    kernels = [event for event in events if event["cat"] == "kernel"]
    assert len(kernels) == number
    if microseconds is not None:
        assert sum(float(event["dur"]) for event in kernels) == pytest.approx(microseconds, abs=0.06)


@pytest.mark.parametrize("name", [f"tracelens/h100/{model}" for model in H100])
def test_what_fusion_could_reach_is_not_known(name):
    report = read(name)
    assert_not_known(report)
    assert {"L2", "DRAM"} <= {level["level"] for level in report.to_dict()["ceilings"]["memory"]}
    table = " ".join(report.table(columns=["fused_bytes", "fused"]).split())
    assert "n/a: a trace does not tell which memory its ops share" in table


@pytest.mark.integration
def test_what_fusion_could_reach_where_the_model_is_given():
    """TimeSformer on an H100: what crosses its boundary are its input, its parameters and its output."""
    transformers = pytest.importorskip("transformers")
    with torch.device("meta"):
        model = transformers.TimesformerForVideoClassification(transformers.TimesformerConfig(num_labels=400))
        frames = torch.zeros(1, 128, 3, 224, 224, dtype=torch.bfloat16)
    model = model.to(torch.bfloat16).eval()
    report = roofprof.from_trace(path_of("tracelens/h100/facebook_timesformer"), model, frames)
    assert {"L2", "DRAM"} <= {level["level"] for level in report.to_dict()["ceilings"]["memory"]}
    assert_bounded(report)
    assert report.row("").percent_of_fused < report.row("").percent_of_roof / 2
    assert report.row("").fused_bytes == 2 * (frames.numel() + report.row("").params + 400)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        *((f"tracelens/h100/{model}", 0.99) for model in H100),
        ("tracelens/mi300/Qwen", 0.95),
        ("tracelens/mi300/resnet_act_checkpoint", 0.95),
    ],
)
def test_nearly_all_kernel_time_is_costed_and_in_a_module(name, least):
    """But for the resnet's, whose optimizer and zero_grad are in no module."""
    data = read(name).to_dict()
    kernels = [kernel for kernel in data["kernel_buckets"] if kernel.get("kind", "kernel") == "kernel"]
    whole = sum(kernel["total_ns"] for kernel in kernels)
    known = [kernel for kernel in kernels if kernel.get("bucket", -1) >= 0]
    costed = [kernel for kernel in known if data["ops"][kernel["bucket"]].get("costed", True)]
    assert sum(kernel["total_ns"] for kernel in costed) >= least * whole
    placed = sum(kernel["total_ns"] for kernel in kernels if kernel["module"] != 1)
    assert placed >= least * whole or "resnet" in name


def test_macs_that_are_published():
    """Of 4 images, and of 10 a step."""
    assert read("tracelens/h100/Falconsai").total.macs == 4 * 17_563_650_048
    resnet = read("tracelens/mi300/resnet_act_checkpoint")
    assert resnet.by_phase()["forward"].macs == 10 * resnet.steps * 1_814_073_344


PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm")
CONVOLUTIONS = (
    "tracelens/h100/Falconsai",
    "tracelens/h100/facebook_timesformer",
    "tracelens/mi300/resnet_act_checkpoint",
)


def lines_of(name, ops, folder):
    """The lines of TraceLens' table of these operators, each with our cost of the same call."""
    path = path_of(name)
    table = path.with_name(path.name.removesuffix(".json.gz") + ".reference") / "unified_perf_summary.csv"
    for line in csv.DictReader(table.open()):
        if line["name"] not in ops or not line["GFLOPS"]:
            continue
        names = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
        args = {name: ast.literal_eval(line[name]) for name in names}
        event = {"ph": "X", "cat": "cpu_op", "name": line["name"], "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": args}
        (folder / "call.json").write_text(json.dumps({"traceEvents": [event]}))
        yield line, roofprof.from_trace(folder / "call.json").by_operator()[line["name"]]


def of_tracelens(line):
    """FLOPs and bytes; the table has bytes in MiB."""
    return float(line["GFLOPS"]) * 1e9, float(line["Data Moved (MB)"]) * 2**20


@pytest.mark.parametrize(
    "name",
    [*(f"tracelens/h100/{model}" for model in H100), "tracelens/mi300/Qwen", "tracelens/mi300/resnet_act_checkpoint"],
)
def test_products_cost_what_tracelens_says(name, tmp_path):
    """FLOPs and bytes of each product that the tables beside the trace have, replayed from the same arguments."""
    lines = list(lines_of(name, PRODUCTS, tmp_path))
    assert lines
    for line, op in lines:
        assert (op.flops, op.bytes) == pytest.approx(of_tracelens(line), rel=1e-6)


def shapes_of(line):
    """Of a line of a convolution: the elements of its input, weight, bias and output, and its multiply-accumulates."""
    sizes, given = ast.literal_eval(line["Input Dims"]), ast.literal_eval(line["Concrete Inputs"])
    if line["name"] == "aten::convolution_backward":
        output, image, weight = sizes[:3]
        bias = ()
    else:
        image, weight, bias = sizes[:3]
        stride, padding, dilation = (json.loads(text) for text in given[3:6])
        places = zip(image[2:], weight[2:], stride, padding, dilation, strict=True)
        output = (image[0], weight[0], *((size + 2 * pad - d * (k - 1) - 1) // s + 1 for size, k, s, pad, d in places))
    counts = [math.prod(shape) if shape else 0 for shape in (image, weight, bias, output)]
    return *counts, math.prod(output) * math.prod(weight[1:])  # weight[1:]: what one output sums over


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_cost_their_closed_form_and_where_tracelens_says_something_else(name, tmp_path):
    """All in bf16. TraceLens has the same MACs, and differs in three places, where the closed form is ours:

    - A bias is read and added to each output (as in addmm, where TraceLens counts it): it leaves both out.
    - A backward reads the gradient of the output once, as any argument of an op: TraceLens has it for each of both
      gradients, as if they were two ops. No FLOPs depend on it.
    - A backward computes the gradients that its output_mask asks for. Of the images none is asked for, and TraceLens
      counts one: twice the FLOPs and bytes of the first layer.
    """
    whole = 0
    for line, op in lines_of(name, ("aten::convolution", "aten::convolution_backward"), tmp_path):
        image, weight, bias, output, macs = shapes_of(line)
        once = 2 * (image + weight + output)  # bytes
        if line["name"] == "aten::convolution":
            ours = (2 * macs + (output if bias else 0), once + 2 * bias)
            theirs = (2 * macs, once)
        else:
            of_image, of_weight, of_bias = json.loads(ast.literal_eval(line["Concrete Inputs"])[-1].lower())
            assert (of_weight, of_bias) == (True, False)
            ours = (4 * macs, 2 * once - 2 * output) if of_image else (2 * macs, once)
            theirs = (4 * macs, 2 * once)
        assert (op.flops, op.bytes) == ours
        assert of_tracelens(line) == pytest.approx(theirs, rel=1e-9)
        whole += int(line["operation_count"]) * ours[0]
    assert whole > 0
    of_trace = [group.flops for op, group in read(name).by_operator().items() if "conv" in op]
    assert sum(of_trace) == whole


def test_phases_of_the_checkpointed_resnet():
    """Its recomputation costs what the forward of the checkpointed blocks does, and the backward twice the forward."""
    phases = read("tracelens/mi300/resnet_act_checkpoint").by_phase()
    forward, backward = phases["forward"].macs, phases["backward"].macs
    assert 0 < phases["recompute"].macs <= forward
    assert backward == pytest.approx(2 * forward, rel=0.15)  # no gradient of the images is needed
    assert phases["optimizer"].time > 0
