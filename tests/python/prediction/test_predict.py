"""Report.predict: identities and closed forms of times, and what is refused. No time that it gives is written here."""

import math

import pytest
import torch
from given_roofs import roofs
from on_meta import convolutions, counted, mlp, relus, trained
from scaled_reports import scaled_report
from torch import nn

import roofprof
from roofprof.roofs import published_peaks

MANY = 2**28  # elements of fp32: a GiB, which no cache holds
CARDS = published_peaks.names()


# ---- times


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


def test_a_large_product_comes_near_the_published_peak():
    report = counted(lambda: nn.Linear(8192, 8192), 8192, 8192, dtype=torch.float16)
    total = report.predict("RTX 4090").total
    assert total.flops >= 2 * 8192**3
    assert 0.5 * 165.2e12 < total.flops / total.time < 1.1 * 165.2e12  # with accumulation in fp32
    assert str(total.bound) == "compute fp16"
    assert total.time / report.predict("RTX 4090", peak=2).total.time == pytest.approx(2, rel=0.1)
    assert report.predict("RTX 4090", bandwidth=2).total.time == pytest.approx(total.time, rel=0.05)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_all_cards_in_all_precisions(dtype):
    report = counted(convolutions, 4, 3, 32, 32, dtype=dtype)
    for name in CARDS:
        total = report.predict(name).total
        assert 0 < total.time_low <= total.time <= total.time_high < math.inf, name


# ---- what is predicted of


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


def test_what_does_not_fit_is_reported():
    fat = counted(lambda: nn.Linear(100_000, 100_000), 1, 100_000)  # 40 GB, and 24 there
    assert "prediction-memory" in [note.code for note in fat.predict("RTX 4090").coverage.notes]
    for fitting in (fat.predict("B200"), fat.predict("RTX 4090", precision="fp8"), counted(mlp, 4, 64).predict("T4")):
        assert "prediction-memory" not in [note.code for note in fitting.coverage.notes]
    assert fat.predict("RTX 4090").predict("B200") == fat.predict("B200")


# ---- roofs of a file


def test_roofs_of_a_file(tmp_path):
    by_hand = roofs({"fp32": 1e12}, {"DRAM": (1e11, 0)})
    roofprof.Ceilings.save(by_hand, path := tmp_path / "roofs.json")
    report = relus(MANY)
    predicted = report.predict(path)
    assert predicted == report.predict(str(path)) == report.predict(by_hand)
    assert predicted.device == "a machine on paper"
    assert predicted.total.time >= 0.97 * 8 * MANY / 1e11
    product = counted(lambda: nn.Linear(4096, 4096), 4096, 4096).predict(by_hand).total
    assert product.flops / product.time == pytest.approx(1e12, rel=0.5)


# ---- what is refused


def test_devices_by_their_names():
    report = counted(mlp, 4, 64)
    by_name = report.predict("NVIDIA GeForce RTX 4090")
    assert by_name == report.predict("rtx4090") == report.predict(roofprof.Ceilings.published("RTX 4090"))
    assert by_name.device == "RTX 4090"
    for device, words in (
        ("RTX 4091", "no card is known as 'RTX 4091'; near it are RTX 4090, "),
        ("foo", "there are .*RTX 4090"),
        ("", "there are .*RTX 4090"),
        ("none.json", "none.json"),
    ):
        with pytest.raises(ValueError, match=words) as info:
            report.predict(device)
        assert "\n" not in str(info.value)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"batch": 0}, ValueError, "batch must be 1 or more, not 0"),
        ({"batch": 1.5}, TypeError, "batch is a whole number, not 1.5"),
        ({"batch": True}, TypeError, "batch is a whole number, not True"),
        ({"precision": "fp99"}, ValueError, "precision must be fp64, .*, not 'fp99'"),
        ({"precision": "int8"}, ValueError, "precision must be fp64, .*, not 'int8'"),
        ({"bandwidth": math.nan}, ValueError, "bandwidth is a factor above 0, not nan"),
        ({"peak": -2.0}, ValueError, "peak is a factor above 0, not -2"),
        ({"speed": 2}, TypeError, "speed"),
        ({"mode": "fast"}, ValueError, "mode must be eager, graph or compiled, not 'fast'"),
        ({"mode": "graph", "compiled": True}, ValueError, "give one of them"),
        ({"host": -1.0}, ValueError, "host is the seconds in which an op is launched, 0 or more, not -1"),
        ({"host": "fast"}, TypeError, "host is seconds or 'measured', not 'fast'"),
        ({"ranks": 0}, ValueError, "ranks must be 1 or more"),
        ({"ranks": True}, TypeError, "ranks is a whole number"),
        ({"ranks": 2, "parallel": "pp"}, ValueError, "parallel must be"),
    ],
)
def test_options_that_are_none(options, error, words):
    report = counted(mlp, 4, 64)
    for question in (report.predict, lambda card, **its: report.predict_all([card], **its)):
        with pytest.raises(error, match=words):
            question("RTX 4090", **options)


def test_what_nothing_can_be_predicted_of():
    half = counted(mlp, 4, 64, dtype=torch.float16)
    for report, device, words in (
        (counted(nn.Identity, 4), "RTX 4090", "no ops with work"),
        (scaled_report(2, 0.1), "RTX 4090", "predict from the report of one rank"),
        (half, roofs({"fp32": 1e12}), "no peak for fp16"),
        (half, roofs({"fp16": 1e12}, {}), "no bandwidth of its memory"),
        (half, roofprof.Ceilings(), "no roofs"),
    ):
        with pytest.raises(ValueError, match=words):
            report.predict(device)
