"""Profiles on a simulated GPU, from Python: what tests/cpp/device decides arrives. Nothing here was measured."""

import pytest
from simulated_gpu import BACKWARD_NS, FAKES, GEMM_BYTES, GEMM_NS, RELU_NS, UPDATE_NS, simulated

from roofprof.models import inductor

pytestmark = pytest.mark.skipif(not FAKES.is_dir(), reason="the fake libraries are not built (no CUPTI headers)")

LAYER_MACS = 2 * 4 * 4


def note_with(facts, words):
    """The one note that has the words."""
    [note] = [note for note in facts["notes"] if words in note]
    return note


def expect_times(facts):
    assert {path: facts["rows"][path]["time_ns"] for path in ("", "0", "2")} == {
        "": 2 * GEMM_NS,
        "0": GEMM_NS,
        "2": GEMM_NS,
    }


@pytest.fixture(scope="module")
def well():
    return simulated("what_goes_well")


@pytest.fixture(scope="module")
def wrong():
    return simulated("what_goes_wrong")


def test_times_and_bytes_are_those_of_the_kernels_of_each_module(well):
    for name in ("one call", "counters", "counters of modules", "after raising"):
        facts = well[name]
        expect_times(facts)
        assert facts["rows"]["1"]["time_ns"] == 0
        assert facts["rows"][""]["kernel_count"] == 2
        assert facts["rows"][""]["host_time_ns"] > 0
        bytes_of = {path: facts["rows"][path]["dram_bytes"] for path in ("", "0", "1")}
        counted = {"": 2 * GEMM_BYTES, "0": GEMM_BYTES, "1": 0}
        assert bytes_of == (dict.fromkeys(counted) if name == "one call" else counted), facts["notes"]
    [kernel] = {(kernel["name"], kernel["op"]) for kernel in well["one call"]["kernels"]}
    assert kernel == ("simulated_gemm", "simulated::gemm")
    assert well["a script"]["rows"]["0"]["time_ns"] == well["a script"]["rows"][""]["time_ns"] == GEMM_NS
    assert well["counting alone"] == {"macs": 2 * LAYER_MACS, "calls": 0}, "which asks nothing of the device"
    assert (well["raising"]["raised"], well["raising"]["partial"]) == (repr("the user's own"), True)
    assert not any(well["raising"]["held"].values())


def test_a_trace_with_the_recorded_kernels_says_the_same():
    """Forward, backward and the optimizer: live reports and imports are made by one join."""
    found = simulated("live_and_as_a_trace")
    assert found["imported"] == found["live"]
    assert found["live"]["rows"]["0"][-1] == pytest.approx((GEMM_NS + BACKWARD_NS) * 1e-9)
    assert found["live"]["rows"]["(optimizer)"][-1] == pytest.approx(2 * UPDATE_NS * 1e-9)
    # They launch a kernel of their own beside the product inside, which alone counts.
    assert found["live"]["uncosted"] == {"simulated::gemm": 2, "simulated::gemm_backward": 2, "simulated::update": 2}


@pytest.mark.skipif(inductor.why_not() != "", reason=inductor.why_not())
def test_kernels_of_compiled_code_are_of_modules():
    """Generated ones by their names, operators by the op that launched them."""
    found = simulated("compiled_kernels")
    times = {path: time for path, (time, _) in found["rows"].items() if path}
    assert times == {path: pytest.approx(ns * 1e-9) for path, ns in (("0", GEMM_NS), ("1", RELU_NS), ("2", GEMM_NS))}
    assert found["total"] == pytest.approx((2 * GEMM_NS + RELU_NS) * 1e-9)
    assert found["ops"] == {"compiled region": pytest.approx(found["total"])}
    fused, modules, time, moved, code = found["kernels"]["cpp_fused_in_place_of_code_relu_0 in 1"]
    assert (fused, modules) == ("aten::relu", "1")
    assert time == pytest.approx(RELU_NS * 1e-9)
    assert moved == 2 * 2 * 4 * 4
    assert ".py:" in code
    assert found["kernels"]["simulated_gemm in 0"][:2] == ["simulated::gemm", "0"]
    note = note_with(found, "found by the names")
    assert "they took 100% of the compiled regions' device time, and 100% of it is known by module" in note


def test_kernels_belong_to_the_regions_that_they_were_launched_in(well):
    found = well["regions"]
    calls = {"prefill": 1, "decode": 2, "(no region)": 1}
    by_path = {row["path"]: row for row in found["regions"]}
    assert set(by_path) == set(calls)
    for path, times in calls.items():
        assert by_path[path]["time_ns"] == times * 2 * GEMM_NS
        assert by_path[path]["kernel_count"] == times * 2
        assert by_path[path]["dram_bytes"] == times * 2 * GEMM_BYTES
    part = found["parts"]["decode"]
    assert part["rows"]["0"]["time_ns"] == 2 * GEMM_NS
    assert part["rows"]["0"]["dram_bytes"] == 2 * GEMM_BYTES
    assert {kernel["scope"] for kernel in part["kernels"]} == {"decode"}
    assert found["whole"]["rows"][""]["time_ns"] == 4 * 2 * GEMM_NS
    assert found["same from JSON"]
    whole, part = found["utilization"]
    assert whole is not None
    assert part is None, "when the device worked for one region is not known"


def test_a_block_has_its_backward_and_optimizer_in_their_places(well):
    facts = well["training"]
    by_place = {(kernel["name"], kernel["module"], kernel["phase"]): kernel for kernel in facts["kernels"]}
    assert by_place["simulated_gemm_backward", "0", "backward"]["total_ns"] == BACKWARD_NS
    assert by_place["simulated_update", "(optimizer)", "optimizer"]["total_ns"] == 2 * UPDATE_NS
    assert facts["rows"]["0"]["time_ns"] == GEMM_NS + BACKWARD_NS
    assert "runs of their own" in note_with(facts, "no counters")


def test_what_stands_in_the_way_is_reported_and_the_rest_is_there(wrong):
    for what, words in (("no driver", "libcuda"), ("another profiler", "at work"), ("torch.profiler", "is active")):
        facts = wrong[what]
        assert facts["runs"] == 3
        assert not facts["kernels"]
        assert all(row["time_ns"] is None for row in facts["rows"].values())
        assert facts["rows"][""]["wall_ns"] > 0
        assert facts["rows"]["0"]["macs"] == LAYER_MACS
        assert words in note_with(facts, "no kernel times")
    expect_times(wrong["no permission"])
    note_with(wrong["no permission"], "no permission")
    assert all(row["dram_bytes"] is None for row in wrong["no permission"]["rows"].values())
    expect_times(wrong["nothing"])
    assert wrong["nothing"]["rows"]["0"]["dram_bytes"] == GEMM_BYTES
    note_with(wrong["nothing"], "simulated")
    assert "aten::mm" in wrong["torch's own"], "torch.profiler works after us"
    assert not any(any(facts["held"].values()) for name, facts in wrong.items() if name != "torch's own")


def test_a_short_timed_call_comes_right_after_one_that_is_not_timed():
    """The counting call and one for warm-up, which tells that calls are short; a bare call with one before it and an
    observed one; and three pairs with one before each of both, whose kernels are those of one call.
    """
    found = simulated("calls_by_the_clock")
    assert found["calls"] == 1 + 1 + (2 + 1) + 3 * (2 + 2)
    assert found["kernels"] == 1
    assert found["runs"] == 3
    assert not {"order-differs", "timing-stopped", "no-kernel-times"} & set(found["notes"])
