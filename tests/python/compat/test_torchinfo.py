"""torchinfo's replacement beside torchinfo itself, closed forms, and what torchinfo refuses or misses."""

from __future__ import annotations

import pytest
import torch
import torchvision
from models import LeNet
from replaced_layers import Calls
from replacements import nothing_left_on
from torch import nn
from torch.nn.utils import prune

from roofprof.compat import torchinfo as ours

pytestmark = [
    pytest.mark.integration,
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::roofprof.compat.ConventionWarning"),
]


@pytest.fixture
def original():
    return pytest.importorskip("torchinfo")


def quiet(model, **options):
    return ours.summary(model, verbose=0, **options)


def mlp():
    return nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.PReLU(), nn.Linear(6, 3, bias=False))


class Repeats(nn.Module):
    """A layer called twice, and a list that is never called."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.rest = nn.ModuleList([nn.Linear(4, 4), nn.LayerNorm(4)])
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        x = self.first(self.first(x)) * self.scale
        for layer in self.rest:
            x = layer(x)
        return x


MODELS = {
    "lenet": (LeNet, (2, 1, 32, 32)),
    "mlp": (mlp, (5, 8)),
    "repeats": (Repeats, (3, 4)),
    "mobilenet_v2": (torchvision.models.mobilenet_v2, (2, 3, 64, 64)),
    "lstm": (lambda: nn.LSTM(4, 5, 2, bidirectional=True), (7, 2, 4)),
    "a batch dimension put in": (LeNet, (1, 32, 32)),
}
SUMS = ("total_params", "trainable_params", "total_mult_adds", "total_output_bytes", "total_param_bytes", "input_size")
LINE = ("class_name", "depth", "input_size", "output_size", "num_params", "trainable", "is_recursive", "executed")


@pytest.mark.parametrize("name", MODELS)
def test_models_equal_the_original(name, original):
    build, size = MODELS[name]
    model, options = build(), {"input_size": size, "verbose": 0}
    if name == "a batch dimension put in":
        options["batch_dim"] = 0
    mine, theirs = (summary(model, **options) for summary in (ours.summary, original.summary))
    # The bytes of a parameter that a container holds itself are left out by the original.
    sums = [each for each in SUMS if (name, each) != ("repeats", "total_param_bytes")]
    assert {each: getattr(mine, each) for each in sums} == {each: getattr(theirs, each) for each in sums}
    lines = [[[getattr(each, what) for what in LINE] for each in found.summary_list] for found in (mine, theirs)]
    assert lines[0] == lines[1]


def test_settings_and_pruned_weights_are_the_originals(original):
    for name in ("ColumnSettings", "Mode", "RowSettings", "Units", "Verbosity"):
        mine, theirs = (
            {key: each.value for key, each in getattr(module, name).__members__.items()} for module in (ours, original)
        )
        assert mine == theirs
    model = mlp()
    prune.random_unstructured(model[0], "weight", amount=0.5)
    assert quiet(model).total_params == original.summary(model, verbose=0).total_params == 24 + 6 + 12 + 1 + 18


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"input_size": (1, 2), "input_data": torch.rand(1, 2)}, RuntimeError),
        ({"col_names": ("output_size",)}, ValueError),
        ({"col_names": ("outputs",)}, ValueError),
        ({"col_width": 0}, ValueError),
        ({"mode": "fast"}, ValueError),
        ({"input_size": ()}, ValueError),
        ({"input_size": (1, -2)}, ValueError),
        ({"input_size": 3}, TypeError),
    ],
)
def test_what_makes_no_sense_is_refused_as_by_the_original(original, options, error):
    for summary in (original.summary, ours.summary):
        with pytest.raises(error):
            summary(nn.Linear(2, 2), **({"verbose": 0} | options))


# ---- closed forms, where the original is wrong

PACKED = nn.utils.rnn.pack_sequence([torch.rand(5, 3), torch.rand(2, 3)])
WORK = {
    "linear on three dimensions": (nn.Linear(4, 5), {"input_size": (2, 3, 4)}, 2 * 3 * 4 * 5 + 2 * 3 * 5),
    "an embedding multiplies nothing": (nn.Embedding(50, 4), {"input_data": torch.zeros(2, 3, dtype=torch.long)}, 0),
    "a transformer layer": (  # products, attention, norms
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, bias=False),
        {"input_size": (2, 5, 8)},
        10 * (4 * 8 * 8 + 2 * 8 * 16) + 2 * (2 * 5 * 5 * 8) + 2 * 2 * 8,
    ),
    "recurrent cells": (nn.LSTMCell(3, 5), {"input_size": (2, 3)}, 2 * (4 * 5 * (3 + 5) + 2 * 4 * 5)),
    "packed sequences": (nn.LSTM(3, 4), {"input_data": [PACKED]}, 7 * (4 * 4 * (3 + 4) + 2 * 4 * 4)),
    "meta": (nn.Conv2d(3, 4, 3, bias=False), {"input_size": (1, 3, 9, 9), "device": "meta"}, 4 * 49 * 27),
}


@pytest.mark.parametrize("work", WORK)
def test_mult_adds_are_the_closed_form(work):
    model, options, mult_adds = WORK[work]
    assert quiet(model, **options).total_mult_adds == mult_adds
    assert torch.backends.mha.get_fastpath_enabled()


def test_tied_parameters_count_once_and_lazy_ones_as_they_became():
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
    model[1].weight = model[0].weight
    assert quiet(model, input_size=(1, 4)).total_params == 16
    model = nn.Sequential(nn.LazyLinear(5), nn.LazyBatchNorm1d())
    assert quiet(model, input_size=(3, 4)).total_params == 25 + 10
    assert model[0].weight.shape == (5, 4)


def test_calls_of_one_layer_on_several_sizes_share_all_of_its_work():
    model = Calls(lambda x: (model.layer(x), model.layer(x[:1])))
    model.layer = nn.Linear(4, 5, bias=False)
    _, first, second = quiet(model, input_size=(3, 4)).summary_list
    assert (first.macs, second.macs) == (60, 20) and second.is_recursive


# ---- inputs and models that the original refuses


def test_numpy_arrays_and_several_inputs():
    model = Calls(lambda x, y: torch.as_tensor(x) @ y)
    for options, input_bytes in (
        ({"input_data": (torch.rand(2, 3).numpy(), torch.rand(3, 4))}, 4 * 18),
        ({"input_size": [(2, 3), (3, 4)]}, 4 * 18),
        ({"input_size": [(2, 3), (3, 4)], "dtypes": [torch.double] * 2}, 8 * 18),
    ):
        statistics = quiet(model, **options)
        assert (statistics.total_mult_adds, statistics.total_input) == (24, input_bytes)


@pytest.mark.parametrize("convert", [torch.jit.script, lambda model: torch.jit.trace(model, torch.rand(1, 3, 32, 32))])
def test_torchscript_counts_what_its_module_does(convert):
    script = quiet(convert(torchvision.models.resnet18().eval()), input_size=(1, 3, 32, 32))
    lines = {line.var_name: line for line in script.summary_list if line.depth == 1}
    assert lines["conv1"].macs == 16 * 16 * 64 * 3 * 49
    assert script.total_params == 11_689_512


def test_a_compiled_models_layers_have_their_own_work():
    model = torch.compile(nn.Sequential(nn.Linear(4, 5), nn.ReLU()), backend="eager")
    statistics = quiet(model, input_size=(3, 4))
    assert statistics.total_mult_adds == 3 * 20 + 3 * 5
    assert [line.macs for line in statistics.summary_list if line.class_name == "Linear"] == [75]


@pytest.mark.parametrize("options", [{"mode": "train"}, {"device": "meta"}])
def test_the_model_is_as_it_was(options):
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout())
    model[1].eval()
    with nothing_left_on(model):
        assert quiet(model, input_size=(3, 4), **options).total_mult_adds == 3 * 16 + 3 * 4 + 3 * 8


def test_a_cached_call_is_used_until_it_is_forgotten():
    ours.clear_cached_forward_pass()
    first, again = (
        quiet(nn.Linear(4, width), input_size=(3, 4), cache_forward_pass=True).total_mult_adds for width in (5, 9)
    )
    assert again == first
    ours.clear_cached_forward_pass()
    assert quiet(nn.Linear(4, 9), input_size=(3, 4), cache_forward_pass=True).total_mult_adds == 3 * 45
