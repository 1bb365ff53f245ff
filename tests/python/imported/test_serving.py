"""Operators of serving engines, steps, Triton's kernels and compiled regions in traces; closed forms.

Real traces are read where the environment variable ROOFPROF_TRACES names their folder.
"""

import csv
import re

import pytest
from gpu_traces import event, events_of, needs_traces, path_of, write_trace

import roofprof

BF16, FP8, LONG, FLOAT = "c10::BFloat16", "c10::Float8_e4m3fn", "long int", "float"


def op(name, arguments, begin=10, length=5, scalars=None, **more):
    """An event of an operator; arguments: pairs of sizes and type."""
    args = {
        "Input Dims": [sizes for sizes, _ in arguments],
        "Input type": [kind for _, kind in arguments],
        "Concrete Inputs": scalars or [""] * len(arguments),
        **more,
    }
    return event("cpu_op", name, begin, length, **args)


def annotation(name, begin=1, length=100):
    return event("user_annotation", name, begin, length)


def imported(tmp_path, *events):
    return roofprof.from_trace(write_trace(tmp_path / "trace.json", events))


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


def test_operators_that_torch_does_not_have(tmp_path):
    """Their arguments count by position; experts are a lower limit; a wrong number of arguments is said."""
    rows = [([6, 8], BF16), ([6, 8], BF16), ([8], BF16), ([], "Scalar")]
    report = imported(tmp_path, op("_C::fused_add_rms_norm", rows))
    assert report.total.flops == 5 * 6 * 8
    assert report.total.bytes == 2 * (4 * 6 * 8 + 8)
    assert not report.total.incomplete
    report = imported(tmp_path, op("vllm::moe_forward", [([6, 8], BF16), ([6, 4], BF16)]))
    assert report.total.incomplete
    assert report.total.bytes == 2 * (2 * 6 * 8 + 6 * 4)
    assert "vllm::moe_forward" in notes(report, "lower-limits")
    assert roofprof.Report.from_dict(report.to_dict()).total.incomplete
    report = imported(tmp_path, op("_C::cutlass_scaled_mm", [([4, 8], BF16)]))
    assert "_C::cutlass_scaled_mm" in report.coverage.uncosted
    assert "'a'" in notes(report, "cost-failed")


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


def test_a_step_takes_as_long_as_its_kernels(tmp_path):
    """The engine launches for 100 microseconds; the device takes 500."""
    report = imported(
        tmp_path,
        annotation("execute_context_0(0)_generation_2(2)"),
        op("aten::mm", [([4, 8], BF16), ([8, 4], BF16)]),
        event("cuda_runtime", "cudaLaunchKernel", 11, 1, correlation=3),
        event("kernel", "gemm", 50, 500, correlation=3, device=0, stream=7),
    )
    (decode,) = report.language_model
    assert decode.time == pytest.approx(500e-6)
    assert decode.tokens_per_second == pytest.approx(2 / 500e-6)


# ---- Triton


def triton(name, *pointers):
    scalars = [*[""] * len(pointers), "32"]
    return op(name, [*pointers, ([], "Scalar")], scalars=scalars, kernel_backend="triton")


def test_a_triton_kernel_has_bytes_and_no_operations(tmp_path):
    report = imported(tmp_path, triton("triton_poi_fused_add_0", ([4, 8], BF16), ([4, 8], BF16), ([4, 8], FLOAT)))
    row = report.by_operator()["triton_poi_fused_add_0"]
    assert (row.bytes, row.flops, row.macs) == (64 + 64 + 128, 0, 0)
    assert row.incomplete
    assert "triton_poi_fused_add_0" in notes(report, "lower-limits")
    looked_up = triton("triton_poi_fused_embedding_0", ([4], LONG), ([1000, 8], BF16), ([4, 8], BF16))
    assert imported(tmp_path, looked_up).total.bytes == 32 + 64 + 64  # of the table what is looked up


# ---- traces of real engines


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
    gather = next(row for row in report.collectives if row.name == "all_gather")
    assert (gather.bytes, gather.ranks, gather.algorithm) == (201_088 * 2, 8, "RING LL")
    assert gather.bus_bandwidth == pytest.approx(201_088 * 2 / 21.953e-6 * 7 / 8, rel=1e-4)


@needs_traces
@pytest.mark.parametrize(
    ("engine", "attention_op", "heads", "keys", "depth"),
    [("vllm", "vllm::unified_attention", 64, 8, 64), ("sglang", "sglang_profiler::attention_paged", 32, 8, 128)],
)
def test_a_captured_layer_of_attention_in_the_step_of_the_replay(tmp_path, engine, attention_op, heads, keys, depth):
    """The annotation of the replay's trace around the call of the capture's, whose shapes are the model's."""
    replayed = events_of(path_of(f"tracelens/{engine}_decode/"))
    (name,) = {event["name"] for event in replayed if event.get("name", "").startswith("execute_")}
    numbers = [int(number) for number in re.findall(r"\d+", name)]
    context = numbers[8]
    assert (numbers[7], numbers[10]) == (32, context)  # queries, of which each has one
    events = events_of(path_of(f"tracelens/{engine}_decode/capture_traces/"))
    captured = [event for event in events if event.get("cat") == "cpu_op"]
    events = [annotation(name, 1, 1000)]
    for number, kind in enumerate(("_C_cache_ops::", attention_op)):
        first = [event for event in captured if event["name"].startswith(kind)][:1]
        events += [{**event, "ts": 100 * number + 10, "dur": 50, "pid": 1, "tid": 1} for event in first]
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
@pytest.mark.parametrize("name", ["tracelens/compiled/triton", "hta/triton_example"])
def test_compiled_regions_are_rows(name):
    report = roofprof.from_trace(path_of(name))
    (row,) = (row for row in report.rows if row.path.endswith("compiled region 0/0"))
    assert row.time == pytest.approx(report.total.time)
    assert row.bytes == report.total.bytes > 0
