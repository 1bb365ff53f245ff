"""Report.predict: identities and closed forms of times, and what is refused. No time that it gives is written here."""

import math

import pytest
import torch
from given_roofs import roofs
from on_meta import convolutions, counted, mlp, relus, trained
from scaled_reports import scaled_report
from torch import nn

import roofprof
from roofprof import _C
from roofprof.roofs import published_peaks

MANY = 2**28  # elements of fp32: a GiB, which no cache holds
CARDS = published_peaks.names()


def published(name):
    return next(card for card in published_peaks.data()["cards"] if card["name"] == name)


def huge_linear(dtype=torch.float16):
    return counted(lambda: nn.Linear(8192, 8192), 8192, 8192, dtype=dtype)


# ---- times


def test_the_margins_of_an_op_give_the_interval_of_a_report_that_has_no_other():
    report = _C.report_from_json(huge_linear().to_json().encode())
    predictor = _C.Predictor(report, _C.PredictionOptions(mode="graph"))
    device = _C.published_ceilings("H100 SXM"), _C.PredictionParameters.shipped()
    (seconds,), ((low, high),) = predictor.op_seconds(*device), predictor.op_margins(*device)
    assert low < 1 < high
    assert predictor.total(*device)[:3] == pytest.approx((seconds, seconds * low, seconds * high))


@pytest.mark.parametrize("make", [lambda: counted(convolutions, 4, 3, 32, 32), lambda: trained(mlp, 8, 64)])
def test_own_times_add_up_and_lie_in_their_intervals(make):
    report = make().predict("RTX 4090")
    written = report.to_dict()
    # A row without self figures has no children: its figures are its own.
    own = [row.get("self_time_ns", row.get("time_ns")) or 0 for row in written["rows"]]
    assert sum(own) == written["total"]["time_ns"]
    assert sum(row.self_time or 0 for row in report.rows) == pytest.approx(report.total.time, rel=1e-9)
    for row in (*report.rows, report.total, *report.group("op"), *report.group("module", "op", "shapes")):
        if row.time is None:
            continue  # never called
        assert row.time_low <= row.time <= row.time_high
    assert sum(group.time for group in report.group("op")) == pytest.approx(report.total.time, rel=1e-9)
    assert 0 < report.total.time_low < report.total.time < report.total.time_high
    assert report.total.wall == pytest.approx(report.total.time)


def test_a_model_takes_the_sum_of_its_ops():
    times = [relus(MANY, number).predict("RTX 4090").total.time for number in (1, 8)]
    assert times[1] == pytest.approx(8 * times[0], rel=1e-6)


def test_twice_the_batch_takes_about_twice_as_long():
    def time(batch):
        return counted(lambda: nn.Linear(1024, 4096), batch, 1024).predict("RTX 4090").total.time

    assert time(2**17) / time(2**16) == pytest.approx(2, rel=0.03)
    # What no batch shortens: the smallest op's time.
    assert time(2) == pytest.approx(time(1), rel=0.05)


def test_twice_the_bandwidth_halves_what_is_above_the_floor():
    report, floor = relus(MANY), relus(1).predict("RTX 4090").total.time
    once, twice = (report.predict("RTX 4090", bandwidth=factor).total.time - floor for factor in (1, 2))
    assert once / twice == pytest.approx(2, rel=1e-3)
    assert report.predict("RTX 4090", peak=2).total.time == pytest.approx(once + floor, rel=1e-6)


def test_twice_the_bandwidth_of_a_measured_curve_is_twice_as_fast():
    origin = {"source": "measured", "method": "", "date": "", "spread": None}
    rates = dict.fromkeys(("read", "triad", "copy", "write", "update"), 1e10)
    cpu = roofprof._C.ceilings_from_dict(
        {
            "device": "a CPU",
            "compute": [{"dtype": "fp32", "operations_per_second": 1e12, "provenance": origin}],
            "memory": [{"level": "DRAM", "bytes_per_second": 1e10, "capacity_bytes": 0, "provenance": origin}],
            "curve": {"points": [{"working_set_bytes": 2**20, "spread": 0.0, **rates}], "provenance": origin},
        }
    )
    floor = relus(1).predict(cpu).total.time
    once, twice = (relus(MANY).predict(cpu, bandwidth=factor).total.time - floor for factor in (1, 2))
    assert once / twice == pytest.approx(2, rel=1e-3)


