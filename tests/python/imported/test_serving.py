"""Operators of serving engines, steps, Triton's kernels and compiled regions in traces; closed forms.

Real traces are read where the environment variable ROOFPROF_TRACES names their folder.
"""

import csv
import gzip
import json
import os
import re
from pathlib import Path

import pytest
import torch

import roofprof
from roofprof import _C

FOLDER = Path(os.environ.get("ROOFPROF_TRACES", "/nonexistent"))
DOCS = Path(__file__).parents[3] / "docs"

needs_traces = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="ROOFPROF_TRACES names no folder with traces that were recorded on GPUs"
)

BF16, FP8, LONG, FLOAT = "c10::BFloat16", "c10::Float8_e4m3fn", "long int", "float"


def op(name, arguments, begin=10, length=5, scalars=None, **more):
    """An event of an operator; arguments: pairs of sizes and type."""
    args = {
        "Input Dims": [sizes for sizes, _ in arguments],
        "Input type": [kind for _, kind in arguments],
        "Concrete Inputs": scalars or [""] * len(arguments),
        **more,
    }
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": begin, "dur": length, "args": args}


def annotation(name, begin=1, length=100):
    return {"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1, "ts": begin, "dur": length}


def imported(tmp_path, *events):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return roofprof.from_trace(path)


def attention(tokens=2, heads=4, keys=2, depth=8, **more):
    query, new = [tokens, heads, depth], [tokens, keys, depth]
    return op("vllm::unified_attention_with_output", [(query, BF16), (new, BF16), (new, BF16), (query, BF16)], **more)


def cache_write(kind, tokens=2, keys=2, depth=8, **more):
    new, cache = [tokens, keys, depth], [9, 16, keys, depth]
    arguments = [(new, BF16), (new, BF16), (cache, kind), (cache, kind), ([tokens], LONG)]
    return op("_C_cache_ops::reshape_and_cache_flash", arguments, **more)


def notes(report, code):
    return "\n".join(note.text for note in report.coverage.notes if note.code == code)


# ---- operators


def test_an_operator_that_torch_does_not_have_counts_by_its_position(tmp_path):
    rows = [([6, 8], BF16), ([6, 8], BF16), ([8], BF16), ([], "Scalar")]
    report = imported(tmp_path, op("_C::fused_add_rms_norm", rows))
    assert report.total.flops == 5 * 6 * 8
    assert report.total.bytes == 2 * (4 * 6 * 8 + 8)
    assert not report.total.incomplete
    assert not report.coverage.uncosted


def test_a_cost_of_the_users_counts_in_its_place(tmp_path):
    event = op("_C::rms_norm", [([6, 8], BF16), ([6, 8], BF16), ([8], BF16)])
    assert imported(tmp_path, event).total.flops == 4 * 48

    @roofprof.op_cost("_C::rms_norm")
    def norm(result, x, weight):
        return roofprof.Work(flops=7, lower_limit=True)

    try:
        total = imported(tmp_path, event).total
    finally:
        _C.remove_op_cost("_C::rms_norm")
    assert total.flops == 7
    assert total.incomplete


LIBRARY = torch.library.Library("sgl_kernel", "FRAGMENT")
LIBRARY.define("silu_and_mul(Tensor! out, Tensor input) -> ()")
LIBRARY.impl("silu_and_mul", lambda out, x: None, "CompositeExplicitAutograd")


class Gated(torch.nn.Module):
    def forward(self, x):
        out = x.new_empty(x.shape[0], x.shape[1] // 2)
        torch.ops.sgl_kernel.silu_and_mul(out, x)
        return out


def test_an_operator_counts_live_as_in_a_trace(tmp_path):
    x = torch.ones(4, 16)
    live = roofprof.count(Gated(), x).by_operator()["sgl_kernel::silu_and_mul"]
    assert live.flops == 6 * 4 * 8
    assert live.bytes == 4 * (4 * 16 + 4 * 8)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profiler:
        Gated()(x)
    there = roofprof.from_trace(profiler).by_operator()["sgl_kernel::silu_and_mul"]
    assert (there.flops, there.read_bytes, there.write_bytes) == (live.flops, live.read_bytes, live.write_bytes)


def test_a_wrong_number_of_arguments_is_said(tmp_path):
    report = imported(tmp_path, op("_C::cutlass_scaled_mm", [([4, 8], BF16)]))
    assert "_C::cutlass_scaled_mm" in report.coverage.uncosted
    assert "'a'" in notes(report, "cost-failed")


def test_experts_are_a_lower_limit(tmp_path):
    report = imported(tmp_path, op("vllm::moe_forward", [([6, 8], BF16), ([6, 4], BF16)]))
    assert report.total.incomplete
    assert report.total.bytes == 2 * (2 * 6 * 8 + 6 * 4)
    assert "vllm::moe_forward" in notes(report, "lower-limits")
    assert "every op" not in report.table()
    assert ">=" in report.table(by="op")
    again = roofprof.Report.from_dict(report.to_dict())
    assert again.total.incomplete


# ---- steps


def test_attention_counts_by_its_steps_sums(tmp_path):
    """A request with 3 new tokens after 4, one with 1 after 9: 3 x 7 + 10 pairs, of which a mask leaves 5 + 6 + 7."""
    step = "execute_4_context_1(sq3sk7sqsq9sqsk21)_generation_1(sq1sk10sqsq1sqsk10)"
    report = imported(tmp_path, annotation(step), cache_write("unsigned char", 4, begin=5), attention(4, begin=20))
    row = report.by_operator()["vllm::unified_attention_with_output"]
    assert row.macs == 31 * 4 * 16
    assert row.causal_macs == (5 + 6 + 7 + 10) * 4 * 16
    assert row.flops == 2 * row.macs + 6 * 31 * 4
    assert row.bytes == 2 * 2 * 4 * 4 * 8 + 17 * 2 * 16  # query and output; 17 keys of one byte an element
    assert not row.incomplete
    assert "whole context" in notes(report, "whole-context")


def test_attention_without_sums_is_a_lower_limit(tmp_path):
    report = imported(tmp_path, annotation("execute_context_0(0)_generation_2(2)"), attention())
    assert report.total.incomplete
    assert report.total.macs == 2 * 4 * 16
    assert "does not say how long" in notes(report, "trace-lacks")


def test_prefill_decode_and_mixed_steps_are_apart(tmp_path):
    product = [([4, 8], BF16), ([8, 4], BF16)]
    events = []
    for number, step in enumerate(["context_2(4)_generation_0(0)", "context_0(0)_generation_3(3)"] * 2):
        events += [annotation("execute_" + step, 200 * number + 1), op("aten::mm", product, 200 * number + 10)]
    events += [annotation("execute_context_1(4)_generation_3(3)", 1000), op("aten::mm", product, 1010)]
    report = imported(tmp_path, *events)
    scopes = {group.keys[0]: group.macs for group in report.group("scope")}
    assert scopes == {"prefill": 256, "decode": 256, "mixed": 128}
    told = {phase.name: (phase.calls, phase.sequences, phase.tokens) for phase in report.language_model}
    assert told == {"prefill": (2, 4, 8), "decode": (2, 6, 6), "mixed": (1, 4, 7)}
    assert "decode: 2 calls with 6 new tokens" in report.table()
    assert "of weights" not in report.table()


def test_a_step_takes_as_long_as_its_kernels(tmp_path):
    """The engine launches for 100 microseconds; the device takes 500."""
    launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 11, "dur": 1}
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 50, "dur": 500}
    args = {"correlation": 3, "device": 0, "stream": 7, "grid": [8, 1, 1], "block": [256, 1, 1]}
    report = imported(
        tmp_path,
        annotation("execute_context_0(0)_generation_2(2)"),
        op("aten::mm", [([4, 8], BF16), ([8, 4], BF16)]),
        launch | {"args": {"correlation": 3}},
        kernel | {"args": args},
    )
    (decode,) = report.language_model
    assert decode.time == pytest.approx(500e-6)
    assert decode.tokens_per_second == pytest.approx(2 / 500e-6)


