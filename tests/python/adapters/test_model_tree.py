"""The tree of a model: paths, types, sizes."""

from __future__ import annotations

import random
import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import roofprof
from roofprof.models.tree import changed_facts, notes_on
from roofprof.models.walk import model_tree, name_of


def paths(model) -> list[str]:
    return [facts["path"] for facts in model_tree(model).modules]


def test_first_three_places():
    tree = model_tree(nn.Linear(2, 3))
    assert [facts["path"] for facts in tree.modules] == ["", "(outside)", "(optimizer)"]
    assert [facts["parent"] for facts in tree.modules] == [-1, -1, -1]
    assert tree.objects[1:] == [None, None]


def test_paths_are_those_of_named_modules_for_every_model_without_shared_modules():
    with torch.device("meta"):
        model = nn.Transformer(16, 2, 2, 2, 32)
    assert [path for path in paths(model) if not path.startswith("(")] == [name for name, _ in model.named_modules()]


def test_parents_stand_before_children():
    tree = model_tree(nn.Sequential(nn.Sequential(nn.Linear(1, 1)), nn.ModuleDict({"a": nn.Linear(1, 1)})))
    for place, facts in enumerate(tree.modules[3:], 3):
        parent = facts["parent"]
        assert parent < place
        head = tree.modules[parent]["path"]
        assert facts["path"].startswith(f"{head}." if head else "")


def test_shared_module_has_a_place_under_each_parent():
    shared = nn.Linear(2, 2)
    model = nn.Sequential(nn.Sequential(shared), nn.Sequential(shared), shared)
    assert paths(model)[3:] == ["0", "0.0", "1", "1.0", "2"]


def test_second_name_under_the_same_parent_is_the_same_place():
    shared = nn.Linear(2, 2)
    assert paths(nn.ModuleDict({"a": shared, "b": shared}))[3:] == ["a"]


def test_module_that_contains_itself():
    model = nn.Sequential(nn.Linear(2, 2))
    model[0].back = model
    assert paths(model)[3:] == ["0"]


def test_absent_child():
    model = nn.Module()
    model.register_module("nothing", None)
    assert paths(model)[3:] == []


@pytest.mark.parametrize(
    ("module", "has_forward"),
    [
        (nn.ModuleList(), False),
        (nn.ModuleDict(), False),
        (nn.ParameterList(), False),
        (nn.Module(), False),
        (nn.Sequential(), True),
        (nn.Linear(1, 1), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_forward_of_its_own(module, has_forward):
    assert model_tree(nn.Sequential(module)).modules[3]["has_forward"] is has_forward


def test_forward_set_on_the_instance():
    module = nn.Module()
    module.forward = lambda value: value
    assert model_tree(nn.Sequential(module)).modules[3]["has_forward"] is True


def test_sizes():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4).double(), nn.Linear(4, 3, bias=False).half())
    model[0].bias.requires_grad_(False)
    rows = {facts["path"]: facts for facts in model_tree(model).modules}
    sizes = {
        path: tuple(facts[key] for key in ("params", "trainable_params", "param_bytes", "buffer_bytes"))
        for path, facts in rows.items()
    }
    assert sizes == {
        "": (16 + 8 + 12, 12 + 8 + 12, 64 + 64 + 24, 72),
        "(outside)": (0, 0, 0, 0),
        "(optimizer)": (0, 0, 0, 0),
        "0": (16, 12, 64, 0),
        "1": (8, 8, 64, 8 * 8 + 8),
        "2": (12, 12, 24, 0),
    }


def test_properties_of_modules_are_left_alone():
    class Odd(nn.Linear):
        @property
        def dtype(self):
            raise StopIteration

    assert roofprof.count(Odd(2, 2), torch.rand(1, 2)).total.params == 6


def test_tied_parameters_count_once_in_each_subtree():
    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3)))
    model[1][0].weight = model[0].weight
    model[1][1].weight = model[0].weight
    rows = {facts["path"]: facts["params"] for facts in model_tree(model).modules}
    assert rows == {"": 12, "(outside)": 0, "(optimizer)": 0, "0": 9, "1": 12, "1.0": 9, "1.1": 12}


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


