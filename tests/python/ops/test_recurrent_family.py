"""Recurrent layers: each weight matrix is applied once for every sequence and time step, the same as cell by cell."""

import pytest
import torch
from torch import nn
from truths import assert_conserved, macs_by, observe

import roofprof

pytestmark = pytest.mark.usefixtures("one_thread")

STEPS, BATCH, INPUT, HIDDEN, PROJECTED = 5, 2, 4, 8, 3
GATES = {nn.LSTM: 4, nn.GRU: 3, nn.RNN: 1}
# After the products, for each hidden unit and step, two biases a gate included: LSTM adds up the products of 4 gates,
# 3 sigmoids of 4, 2 tanh, 3 multiplications and an addition; GRU two sums, 2 sigmoids, a tanh, then r * h, an addition,
# 1 - z, two products and a sum; RNN a sum and a tanh.
OTHERS = {nn.LSTM: 4 + 3 * 4 + 2 + 3 + 1 + 8, nn.GRU: 2 + 2 * 4 + 1 + 2 + 4 + 6, nn.RNN: 2 + 2}
CELLS = {nn.LSTM: nn.LSTMCell, nn.GRU: nn.GRUCell, nn.RNN: nn.RNNCell}
kinds = pytest.mark.parametrize("kind", GATES, ids=lambda kind: kind.__name__)


def matrices(layer):
    """Elements of all weight matrices: that many MACs a sequence and step."""
    return sum(parameter.numel() for parameter in layer.parameters() if parameter.dim() == 2)


def count(function, *args):
    report = roofprof.count(function, *args)
    assert not report.coverage.uncosted
    assert_conserved(report)
    return report.total


def first_of(output):
    output = output[0] if isinstance(output, tuple) else output
    return output.data if isinstance(output, nn.utils.rnn.PackedSequence) else output


def training_macs(layer, *args):
    report = observe(layer, lambda: first_of(layer(*args)).sum().backward())
    assert not report.coverage.uncosted
    assert_conserved(report)
    return macs_by(report, "phase")


# ---- forward


@kinds
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_layers(kind, layers, bidirectional, batch_first):
    layer = kind(INPUT, HIDDEN, layers, bidirectional=bidirectional, batch_first=batch_first)
    x = torch.rand(STEPS, BATCH, INPUT)
    total = count(layer, x.transpose(0, 1) if batch_first else x)
    directions = 2 if bidirectional else 1
    inputs = INPUT + (layers - 1) * directions * HIDDEN  # of all layers together
    macs = STEPS * BATCH * directions * GATES[kind] * HIDDEN * (inputs + layers * HIDDEN)
    assert total.macs == macs == STEPS * BATCH * matrices(layer)
    assert total.flops == 2 * macs + OTHERS[kind] * STEPS * BATCH * directions * layers * HIDDEN


@kinds
def test_bytes_are_inputs_weights_and_outputs_once(kind):
    layer = kind(INPUT, HIDDEN)
    total = count(layer, torch.rand(STEPS, BATCH, INPUT), *given_state(kind))
    states = (2 if kind is nn.LSTM else 1) * BATCH * HIDDEN
    weights = sum(parameter.numel() for parameter in layer.parameters())
    assert total.read_bytes == 4 * (STEPS * BATCH * INPUT + states + weights)
    assert total.write_bytes == 4 * (STEPS * BATCH * HIDDEN + states)


def given_state(kind, *, gradient=False):
    states = tuple(torch.rand(1, BATCH, HIDDEN, requires_grad=gradient) for _ in range(2))
    return [states if kind is nn.LSTM else states[0]]


@kinds
def test_packed_sequences_are_counted_step_by_step(kind):
    lengths = (5, 3, 2)
    sequences = nn.utils.rnn.pack_sequence([torch.rand(length, INPUT) for length in lengths])
    layer = kind(INPUT, HIDDEN, 2, bidirectional=True)
    assert count(layer, sequences).macs == sum(lengths) * matrices(layer)
    apart = sum(count(layer, torch.rand(length, 1, INPUT)).macs for length in lengths)
    assert apart == sum(lengths) * matrices(layer)


@kinds
@pytest.mark.parametrize("gradients", [False, True], ids=["inference", "training"])
def test_a_layer_is_its_cells(kind, gradients):
    layer, cell = kind(INPUT, HIDDEN), CELLS[kind](INPUT, HIDDEN)
    x = torch.rand(STEPS, BATCH, INPUT)

    def unrolled():
        state = None
        for now in x:
            state = cell(now, state)

    with torch.set_grad_enabled(gradients):
        assert count(layer, x).macs == count(unrolled).macs == STEPS * BATCH * matrices(cell)


# ---- backward


@kinds
@pytest.mark.parametrize("onednn", [False, True], ids=["native", "onednn"])
def test_backward_is_twice_the_forward_where_all_gradients_are_wanted(kind, onednn):
    layer = kind(INPUT, HIDDEN)
    x = torch.rand(STEPS, BATCH, INPUT, requires_grad=True)
    with torch.backends.mkldnn.flags(enabled=onednn):
        macs = training_macs(layer, x, *given_state(kind, gradient=True))
    forward = STEPS * BATCH * matrices(layer)
    assert macs == {"forward": forward, "backward": 2 * forward}


@kinds
def test_backward_step_by_step_leaves_out_what_is_not_wanted(kind):
    # Neither the input nor the first state wants a gradient. (oneDNN computes all of them, whoever asks.)
    layer = kind(INPUT, HIDDEN)
    with torch.backends.mkldnn.flags(enabled=False):
        macs = training_macs(layer, torch.rand(STEPS, BATCH, INPUT))
    of_input, of_state = (BATCH * GATES[kind] * HIDDEN * size for size in (INPUT, HIDDEN))
    assert macs["backward"] == 2 * macs["forward"] - STEPS * of_input - of_state


# ---- ops called by name