# ---- Triton


def triton(name, pointers, sizes=(), **more):
    arguments = [*pointers, *(([], "Scalar") for _ in sizes)]
    scalars = [""] * len(pointers) + [str(size) for size in sizes]
    return op(name, arguments, scalars=scalars, kernel_backend="triton", **more)


def test_a_triton_kernel_has_bytes_and_no_operations(tmp_path):
    event = triton("triton_poi_fused_add_0", [([4, 8], BF16), ([4, 8], BF16), ([4, 8], FLOAT)], [32])
    report = imported(tmp_path, event)
    row = report.by_operator()["triton_poi_fused_add_0"]
    assert (row.bytes, row.flops, row.macs) == (64 + 64 + 128, 0, 0)
    assert row.incomplete
    assert "triton_poi_fused_add_0" in notes(report, "lower-limits")


def test_a_table_of_embeddings_counts_what_is_looked_up(tmp_path):
    pointers = [([4], LONG), ([1000, 8], BF16), ([4, 8], BF16)]
    assert imported(tmp_path, triton("triton_poi_fused_embedding_0", pointers, [32])).total.bytes == 32 + 64 + 64


def test_compiled_code_has_a_row(tmp_path):
    region = op("Torch-Compiled Region: 0/0", [], 1, 100)
    report = imported(tmp_path, region, triton("triton_poi_fused_relu_0", [([4, 8], BF16), ([4, 8], BF16)], [32]))
    assert any(row.path.endswith("compiled region 0/0") and row.bytes == 128 for row in report.rows)


# ---- traces of real engines


def path_of(beginning):
    folder, _, name = beginning.rpartition("/")
    (path,) = (FOLDER / folder).glob(f"{name}*.json.gz")
    return path


def events_of(beginning):
    return json.loads(gzip.decompress(path_of(beginning).read_bytes()), strict=False)["traceEvents"]