def test_shared_buffers_count_once():
    model = nn.Sequential(nn.Module(), nn.Module())
    buffer = torch.zeros(5)
    for child in model:
        child.register_buffer("table", buffer)
    assert [model_tree(model).modules[place]["buffer_bytes"] for place in (0, 3, 4)] == [20, 20, 20]


def test_lazy_sizes_are_not_known_before_the_first_call():
    model = nn.Sequential(nn.LazyLinear(4))
    tree = model_tree(model)
    assert (tree.modules[0]["params"], tree.modules[3]["type"]) == (0, "LazyLinear")
    assert changed_facts(tree, model_tree(model)) == {}
    model(torch.ones(2, 3))
    changed = changed_facts(tree, model_tree(model))
    assert {place: facts["type"] for place, facts in changed.items()} == {0: "Sequential", 3: "Linear"}
    sizes = ("params", "trainable_params", "param_bytes", "buffer_bytes")
    for facts in changed.values():
        assert [facts[key] for key in sizes] == [16, 16, 64, 0]


def test_modules_that_come_later_are_noted():
    model = nn.Sequential(nn.Linear(2, 2))
    tree = model_tree(model)
    assert notes_on(tree, model_tree(model)) == []
    model.extend([nn.ReLU() for _ in range(5)])
    (note,) = notes_on(tree, model_tree(model))
    assert "(1, 2, 3, ...)" in note


def test_names():
    def function():
        pass

    class Callable:
        def __call__(self):
            pass

    assert [name_of(each) for each in (nn.ReLU(), function, Callable(), None)] == ["ReLU", "function", "Callable", ""]
    assert name_of(lambda: None) == "<lambda>"


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_modules_inside_torchscript_have_rows():
    scripted = torch.jit.script(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    report = roofprof.count(nn.Sequential(scripted, nn.Linear(3, 1)), torch.ones(1, 2))
    assert [(row.path, row.type, row.self_macs, row.calls) for row in report.rows] == [
        ("", "Sequential", 0, 1),
        ("0", "Sequential", 0, 1),
        ("0.0", "Linear", 6, 1),
        ("0.1", "ReLU", 0, 1),
        ("1", "Linear", 3, 1),
    ]
    assert [row.params for row in report.rows] == [13, 9, 9, 0, 4]
    assert report.coverage.uncalled_modules == []
    assert report.coverage.notes == []


def test_many_modules_are_quick():
    model = nn.Sequential(*(nn.Sequential(*(nn.Linear(1, 1) for _ in range(50))) for _ in range(100)))
    assert len(model_tree(model).modules) == 3 + 100 + 5000


def test_deeply_nested_modules():
    model = nn.Linear(2, 2)
    for _ in range(3_000):
        model = nn.Sequential(nn.Linear(2, 2), model)
    facts = model_tree(model).modules
    assert len(facts) == 3 + 2 * 3_000
    assert [each["params"] for each in facts[0:5]] == [6 * 3_001, 0, 0, 6, 6 * 3_000]
    assert facts[-1]["params"] == 6


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


def quantized(rows, columns):
    return Quantized(torch.ones(rows, columns, dtype=torch.int8), torch.ones(rows, 1))


def test_a_wrapping_tensor_is_as_large_as_what_it_holds():
    model = nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 2, bias=False))
    model[0].weight = nn.Parameter(quantized(4, 8), requires_grad=False)
    model[1].register_buffer("kept", quantized(2, 4))
    report = roofprof.count(model, torch.ones(1, 8))
    held = 4 * 8 + 4 * 4  # int8 values, fp32 scales
    assert report.row("0").params == 4 * 8 + 4
    assert report.row("0").param_bytes == held + 4 * 4  # and the bias
    assert report.row("1").buffer_bytes == 2 * 4 + 2 * 4
    assert report.row("").param_bytes == report.row("0").param_bytes + 4 * 2 * 4


def test_a_tensor_whose_parts_cannot_be_read_has_its_own_size():
    class Refuses(Quantized):
        def __tensor_flatten__(self):
            raise RuntimeError

    layer = nn.Linear(8, 4, bias=False)
    layer.weight = nn.Parameter(Refuses(torch.ones(4, 8), torch.ones(4, 1)), requires_grad=False)
    assert model_tree(layer).modules[0]["param_bytes"] == 4 * 8 * 4


