"""The tree of a model: paths, types, sizes."""

from __future__ import annotations

import random
import sys
from types import SimpleNamespace

import pytest
import torch
from attributed import Model
from torch import nn

import roofprof
from roofprof.models.tree import changed_facts, notes_on
from roofprof.models.walk import model_tree

SIZES = ("params", "trainable_params", "param_bytes", "buffer_bytes")


def paths(model) -> list[str]:
    """Behind the model, what is outside of it and the optimizer."""
    first, *others = [facts["path"] for facts in model_tree(model).modules]
    assert (first, others[:2]) == ("", ["(outside)", "(optimizer)"])
    return others[2:]


def sizes(model, names=SIZES):
    return {facts["path"]: tuple(facts[name] for name in names) for facts in model_tree(model).modules}


def test_paths_are_those_of_named_modules_for_every_model_without_shared_modules():
    with torch.device("meta"):
        model = nn.Transformer(16, 2, 2, 2, 32)
    tree = model_tree(model)
    assert paths(model) == [name for name, _ in model.named_modules()][1:]
    assert [facts["parent"] for facts in tree.modules[:3]] == [-1, -1, -1]
    assert tree.objects[1:3] == [None, None]
    for place, facts in enumerate(tree.modules[3:], 3):
        assert facts["parent"] < place
        assert facts["path"].rpartition(".")[0] == tree.modules[facts["parent"]]["path"]


def test_what_has_several_names_or_none():
    shared = nn.Linear(2, 2)
    model = nn.Sequential(nn.Sequential(shared), nn.Sequential(shared), shared)
    assert paths(model) == ["0", "0.0", "1", "1.0", "2"]
    assert paths(nn.ModuleDict({"a": shared, "b": shared})) == ["a"]  # under one parent the same place
    model = nn.Sequential(nn.Linear(2, 2))
    model[0].back = model  # it contains itself
    model.register_module("nothing", None)
    assert paths(model) == ["0"]


def test_forward_of_its_own():
    with_its_own = nn.Module()
    with_its_own.forward = lambda value: value
    found = [nn.ModuleList(), nn.ModuleDict(), nn.ParameterList(), nn.Module(), nn.Sequential(), with_its_own]
    has_forward = [facts["has_forward"] for facts in model_tree(nn.ModuleList(found)).modules[3:]]
    assert has_forward == [False] * 4 + [True] * 2


def test_sizes():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4).double(), nn.Linear(4, 3, bias=False).half())
    model[0].bias.requires_grad_(False)
    assert sizes(model) == {
        "": (16 + 8 + 12, 12 + 8 + 12, 64 + 64 + 24, 72),
        "(outside)": (0, 0, 0, 0),
        "(optimizer)": (0, 0, 0, 0),
        "0": (16, 12, 64, 0),
        "1": (8, 8, 64, 8 * 8 + 8),
        "2": (12, 12, 24, 0),
    }


def test_each_tensor_counts_once_in_every_subtree_of_any_tree():
    """Random trees whose modules share parameters, buffers and modules, against the sets of each subtree."""
    chance = random.Random(5)
    for _ in range(100):
        parameters = [nn.Parameter(torch.ones(n + 1), requires_grad=n % 2 == 0) for n in range(4)]
        buffers = [torch.ones(n + 1) for n in range(3)]
        modules = [nn.Module() for _ in range(chance.randint(1, 10))]
        for number, module in enumerate(modules):
            for name in range(chance.randint(0, 3)):
                module.register_parameter(f"p{name}", chance.choice(parameters))
            for name in range(chance.randint(0, 2)):
                module.register_buffer(f"b{name}", chance.choice(buffers))
            for name in range(min(number, chance.choice([1, 1, 1, 2]))):
                chance.choice(modules[:number]).add_module(f"m{number}_{name}", module)
        tree = model_tree(modules[0])
        for facts, module in zip(tree.modules, tree.objects, strict=True):
            held = [] if module is None else [*module.parameters()]  # torch's: each once
            assert facts["params"] == sum(p.numel() for p in held)
            assert facts["trainable_params"] == sum(p.numel() for p in held if p.requires_grad)
            assert facts["param_bytes"] == 4 * facts["params"]
            assert facts["buffer_bytes"] == 4 * sum(b.numel() for b in (module.buffers() if module else ()))


