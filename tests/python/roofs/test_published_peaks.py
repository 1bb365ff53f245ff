"""The data file of published peaks: that it is whole, and that no figure of it can be a sparse or mistyped one."""

import pytest

import roofprof
from roofprof import _C
from roofprof.roofs import published_peaks
from roofprof.roofs.network import links

CARDS = published_peaks.data()["cards"]
SOURCES = published_peaks.data()["sources"]
CACHES = {"L2": "l2", "Infinity Cache": "infinity_cache"}
BANDWIDTHS = [f"{key}_bandwidth" for key in CACHES.values()]
FIGURES = (
    "sms",
    "cus",
    "boost_clock",
    "tensor_clock",
    *CACHES.values(),
    *BANDWIDTHS,
    "memory",
    "memory_bus",
    "dram",
    "tdp",
    "link",
)
FLOATING = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4")

# What a multiprocessor's tensor cores do in fp16 in a clock, dense: 2 x its multiply-adds. GeForce cards do half of it
# with fp32 accumulation, which is what torch asks for, and so does the L40. Of AMD's compute units: FLOPS/CLOCK/CU in
# ROCm's documentation of the MI250 and the MI300, and twice that of the MI300 for CDNA 4.
FP16_PER_CLOCK = {"7.0": 1024, "7.5": 1024, "8.0": 2048, "8.6": 1024, "8.9": 1024, "9.0": 4096, "12.0": 1024}
FP16_PER_CLOCK |= {"gfx90a": 1024, "gfx942": 2048, "gfx950": 4096}
HALVED = {"L40"}
HELD_BACK = {"H20"}  # its tensor cores do less than their number and clock allow
SUPERCHIPS = {"GH200 480GB"}  # their power is that of a processor, too


def named(card):
    return card["name"].replace(" ", "-")


def peak(card, dtype):
    figure = card["peaks"].get(dtype)
    return published_peaks.amount(figure) if figure else None


def is_amd(card):
    return card["compute_capability"].startswith("gfx")


def generation(card):
    """Of NVIDIA's: the compute capability; of AMD's, whose matrix cores have all types, one above."""
    return 100.0 if is_amd(card) else float(card["compute_capability"])


def is_geforce(card):
    return any("GeForce" in name for name in card["device_names"])


every_card = pytest.mark.parametrize("card", CARDS, ids=named)


@every_card
def test_every_value_has_its_unit_and_a_source_that_is_named(card):
    figures = [*card["peaks"].values(), *(card[name] for name in FIGURES if name in card)]
    assert {"fp32", "dram"} <= {*card["peaks"], *card} or card["name"] == "B100"
    for figure in figures:
        assert figure["value"] > 0
        assert figure["unit"] in published_peaks.data()["units"]
        assert SOURCES[figure["source"]]["title"]
        assert SOURCES[figure["source"]]["where"]
    for dtype, figure in card["peaks"].items():
        assert figure["unit"] == ("TFLOP/s" if dtype in FLOATING else "TOP/s")
        assert figure["engine"] in (
            {"vector units", "matrix cores"} if is_amd(card) else {"CUDA cores", "tensor cores"}
        )
    assert card["dram"]["unit"] == "GB/s"
    assert 200 <= card["dram"]["value"] <= 8000
    assert 2 << 20 <= published_peaks.amount(card.get("l2", {"value": 4096, "unit": "KiB"})) <= 128 << 20
    assert isinstance(card["confirmed_by"], list)


def figure_of(card, key):
    figure = card["peaks"].get(key) or card[key]
    return published_peaks.amount(figure)


@every_card
def test_the_bandwidth_of_a_shared_cache_says_what_it_rests_on(card):
    for key in [key for key in BANDWIDTHS if key in card]:
        bandwidth, size = card[key], card[key.removesuffix("_bandwidth")]
        assert bandwidth["unit"] == "GB/s"
        assert size["unit"] in {"KiB", "MiB"}
        assert published_peaks.amount(bandwidth) > 2 * published_peaks.amount(card["dram"])
        assert bandwidth["basis"] in {"published", "measured", "scaled"}
        assert (bandwidth["basis"] == "scaled") == ("from" in bandwidth) == ("by" in bandwidth)
        if bandwidth["basis"] == "scaled":
            (other,) = (other for other in CARDS if other["name"] == bandwidth["from"])
            assert other[key]["basis"] != "scaled"
            assert other["compute_capability"] == card["compute_capability"]
            assert bandwidth["by"]
            expected = published_peaks.amount(other[key])
            for name in bandwidth["by"]:
                expected *= figure_of(card, name) / figure_of(other, name)
            assert published_peaks.amount(bandwidth) == pytest.approx(expected, rel=0.001)


# Half of what is nominal, on cards with the chip of the H100 SXM, whose counters were recorded.
def test_what_a_cache_was_seen_to_hold_says_where():
    seen = {card["name"]: card for card in CARDS if "l2_effective" in card}
    assert {"H100 SXM", "H200 SXM", "H100 PCIe"} <= set(seen)
    for card in seen.values():
        held = card["l2_effective"]
        assert 2 * published_peaks.amount(held) == published_peaks.amount(card["l2"])
        assert held["source"] in SOURCES
        assert (held["basis"], held.get("from", card["name"])) in {("measured", "H100 SXM"), ("scaled", "H100 SXM")}
        assert card["compute_capability"] == seen["H100 SXM"]["compute_capability"]