# ---- weights that packages pack into fewer elements


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


def sizes_by_path(model):
    facts = {each["path"]: each for each in model_tree(model).modules}
    return {path: (each["params"], each["params_known"], each["param_bytes"]) for path, each in facts.items()}


@pytest.mark.parametrize("storage", [torch.uint8, torch.bfloat16, torch.float32])
def test_weights_of_4_bits_count_as_what_they_are_unpacked(storage):
    weight = FourBits(packed_bytes(64 * 32 // 2, storage), SimpleNamespace(shape=torch.Size([32, 64])))
    sizes = sizes_by_path(nn.Sequential(four_bit_linear(weight)))
    assert sizes[""] == sizes["0"] == (64 * 32 + 32, True, 64 * 32 // 2 + 32 * 4)


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
    sizes = sizes_by_path(model)
    bias, known = 32, {"not quantized yet": 2048, "the layer has the state": 2048, "half of one": 1024, "odd": 9}
    assert {name: sizes[name][0] - bias for name in known} == known
    assert {name for name in weights if not sizes[name][1]} == weights.keys() - known
    assert not sizes[""][1]
    held = [2048 * 4, 1024, 512, 5, 1024, 1024]
    assert [sizes[name][2] - bias * 4 for name in weights] == held


def test_params_of_an_unknown_shape_are_not_told():
    class Holds(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = FourBits(packed_bytes(8), bnb_quantized=True)

        def forward(self, x):
            return x + 1

    report = roofprof.count(nn.Sequential(nn.Identity(), Holds()), torch.rand(2))
    assert (report.total.params, report.row("1").params, report.row("0").params) == (None, None, 0)
    (note,) = [note for note in report.coverage.notes if note.code == "params-not-known"]
    assert note.where == ["1"]


class PacksIntoInts(nn.Module):
    """A layer as HQQ, compressed-tensors, GPTQ and AWQ have them: integers with several weights in each."""

    def __init__(self, holds, tensor, **says):
        super().__init__()
        holds(self, tensor)
        vars(self).update(says)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("W_q", {"meta": {"shape": (32, 64), "nbits": 4}}),
        ("weight_packed", {"in_features": 64, "out_features": 32}),
    ],
)
def test_weights_packed_in_a_parameter(name, says):
    def holds(module, tensor):
        module.register_parameter(name, nn.Parameter(tensor, requires_grad=False))

    packed = torch.zeros(32 * 64 // 8, dtype=torch.int32)
    assert sizes_by_path(PacksIntoInts(holds, packed, **says))[""] == (32 * 64, True, 32 * 64 // 2)
    assert sizes_by_path(PacksIntoInts(holds, packed))[""] == (0, False, 32 * 64 // 2)


@pytest.mark.parametrize("names", [("in_features", "out_features"), ("infeatures", "outfeatures")])
def test_weights_packed_in_a_buffer_are_parameters_and_their_bytes_the_buffers(names):
    def holds(module, tensor):
        module.register_buffer("qweight", tensor)

    packed = torch.zeros(64 // 8, 32, dtype=torch.int32)
    facts = model_tree(PacksIntoInts(holds, packed, **dict(zip(names, (64, 32), strict=True)))).modules[0]
    assert (facts["params"], facts["param_bytes"], facts["buffer_bytes"]) == (64 * 32, 0, 64 * 32 // 2)


@pytest.mark.parametrize(("depth", "is_known"), [(250, True), (300, False)])
def test_boundaries_are_known_of_trees_that_are_not_too_deep(depth, is_known):
    class Nested(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return self.inner(x)

    model = nn.Linear(2, 2, bias=False)
    for _ in range(depth):
        model = Nested(model)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    try:
        total = roofprof.count(model, torch.ones(1, 2)).total
    finally:
        sys.setrecursionlimit(limit)
    assert (total.macs, total.params) == (4, 4)
    assert total.fused_bytes == (4 * (2 + 4 + 2) if is_known else None)