def test_lazy_sizes_are_not_known_before_the_first_call():
    model = nn.Sequential(nn.LazyLinear(4))
    tree = model_tree(model)
    assert (tree.modules[0]["params"], tree.modules[3]["type"]) == (0, "LazyLinear")
    assert changed_facts(tree, model_tree(model)) == {}
    model(torch.ones(2, 3))
    changed = changed_facts(tree, model_tree(model))
    assert {place: facts["type"] for place, facts in changed.items()} == {0: "Sequential", 3: "Linear"}
    assert [[facts[key] for key in SIZES] for facts in changed.values()] == [[16, 16, 64, 0]] * 2


def test_modules_that_come_later_are_noted():
    model = nn.Sequential(nn.Linear(2, 2))
    tree = model_tree(model)
    assert notes_on(tree, model_tree(model)) == []
    model.extend([nn.ReLU() for _ in range(5)])
    (note,) = notes_on(tree, model_tree(model))
    assert "(1, 2, 3, ...)" in note


def test_deeply_nested_modules():
    model = nn.Linear(2, 2)
    for _ in range(3_000):
        model = nn.Sequential(nn.Linear(2, 2), model)
    params = [facts["params"] for facts in model_tree(model).modules]
    assert len(params) == 3 + 2 * 3_000
    assert [*params[0:5], params[-1]] == [6 * 3_001, 0, 0, 6, 6 * 3_000, 6]


@pytest.mark.parametrize(("depth", "is_known"), [(250, True), (300, False)])
def test_boundaries_are_known_of_trees_that_are_not_too_deep(depth, is_known):
    model = nn.Linear(2, 2, bias=False)
    for _ in range(depth):
        model = Model(lambda self, x: self.inner(x), inner=model)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    try:
        total = roofprof.count(model, torch.ones(1, 2)).total
    finally:
        sys.setrecursionlimit(limit)
    assert (total.macs, total.params) == (4, 4)
    assert total.fused_bytes == (4 * (2 + 4 + 2) if is_known else None)


# ---- weights that packages hold in other tensors


class Quantized(torch.Tensor):
    """A float weight that is held as bytes with a scale for each row, as torchao's are."""

    @staticmethod
    def __new__(cls, values, scales):
        return torch.Tensor._make_wrapper_subclass(cls, values.shape, dtype=torch.float32)

    def __init__(self, values, scales):
        self.values_, self.scales_ = values, scales

    def __tensor_flatten__(self):
        return ["values_", "scales_"], None

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        if function is torch.ops.aten.detach.default:
            return cls(args[0].values_, args[0].scales_)
        plain = [arg.values_ * arg.scales_ if isinstance(arg, cls) else arg for arg in args]
        return function(*plain, **(kwargs or {}))


def test_a_wrapping_tensor_is_as_large_as_what_it_holds():
    class Refuses(Quantized):
        def __tensor_flatten__(self):
            raise RuntimeError

    def quantized(rows, columns, kind=Quantized):
        return kind(torch.ones(rows, columns, dtype=torch.int8), torch.ones(rows, 1))

    model = nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 2, bias=False))
    model[0].weight = nn.Parameter(quantized(4, 8), requires_grad=False)
    model[1].register_buffer("kept", quantized(2, 4))
    report = roofprof.count(model, torch.ones(1, 8))
    held = 4 * 8 + 4 * 4  # int8 values, fp32 scales
    assert report.row("0").params == 4 * 8 + 4
    assert report.row("0").param_bytes == held + 4 * 4  # and the bias
    assert report.row("1").buffer_bytes == 2 * 4 + 2 * 4
    assert report.row("").param_bytes == report.row("0").param_bytes + 4 * 2 * 4
    layer = nn.Linear(8, 4, bias=False)
    layer.weight = nn.Parameter(quantized(4, 8, Refuses), requires_grad=False)
    assert model_tree(layer).modules[0]["param_bytes"] == 4 * 8 * 4  # whose parts cannot be read


