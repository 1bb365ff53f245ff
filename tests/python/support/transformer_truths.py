"""MACs of well known architectures from their dimensions, as written in their papers: no model is looked at.

`words` are tokens in all sequences together, `length` those of one sequence, `batch` the sequences.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Macs:
    """Products with weights apart from those of attention, whose backwards differ."""

    weights: int = 0
    attention: int = 0
    first: int = 0  # of the weights, those whose inputs are the data, which need no gradient

    def __add__(self, other):
        return Macs(self.weights + other.weights, self.attention + other.attention, self.first + other.first)

    def __mul__(self, times):
        return Macs(self.weights * times, self.attention * times, self.first * times)

    __rmul__ = __mul__

    @property
    def forward(self):
        return self.weights + self.attention

    def backward(self, *, fused):
        """Each product has two in its backward: the gradient of either side.

        Fused attention keeps no weights of its forward: it computes them again, 5 products where the forward had 2
        (Dao et al. 2022, appendix B.2).
        """
        return 2 * self.weights - self.first + int(self.attention * (Fraction(5, 2) if fused else 2))


def linear(words, *widths):
    """One layer after the other: from the first width to the second, and so on."""
    return Macs(sum(words * a * b for a, b in itertools.pairwise(widths)))


def attention(batch, queries, keys, width):
    """Queries by keys and weights by values; `width` is that of all query heads together."""
    return Macs(attention=2 * batch * queries * keys * width)


def encoder_layer(batch, length, width, hidden):
    """Query, key, value and output of the same width, and a feed-forward layer of two products."""
    words = batch * length
    return (
        linear(words, width, width) * 4 + attention(batch, length, length, width) + linear(words, width, hidden, width)
    )


def bert(batch, length, *, layers, width, hidden, vocabulary):
    """With the head that predicts masked words: a layer of its own, then the vocabulary."""
    return layers * encoder_layer(batch, length, width, hidden) + linear(batch * length, width, width, vocabulary)


def gpt2(batch, length, *, layers, width, vocabulary):
    return layers * encoder_layer(batch, length, width, 4 * width) + linear(batch * length, width, vocabulary)


def grouped_attention(batch, queries, keys, width, *, heads, key_heads, head):
    """Attention with its four products, where fewer heads have keys and values; all `queries` are new words."""
    words = batch * queries
    return (
        linear(words, width, heads * head, width)
        + linear(words, width, key_heads * head) * 2
        + attention(batch, queries, keys, heads * head)
    )


def llama(batch, queries, *, keys=None, scored=None, layers, width, hidden, vocabulary, **heads):
    """`keys`: the words seen so far, with those in the cache. `scored`: words whose logits are made; None: all."""
    layer = grouped_attention(batch, queries, keys or queries, width, **heads)
    layer += linear(batch * queries, width, hidden) * 3  # gate, up and down
    return layers * layer + linear(batch * (scored or queries), width, vocabulary)


def mixtral(batch, length, *, layers, width, hidden, vocabulary, experts, chosen, **heads):
    """Each word goes to `chosen` of the experts, each a gated feed-forward layer."""
    layer = grouped_attention(batch, length, length, width, **heads)
    layer += linear(batch * length, width, experts) + linear(batch * length * chosen, width, hidden) * 3
    return layers * layer + linear(batch * length, width, vocabulary)


def t5(batch, length, answer, *, layers, width, inner, hidden, vocabulary):
    """Encoder and decoder of as many layers; `inner` is the width of all heads together, the feed-forward not gated."""
    queries, answered = batch * length, batch * answer
    encoder = linear(queries, width, inner) * 4 + attention(batch, length, length, inner)
    encoder += linear(queries, width, hidden, width)
    decoder = linear(answered, width, inner) * 4 + attention(batch, answer, answer, inner)
    decoder += linear(answered, width, inner) * 2 + linear(queries, width, inner) * 2
    decoder += attention(batch, answer, length, inner) + linear(answered, width, hidden, width)
    return layers * (encoder + decoder) + linear(answered, width, vocabulary)


def whisper(batch, frames, answer, *, bands, layers, width, hidden, vocabulary):
    """Two convolutions of 3 over the frames, the second with stride 2; then as T5."""
    heard = frames // 2
    first = batch * frames * 3 * bands * width
    convolutions = Macs(first + batch * heard * 3 * width * width, first=first)
    answered = batch * answer
    decoder = encoder_layer(batch, answer, width, hidden)
    decoder += linear(answered, width, width) * 2 + linear(batch * heard, width, width) * 2
    decoder += attention(batch, answer, heard, width)
    layer = encoder_layer(batch, heard, width, hidden) + decoder
    return convolutions + layers * layer + linear(answered, width, vocabulary)


def mamba(batch, length, *, layers, width, inner, state, rank, kernel, vocabulary):
    """The scan, step by step, has one product: the state by C. What makes the state is elementwise."""
    words = batch * length
    layer = linear(words, width, 2 * inner) + linear(words, inner, rank + 2 * state) + linear(words, rank, inner)
    # One kernel for each channel; padded on both sides, what stands after the sequence is cut off.
    layer += Macs(batch * (length + kernel - 1) * inner * kernel)
    layer += Macs(words * inner * state) + linear(words, inner, width)
    return layers * layer + linear(words, width, vocabulary)


# ---- images


def patches(batch, per_side, patch, width):
    macs = batch * per_side**2 * 3 * patch**2 * width
    return Macs(macs, first=macs)


def vit(batch, *, size, patch, layers, width, classes):
    """One word for each patch, and one for the class, which alone is classified."""
    length = (size // patch) ** 2 + 1
    return (
        patches(batch, size // patch, patch, width)
        + layers * encoder_layer(batch, length, width, 4 * width)
        + linear(batch, width, classes)
    )


def swin(batch, *, size, window, depths, width, classes):
    """Attention within windows; between the stages four neighbours become one word of twice the width."""
    side = size // 4
    macs = patches(batch, side, 4, width)
    for stage, depth in enumerate(depths):
        if stage > 0:
            side //= 2
            macs += linear(batch * side**2, 4 * width, 2 * width)
            width *= 2
        macs += depth * encoder_layer(batch * (side // window) ** 2, window**2, width, 4 * width)
    return macs + linear(batch, width, classes)


def convnext(batch, *, size, depths, widths, classes):
    """Depthwise 7x7 and two products per block; a convolution of 2x2 halves each side between the stages."""
    side = size // 4
    macs = patches(batch, side, 4, widths[0])
    for stage, (depth, width) in enumerate(zip(depths, widths, strict=True)):
        if stage > 0:
            side //= 2
            macs += Macs(batch * side**2 * 4 * widths[stage - 1] * width)
        macs += depth * (Macs(batch * side**2 * 49 * width) + linear(batch * side**2, width, 4 * width, width))
    return macs + linear(batch, widths[-1], classes)
