"""The data file of published peaks: that it is whole, and that no figure of it can be a sparse or mistyped one."""

from __future__ import annotations

import pytest

import roofprof
from roofprof import _C, published_peaks

CARDS = published_peaks.data()["cards"]
SOURCES = published_peaks.data()["sources"]
FIGURES = ("sms", "boost_clock", "tensor_clock", "l2", "memory", "dram", "tdp")
FLOATING = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4")

# What a multiprocessor's tensor cores do in fp16 in a clock, dense: 2 x its multiply-adds. GeForce cards do half of it
# with fp32 accumulation, which is what torch asks for, and so does the L40.
FP16_PER_CLOCK = {"7.0": 1024, "7.5": 1024, "8.0": 2048, "8.6": 1024, "8.9": 1024, "9.0": 4096, "12.0": 1024}
HALVED = {"L40"}


def named(card):
    return card["name"].replace(" ", "-")


def peak(card, dtype):
    figure = card["peaks"].get(dtype)
    return published_peaks.amount(figure) if figure else None


def is_geforce(card):
    return any("GeForce" in name for name in card["device_names"])


every_card = pytest.mark.parametrize("card", CARDS, ids=named)


@every_card
def test_every_value_has_its_unit_and_a_source_that_is_named(card):
    figures = [*card["peaks"].values(), *(card[name] for name in FIGURES if name in card)]
    assert {"fp32", "dram"} <= {*card["peaks"], *card} or card["name"] == "B100"
    for figure in figures:
        assert figure["value"] > 0
        assert figure["unit"] in published_peaks.UNITS
        assert SOURCES[figure["source"]]["title"]
        assert SOURCES[figure["source"]]["where"]
    for dtype, figure in card["peaks"].items():
        assert figure["unit"] == ("TFLOP/s" if dtype in FLOATING else "TOP/s")
        assert figure["engine"] in {"CUDA cores", "tensor cores"}
    assert card["dram"]["unit"] == "GB/s"
    assert isinstance(card["confirmed_by"], list)


@every_card
def test_values_are_in_the_ranges_of_real_cards(card):
    assert 5e12 <= (peak(card, "fp32") or 60e12) <= 130e12
    assert 200e9 <= published_peaks.amount(card["dram"]) <= 8e12
    assert 1.2e9 <= published_peaks.amount(card.get("boost_clock", {"value": 1.5e3, "unit": "MHz"})) <= 2.7e9
    assert 16 <= card.get("sms", {"value": 16})["value"] <= 192
    assert 2 << 20 <= published_peaks.amount(card.get("l2", {"value": 4096, "unit": "KiB"})) <= 128 << 20


# Operations in fp16 for a joule at TDP, dense: a generation lies within these, so a mistyped power shows.
FP16_PER_JOULE = {
    "7": (0.2e12, 1e12),
    "8": (0.15e12, 1.7e12),
    "9": (1.3e12, 2.6e12),
    "10": (1.9e12, 2.6e12),
    "12": (0.25e12, 1.6e12),
}


@every_card
def test_every_card_has_its_power_and_it_is_one_of_its_generation(card):
    assert card["tdp"]["unit"] == "W"
    assert 60 <= card["tdp"]["value"] <= 1200
    generation = card["compute_capability"].split(".")[0]
    if generation in FP16_PER_JOULE and peak(card, "fp16"):
        low, high = FP16_PER_JOULE[generation]
        assert low <= peak(card, "fp16") / card["tdp"]["value"] <= high


def test_names_are_unique_however_they_are_written():
    assert len(set(published_peaks.names())) == len(CARDS)
    for card in CARDS:
        for name in [card["name"], *card["aliases"], *card["device_names"]]:
            for written in (name, name.lower(), name.replace(" ", "-"), f"NVIDIA {name}"):
                assert published_peaks.published(written).device == card["name"], written


@every_card
def test_the_library_has_the_files_figures(card):
    roofs = published_peaks.published(card["name"])
    rates = {roof.dtype: roof.operations_per_second for roof in roofs.compute}
    assert rates == {dtype: published_peaks.amount(figure) for dtype, figure in card["peaks"].items()}
    (dram,) = roofs.memory
    assert (dram.level, dram.bytes_per_second) == ("DRAM", published_peaks.amount(card["dram"]))
    for roof, figure in [*zip(roofs.compute, card["peaks"].values(), strict=True), (dram, card["dram"])]:
        source = SOURCES[figure["source"]]
        assert roof.provenance.source == "published"
        assert roof.provenance.method.startswith(f"{source['title']}, {source['where']}")
        assert ("engine" in figure) == (
            "; " in roof.provenance.method.removeprefix(f"{source['title']}, {source['where']}")
        )


@pytest.mark.parametrize("card", [c for c in CARDS if "sms" in c and "boost_clock" in c], ids=named)
def test_the_peak_of_cuda_cores_from_the_cards_properties_is_the_published_one(card):
    major, minor = map(int, card["compute_capability"].split("."))
    clock_hz = round(published_peaks.amount(card["boost_clock"]))
    computed = _C.cuda_core_fp32_peak(card["sms"]["value"], clock_hz, major, minor)
    assert computed == pytest.approx(peak(card, "fp32"), rel=0.03)


