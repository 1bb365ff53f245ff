"""calflops' replacement beside calflops itself, the figures of its manual, and what it misses or breaks."""

from types import SimpleNamespace

import pytest
import torch
import torchvision
from replaced_layers import Calls
from replaced_tools import original
from replacements import small_cnn
from torch import nn
from torch.nn import functional as F

from roofprof.compat import calflops as ours
from roofprof.compat.calflops import calculate_flops, generate_transformer_input

pytestmark = [
    pytest.mark.integration,
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::roofprof.compat.ConventionWarning"),
]


def figures(model, *args, module=ours, **options):
    options = {"print_results": False, "output_as_string": False} | options
    return module.calculate_flops(model, args=list(args), **options)


@pytest.mark.usefixtures("uninitialised")
def test_the_manuals_examples():
    alexnet = calculate_flops(torchvision.models.alexnet(), (1, 3, 224, 224), print_results=False, output_precision=4)
    assert alexnet == ("1.4297 GFLOPS", "714.188 MMACs", "61.1008 M")
    vgg16 = calculate_flops(torchvision.models.vgg16(), (1, 3, 224, 224), print_results=False, output_precision=3)
    assert vgg16 == ("30.974 GFLOPS", "15.47 GMACs", "138.358 M")


def test_options_are_the_originals():
    theirs = original("calflops.flops_counter")
    for options in (
        {"include_backPropagation": True},
        {"include_backPropagation": True, "compute_bp_factor": 3.0, "output_as_string": True},
        {"ignore_modules": [nn.ReLU, nn.Conv2d]},
        {"kwargs": {"input": torch.rand(2, 3, 9, 9)}, "output_as_string": True, "output_unit": "G"},
    ):
        args = [] if "kwargs" in options else [torch.rand(2, 3, 9, 9)]
        assert figures(small_cnn(), *args, **options) == figures(small_cnn(), *args, module=theirs, **options)


def test_only_what_is_not_zero_counts_where_that_is_requested():
    model = nn.Sequential(nn.Linear(8, 4, bias=False), nn.ReLU(), nn.Linear(4, 2, bias=False))
    model[0].weight.data[:2] = 0
    model[2].weight.data.fill_(1)
    for sparse, first in ((True, 16), (False, 32)):
        expected = (2 * 3 * (first + 8) + 3 * 4, 3 * (first + 8), first + 8)
        assert figures(model, torch.rand(3, 8), is_sparse=sparse) == expected


# ---- language models


def tokenizer():
    """Two special tokens around a text, as BERT's."""

    class Tokenizer(SimpleNamespace):
        def __call__(self, text, **_):
            return {"input_ids": [101, 102], "token_type_ids": [0, 0], "attention_mask": [1, 1]}

        encode_plus = __call__

    return Tokenizer(pad_token_id=7)


def test_a_tokenizers_input_equals_the_original():
    for shape in ((2, 5), None):
        ours_made = generate_transformer_input(tokenizer(), shape, "cpu")
        made = original("calflops.flops_counter").generate_transformer_input(tokenizer(), shape, "cpu")
        assert ours_made.keys() == made.keys()
        assert all(torch.equal(ours_made[name], made[name]) for name in made)
    with pytest.raises(ValueError, match="2 tokens, more than the 1 asked for"):
        generate_transformer_input(tokenizer(), (1, 1), "cpu")


def test_a_language_model_by_its_shape_alone():
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=110, n_positions=32)
    model = transformers.GPT2LMHeadModel(config)
    products = 2 * (4 * 16 * 16 + 2 * 16 * 64) + 16 * 110
    attention = 2 * 2 * 5 * 16  # layers, QK^T and PV, keys of each token, all heads
    assert figures(model, input_shape=(2, 5))[1] == 2 * 5 * (products + attention)
    made = generate_transformer_input(tokenizer(), (2, 5), "cpu")
    named = {name: made[name] for name in ("input_ids", "attention_mask")}
    assert figures(model, kwargs=named)[1] == figures(model, input_shape=(2, 5))[1]


def test_generate_counts_all_its_calls():
    class Generates(nn.Linear):
        def generate(self, x, times):
            for _ in range(times):
                x = self(x)
            return x

    model = Generates(4, 4, bias=False)
    assert figures(model, torch.rand(3, 4), kwargs={"times": 5}, forward_mode="generate")[1] == 5 * 3 * 16
    with pytest.raises(TypeError, match=r"Linear has no generate\(\) to call"):
        figures(nn.Linear(4, 4), torch.rand(3, 4), forward_mode="generate")


def test_what_the_original_gets_wrong():
    x = torch.rand(5, 3, 4)
    for function, flops_and_macs in (
        (lambda x: torch.bmm(x, x.mT), (2 * 180, 5 * 3 * 3 * 4)),
        (lambda x: torch.add(x, x[0]), (60, 0)),
        (lambda x: F.interpolate(x, scale_factor=2), (120, 0)),
    ):
        assert figures(Calls(function), x)[:2] == flops_and_macs
    grouped = nn.ConvTranspose1d(4, 6, 3, groups=2)
    assert figures(grouped, torch.rand(1, 4, 5))[:2] == (2 * 5 * 4 * 3 * 3 + 6 * 7, 5 * 4 * 3 * 3)