# NVIDIA's whitepaper of the A100 on its L2: 5120 bytes a clock, and 2048 on the V100.
@pytest.mark.parametrize(("architecture", "bytes_per_clock"), [("8.0", 5120), ("7.0", 2048)])
def test_l2_bandwidths_of_which_the_bytes_of_a_clock_are_published(architecture, bytes_per_clock):
    cards = [card for card in CARDS if card["compute_capability"] == architecture and card["name"] != "A30"]
    assert cards
    for card in cards:
        per_clock = published_peaks.amount(card["l2_bandwidth"]) / published_peaks.amount(card["boost_clock"])
        assert per_clock == pytest.approx(bytes_per_clock, rel=0.001)
        assert f"{bytes_per_clock} bytes a clock" in card["l2_bandwidth"]["note"]


# Operations in fp16 for a joule at TDP, dense: a generation lies within these, so a mistyped power shows.
FP16_PER_JOULE = {
    "7": (0.2e12, 1e12),
    "8": (0.15e12, 1.7e12),
    "9": (1.3e12, 2.6e12),
    "10": (1.9e12, 2.6e12),
    "12": (0.25e12, 1.6e12),
    "gfx90a": (0.5e12, 0.7e12),
    "gfx942": (1.3e12, 1.8e12),
    "gfx950": (1.7e12, 1.9e12),
}


@every_card
def test_every_card_has_its_power_and_it_is_one_of_its_generation(card):
    assert card["tdp"]["unit"] == "W"
    assert 60 <= card["tdp"]["value"] <= 1400
    family = card["compute_capability"].split(".")[0]
    if card["name"] in SUPERCHIPS | HELD_BACK:
        return
    if family in FP16_PER_JOULE and peak(card, "fp16"):
        low, high = FP16_PER_JOULE[family]
        assert low <= peak(card, "fp16") / card["tdp"]["value"] <= high


# Links of 50 GB/s, both directions together, that a card of export rules has fewer of.
FEWER_LINKS = {"H800 SXM": 8, "A800 SXM 80GB": 8}
WITHOUT_LINK = {"GH200 480GB", "Jetson AGX Orin 64GB", "MI250X", "MI250"}  # one a board, or two dies of one card


@every_card
def test_a_card_is_linked_as_its_generation_is(card):
    facts = published_peaks.published(card["name"]).facts
    if card["name"] in WITHOUT_LINK:
        assert (facts.link, facts.link_bytes_per_second) == ("", 0)
        return
    figure = card["link"]
    assert facts.link == figure["kind"]
    assert facts.link_bytes_per_second == published_peaks.amount(figure) / 2
    rates = [rate for name, rate, _ in links.published() if name.startswith(figure["kind"])]
    if card["name"] in FEWER_LINKS:
        rates = [FEWER_LINKS[card["name"]] * 25e9]
    if figure["kind"].startswith(("PCIe", "NVLink")) and figure["kind"] != "NVLink 1":
        assert facts.link_bytes_per_second == pytest.approx(rates[0], rel=0.001)
    generations = {"NVLink 5": "10", "NVLink 4": "9", "NVLink 3": "8", "NVLink 2": "7", "NVLink 1": "6"}
    if figure["kind"] in generations:
        assert card["compute_capability"].split(".")[0] == generations[figure["kind"]]


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
    caches = {level: key for level, key in CACHES.items() if f"{key}_bandwidth" in card}
    *levels, dram = roofs.memory
    assert (dram.level, dram.bytes_per_second) == ("DRAM", published_peaks.amount(card["dram"]))
    assert {roof.level: (roof.capacity_bytes, roof.bytes_per_second) for roof in levels} == {
        level: tuple(map(published_peaks.amount, (card.get(f"{key}_effective", card[key]), card[f"{key}_bandwidth"])))
        for level, key in caches.items()
    }
    figures = [*card["peaks"].values(), *(card[f"{key}_bandwidth"] for key in caches.values()), card["dram"]]
    for roof, figure in zip([*roofs.compute, *roofs.memory], figures, strict=True):
        source = SOURCES[figure["source"]]
        assert roof.provenance.source == "published"
        assert roof.provenance.method.startswith(f"{source['title']}, {source['where']}")
        remark = roof.provenance.method.removeprefix(f"{source['title']}, {source['where']}")
        assert (figure.get("engine", "") in remark) and ("engine" not in figure or "at a boost clock" in remark)
        assert figure.get("from", "") in remark
        assert ("measured on this card" in remark) == (figure.get("basis") == "measured")


