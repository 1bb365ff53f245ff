"""Report.predict_all: the devices of one table, held against the predictions for each of them and published figures."""

import json

import pytest
import torch
from given_roofs import roofs
from on_meta import counted, mlp, relus
from torch import nn

import roofprof
from roofprof.predict.ranking import Ranking
from roofprof.roofs import published_peaks


@pytest.fixture(scope="module")
def ranking():
    return counted(mlp, 512, 64, dtype=torch.float16).predict_all()


def test_all_cards_are_sorted_by_time(ranking):
    assert sorted(device.device for device in ranking.devices) == sorted(published_peaks.names())
    assert ranking.left_out == ()
    times = [device.time for device in ranking.devices]
    assert times == sorted(times)
    assert [ranking[place].time for place in range(len(ranking))] == times
    assert ranking.batch == 512
    assert "autocast in fp16" in ranking.prediction


def test_throughput_is_of_samples_and_by_the_published_tdp(ranking):
    published = {card["name"]: card for card in published_peaks.data()["cards"]}
    for device in ranking.devices:
        assert device.time_low <= device.time <= device.time_high
        assert device.throughput == pytest.approx(512 / device.time)
        tdp, memory = (published[device.device].get(name) for name in ("tdp", "memory"))
        assert device.tdp == (published_peaks.amount(tdp) if tdp else None)
        if tdp:
            assert device.throughput_per_watt == pytest.approx(device.throughput / published_peaks.amount(tdp))
        assert device.memory == (published_peaks.amount(memory) if memory else None)
        assert device.fits is (True if memory else None)
        assert 0 <= device.compute_bound <= 1


def test_each_time_is_that_of_its_own_report():
    report = counted(mlp, 512, 64)
    for options in ({}, {"precision": "fp16"}, {"batch": 64, "compiled": True}):
        ranking = report.predict_all(["RTX 4090", "T4"], **options)
        for device in ranking.devices:
            total = report.predict(device.device, **options).total
            # A report has whole nanoseconds for each of three ops.
            for name in ("time", "time_low", "time_high"):
                assert getattr(device, name) == pytest.approx(getattr(total, name), abs=3e-9)
        assert ranking.batch == options.get("batch", 512)
        assert ranking.prediction == report.predict("T4", **options).prediction


def test_a_faster_card_is_first():
    product = counted(lambda: nn.Linear(8192, 8192), 8192, 8192, dtype=torch.float16)
    cards = ["H100 SXM", "A100 SXM 40GB", "V100 SXM2", "T4"]  # 3350, 1555, 900 and 320 GB/s
    for report, bound in ((product, 1), (relus(2**28), 0)):
        ranking = report.predict_all(cards[::-1])
        assert [device.device for device in ranking.devices] == cards
        assert ranking[1].compute_bound == pytest.approx(bound)  # the part that arithmetic bounds


def test_memory_is_that_of_weights_and_activations():
    report = counted(mlp, 4, 64)
    device = report.predict_all(["T4"])[0]
    assert device.memory_needed == report.total.param_bytes + report.total.peak_memory
    fat = counted(lambda: nn.Linear(100_000, 100_000), 1, 100_000)
    fits = {device.device: device.fits for device in fat.predict_all(["RTX 4090", "B200"]).devices}
    assert fits == {"RTX 4090": False, "B200": True}
    assert "does not fit" in fat.predict_all(["RTX 4090"]).table()
    assert "does not fit" not in fat.predict_all(["B200"]).table()


def test_what_is_not_known_is_not_guessed():
    stored = counted(mlp, 4, 64).to_dict() | {"imported": "torch.profiler"}
    for module in stored["modules"]:
        module["params_known"] = False
    ranking = roofprof.Report.from_dict(stored).predict_all(["T4"])
    assert (ranking[0].memory_needed, ranking[0].fits) == (None, None)
    assert "n/a of" in ranking.table()

    class OfNothing(nn.Module):
        def forward(self, size):
            return torch.empty(size, device="meta").exp()

    ranking = roofprof.count(OfNothing(), 8).predict_all("T4")
    assert ranking.batch is None
    assert ranking[0].throughput == pytest.approx(1 / ranking[0].time)
    assert "calls a second" in " ".join(ranking.table().split())


def test_devices_of_any_kind(tmp_path):
    by_hand = roofs({"fp32": 1e12}, {"DRAM": (1e11, 0)})
    roofprof.Ceilings.save(by_hand, tmp_path / "roofs.json")
    ranking = counted(mlp, 4, 64).predict_all([tmp_path / "roofs.json", roofprof.Ceilings.published("T4"), "L4"])
    assert {device.device for device in ranking.devices} == {"a machine on paper", "T4", "L4"}
    paper = next(device for device in ranking.devices if device.device == "a machine on paper")
    assert (paper.tdp, paper.throughput_per_watt, paper.memory, paper.fits) == (None, None, None, None)
    assert "n/a" in ranking.table()


def test_what_was_named_is_not_left_out():
    half = counted(mlp, 4, 64, dtype=torch.float16)
    with pytest.raises(ValueError, match="no peak for fp16"):
        half.predict_all(["T4", roofs({"fp32": 1e12})])
    with pytest.raises(ValueError, match="no card is known as 'RTX 4091'; near it are RTX 4090"):
        half.predict_all(["T4", "RTX 4091"])


def test_it_is_printed_and_written(ranking, tmp_path):
    text = ranking.table(width=120)
    assert text == str(ranking)
    assert max(map(len, text.splitlines())) <= 120
    lines = text.splitlines()
    places = [next(n for n, line in enumerate(lines) if line.startswith(of.device + "  ")) for of in ranking.devices]
    assert places == sorted(places)
    assert "predicted" in lines[0]
    written = ranking.to_json(path := tmp_path / "ranking.json")
    assert path.read_text() == written
    read = json.loads(written)
    assert (read["schema"], read["schema_version"]) == ("roofprof.ranking", 1)
    assert Ranking.from_json(path) == ranking
    assert read["devices"][0]["time"] == ranking[0].time
