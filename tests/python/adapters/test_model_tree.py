"""The tree of a model: paths, types, sizes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import roofprof
from roofprof.models.tree import changed_facts, model_tree, name_of, notes_on


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
