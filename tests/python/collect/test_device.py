"""Profiles on a simulated GPU, from Python: what tests/cpp/profiler_device does from C++. Nothing here was measured."""

import pytest
from simulated_gpu import BACKWARD_NS, FAKES, GEMM_BYTES, GEMM_NS, RELU_NS, UPDATE_NS, simulated

from roofprof.models import inductor

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


@pytest.fixture(scope="module")
def well():
    return simulated("what_goes_well")


@pytest.fixture(scope="module")
def wrong():
    return simulated("what_goes_wrong")


def test_times_are_those_of_the_kernels_of_each_module(well):
    facts = well["one call"]
    expect_times(facts)
    assert facts["rows"]["1"]["time_ns"] == 0
    assert facts["rows"][""]["kernel_count"] == 2
    assert facts["rows"][""]["host_time_ns"] > 0
    assert {(kernel["name"], kernel["op"]) for kernel in facts["kernels"]} == {("simulated_gemm", "simulated::gemm")}
    assert sum(kernel["total_ns"] for kernel in facts["kernels"]) == 2 * GEMM_NS


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
    assert times == {
        "0": pytest.approx(GEMM_NS * 1e-9),
        "1": pytest.approx(RELU_NS * 1e-9),
        "2": pytest.approx(GEMM_NS * 1e-9),
    }
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
    assert note_with(found, "compiled again").count("tell its kernels") == 1


def test_kernels_belong_to_the_regions_that_they_were_launched_in(well):
    found = well["regions"]
    calls = {"prefill": 1, "decode": 2, "(no region)": 1}
    by_path = {row["path"]: row for row in found["regions"]}
    assert set(by_path) == set(calls)
    for path, times in calls.items():
        assert by_path[path]["time_ns"] == times * 2 * GEMM_NS
        assert by_path[path]["kernel_count"] == times * 2
        assert by_path[path]["dram_bytes"] == times * 2 * GEMM_BYTES
    assert found["groups"] == {
        ("" if path == "(no region)" else path): pytest.approx(times * 2 * GEMM_NS * 1e-9)
        for path, times in calls.items()
    }
    for name in ("prefill", "decode"):
        part = found["parts"][name]
        assert part["rows"]["0"]["time_ns"] == calls[name] * GEMM_NS
        assert part["rows"]["0"]["dram_bytes"] == calls[name] * GEMM_BYTES
        assert part["rows"][""]["kernel_count"] == calls[name] * 2
        assert part["rows"][""]["wall_ns"] == by_path[name]["wall_ns"] > 0
        assert {kernel["scope"] for kernel in part["kernels"]} == {name}
        assert sum(kernel["total_ns"] for kernel in part["kernels"]) == calls[name] * 2 * GEMM_NS
    assert found["whole"]["rows"][""]["time_ns"] == 4 * 2 * GEMM_NS
    assert set(found["scopes"]) == {"prefill", "decode", ""}
    assert found["same from JSON"]
    whole, part = found["utilization"]
    assert whole is not None
    assert part is None, "when the device worked for one region is not known"


def test_counters_of_modules_are_those_of_the_region(well):
    found = well["regions, counters of modules"]
    by_path = {row["path"]: row["dram_bytes"] for row in found["regions"]}
    assert by_path == {"prefill": 2 * GEMM_BYTES, "decode": 4 * GEMM_BYTES, "(no region)": 2 * GEMM_BYTES}
    assert found["parts"]["decode"]["rows"]["0"]["dram_bytes"] == 2 * GEMM_BYTES


def test_a_block_has_its_backward_and_optimizer_in_their_places(well):
    facts = well["training"]
    by_place = {(kernel["name"], kernel["module"], kernel["phase"]): kernel for kernel in facts["kernels"]}
    assert by_place["simulated_gemm_backward", "0", "backward"]["total_ns"] == BACKWARD_NS
    assert by_place["simulated_gemm_backward", "2", "backward"]["total_ns"] == BACKWARD_NS
    assert by_place["simulated_update", "(optimizer)", "optimizer"]["total_ns"] == 2 * UPDATE_NS
    assert facts["rows"]["0"]["time_ns"] == GEMM_NS + BACKWARD_NS
    assert facts["rows"]["(optimizer)"]["time_ns"] == 2 * UPDATE_NS
    assert "runs of their own" in note_with(facts, "no counters")


