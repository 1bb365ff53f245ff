"""Quantized layers have the MACs of the float layers they came from, in integers, packed weights or not."""

import copy

import pytest
import torch
from torch import nn
from torch.ao import quantization
from torch.ao.nn import quantized
from torch.nn import functional as F
from truths import layer_macs, macs_by

import roofprof

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore"),  # torch.ao is deprecated, and says so in many ways
]


@torch.no_grad()
def count(function, *args):
    report = roofprof.count(function, *args)
    assert not report.coverage.uncosted
    return report


class Network(nn.Module):
    """A strided, a grouped and a depthwise convolution, and a linear layer."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.first = nn.Conv2d(3, 8, 3, stride=2)
        self.relu = nn.ReLU()
        self.second = nn.Conv2d(8, 8, 3, groups=2)
        self.third = nn.Conv2d(8, 8, (1, 3), groups=8)
        self.last = nn.Linear(8 * 5 * 3, 10)

    def forward(self, x):
        x = self.relu(self.first(self.quant(x)))
        return self.dequant(self.last(self.third(self.second(x)).flatten(1)))


def engines():
    return [engine for engine in torch.backends.quantized.supported_engines if engine != "none"]


@pytest.fixture(params=engines())
def engine(request):
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = request.param
    yield request.param
    torch.backends.quantized.engine = before


def test_static_quantization(engine):
    model, x = Network().eval(), torch.rand(2, 3, 16, 16)
    macs = layer_macs(model, x)
    small = copy.deepcopy(model)
    small.qconfig = quantization.get_default_qconfig(engine)
    quantization.fuse_modules(small, [["first", "relu"]], inplace=True)
    quantization.prepare(small, inplace=True)
    small(x)
    quantization.convert(small, inplace=True)
    report = count(small, x)
    assert macs_by(report, "module") == dict(macs)
    # For each output a requantization and a bias; relu behind the first.
    outputs = 2 * (8 * 7 * 7 + 8 * 5 * 5 + 8 * 5 * 3 + 10)
    assert sum(report.row(path).int_ops for path in macs) == 2 * sum(macs.values()) + 2 * outputs + 2 * 8 * 7 * 7
    # Weights of a byte each, the bias in floats; activations in bytes.
    row = report.row("second")
    assert row.write_bytes == 2 * 8 * 5 * 5
    assert row.read_bytes == 2 * 8 * 7 * 7 + 8 * 4 * 9 + 8 * 4


def test_kernels_of_different_size_are_distinguished():
    # A stride of 4 gives both the same results; only the packed weight differs.
    x = torch.quantize_per_tensor(torch.rand(1, 4, 7, 7), 0.1, 0, torch.quint8)
    wide, narrow = (quantized.Conv2d(4, 6, kernel, stride=4) for kernel in (3, 2))
    assert wide(x).shape == narrow(x).shape
    assert count(lambda: (wide(x), narrow(x))).total.macs == 6 * 2 * 2 * 4 * (9 + 4)


@pytest.mark.parametrize(("dtype", "weight"), [(torch.qint8, 1), (torch.float16, 2)], ids=str)
def test_dynamic_quantization(dtype, weight):
    model, x = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), torch.rand(3, 8)
    macs = layer_macs(model, x)
    report = count(quantization.quantize_dynamic(model, {nn.Linear}, dtype=dtype), x)
    assert macs_by(report, "module") == dict(macs)
    row = report.row("0")
    assert (row.params, row.param_bytes) == (16 * 8 + 16, weight * 16 * 8 + 4 * 16)
    # Bytes are multiplied and requantized, halves multiplied; a bias each.
    integers = dtype == torch.qint8
    assert row.int_ops == (2 * macs["0"] + 2 * 3 * 16 if integers else 0)
    assert row.flops_by_dtype == ({} if integers else {"fp16": 2 * macs["0"] + 3 * 16})
    assert (row.read_bytes, row.write_bytes) == (4 * 3 * 8 + weight * 16 * 8 + 4 * 16, 4 * 3 * 16)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_dynamic_recurrent_layers(kind, bidirectional):
    layer = kind(4, 8, 2, bidirectional=bidirectional)
    x = torch.rand(5, 2, 4)
    small = quantization.quantize_dynamic(nn.Sequential(layer), {kind}, dtype=torch.qint8)
    plain, report = count(layer, x), count(small, x)
    assert report.total.macs == plain.total.macs
    assert report.total.int_ops == 2 * plain.total.macs
    assert report.total.params == plain.total.params


# ---- by name


def scale_and_zero(channels):
    return torch.ones(channels), torch.zeros(channels, dtype=torch.int)


@pytest.mark.parametrize("groups", [1, 2])
def test_onednn_convolution(groups):
    x, weight = torch.ones(2, 4, 9, 9, dtype=torch.uint8), torch.ones(6, 4 // groups, 3, 3, dtype=torch.int8)
    shape = ([2, 2], [0, 0], [1, 1], groups)
    packed = torch.ops.onednn.qconv_prepack(weight, torch.ones(6), 0.1, 0, *shape, [2, 4, 9, 9])
    options = (None, *shape, 1.0, 0, torch.float32, "relu", [], "")
    report = count(lambda: torch.ops.onednn.qconv_pointwise(x, 0.1, 0, packed, *scale_and_zero(6), *options))
    macs = sum(layer_macs(nn.Conv2d(4, 6, 3, stride=2, groups=groups), x.float()).values())
    assert macs_by(report, "op") == {"onednn::qconv_pointwise": macs}
    assert F.conv2d(x.float(), weight.float(), stride=2, groups=groups).numel() * 9 * 4 // groups == macs


# ---- embeddings: rows in 8 or 4 bits


def small_table(bits):
    """A quantized table of 100 rows, and how long its packed rows are by torch's own packing."""
    layer = nn.Sequential(nn.Embedding(100, 16))
    suffix = "" if bits == 8 else "_4bit"
    pack = getattr(torch.ops.quantized, "embedding_bag_byte_prepack" if bits == 8 else "embedding_bag_4bit_prepack")
    row = pack(layer[0].weight.detach()).shape[1]
    layer[0].qconfig = getattr(quantization, f"float_qparams_weight_only_qconfig{suffix}")
    table = quantization.convert(quantization.prepare(layer.eval()))
    if bits == 4:  # torch's Embedding forgets it when it is converted
        table[0].dtype = table[0]._packed_params.dtype = torch.quint4x2
    return table, row


@pytest.mark.parametrize("bits", [8, 4])
def test_quantized_embeddings(bits):
    model, row = small_table(bits)
    indices = torch.arange(120).view(4, 30) % 100
    report = count(model, indices)
    # No row is read twice: 100 of them.
    assert report.total.read_bytes == 100 * row + 8 * 120
    assert report.total.write_bytes == 4 * 120 * 16
    assert report.total.flops == 2 * 120 * 16
    for form in (model, torch.jit.script(model)):
        row = count(form, indices).row("0")
        assert (row.params, row.param_bytes) == (100 * 16, 100 * 16 * bits // 8)
        assert not count(form, indices).coverage.uncalled_modules
