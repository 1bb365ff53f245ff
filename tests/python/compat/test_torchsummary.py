"""torchsummary's replacement beside torchsummary itself, closed forms, and what torchsummary refuses or misses."""

from __future__ import annotations

import pytest
import torch
import torchvision
from models import LeNet
from replaced_layers import Calls
from torch import nn

from roofprof.compat.torchsummary import summary_string

pytestmark = [
    pytest.mark.integration,
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::roofprof.compat.ConventionWarning"),
]


@pytest.fixture
def original():
    return pytest.importorskip("torchsummary.torchsummary").summary


def lines(model, size, **options):
    """The cells of the layers' lines, and the rest by name."""
    text, _ = summary_string(model, size, **options)
    table, _, rest = text.partition("\n\n")
    return [line.split() for line in table.splitlines()[2:]], dict(line.split(": ") for line in rest.splitlines())


def lines_of_the_original(printed):
    _, _, _, *rest = printed.splitlines()
    end = rest.index("=" * 64)
    return [line.split() for line in rest[:end]], dict(line.split(": ") for line in rest[end:] if ": " in line)


# ---- beside the original

MODELS = {
    "lenet": (LeNet, (1, 32, 32)),
    "mlp": (lambda: nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.PReLU(), nn.Linear(6, 3, bias=False)), (8,)),
    "resnet18": (torchvision.models.resnet18, (3, 64, 64)),
    "frozen mobilenet_v2": (lambda: torchvision.models.mobilenet_v2().requires_grad_(False), (3, 64, 64)),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("batch_size", [-1, 16])
def test_models_have_the_figures_of_the_original(name, batch_size, original, capsys):
    build, size = MODELS[name]
    model = build()
    original(model, size, batch_size, device="cpu")
    assert lines(model, size, batch_size=batch_size) == lines_of_the_original(capsys.readouterr().out)


# ---- closed forms, where the original is wrong or stops


def test_all_parameters_count():
    model = Calls(lambda x: model.attention(*3 * [model.lstm(x * model.one)[0]]))
    model.lstm = nn.LSTM(3, 5, batch_first=True)
    model.attention = nn.MultiheadAttention(5, 1, batch_first=True)
    layers, rest = lines(model, (7, 3))
    lstm, attention = 4 * 5 * (3 + 5 + 2), 4 * 5 * 5 + 4 * 5
    assert [layer[-1] for layer in layers] == [str(lstm), str(attention)]
    assert rest["Total params"] == rest["Trainable params"] == str(1 + lstm + attention)
    # (2 + 2) results: sequences and states, sequences and weights
    assert rest["Forward/backward pass size (MB)"] == f"{2 * 4 * (35 + 5 + 5 + 35 + 49) / 1024**2:.2f}"


def test_a_layer_that_is_called_twice_has_its_parameters_once_and_a_model_of_one_layer_a_line():
    model = Calls(lambda x: model.layer(model.layer(x)))
    model.one, model.layer = None, nn.Linear(4, 4)
    layers, rest = lines(model, (4,))
    assert layers == [["Linear-1", "[-1,", "4]", "20"], ["Linear-2", "[-1,", "4]", "20"]]
    assert rest["Total params"] == "20"
    layers, rest = lines(nn.Linear(4, 5), (4,))
    assert layers == [["Linear-1", "[-1,", "5]", "25"]] and rest["Total params"] == "25"


@pytest.mark.parametrize(
    ("options", "mebibytes"),
    [({}, "2.00"), ({"dtypes": [torch.half, torch.half]}, "1.00"), ({"batch_size": 3}, "6.00")],
)
def test_several_inputs_and_dtypes_add_up(options, mebibytes):
    mebi = 1024**2 // 4
    _, rest = lines(Calls(lambda x, y: x + y), [(mebi,), (mebi,)], **options)
    assert rest["Input size (MB)"] == mebibytes
    if not options:  # twice the one output beside both inputs
        assert rest["Estimated Total Size (MB)"] == "4.00"


@pytest.mark.parametrize("convert", [torch.jit.script, lambda model: torch.jit.trace(model, torch.rand(2, 1, 32, 32))])
def test_torchscript_has_its_modules_lines(convert):
    script, plain = (lines(model, (1, 32, 32)) for model in (convert(LeNet().eval()), LeNet().eval()))
    assert sorted(layer[-1] for layer in script[0]) == sorted(layer[-1] for layer in plain[0])
    assert script[1]["Total params"] == plain[1]["Total params"]
