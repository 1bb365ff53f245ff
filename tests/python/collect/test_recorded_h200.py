"""What an H200 recorded (tests/data/gpu/h200), against closed forms and against what the code assumes of such cards."""

import json
from pathlib import Path

import pytest
import recorded_gpus

RECORDED = Path(__file__).resolve().parents[2] / "data" / "gpu" / "h200"
QUESTIONS = json.loads((RECORDED / "questions.json").read_text())
MIB = 1 << 20
MULTIPROCESSORS = 132
L2 = 60 * MIB


@pytest.mark.parametrize("card", ["h100", "h200"])
def test_two_cards_counted_what_others_count(card):
    """ncu's bytes, CUDA's events whatever torch.profiler did before, a memset of the driver's, kernels of others."""
    checks = [check for part in recorded_gpus.results(card).values() for check in part["checks"]]

    def of(*words):
        found = [c for c in checks if all(w in c["name"] for w in words) and "max pool" not in c["name"]]
        return [(check["measured"], check["expected"]) for check in found]

    for words, count, tolerance in (
        (("dram_bytes", "by ncu"), 4, 0.05),
        (("l2_bytes", "by ncu"), 4, 0.02),
        (("by CUDA's events",), 3, 0.01),
        (("memset of the driver's: bytes that its record names",), 1, 0),
        (("dict input", "kernels that torch.profiler sees"), 1, 0),
    ):
        found = of(*words)
        assert len(found) >= count, words
        for measured, expected in found:
            assert measured == pytest.approx(expected, rel=tolerance), words


def reads(rows, *sizes):
    found = {
        line["working_set_bytes"] // MIB: line
        for line in QUESTIONS["l2_reads"]
        if line["trial"] == f"sum of {rows} rows"
    }
    return [found[size] for size in sizes]


def test_rows_of_one_for_each_multiprocessor_are_read_from_the_l2():
    """Sets from a quarter of the L2 to half of it: a twentieth at most comes from an L1, next to nothing of DRAM."""
    for line in reads(MULTIPROCESSORS, 16, 32):
        assert line["l2_share"] > 0.94
        assert line["dram_share"] < 0.05


def test_several_rows_for_each_multiprocessor_are_read_from_its_l1():
    for line in (*reads(512, 16, 32), *reads(2048, 16, 32)):
        assert line["l2_share"] < 0.75


def test_the_l2_gives_no_more_than_its_slices_can():
    """5,120 bytes a clock, as NVIDIA states for an A100's, are 10.1 TB/s at 1,980 MHz; 512 rows seemed to read 11."""
    most = 5120 * 1.98e9
    for line in QUESTIONS["l2_reads"]:
        counted = line["l2_share"] * line["bytes_per_second"] * line["seconds"] / line["kernel_seconds"]
        assert counted < most, line
    for line in reads(MULTIPROCESSORS, 16, 32, 48):
        useful = line["bytes_per_second"] * line["seconds"] / line["kernel_seconds"]
        assert useful == pytest.approx(8.2e12, rel=0.02)


def test_zeros_among_operands_make_a_product_faster():
    rates = {(line["dtype"], line["work"], line["operands"]): max(line["tflops_after_rest_of_s"].values())
             for line in QUESTIONS["peaks_by_operands"]}  # fmt: skip
    for dtype, work in {(dtype, work) for dtype, work, _ in rates}:
        assert 1.04 < rates[dtype, work, "relu"] / rates[dtype, work, "-1..1"] < 1.15


def test_kernels_that_run_beside_each_other_are_busy_once():
    """cuDNN runs groups of a convolution beside each other: regnet's kernels add up to more than its step."""
    steps = [json.loads(line) for line in (RECORDED / "models.jsonl").read_text().splitlines()]
    for step in steps:
        assert step["busy_seconds"] <= 1.02 * step["seconds"]
        assert step["busy_seconds"] <= step["kernel_seconds"] * (1 + 1e-9)
    beside = [step["model"] for step in steps if step["kernel_seconds"] > step["seconds"]]
    assert beside == ["regnet_y_8gf"]


def test_the_first_calls_of_a_trace_are_no_measure_of_a_call():
    """A product of 0.185 ms takes 4 times as long as a trace's first call, at most 1.6 times as its second."""
    calls = QUESTIONS["first_calls_us"]
    alone = sorted(calls["bare in a row"])[4]
    for name, traced in calls.items():
        if name.startswith("traced"):
            assert traced[0] > 4 * alone
            assert traced[1] < 1.6 * alone
            assert traced[3] < 1.2 * alone
    assert min(calls["bare after 50 ms of sleep"]) > 2 * alone
