"""torchinfo's replacement beside torchinfo itself, closed forms, and what torchinfo refuses or misses."""

from __future__ import annotations

import pytest
import torch
import torchvision
from models import LeNet
from replacements import nothing_left_on
from torch import nn

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


class Mlp(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.PReLU(), nn.Linear(6, 3, bias=False))


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
    "mlp": (Mlp, (5, 8)),
    "repeats": (Repeats, (3, 4)),
    "resnet18": (torchvision.models.resnet18, (2, 3, 64, 64)),
    "mobilenet_v2": (torchvision.models.mobilenet_v2, (2, 3, 64, 64)),
    "lstm": (lambda: nn.LSTM(4, 5, 2, bidirectional=True), (7, 2, 4)),
}
SUMS = ("total_params", "trainable_params", "total_mult_adds", "total_output_bytes", "total_param_bytes", "input_size")


def test_settings_are_the_originals(original):
    for name in ("ColumnSettings", "Mode", "RowSettings", "Units", "Verbosity"):
        members = {key: each.value for key, each in getattr(original, name).__members__.items()}
        assert {key: each.value for key, each in getattr(ours, name).__members__.items()} == members


@pytest.mark.parametrize("name", MODELS)
def test_models_equal_the_original(name, original):
    build, size = MODELS[name]
    model = build()
    mine, theirs = quiet(model, input_size=size), original.summary(model, input_size=size, verbose=0)
    # The bytes of a parameter that a container holds itself are left out by the original.
    sums = [each for each in SUMS if (name, each) != ("repeats", "total_param_bytes")]
    assert {each: getattr(mine, each) for each in sums} == {each: getattr(theirs, each) for each in sums}
    line = ("class_name", "depth", "input_size", "output_size", "num_params", "trainable", "is_recursive", "executed")
    assert [[getattr(each, what) for what in line] for each in mine.summary_list] == [
        [getattr(each, what) for what in line] for each in theirs.summary_list
    ]


def test_a_batch_dimension_is_put_in_as_the_original_does(original):
    options = {"input_size": (1, 32, 32), "batch_dim": 0}
    mine, theirs = quiet(LeNet(), **options), original.summary(LeNet(), verbose=0, **options)
    sizes = ("input_size", "output_size", "output_bytes")
    assert [[getattr(each, what) for what in sizes] for each in mine.summary_list] == [
        [getattr(each, what) for what in sizes] for each in theirs.summary_list
    ]


def test_pruned_weights_equal_the_original(original):
    from torch.nn.utils import prune

    model = Mlp()
    prune.random_unstructured(model[0], "weight", amount=0.5)
    mine, theirs = quiet(model), original.summary(model, verbose=0)
    assert mine.total_params == theirs.total_params == 24 + 6 + 12 + 1 + 18


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


def test_a_linear_layer_on_three_dimensions():
    statistics = quiet(nn.Linear(4, 5), input_size=(2, 3, 4))
    assert statistics.total_mult_adds == 2 * 3 * 4 * 5 + 2 * 3 * 5  # the original: 2 x 25


def test_an_embedding_multiplies_nothing():
    assert quiet(nn.Embedding(50, 4), input_data=torch.zeros(2, 3, dtype=torch.long)).total_mult_adds == 0


def test_a_transformer_layer():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, bias=False)
    statistics = quiet(layer, input_size=(2, 5, 8))
    products = 10 * (4 * 8 * 8 + 2 * 8 * 16) + 2 * (2 * 5 * 5 * 8)
    norms = 2 * 2 * 8
    assert statistics.total_mult_adds == products + norms
    assert torch.backends.mha.get_fastpath_enabled()