@needs_traces
def test_gpt_oss_on_a_b200_has_costs():
    """888 new tokens of one request; 36 layers of width 2880, of which each GPU has 8 query heads and one of keys."""
    report = roofprof.from_trace(path_of("tracelens/b200/eager_trace"))
    data = report.to_dict()
    whole = known = 0
    for kernel in data["kernel_buckets"]:
        whole += kernel["total_ns"]
        bucket = kernel.get("bucket", -1)
        known += kernel["total_ns"] * (bucket >= 0 and data["ops"][bucket].get("costed", True))
    assert known / whole >= 0.95
    ops = report.by_operator()
    tokens, width = 888, 2880
    norm = ops["_C::fused_add_rms_norm"]
    assert norm.calls == 72
    assert norm.flops == 72 * 5 * tokens * width
    assert norm.bytes == 72 * 2 * (4 * tokens * width + width)
    # Positions and one row of the cache each; 8 heads of queries, one of keys, all 64 dimensions turn.
    rotary = ops["_C::rotary_embedding"]
    assert rotary.flops == 36 * 3 * tokens * 9 * 64
    assert rotary.bytes == 36 * (2 * 2 * tokens * 9 * 64 + tokens * 64 * 2 + tokens * 8)
    quantised = ops["_C::static_scaled_fp8_quant"]
    assert quantised.bytes == 36 * (3 * tokens * 512 + 4)
    cached = ops["vllm::unified_attention_with_output"]
    assert cached.calls == 36
    assert cached.incomplete
    # 18 layers see all 888 tokens; the others' window is not known: each token with itself.
    assert cached.macs == 18 * (tokens * tokens + tokens) * 8 * 128
    assert cached.causal_macs == 18 * (tokens * (tokens + 1) // 2 + tokens) * 8 * 128
    experts = ops["vllm::moe_forward"]
    assert experts.incomplete
    assert experts.bytes == 36 * 2 * (2 * tokens * 3072 + tokens * 128)
    reduced = ops["symm_mem::multimem_all_reduce_"]
    assert reduced.bytes == 2 * 2 * tokens * (37 * 2880 + 36 * 3072)
    assert {group.keys[0] for group in report.group("scope")} >= {"prefill"}


def of_kind(events, name):
    return [event for event in events if event.get("cat") == "cpu_op" and event["name"].startswith(name)]


def step_of(events):
    (name,) = {event["name"] for event in events if re.fullmatch("execute_.*", event.get("name", ""))}
    return name, [int(number) for number in re.findall(r"\d+", name)]


@needs_traces
@pytest.mark.parametrize(
    ("engine", "attention_op", "heads", "keys", "depth"),
    [("vllm", "vllm::unified_attention", 64, 8, 64), ("sglang", "sglang_profiler::attention_paged", 32, 8, 128)],
)
def test_a_captured_layer_of_attention_in_the_step_of_the_replay(tmp_path, engine, attention_op, heads, keys, depth):
    """The annotation of the replay's trace around the call of the capture's, whose shapes are the model's."""
    name, numbers = step_of(events_of(f"tracelens/{engine}_decode/"))
    context = numbers[8]
    assert numbers[7] == 32  # queries
    assert numbers[10] == context  # one query each
    captured = events_of(f"tracelens/{engine}_decode/capture_traces/")
    events = [annotation(name, 1, 1000)]
    for number, found in enumerate([*of_kind(captured, "_C_cache_ops::")[:1], *of_kind(captured, attention_op)[:1]]):
        events.append({**found, "ts": 100 * number + 10, "dur": 50, "pid": 1, "tid": 1})
    report = imported(tmp_path, *events)
    row = next(group for op, group in report.by_operator().items() if op.startswith(attention_op))
    assert row.macs == context * heads * 2 * depth
    rows_of_pages = 4 * 33 if engine == "sglang" else 0
    assert row.bytes == 2 * 32 * heads * depth * 2 + context * keys * depth * 2 * 2 + rows_of_pages
    assert not row.incomplete


@needs_traces
def test_triton_kernels_lie_between_the_tables_bytes():
    """TraceLens knows what is updated in place: it has each pointer once, or once more."""
    path = path_of("tracelens/compiled/triton")
    ops = roofprof.from_trace(path).by_operator()
    table = path.with_name("triton.reference") / "unified_perf_summary.csv"
    ratios = {}
    for line in csv.DictReader(table.open()):
        if line["name"].startswith("triton_"):
            ratios[line["name"]] = float(line["Data Moved (MB)"]) * 2**20 / ops[line["name"]].bytes
    assert len(ratios) == 4
    assert all(1 - 1e-6 <= ratio <= 2 for ratio in ratios.values())
    assert ratios["triton_red_fused_add_mean_mul_pow_rsqrt_0"] == pytest.approx(1, rel=1e-6)


@needs_traces
@pytest.mark.parametrize(("name", "region"), [("tracelens/compiled/triton", "0/0"), ("hta/triton_example", "0/0")])
def test_compiled_regions_are_rows(name, region):
    report = roofprof.from_trace(path_of(name))
    (row,) = (row for row in report.rows if row.path.endswith(f"compiled region {region}"))
    assert row.time == pytest.approx(report.total.time)
    assert row.bytes == report.total.bytes > 0