def test_twice_the_peak_halves_the_time_of_a_large_product():
    report = huge_linear()
    once, twice = (report.predict("RTX 4090", peak=factor).total.time for factor in (1, 2))
    assert once / twice == pytest.approx(2, rel=0.1)
    assert report.predict("RTX 4090", bandwidth=2).total.time == pytest.approx(once, rel=0.05)


def test_a_large_product_comes_near_the_published_peak():
    total = huge_linear().predict("RTX 4090").total
    assert total.flops >= 2 * 8192**3
    peak = published_peaks.amount(published("RTX 4090")["peaks"]["fp16"])
    assert 0.5 * peak < total.flops / total.time < 1.1 * peak
    assert str(total.bound) == "compute fp16"


def test_no_published_bandwidth_is_passed_by_what_no_cache_holds():
    report = relus(MANY)
    for name in CARDS:
        bandwidth = published_peaks.amount(published(name)["dram"])
        # A cache keeps a small part of even a GiB.
        assert report.predict(name).total.time > 0.9 * 8 * MANY / bandwidth, name


def test_a_chain_of_elementwise_ops_is_one_when_compiled():
    chain, one = relus(MANY, 8), relus(MANY)
    eager, compiled = (chain.predict("RTX 4090", compiled=how) for how in (False, True))
    assert compiled.total.time == pytest.approx(one.predict("RTX 4090").total.time, rel=0.01)
    assert eager.total.bytes == 8 * 8 * MANY
    assert compiled.total.bytes == 8 * MANY  # what the one kernel reads and writes
    assert "compiled" in compiled.prediction


def test_all_cards_in_all_precisions():
    refused = []
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        report = counted(convolutions, 4, 3, 32, 32, dtype=dtype)
        for name in CARDS:
            try:
                total = report.predict(name).total
            except ValueError:
                refused.append((name, dtype))
                continue
            assert 0 < total.time_low <= total.time <= total.time_high < math.inf, (name, dtype)
    assert refused == []


def test_a_card_may_be_given_by_any_of_its_names():
    report = counted(mlp, 4, 64)
    by_name = report.predict("NVIDIA GeForce RTX 4090")
    assert by_name == report.predict("rtx4090") == report.predict(roofprof.Ceilings.published("RTX 4090"))
    assert by_name.device == "RTX 4090"


# ---- what is predicted of


def test_of_a_step_of_training():
    report = trained(mlp, 8, 64).predict("A100 SXM 40GB", precision="bf16")
    phases = {phase: group.time for phase, group in report.by_phase().items()}
    assert set(phases) == {"forward", "backward", "optimizer"}
    assert min(phases.values()) > 0
    assert sum(phases.values()) == pytest.approx(report.total.time, rel=1e-9)


@pytest.mark.integration
def test_of_a_language_model():
    import transformers

    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    with torch.device("meta"), torch.no_grad():
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=100, **sizes)).eval()
        report = roofprof.count(model, torch.zeros(2, 16, dtype=torch.int64), use_cache=True)
    predicted = report.predict("A100 SXM 40GB")
    (prefill,) = predicted.language_model
    assert (prefill.name, prefill.tokens) == ("prefill", 32)
    assert predicted.total.macs == report.total.macs
    assert prefill.time == pytest.approx(predicted.row("").time)
    assert prefill.tokens_per_second == pytest.approx(32 / prefill.time)


def test_of_a_profile_it_is_that_of_the_count():
    model, x = mlp().eval(), torch.rand(4, 64)
    with torch.no_grad():
        measured = roofprof.RooflineProfiler(model, warmup=1, repeat=2, ceilings=roofs()).run(x)
    predicted = measured.predict("RTX 4090")
    assert predicted.total.time == counted(mlp, 4, 64).predict("RTX 4090").total.time
    assert predicted.run_times == [pytest.approx(predicted.total.time)]
    assert measured.prediction == ""
    assert "cpu_model" not in predicted.environment  # nothing of the machine that it was profiled on


def test_of_a_prediction_it_is_that_of_the_count():
    report = counted(convolutions, 4, 3, 32, 32)
    again = report.predict("T4", bandwidth=3).predict("RTX 4090").to_dict()
    once = report.predict("RTX 4090").to_dict()
    assert (again["rows"], again["total"], again["ops"]) == (once["rows"], once["total"], once["ops"])
    narrow = report.predict("T4", precision="fp16", batch=16).predict("RTX 4090")
    assert narrow.total.time == report.predict("RTX 4090", precision="fp16", batch=16).total.time


