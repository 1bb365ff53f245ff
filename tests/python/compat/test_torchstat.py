"""torchstat's replacement beside torchstat's formulas, its recorded figures and closed forms.

torchstat 0.0.7 itself runs with no NumPy and pandas of today, so its functions are asked layer by layer.
"""

from collections import defaultdict

import pytest
import torch
import torchvision
from replaced_layers import Calls
from torch import nn
from torch.nn import functional as F

from roofprof.compat.torchstat import ModelStat, stat

pytestmark = [
    pytest.mark.integration,
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::roofprof.compat.ConventionWarning"),
]


@pytest.fixture
def torchstat():
    return pytest.importorskip("torchstat")


def rows(model, size=None, granularity=1, **options):
    return {row.name: row for row in ModelStat(model, size, granularity, **options).rows()}


# ---- the published layer


def test_a_convolution_has_the_published_figures():
    layer = nn.Conv2d(3, 48, 6, stride=2, padding=2)
    row = rows(nn.Sequential(layer), (3, 384, 1280))["0"]
    assert (row.params, round(row.memory_mib, 2)) == (5232, 22.52)
    assert (row.madd, row.flops) == (1_274_019_840, 642_908_160)
    assert (row.read_bytes, row.write_bytes, row.bytes) == (5_919_168, 23_592_960, 29_512_128)
    assert (row.input_shape, row.output_shape, row.duration) == ((3, 384, 1280), (48, 192, 640), 1)


# ---- beside the original's formulas

CNN = (nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8, affine=False), nn.ReLU6(), nn.AvgPool2d(2), nn.Conv2d(8, 4, 1))
MODELS = {
    "resnet18": (torchvision.models.resnet18, (3, 64, 64)),
    "mobilenet_v2": (torchvision.models.mobilenet_v2, (3, 64, 64)),
    "vgg11_bn": (torchvision.models.vgg11_bn, (3, 64, 64)),
    "cnn": (lambda: nn.Sequential(*CNN, nn.PReLU(), nn.LeakyReLU(), nn.MaxPool2d((2, 1)), nn.Softmax(1)), (3, 9, 9)),
    "mlp": (lambda: nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.ELU(), nn.Linear(5, 2, bias=False)), (3, 2, 2)),
    "transposed": (lambda: nn.Sequential(nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2, bias=False)), (4, 5, 5)),
}


def formulas(torchstat, model, size):
    """What the original's functions give for each call of each layer, added up."""
    sums = defaultdict(lambda: [0, 0, 0, 0, 0])
    names = {module: name for name, module in model.named_modules()}

    def after(module, args, output):
        madd, flops = (getattr(torchstat, f"compute_{what}")(module, args[0], output) for what in ("madd", "flops"))
        read, written = torchstat.compute_memory(module, args[0], output)
        figures = [madd, flops, 4 * read, 4 * written, output[0].numel()]
        sums[names[module]] = [int(one + other) for one, other in zip(sums[names[module]], figures, strict=True)]

    handles = [module.register_forward_hook(after) for module in model.modules() if not list(module.children())]
    model.eval()(torch.rand(1, *size))
    for handle in handles:
        handle.remove()
    return sums


@pytest.mark.parametrize("name", MODELS)
def test_models_equal_the_originals_formulas(name, torchstat):
    build, size = MODELS[name]
    model = build()
    expected = formulas(torchstat, model, size)
    observed = rows(model, size, parameter_memory=False)
    assert {name: row.madd for name, row in observed.items()} == {name: each[0] for name, each in expected.items()}
    if name != "transposed":  # torchstat has a rule for its MAdd alone
        ours = {name: [row.flops, row.read_bytes, row.write_bytes] for name, row in observed.items()}
        assert ours == {name: each[1:4] for name, each in expected.items()}
    assert {name: row.memory_mib for name, row in observed.items()} == {
        name: pytest.approx(each[4] * 4 / 1024**2) for name, each in expected.items()
    }


def test_resnet18_has_the_published_totals(capsys):
    stat(torchvision.models.resnet18(), (3, 224, 224))
    printed = capsys.readouterr().out
    totals = dict(line.split(": ") for line in printed.splitlines() if line.startswith("Total"))
    assert totals["Total params"] == "11,689,512"
    assert {name: round(int(totals[f"Total {name}"].replace(",", "")) / 1e9, 2) for name in ("MAdd", "Flops")} == {
        "MAdd": 3.64,
        "Flops": 1.82,
    }
    assert "Counted as 0, as torchstat has no rule for them: AdaptiveAvgPool2d" in printed


# ---- where the original is wrong or refuses


def test_attention_and_layers_without_a_rule_count_their_macs():
    class Attends(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(8, 24)
            self.mix = nn.Conv1d(5, 5, 1)

        def forward(self, x):
            q, k, v = self.qkv(x).chunk(3, -1)
            return self.mix(F.scaled_dot_product_attention(q, k, v))

    found = rows(Attends(), (5, 8))
    attention, mix = 2 * (5 * 5 * 8), 5 * 5 * 8
    assert {name: (row.madd, row.flops) for name, row in found.items()} == {
        "": (2 * attention, attention),
        "qkv": (2 * 5 * 8 * 24 - 5 * 24, 5 * 8 * 24),
        "mix": (2 * mix, mix),
    }
    assert found[""].bytes == 4 * (4 * 5 * 8)
    assert sum(row.duration for row in found.values()) == pytest.approx(1)


def test_a_layer_that_is_called_twice_counts_twice_and_upsampling_all_channels():
    layer = nn.Conv2d(4, 4, 1)
    found = rows(nn.Sequential(layer, layer), (4, 3, 3))
    assert sum(row.flops for row in found.values()) == 2 * (9 * 16 + 9 * 4)
    assert rows(nn.Sequential(nn.Upsample(scale_factor=2)), (3, 4, 4))["0"].flops == 3 * 8 * 8


def test_double_precision_moves_twice_the_bytes_and_frozen_parameters_are_read():
    frozen, double = (nn.Sequential(nn.Linear(4, 5)).requires_grad_(False) for _ in range(2))
    single, double = rows(frozen, (4,))["0"], rows(double.double(), (4,))["0"]
    assert single.read_bytes == 4 * (4 + 25)
    assert double.bytes == 2 * single.bytes and double.memory_mib == 2 * single.memory_mib


def test_compiled_and_exported_models_have_their_rows():
    inner = nn.Sequential(nn.Linear(4, 5), nn.ReLU())
    compiled = torch.compile(inner, backend="eager")
    for model, name in ((compiled, "0"), (nn.Sequential(compiled), "0.0")):
        found = rows(model, (4,))
        assert found[name].flops == 20 and sum(row.flops for row in found.values()) == 20 + 5
    x = torch.randn(2, 8)
    graph = torch.export.export(nn.Linear(8, 4, bias=False).eval(), (x,)).module()  # which keeps its mode
    assert sum(row.flops for row in rows(graph, inputs=x).values()) == 2 * 8 * 4


def test_parameters_count_once_and_those_of_a_container_itself_have_a_row():
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
    model[1].weight = model[0].weight
    assert [row.params for row in rows(model, (4,)).values()] == [16, 0]
    positioned = Calls(lambda x: positioned.layer(x + positioned.one))
    positioned.layer = nn.Linear(8, 4)
    found = rows(nn.Sequential(positioned), inputs=torch.randn(2, 8))
    assert {path: row.params for path, row in found.items()} == {"0": 1, "0.layer": 36}
    assert (found["0"].madd, found["0"].flops) == (0, 0)