def test_most_cards_have_what_that_needs():
    assert sum("sms" in card and "boost_clock" in card for card in CARDS) >= 30


@every_card
def test_tensor_cores_are_no_slower_and_no_rate_is_one_with_sparsity(card):
    fp32, fp16 = peak(card, "fp32"), peak(card, "fp16")
    if fp32:
        assert all(peak(card, dtype) >= fp32 for dtype in ("tf32", "fp16", "bf16", "fp8") if peak(card, dtype))
    if card["compute_capability"] in FP16_PER_CLOCK and fp16 and "sms" in card:
        per_clock = FP16_PER_CLOCK[card["compute_capability"]]
        if is_geforce(card) or card["name"] in HALVED:
            per_clock /= 2
        clock = published_peaks.amount(card.get("tensor_clock", card["boost_clock"]))
        assert fp16 / (card["sms"]["value"] * clock) == pytest.approx(per_clock, rel=0.03)


@every_card
def test_the_rates_of_one_card_stand_in_the_ratios_of_its_tensor_cores(card):
    fp16 = peak(card, "fp16")
    modern = float(card["compute_capability"]) >= 8
    if not fp16 or not modern:
        assert not any(peak(card, dtype) for dtype in ("tf32", "bf16", "fp8", "fp4"))
        return
    assert peak(card, "bf16") == fp16
    if peak(card, "tf32"):
        assert peak(card, "tf32") / fp16 == pytest.approx(1 / 2, rel=0.03)
    if float(card["compute_capability"]) >= 8.9:
        assert peak(card, "fp8") / fp16 == pytest.approx(2, rel=0.03)
    # Blackwell Ultra gave up int8 for a wider fp4.
    ultra = card["compute_capability"] == "10.3"
    # Integers accumulate in full width: GeForce cards are not halved there.
    assert ultra or peak(card, "int8") / fp16 == pytest.approx(4 if is_geforce(card) else 2, rel=0.03)
    if peak(card, "fp4"):
        assert peak(card, "fp4") / fp16 == pytest.approx(6 if ultra else 4, rel=0.03)


@pytest.mark.parametrize(
    ("name", "fp32", "dram", "i_max"),
    [
        ("RTX 3060", 12.737536e12, 360e9, 35.38),
        ("GTX 1080 Ti", 11.3e12, 484e9, 23.35),
        ("A100", 19.5e12, 1555e9, 12.5),
        ("RTX 4090", 82.6e12, 1.008e12, 81.9),
    ],
)
def test_the_cards_of_the_worked_examples(name, fp32, dram, i_max):
    roofs = roofprof.Ceilings.published(name)
    (level,) = roofs.memory
    by_dtype = {roof.dtype: roof.operations_per_second for roof in roofs.compute}
    assert by_dtype["fp32"] == pytest.approx(fp32)
    assert (level.level, level.bytes_per_second, level.capacity_bytes) == ("DRAM", pytest.approx(dram), 0)
    assert by_dtype["fp32"] / level.bytes_per_second == pytest.approx(i_max, abs=0.05)


def test_a_roof_says_where_it_was_published_and_for_which_clock():
    roofs = {roof.dtype: roof for roof in roofprof.Ceilings.published("H100 SXM").compute}
    for roof in roofs.values():
        assert roof.provenance.source == "published"
        assert roof.provenance.method.startswith("NVIDIA H100 Tensor Core GPU")
    assert roofs["bf16"].provenance.method.endswith("tensor cores at 1830 MHz")  # not the highest clock
    assert roofs["fp32"].provenance.method.endswith("CUDA cores at 1980 MHz")
    assert roofs["fp64"].provenance.method.endswith("tensor cores at 1980 MHz")
    assert roofs["bf16"].operations_per_second == pytest.approx(132 * 4096 * 1.83e9, rel=0.001)


@pytest.mark.parametrize("name", ["rtx4090", "NVIDIA GeForce RTX 4090", "GeForce RTX 4090", " Rtx-4090 "])
def test_a_card_goes_by_any_of_its_names(name):
    assert roofprof.Ceilings.published(name).device == "RTX 4090"


@pytest.mark.parametrize("name", ["RTX 9090", "H100 XYZ", "", "4090 Laptop GPU"])
def test_a_card_that_is_not_known_is_refused_with_those_that_are(name):
    with pytest.raises(ValueError, match="no published peaks") as info:
        roofprof.Ceilings.published(name)
    assert "\n" not in str(info.value)
    if name.startswith("H100"):
        assert str(info.value).endswith("those of H100 SXM, H100 PCIe, H100 NVL")


def test_this_machines_card_goes_by_the_drivers_name_alone(monkeypatch):
    def with_driver_name(name):
        monkeypatch.setattr(_C, "gpu_environment", lambda _device: [("gpu_device", name)] if name else [])
        return published_peaks.published_for("cuda:0")

    assert with_driver_name("NVIDIA GeForce RTX 4090").device == "RTX 4090"
    assert with_driver_name("NVIDIA A100 80GB PCIe").device == "A100 PCIe 80GB"
    assert with_driver_name("Tesla T4").device == "T4"
    assert with_driver_name("NVIDIA GeForce RTX 4090 Laptop GPU") is None
    assert with_driver_name("NVIDIA A100-SXM4-40GB MIG 1g.5gb") is None
    assert with_driver_name("") is None