@pytest.mark.parametrize("card", [c for c in CARDS if "sms" in c and "boost_clock" in c], ids=named)
def test_the_peak_of_cuda_cores_from_the_cards_properties_is_the_published_one(card):
    major, minor = map(int, card["compute_capability"].split("."))
    clock_hz = round(published_peaks.amount(card["boost_clock"]))
    computed = _C.cuda_core_fp32_peak(card["sms"]["value"], clock_hz, major, minor)
    assert computed == pytest.approx(peak(card, "fp32"), rel=0.03)


@every_card
def test_tensor_cores_are_no_slower_and_no_rate_is_one_with_sparsity(card):
    fp32, fp16 = peak(card, "fp32"), peak(card, "fp16")
    if fp32:
        assert all(peak(card, dtype) >= fp32 for dtype in ("tf32", "fp16", "bf16", "fp8") if peak(card, dtype))
    units = card.get("sms") or card.get("cus")
    clock = card.get("tensor_clock") or card.get("boost_clock")
    if card["compute_capability"] in FP16_PER_CLOCK and fp16 and units and clock:
        per_clock = FP16_PER_CLOCK[card["compute_capability"]]
        if is_geforce(card) or card["name"] in HALVED:
            per_clock /= 2
        rate = units["value"] * published_peaks.amount(clock)
        assert fp16 / rate == pytest.approx(per_clock, rel=0.02)


@every_card
def test_the_rates_of_one_card_stand_in_the_ratios_of_its_tensor_cores(card):
    fp16 = peak(card, "fp16")
    modern = generation(card) >= 8
    if not fp16 or not modern:
        assert not any(peak(card, dtype) for dtype in ("tf32", "bf16", "fp8", "fp4"))
        return
    assert peak(card, "bf16") == fp16
    if peak(card, "tf32"):
        assert peak(card, "tf32") / fp16 == pytest.approx(1 / 2, rel=0.03)
    if generation(card) >= 8.9 and card["compute_capability"] != "gfx90a":
        assert peak(card, "fp8") / fp16 == pytest.approx(2, rel=0.03)
    # Blackwell Ultra gave up int8 for a wider fp4.
    ultra = card["compute_capability"] == "10.3"
    # Integers accumulate in full width: GeForce cards are not halved there. CDNA 2 does as many of them as of fp16.
    int8 = 4 if is_geforce(card) else 1 if card["compute_capability"] == "gfx90a" else 2
    assert ultra or peak(card, "int8") / fp16 == pytest.approx(int8, rel=0.03)
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
    level = roofs.memory[-1]
    by_dtype = {roof.dtype: roof.operations_per_second for roof in roofs.compute}
    assert by_dtype["fp32"] == pytest.approx(fp32)
    assert (level.level, level.bytes_per_second, level.capacity_bytes) == ("DRAM", pytest.approx(dram), 0)
    assert by_dtype["fp32"] / level.bytes_per_second == pytest.approx(i_max, abs=0.05)


@pytest.mark.parametrize("name", ["RTX 9090", "H100 XYZ", "", "4090 Laptop GPU"])
def test_a_card_that_is_not_known_is_refused_with_those_that_are(name):
    with pytest.raises(ValueError, match="no published peaks") as info:
        roofprof.Ceilings.published(name)
    assert "\n" not in str(info.value)
    if name.startswith("H100"):
        assert str(info.value).endswith("those of H100 SXM, H100 PCIe, H100 NVL")


# Some of what nvidia-smi, torch.cuda.get_device_name and the deviceProperties of traces say, and the card that it is.
DRIVER_NAMES = {
    "NVIDIA H100 80GB HBM3": "H100 SXM",
    "NVIDIA A100-PG509-200": "A100 SXM 40GB",
    "A100-SXM4-40GB": "A100 SXM 40GB",
    "NVIDIA A100 80GB PCIe": "A100 PCIe 80GB",
    "Tesla V100-DGXS-32GB": "V100 SXM2",
    "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition": "RTX PRO 6000 Blackwell Max-Q",
    "GeForce RTX 3090": "RTX 3090",
    "AMD Instinct MI250X / MI250": "MI250X",  # the faster of the two that it may be
    "AMD Instinct MI300X VF": "MI300X",
}
# Other cards than those whose names they begin with or hold, parts of cards, and names that say nothing.
OTHER_CARDS = [
    "NVIDIA GeForce RTX 4090 Laptop GPU",
    "NVIDIA GeForce RTX 4090 D",
    "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
    "NVIDIA GH200 144G HBM3e",
    "NVIDIA H20-3e",
    "NVIDIA A10G",
    "Tesla V100S-PCIE-32GB",
    "AMD Instinct MI300A",
    "AMD Instinct MI300X HF",
    "AMD Radeon Graphics",
    "",
]


def test_cards_are_found_by_the_names_that_drivers_give_them(monkeypatch):
    monkeypatch.setattr(_C, "gpu_environment", lambda name: [("gpu_device", name)] if name else [])
    found = {name: published_peaks.published_for(name) for name in [*DRIVER_NAMES, *OTHER_CARDS]}
    assert {name: roofs and roofs.device for name, roofs in found.items()} == {
        **DRIVER_NAMES,
        **dict.fromkeys(OTHER_CARDS),
    }
