"""Profiles on a simulated GPU, from Python: what tests/cpp/profiler_device does from C++. Nothing here was measured."""

from __future__ import annotations

import pytest
from simulated_gpu import BACKWARD_NS, FAKES, GEMM_BYTES, GEMM_NS, UPDATE_NS, simulated

pytestmark = pytest.mark.skipif(not FAKES.is_dir(), reason="the fake libraries are not built (no CUPTI headers)")

LAYER_MACS = 2 * 4 * 4


def note_with(facts, words):
    """The one note that has the words."""
    [note] = [note for note in facts["notes"] if words in note]
    return note


def expect_wall_times_alone(facts):
    assert facts["runs"] == 3
    assert not facts["kernels"]
    for path, row in facts["rows"].items():
        assert row["time_ns"] is None, path
    assert facts["rows"][""]["wall_ns"] > 0
    assert facts["rows"]["0"]["macs"] == LAYER_MACS


def expect_times(facts):
    assert facts["rows"]["0"]["time_ns"] == GEMM_NS
    assert facts["rows"]["2"]["time_ns"] == GEMM_NS
    assert facts["rows"][""]["time_ns"] == 2 * GEMM_NS


def test_times_are_those_of_the_kernels_of_each_module():
    facts = simulated("one_call")
    expect_times(facts)
    assert facts["rows"]["1"]["time_ns"] == 0
    assert facts["rows"][""]["kernel_count"] == 2
    assert facts["rows"][""]["host_time_ns"] > 0
    assert {kernel["op"] for kernel in facts["kernels"]} == {"simulated::gemm"}
    assert sum(kernel["total_ns"] for kernel in facts["kernels"]) == 2 * GEMM_NS
    assert not any(facts["held"].values())


def test_a_block_has_its_backward_and_optimizer_in_their_places():
    facts = simulated("training")
    by_place = {(kernel["name"], kernel["module"], kernel["phase"]): kernel for kernel in facts["kernels"]}
    assert by_place["simulated_gemm_backward", "0", "backward"]["total_ns"] == BACKWARD_NS
    assert by_place["simulated_gemm_backward", "2", "backward"]["total_ns"] == BACKWARD_NS
    assert by_place["simulated_update", "(optimizer)", "optimizer"]["total_ns"] == 2 * UPDATE_NS
    assert facts["rows"]["0"]["time_ns"] == GEMM_NS + BACKWARD_NS
    assert facts["rows"]["(optimizer)"]["time_ns"] == 2 * UPDATE_NS
    assert "runs of their own" in note_with(facts, "no counters")


def test_a_scripts_modules_have_their_kernels():
    facts = simulated("scripted")
    assert facts["rows"]["0"]["time_ns"] == GEMM_NS
    assert facts["rows"][""]["time_ns"] == GEMM_NS


def test_dram_bytes_are_joined_by_ordinal():
    facts = simulated("counted")
    assert facts["rows"]["0"]["dram_bytes"] == GEMM_BYTES, facts["notes"]
    assert facts["rows"][""]["dram_bytes"] == 2 * GEMM_BYTES
    expect_times(facts)
    assert not any(facts["held"].values())


def test_dram_bytes_of_whole_modules():
    facts = simulated("counted_by_module")
    assert facts["rows"]["0"]["dram_bytes"] == GEMM_BYTES, facts["notes"]
    assert facts["rows"][""]["dram_bytes"] == 2 * GEMM_BYTES
    expect_times(facts)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"cupti": "none/libcupti.so.13"}, "libcupti"),
        ({"cupti": "older/libcupti.so.12", "fake": "cupti_version=26"}, "CUPTI"),
        ({"cupti": "without_activity/libcupti.so.13"}, "cuptiActivity"),
        ({"cuda": "none"}, "libcuda"),
        ({"fake": "fail:cuInit=34"}, "stub"),
        ({"fake": "devices=0"}, "device"),
        ({"fake": "fail:cuptiSubscribe=39"}, "another profiler is at work"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_without_kernel_times_a_report_has_wall_times_and_says_why(how, words):
    facts = simulated("counted", **how)
    expect_wall_times_alone(facts)
    assert words in note_with(facts, "no kernel times")


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"cupti": "without_counters/libcupti.so.13"}, "cuptiProfiler"),
        ({"fake": "permitted=0"}, "no permission"),
        ({"fake": "fail:cuptiRangeProfilerEnable=26"}, "dcgmi"),
        ({"fake": "fail:cuptiRangeProfilerEnable=43"}, "MIG"),
        ({"fake": "chip=GP102"}, "chip"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_without_counters_a_report_has_times_and_says_why(how, words):
    facts = simulated("counted", **how)
    expect_times(facts)
    assert words in note_with(facts, words)
    assert all(row["dram_bytes"] is None for row in facts["rows"].values())
    assert not any(facts["held"].values())


def test_torchs_profiler_is_left_alone():
    facts = simulated("beside_torchs_profiler")
    expect_wall_times_alone(facts["inside"])
    assert "torch.profiler is active" in note_with(facts["inside"], "no kernel times")
    expect_times(facts["after"])
    assert "simulated::gemm" in facts["torchs"]


def test_what_the_model_raises_comes_through():
    facts = simulated("raising")
    assert facts["raised"] == repr("the user's own")
    assert facts["partial"]
    assert not any(facts["held"].values())
    expect_times(facts["after"])


def test_a_device_that_is_lost_ends_the_runs():
    facts = simulated("lost_in_the_middle")
    note_with(facts, "the device is lost")
    assert facts["runs"] < 3
    expect_times(facts)


def test_counting_asks_nothing_of_the_device():
    assert simulated("counting_alone") == {"macs": 2 * LAYER_MACS, "calls": 0}
