"""Fused attention: identities and limits of its times."""

import pytest
import torch

import roofprof
from roofprof import _C
from roofprof.roofs import published_peaks

CARDS = [card["name"] for card in published_peaks.data()["cards"] if {"bf16", "fp16"} & set(card["peaks"])]
CARDS_OF_ALL_KINDS = ["A100 SXM 80GB", "L40S", "H100 SXM", "B200", "T4", "RTX 5090", "MI300X"]


def seconds(card, batch, heads, queries, depth, *, key_heads=None, keys=None, causal=False, **options):
    query = torch.empty(batch, heads, queries, depth, dtype=torch.half, device="meta")
    key, value = (
        torch.empty(batch, key_heads or heads, keys or queries, depth, dtype=torch.half, device="meta")
        for _ in range(2)
    )
    attention = torch.nn.functional.scaled_dot_product_attention
    report = roofprof.count(attention, query, key, value, is_causal=causal, enable_gqa=key_heads is not None)
    options = _C.PredictionOptions(autocast=False, **options)
    predictor = _C.Predictor(_C.report_from_json(report.to_json().encode()), options)
    return sum(predictor.op_seconds(_C.published_ceilings(card), _C.PredictionParameters.shipped()))


def roof(card, name):
    return next(level.bytes_per_second for level in _C.published_ceilings(card).memory if level.level == name)


def peak(card):
    rates = {roof.dtype: roof.operations_per_second for roof in _C.published_ceilings(card).compute}
    return rates["fp16"]


@pytest.mark.parametrize("card", CARDS_OF_ALL_KINDS)
def test_more_of_any_size_takes_no_less(card):
    def rise(*times):
        assert list(times) == sorted(times)

    for causal in (False, True):
        for heads, depth in ((1, 64), (64, 128)):
            rise(*(seconds(card, 2, heads, length, depth, causal=causal) for length in (2, 16, 100, 129, 1000, 8192)))
            rise(*(seconds(card, batch, heads, 500, depth, causal=causal) for batch in (1, 2, 7, 32, 500)))
        rise(*(seconds(card, 4, 16, 2048, depth, causal=causal) for depth in (32, 64, 96, 128)))

    def decoding(batch, keys):
        return seconds(card, batch, 32, 1, 128, key_heads=8, keys=keys)

    rise(*(decoding(8, count) for count in (2, 64, 128, 129, 1000, 30000, 200000)))
    rise(*(decoding(count, 1000) for count in (1, 2, 16)))
    rise(*(decoding(count, 1000) for count in (17, 64, 256, 2048)))  # which need no second kernel


@pytest.mark.parametrize("card", CARDS)
def test_no_attention_is_above_the_roofs(card):
    flops = 4 * 8 * 32 * 8192**2 * 128
    assert seconds(card, 8, 32, 8192, 128) >= flops / peak(card)
    moved = 2 * 64 * 8 * 32768 * 128 * 2
    decoding = seconds(card, 64, 32, 1, 128, key_heads=8, keys=32768)
    assert moved / roof(card, "DRAM") <= decoding <= 2 * moved / roof(card, "DRAM")


def test_a_causal_mask_halves_a_long_prompt_and_not_a_short_one():
    for card in CARDS_OF_ALL_KINDS:
        long = seconds(card, 4, 32, 16384, 128, causal=True) / seconds(card, 4, 32, 16384, 128)
        assert 0.5 <= long < 0.56
        # A single tile of queries sees a single block of keys, masked or not.
        assert seconds(card, 4, 32, 32, 128, causal=True) == seconds(card, 4, 32, 32, 128)


def test_softmax_takes_its_time_beside_the_products_of_small_heads():
    # A Blackwell chip has the exponentials of a Hopper one for each multiprocessor, and twice its tensor cores.
    def of_peak(card, depth):
        return 4 * 16 * 32 * 16384**2 * depth / peak(card) / seconds(card, 16, 32, 16384, depth)

    assert of_peak("B200", 64) < of_peak("H100 SXM", 64) < of_peak("H100 SXM", 128)
    assert of_peak("B200", 64) < 0.75 * of_peak("B200", 128)


def test_heads_that_share_keys_are_read_once_when_decoding():
    for card in ("A100 SXM 80GB", "H100 SXM"):
        shared = seconds(card, 256, 64, 1, 128, key_heads=8, keys=4096)
        own = seconds(card, 256, 64, 1, 128, keys=4096)
        assert own > 6 * shared


def test_keys_that_fit_the_last_cache_are_read_from_there():
    card = "L40S"  # 96 MiB
    moved = 2 * 2 * 8 * 2048 * 128 * 8
    assert seconds(card, 8, 8, 1, 128, keys=2048) < moved / roof(card, "DRAM")
    twice = seconds(card, 8, 8, 1, 128, keys=8192)
    assert twice > 4 * moved / roof(card, "DRAM")


def test_kernels_own_entry_points_are_the_same_kernel():
    query, key, value = (torch.empty(4, 512, 16, 64, dtype=torch.half, device="meta") for _ in range(3))
    report = roofprof.count(
        torch.ops.aten._efficient_attention_forward, query, key, value, None, None, None, None, None, 0.0, 0
    )
    predictor = _C.Predictor(_C.report_from_json(report.to_json().encode()), _C.PredictionOptions(autocast=False))
    own = sum(predictor.op_seconds(_C.published_ceilings("A100 SXM 80GB"), _C.PredictionParameters.shipped()))
    assert own == pytest.approx(seconds("A100 SXM 80GB", 4, 16, 512, 64), rel=0.02)
