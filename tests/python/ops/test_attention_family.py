"""Attention by every way into it: Q K^T and P V dense, beside the exact count that a causal mask leaves.

A score costs its dot product over the depth, and its share of the sum over the values.
"""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from truths import macs_by, observe

import roofprof

pytestmark = pytest.mark.usefixtures("one_thread")

BATCH, HEADS, KEY_HEADS, QUERIES, KEYS, DEPTH = 2, 8, 2, 6, 10, 16
SCORES = BATCH * HEADS * QUERIES * KEYS
DENSE = SCORES * 2 * DEPTH
# The mask of 6 x 10 pairs starts at the first query and key: 1 + 2 + ... + 6; or ends at the last: 5 + 6 + ... + 10.
FROM_FIRST = BATCH * HEADS * 21 * 2 * DEPTH
FROM_LAST = BATCH * HEADS * 45 * 2 * DEPTH
ops = torch.ops.aten


def inputs(heads=KEY_HEADS, device="cpu", dtype=torch.float32, *, tokens_first=False):
    shapes = [(BATCH, HEADS, QUERIES, DEPTH), (BATCH, heads, KEYS, DEPTH), (BATCH, heads, KEYS, DEPTH)]
    tensors = [torch.rand(shape, dtype=torch.float32).to(device, dtype) for shape in shapes]
    return [tensor.transpose(1, 2).contiguous() if tokens_first else tensor for tensor in tensors]


def count(function, *args):
    report = roofprof.count(function, *args)
    assert not report.coverage.uncosted
    return report.total


# ---- scaled_dot_product_attention


@pytest.mark.parametrize(
    ("backend", "dropout"), [(SDPBackend.MATH, 0.0), (SDPBackend.MATH, 0.1), (SDPBackend.FLASH_ATTENTION, 0.0)]
)
@pytest.mark.parametrize("heads", [HEADS, KEY_HEADS])
@pytest.mark.parametrize("causal", [False, True])
def test_forward(backend, dropout, heads, causal):
    query, key, value = inputs(heads)

    def attend():
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(
                query, key, value, dropout_p=dropout, is_causal=causal, enable_gqa=heads != HEADS
            )

    total = count(attend)
    assert total.macs == DENSE
    assert total.causal_macs == (FROM_FIRST if causal else DENSE)
    # Besides, a scale and a softmax of 5 for each score; dropout draws, masks and rescales it.
    assert total.flops == 2 * DENSE + SCORES * (6 + (3 if dropout else 0))
    # Fewer key heads save bytes. The scores are never written.
    assert total.read_bytes == 4 * sum(tensor.numel() for tensor in (query, key, value))
    assert total.write_bytes == 4 * query.numel()


@pytest.mark.parametrize(
    ("backend", "products"), [(SDPBackend.MATH, 4), (SDPBackend.FLASH_ATTENTION, 5)], ids=["kept", "recomputed"]
)
@pytest.mark.parametrize("heads", [HEADS, KEY_HEADS])
def test_backward_is_what_is_executed(backend, products, heads):
    tensors = [tensor.requires_grad_() for tensor in inputs(heads)]

    def step():
        with sdpa_kernel(backend):
            F.scaled_dot_product_attention(*tensors, enable_gqa=heads != HEADS).sum().backward()

    report = observe(nn.Identity(), step)
    # Two products for each of the forward's; kernels that kept no scores repeat Q K^T.
    assert macs_by(report, "phase") == {"forward": DENSE, "backward": products * SCORES * DEPTH}
    assert not report.coverage.uncosted


# ---- the ops behind it, called by name


def half(heads=HEADS, *, tokens_first=False):
    return inputs(heads, "meta", torch.float16, tokens_first=tokens_first)


def lengths():
    return torch.empty(3, dtype=torch.int32, device="meta")


def ragged(function):
    """One row of tokens for two sequences of the same length."""
    query, key, value = (tensor.flatten(0, 1) for tensor in half(KEY_HEADS, tokens_first=True))
    return function(query, key, value, lengths(), lengths(), QUERIES, KEYS, 0.0, True, False)