def test_recurrent_cells_and_packed_sequences():
    assert quiet(nn.LSTMCell(3, 5), input_size=(2, 3)).total_mult_adds == 2 * (4 * 5 * (3 + 5) + 2 * 4 * 5)
    packed = nn.utils.rnn.pack_sequence([torch.rand(5, 3), torch.rand(2, 3)])
    assert quiet(nn.LSTM(3, 4), input_data=[packed]).total_mult_adds == 7 * (4 * 4 * (3 + 4) + 2 * 4 * 4)


def test_tied_parameters_count_once():
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
    model[1].weight = model[0].weight
    assert quiet(model, input_size=(1, 4)).total_params == 16


def test_calls_of_one_layer_on_several_sizes_share_all_of_its_work():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 5, bias=False)

        def forward(self, x):
            return self.layer(x), self.layer(x[:1])

    _, first, second = quiet(Two(), input_size=(3, 4)).summary_list
    assert (first.macs, second.macs) == (60, 20) and second.is_recursive


# ---- inputs and outputs that the original refuses


def test_numpy_arrays_and_several_inputs():
    class Adds(nn.Module):
        def forward(self, x, y):
            return torch.as_tensor(x) @ y

    statistics = quiet(Adds(), input_data=(torch.rand(2, 3).numpy(), torch.rand(3, 4)))
    assert statistics.total_mult_adds == 24 and statistics.total_input == 4 * 18
    assert quiet(Adds(), input_size=[(2, 3), (3, 4)]).total_mult_adds == 24
    assert quiet(Adds(), input_size=[(2, 3), (3, 4)], dtypes=[torch.double] * 2).total_input == 8 * 18


@pytest.mark.parametrize("convert", [torch.jit.script, lambda model: torch.jit.trace(model, torch.rand(1, 3, 32, 32))])
def test_torchscript_counts_what_its_module_does(convert):
    model = torchvision.models.resnet18().eval()
    script = quiet(convert(model), input_size=(1, 3, 32, 32))
    lines = {line.var_name: line for line in script.summary_list if line.depth == 1}
    assert lines["conv1"].macs == 16 * 16 * 64 * 3 * 49
    assert script.total_params == 11_689_512


def test_the_meta_device():
    statistics = quiet(torchvision.models.resnet18(), input_size=(1, 3, 224, 224), device="meta")
    assert (
        statistics.total_mult_adds == quiet(torchvision.models.resnet18(), input_size=(1, 3, 224, 224)).total_mult_adds
    )


def test_a_compiled_models_layers_have_their_own_work():
    model = torch.compile(nn.Sequential(nn.Linear(4, 5), nn.ReLU()), backend="eager")
    statistics = quiet(model, input_size=(3, 4))
    assert statistics.total_mult_adds == 3 * 20 + 3 * 5
    assert [line.macs for line in statistics.summary_list if line.class_name == "Linear"] == [75]


def test_a_lazy_model_has_its_sizes_afterwards():
    model = nn.Sequential(nn.LazyLinear(5), nn.LazyBatchNorm1d())
    statistics = quiet(model, input_size=(3, 4))
    assert statistics.total_params == 25 + 10 and model[0].weight.shape == (5, 4)


# ---- nothing is left behind


@pytest.mark.parametrize("options", [{"mode": "train"}, {"device": "meta"}])
def test_the_model_is_as_it_was(options):
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout())
    model[1].eval()
    with nothing_left_on(model):
        assert quiet(model, input_size=(3, 4), **options).total_mult_adds == 3 * 16 + 3 * 4 + 3 * 8


def test_a_cached_call_is_used_until_it_is_forgotten():
    ours.clear_cached_forward_pass()
    first = quiet(nn.Linear(4, 5), input_size=(3, 4), cache_forward_pass=True)
    again = quiet(nn.Linear(4, 9), input_size=(3, 4), cache_forward_pass=True)
    assert again.total_mult_adds == first.total_mult_adds
    ours.clear_cached_forward_pass()
    assert quiet(nn.Linear(4, 9), input_size=(3, 4), cache_forward_pass=True).total_mult_adds == 3 * 45