class FourBits(nn.Parameter):
    """A weight as bitsandbytes has it: quantized at the first move, and then two of its values share a byte."""

    def __new__(cls, data, quant_state=None, *, bnb_quantized=False):
        weight = torch.Tensor._make_subclass(cls, data, False)
        weight.quant_state, weight.bnb_quantized, weight.module = quant_state, bnb_quantized, None
        return weight


def four_bit_linear(weight):
    layer = nn.Linear(64, 32)
    layer.weight = weight
    return layer


def packed_bytes(count, dtype=torch.uint8):
    return torch.zeros(count, dtype=torch.uint8).view(dtype).view(-1, 1)


KNOWN = ("params", "params_known", "param_bytes")


@pytest.mark.parametrize("storage", [torch.uint8, torch.bfloat16, torch.float32])
def test_weights_of_4_bits_count_as_what_they_are_unpacked(storage):
    weight = FourBits(packed_bytes(64 * 32 // 2, storage), SimpleNamespace(shape=torch.Size([32, 64])))
    found = sizes(nn.Sequential(four_bit_linear(weight)), KNOWN)
    assert found[""] == found["0"] == (64 * 32 + 32, True, 64 * 32 // 2 + 32 * 4)


def test_before_and_without_their_shape_such_weights_are_what_is_known():
    state = SimpleNamespace(shape=(32, 64))
    weights = {
        "not quantized yet": FourBits(torch.rand(32, 64)),
        "the layer has the state": FourBits(packed_bytes(1024), bnb_quantized=True),
        "half of one": FourBits(packed_bytes(512), state, bnb_quantized=True),
        "odd": FourBits(packed_bytes(5), SimpleNamespace(shape=(3, 3)), bnb_quantized=True),
        "no state": FourBits(packed_bytes(1024), bnb_quantized=True),
        "no state in bytes": FourBits(packed_bytes(1024)),
    }
    model = nn.ModuleDict({name: four_bit_linear(weight) for name, weight in weights.items()})
    weights["the layer has the state"].module = SimpleNamespace(quant_state=state)
    found = sizes(model, KNOWN)
    bias, known = 32, {"not quantized yet": 2048, "the layer has the state": 2048, "half of one": 1024, "odd": 9}
    assert {name: found[name][0] - bias for name in known} == known
    assert {name for name in weights if not found[name][1]} == weights.keys() - known
    assert not found[""][1]
    held = [2048 * 4, 1024, 512, 5, 1024, 1024]
    assert [found[name][2] - bias * 4 for name in weights] == held


def test_params_of_an_unknown_shape_are_not_reported():
    holds = Model(lambda self, x: x + 1, weight=FourBits(packed_bytes(8), bnb_quantized=True))
    report = roofprof.count(nn.Sequential(nn.Identity(), holds), torch.rand(2))
    assert (report.total.params, report.row("1").params, report.row("0").params) == (None, None, 0)
    (note,) = [note for note in report.coverage.notes if note.code == "params-not-known"]
    assert note.where == ["1"]


@pytest.mark.parametrize(
    ("name", "says", "in_a_buffer"),
    [
        ("W_q", {"meta": {"shape": (32, 64), "nbits": 4}}, False),
        ("weight_packed", {"in_features": 64, "out_features": 32}, False),
        ("qweight", {"in_features": 64, "out_features": 32}, True),
        ("qweight", {"infeatures": 64, "outfeatures": 32}, True),
    ],
)
def test_weights_packed_into_integers(name, says, in_a_buffer):
    """As HQQ, compressed-tensors, GPTQ and AWQ have them; of a buffer the bytes stay the buffer's."""
    layer, packed = nn.Module(), torch.zeros(32 * 64 // 8, dtype=torch.int32)
    if in_a_buffer:
        layer.register_buffer(name, packed)
    else:
        layer.register_parameter(name, nn.Parameter(packed, requires_grad=False))
        assert sizes(layer, KNOWN)[""] == (0, False, 32 * 64 // 2)
    vars(layer).update(says)
    held = 32 * 64 // 2
    expected = (32 * 64, True, 0 if in_a_buffer else held, held if in_a_buffer else 0)
    assert sizes(layer, (*KNOWN, "buffer_bytes"))[""] == expected