DIRECT = {
    "flash": (lambda: ops._scaled_dot_product_flash_attention(*half(KEY_HEADS), 0.0, True), FROM_FIRST),
    "efficient": (
        lambda: ops._scaled_dot_product_efficient_attention(*half(), None, True, 0.0, True),
        FROM_FIRST,
    ),
    "cudnn": (lambda: ops._scaled_dot_product_cudnn_attention(*half(), None, True, 0.0, True), FROM_FIRST),
    "flash itself": (
        lambda: ops._flash_attention_forward(
            *half(KEY_HEADS, tokens_first=True), None, None, QUERIES, KEYS, 0.0, True, False
        ),
        FROM_LAST,
    ),
    "flash itself, ragged": (lambda: ragged(ops._flash_attention_forward), FROM_LAST),
    "efficient itself, from the last": (
        lambda: ops._efficient_attention_forward(*half(tokens_first=True), None, None, None, None, None, 0.0, 2, True),
        FROM_LAST,
    ),
}


@pytest.mark.parametrize(("call", "causal"), DIRECT.values(), ids=DIRECT)
def test_by_name(call, causal):
    total = count(call)
    assert (total.macs, total.causal_macs) == (DENSE, causal)


# ---- flex_attention, not compiled: dense products, the mask applied to the scores


def test_flex_attention_is_dense_where_it_is_not_compiled():
    query, key, value = (torch.rand(1, 4, 128, 16) for _ in range(3))
    mask = create_block_mask(lambda _b, _h, q, k: q >= k, None, None, 128, 128, device="cpu")
    dense = 4 * 128 * 128 * 2 * 16
    for options in ({}, {"block_mask": mask}, {"score_mod": lambda score, _b, _h, q, k: score + (q - k)}):
        report = roofprof.count(lambda options=options: flex_attention(query, key, value, **options))
        assert (report.total.macs, report.total.causal_macs) == (dense, dense)
        assert macs_by(report, "op") == {"aten::matmul": dense}
        assert not report.coverage.uncosted
    few = torch.rand(1, 2, 128, 16)
    assert count(lambda: flex_attention(query, few, few, enable_gqa=True)).macs == dense


# ---- modules

WIDTH, HIDDEN, TOKENS, MEMORY = 16, 32, 5, 7


def projections(queries, keys):
    """Query and output for each query, key and value for each key."""
    return 2 * BATCH * (queries + keys) * WIDTH * WIDTH


def attention(queries, keys):
    return 2 * BATCH * queries * keys * WIDTH


@pytest.mark.parametrize("weights", [False, True])
def test_multi_head_attention_slow_and_fast(weights):
    module = nn.MultiheadAttention(WIDTH, 4, batch_first=True).eval()
    x = torch.rand(BATCH, TOKENS, WIDTH)
    slow = roofprof.count(module, x, x, x, need_weights=weights)
    with torch.no_grad():
        fast = roofprof.count(module, x, x, x, need_weights=weights)
    assert "aten::_native_multi_head_attention" in fast.by_operator()
    assert "aten::_native_multi_head_attention" not in slow.by_operator()
    assert fast.total.macs == slow.total.macs == projections(TOKENS, TOKENS) + attention(TOKENS, TOKENS)
    assert not slow.coverage.uncosted
    assert not fast.coverage.uncosted


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer_slow_and_fast(norm_first, activation):
    layer = nn.TransformerEncoderLayer(WIDTH, 4, HIDDEN, batch_first=True, norm_first=norm_first, activation=activation)
    layer.eval()
    x = torch.rand(BATCH, TOKENS, WIDTH)
    slow = roofprof.count(layer, x)
    with torch.no_grad():
        fast = roofprof.count(layer, x)
    assert "aten::_transformer_encoder_layer_fwd" in fast.by_operator()
    macs = projections(TOKENS, TOKENS) + attention(TOKENS, TOKENS) + 2 * BATCH * TOKENS * WIDTH * HIDDEN
    assert fast.total.macs == slow.total.macs == macs
    # All else is the same arithmetic: biases, scale and softmax, activation, residuals, norms. The fast path scales
    # the queries, the slow one the scores.
    scale = BATCH * TOKENS * WIDTH - BATCH * 4 * TOKENS * TOKENS
    assert fast.total.flops - slow.total.flops == scale
    assert not slow.coverage.uncosted