def test_a_scripts_modules_have_their_kernels(well):
    rows = well["a script"]["rows"]
    assert rows["0"]["time_ns"] == GEMM_NS
    assert rows[""]["time_ns"] == GEMM_NS


@pytest.mark.parametrize("ranges", ["counters", "counters of modules"])
def test_dram_bytes_are_those_of_each_module(well, ranges):
    facts = well[ranges]
    assert facts["rows"]["0"]["dram_bytes"] == GEMM_BYTES, facts["notes"]
    assert facts["rows"]["1"]["dram_bytes"] == 0
    assert facts["rows"][""]["dram_bytes"] == 2 * GEMM_BYTES
    expect_times(facts)


def test_what_the_model_raises_comes_through(well):
    assert well["raising"]["raised"] == repr("the user's own")
    assert well["raising"]["partial"]
    assert not any(well["raising"]["held"].values())
    expect_times(well["after raising"])


def test_counting_asks_nothing_of_the_device(well):
    assert well["counting alone"] == {"macs": 2 * LAYER_MACS, "calls": 0}


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("no driver", "libcuda"),
        ("stub", "stub"),
        ("no device", "device"),
        ("no CUPTI", "libcupti"),
        ("too old", "CUPTI"),
        ("another profiler", "another profiler is at work"),
        ("torch.profiler", "torch.profiler is active"),
    ],
)
def test_without_kernel_times_a_report_has_wall_times_and_says_why(wrong, what, words):
    facts = wrong[what]
    expect_wall_times_alone(facts)
    assert words in note_with(facts, "no kernel times")
    assert facts["table"].count(note_with(facts, "no kernel times")[:30]) == 1


@pytest.mark.parametrize(
    ("what", "words"),
    [("no permission", "no permission"), ("DCGM", "dcgmi"), ("MIG", "MIG"), ("chip", "chip")],
)
def test_without_counters_a_report_has_times_and_says_why(wrong, what, words):
    facts = wrong[what]
    expect_times(facts)
    note_with(facts, words)
    assert all(row["dram_bytes"] is None for row in facts["rows"].values())


def test_times_and_counters_need_no_subscription(wrong):
    facts = wrong["a subscriber alone"]
    expect_times(facts)
    assert facts["rows"]["0"]["dram_bytes"] == GEMM_BYTES, facts["notes"]
    note_with(facts, "another client holds CUPTI's callbacks")


def test_a_device_that_is_lost_ends_the_runs(wrong):
    facts = wrong["lost"]
    note_with(facts, "the device is lost")
    assert facts["runs"] < 3
    expect_times(facts)


def test_everything_works_once_nothing_is_in_its_way(wrong):
    expect_times(wrong["nothing"])
    assert wrong["nothing"]["rows"]["0"]["dram_bytes"] == GEMM_BYTES
    assert len(wrong["nothing"]["notes"]) == 1
    note_with(wrong["nothing"], "simulated")
    assert "aten::mm" in wrong["torch's own"], "torch.profiler works after us"
    assert not any(any(facts["held"].values()) for name, facts in wrong.items() if name != "torch's own")


def test_a_cupti_without_the_activity_functions():
    facts = simulated("one_run", cupti="without_activity")
    expect_wall_times_alone(facts)
    assert "cuptiActivity" in note_with(facts, "no kernel times")


def test_a_cupti_without_the_profiler_functions():
    facts = simulated("one_run", cupti="without_counters")
    expect_times(facts)
    note_with(facts, "cuptiProfiler")


def test_a_short_timed_call_comes_right_after_one_that_is_not_timed():
    """The counting call and one for warm-up, which tells that calls are short; a bare call with one before it and an
    observed one; and three pairs with one before each of both, whose kernels are those of one call.
    """
    found = simulated("calls_by_the_clock")
    assert found["calls"] == 1 + 1 + (2 + 1) + 3 * (2 + 2)
    assert found["kernels"] == 1
    assert found["runs"] == 3
    assert not {"order-differs", "timing-stopped", "no-kernel-times"} & set(found["notes"])