def test_what_does_not_fit_is_said():
    fat = counted(lambda: nn.Linear(100_000, 100_000), 1, 100_000)  # 40 GB, and 24 there
    assert "prediction-memory" in [note.code for note in fat.predict("RTX 4090").coverage.notes]
    for fitting in (fat.predict("B200"), fat.predict("RTX 4090", precision="fp8"), counted(mlp, 4, 64).predict("T4")):
        assert "prediction-memory" not in [note.code for note in fitting.coverage.notes]


def test_notes_are_those_of_the_last_device():
    fat = counted(lambda: nn.Linear(100_000, 100_000), 1, 100_000)
    assert fat.predict("RTX 4090").predict("B200") == fat.predict("B200")


def test_ten_thousand_ops():
    report = counted(lambda: nn.Sequential(*(nn.Tanh() for _ in range(10_000))), 4, 4)
    assert len(report.predict_all()) == len(CARDS) >= 40
    assert len(report.predict("T4").rows) == 10_001


# ---- roofs of a file


def test_roofs_of_a_file(tmp_path):
    by_hand = roofs({"fp32": 1e12}, {"DRAM": (1e11, 0)})
    path = tmp_path / "roofs.json"
    roofprof.Ceilings.save(by_hand, path)
    report = relus(MANY)
    predicted = report.predict(path)
    assert predicted == report.predict(str(path)) == report.predict(by_hand)
    assert predicted.device == "a machine on paper"
    product = counted(lambda: nn.Linear(4096, 4096), 4096, 4096).predict(by_hand).total
    assert product.flops / product.time == pytest.approx(1e12, rel=0.5)


def test_roofs_that_were_measured_are_not_passed(tmp_path):
    by_hand = roofs({"fp32": 1e12}, {"DRAM": (1e11, 0)})
    assert relus(MANY).predict(by_hand).total.time >= 0.97 * 8 * MANY / 1e11


# ---- what is refused


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ("RTX 4091", "no card is known as 'RTX 4091'; near it are RTX 4090, "),
        ("A100", None),
        ("foo", "there are .*RTX 4090"),
        ("", "there are .*RTX 4090"),
        ("none.json", "none.json"),
    ],
)
def test_devices_that_are_not_known(device, words):
    report = counted(mlp, 4, 64)
    if words is None:  # an alias
        assert report.predict(device).device.startswith(device)
        return
    with pytest.raises(ValueError, match=words) as info:
        report.predict(device)
    assert "\n" not in str(info.value)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"batch": 0}, ValueError, "batch must be 1 or more, not 0"),
        ({"batch": -1}, ValueError, "batch must be 1 or more, not -1"),
        ({"batch": 1.5}, TypeError, "batch is a whole number, not 1.5"),
        ({"batch": True}, TypeError, "batch is a whole number, not True"),
        ({"precision": "fp99"}, ValueError, "precision must be fp64, .*, not 'fp99'"),
        ({"precision": "int8"}, ValueError, "precision must be fp64, .*, not 'int8'"),
        ({"bandwidth": 0}, ValueError, "bandwidth is a factor above 0"),
        ({"bandwidth": math.nan}, ValueError, "bandwidth is a factor above 0, not nan"),
        ({"peak": -2.0}, ValueError, "peak is a factor above 0, not -2"),
        ({"peak": math.inf}, ValueError, "peak is a factor above 0, not inf"),
        ({"speed": 2}, TypeError, "speed"),
    ],
)
def test_options_that_are_none(options, error, words):
    with pytest.raises(error, match=words):
        counted(mlp, 4, 64).predict("RTX 4090", **options)


def test_reports_that_nothing_can_be_predicted_of():
    with pytest.raises(ValueError, match="no ops with work"):
        counted(nn.Identity, 4).predict("RTX 4090")
    with pytest.raises(ValueError, match="predict from the report of one rank"):
        scaled_report(2, 0.1).predict("RTX 4090")


def test_roofs_that_lack_something():
    half = counted(mlp, 4, 64, dtype=torch.float16)
    with pytest.raises(ValueError, match="no peak for fp16"):
        half.predict(roofs({"fp32": 1e12}))
    with pytest.raises(ValueError, match="no peak for bf16"):
        half.predict(roofs({"fp32": 1e12}), precision="bf16")
    with pytest.raises(ValueError, match="no bandwidth of its memory"):
        half.predict(roofs({"fp16": 1e12}, {}))
    with pytest.raises(ValueError, match="no roofs"):
        half.predict(roofprof.Ceilings())
