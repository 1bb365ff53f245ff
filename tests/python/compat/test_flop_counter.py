"""The replacement of torch's FlopCounterMode beside torch's own, closed forms, and what torch's misses."""

import threading

import pytest
import torch
import torchvision
from models import LeNet
from replaced_layers import Calls
from replacements import Raises, TakesADict
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.nn.modules import module as nn_module
from torch.utils import flop_counter as torchs
from torch.utils.checkpoint import checkpoint

import roofprof
from roofprof.compat.flop_counter import FlopCounterMode, register_flop_formula

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("one_thread")]

aten = torch.ops.aten


def counted(mode, model, *inputs, backward=True, **options):
    with mode(display=False, **options) as counter:
        output = model(*inputs)
        if backward:
            output.sum().backward()
    return counter


def pair(model, *inputs, **options):
    return [counted(mode, model, *inputs, **options) for mode in (torchs.FlopCounterMode, FlopCounterMode)]


def counts_of_both(model, *inputs, **options):
    theirs, ours = pair(model, *inputs, **options)
    assert ours.get_flop_counts() == theirs.get_flop_counts()
    assert ours.get_total_flops() == theirs.get_total_flops() > 0
    return ours.get_flop_counts()


def image(side=64):
    return torch.rand(1, 3, side, side)


# ---- beside the original

FORWARDS = {
    "lenet": (LeNet, lambda: torch.rand(1, 1, 32, 32)),
    "mlp": (lambda: nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 6, bias=False)), lambda: torch.rand(2, 4)),
    "mobilenet_v2": (torchvision.models.mobilenet_v2, image),
    "encoder layer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), lambda: torch.rand(2, 5, 8)),
}


@pytest.mark.parametrize("name", FORWARDS)
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_forwards_and_training_steps_equal_the_original(name, mode):
    build, make_input = FORWARDS[name]
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with mode():
            counts_of_both(build(), make_input(), backward=mode is torch.enable_grad and name != "mobilenet_v2")
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def test_lists_have_no_row_and_what_no_module_did_is_in_the_total_alone():
    model = Calls(lambda x: model.layers[0](x))
    model.layers = nn.ModuleList([nn.Linear(4, 5)])
    counts = counts_of_both(lambda x: model(x) @ torch.rand(5, 3), torch.rand(3, 4), backward=False)
    assert set(counts) == {"Global", "Calls", "Calls.layers.0"}
    assert counts["Global"] == {aten.addmm: 2 * 3 * 4 * 5, aten.mm: 2 * 3 * 5 * 3}


def test_formulas_of_the_users_own_equal_the_original():
    mapping = {aten.mm: lambda a, b, out_shape=None: a[0] + b[0] + out_shape[1], aten.relu: lambda x, out_shape=None: 9}
    counts = counts_of_both(nn.Sequential(nn.Linear(4, 5), nn.ReLU()), torch.rand(2, 4), custom_mapping=mapping)
    assert counts["Sequential.1"] == {aten.relu: 9}


def test_registered_formulas_of_custom_ops_count(monkeypatch):
    assert register_flop_formula is torchs.register_flop_formula
    monkeypatch.setattr(torchs, "flop_registry", dict(torchs.flop_registry))
    with torch.library._scoped_library("roofprof_flops", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: torch.mm(x, x) + torch.mm(x, x), "CPU")
        twice = torch.ops.roofprof_flops.twice
        without = counted(FlopCounterMode, twice, torch.rand(3, 3), backward=False)
        assert without.get_flop_counts() == {"Global": {aten.mm: 2 * 2 * 27}}  # torch's counts 0
        register_flop_formula(twice)(lambda x_shape, out_shape=None: x_shape[0] * 100)
        ours = counted(FlopCounterMode, twice, torch.rand(3, 3), backward=False)
        assert ours.get_flop_counts() == {"Global": {twice: 300}}


# ---- where the original is wrong


def test_the_backward_of_a_grouped_convolution_counts_its_macs():
    theirs, ours = pair(nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False), torch.rand(1, 8, 5, 5))
    forward = 2 * 8 * 25 * 9
    assert ours.get_flop_counts()["Global"] == {aten.convolution: forward, aten.convolution_backward: forward}
    assert theirs.get_total_flops() == forward + 8 * forward


def test_a_residual_branch_has_the_backward_of_its_own_layers():
    theirs, ours = pair(torchvision.models.resnet18(), image())
    assert ours.get_flop_counts()["Global"] == theirs.get_flop_counts()["Global"]
    branch = "ResNet.layer2.0.downsample"
    assert ours.get_flop_counts()[branch] == {aten.convolution: 1_048_576, aten.convolution_backward: 2 * 1_048_576}
    assert theirs.get_flop_counts()[branch][aten.convolution_backward] == 58_720_256


def test_recurrent_layers_and_vectors_have_their_macs():
    with FlopCounterMode(display=False) as ours:
        nn.LSTM(4, 5)(torch.rand(2, 3, 4))
        torch.mv(torch.rand(3, 4), torch.rand(4))
    assert ours.get_total_flops() == 2 * 2 * 3 * 4 * 5 * (4 + 5) + 2 * 12


# ---- what stands around


def test_a_model_that_takes_a_dict_and_keywords():
    model = TakesADict()
    with FlopCounterMode(display=False) as counter:
        model({"points": torch.rand(3, 8)}, scale=torch.rand(16, 5)).logits.sum().backward()
    products, backward = 2 * 3 * 16 * 5, 2 * 3 * 16 * 5
    assert counter.get_flop_counts()["TakesADict"][aten.mm] == products + backward + 2 * 3 * 8 * 16
    assert counter.get_flop_counts()["TakesADict.layer"] == {aten.addmm: 2 * 3 * 8 * 16, aten.mm: 2 * 3 * 8 * 16}


def test_figures_are_there_inside_the_block_and_a_model_may_be_made_in_it():
    counter = FlopCounterMode(display=False)
    for _ in range(2):  # a second block begins anew
        with counter:
            model, loss = nn.Sequential(nn.Linear(4, 5)), nn.MSELoss()
            loss(model(torch.rand(3, 4)), torch.rand(3, 5)).backward()
            assert counter.get_total_flops() == 2 * 2 * 3 * 4 * 5
            model(torch.rand(3, 4))
        assert counter.get_flop_counts()["Sequential.0"] == {aten.addmm: 2 * 120, aten.mm: 120}


def test_recomputation_counts_where_it_runs():
    model = Calls(lambda x: checkpoint(model.inner, x, use_reentrant=False))
    model.inner = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
    theirs, ours = pair(model, torch.rand(3, 4, requires_grad=True))
    assert ours.get_flop_counts()["Global"] == theirs.get_flop_counts()["Global"]
    assert ours.get_flop_counts()["Calls.inner.0"][aten.addmm] == 2 * (2 * 3 * 4 * 8)


@pytest.mark.parametrize("device", ["meta", "fake"])
def test_tensors_without_data(device):
    with FakeTensorMode() if device == "fake" else torch.device("meta"):
        counter = counted(FlopCounterMode, torchvision.models.resnet18(), image(), backward=False)
    assert counter.get_total_flops() == 297_115_648  # torch's, on the CPU


def test_the_users_exception_comes_through_and_nothing_stays():
    tables = [value for name, value in vars(nn_module).items() if name.startswith("_global") and hasattr(value, "keys")]
    before = [dict(table) for table in tables]
    model, counter = Raises(), FlopCounterMode(display=False)
    with pytest.raises(KeyError, match="mine"), counter:
        model(torch.rand(1, 4))
    assert [dict(table) for table in tables] == before
    assert counter.get_total_flops() == 2 * 16
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None
    assert model.training and list(model.state_dict()) == ["layer.weight", "layer.bias"]


def test_misuse_is_reported():
    with pytest.warns(UserWarning, match="mods argument is not needed"):
        counter = FlopCounterMode(nn.Linear(2, 2), display=False)
    with counter, pytest.raises(RuntimeError, match="open already"):
        counter.__enter__()
    with pytest.raises(RuntimeError, match="not open"):
        counter.__exit__(None, None, None)


# ---- blocks and profiles inside the block

MLP_MACS = 2 * (4 * 5 + 5 * 6)


def mlp():
    return nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 6))


def by_block(model, x, observed=None):
    with roofprof.RooflineProfiler(observed, ceilings=roofprof.Ceilings()) as profiler:
        model(x)
    return profiler.report()


def by_mode(model, x):
    with FlopCounterMode(display=False):
        return roofprof.count(model, x)


INNER = {
    "count": roofprof.count,
    "block": lambda model, x: by_block(model, x, model),
    "block without a model": by_block,
    "mode": by_mode,
}


@pytest.mark.parametrize("formulas", [{}, {aten.addmm: lambda *_, out_shape=None, **__: out_shape[1]}])
@pytest.mark.parametrize("inner", INNER)
def test_profiles_inside_the_block_count_in_both(inner, formulas):
    model, x = mlp(), torch.rand(2, 4)
    plain = INNER[inner](model, x).total
    with torchs.FlopCounterMode(display=False, custom_mapping=formulas) as theirs:
        for _ in range(3):
            model(x)
    with FlopCounterMode(display=False, custom_mapping=formulas) as ours:
        model(x)
        total = INNER[inner](model, x).total
        model(x)
    counts = [each.get_flop_counts() for each in (ours, theirs)]
    if inner == "block without a model" and not formulas:
        counts = [each["Global"] for each in counts]
    assert counts[0] == counts[1]
    assert (total.macs, total.flops) == (plain.macs, plain.flops)
    assert total.macs == MLP_MACS


def test_of_a_profile_inside_the_block_one_call_counts():
    model, x = mlp(), torch.rand(2, 4)
    with FlopCounterMode(display=False) as counter:
        report = roofprof.RooflineProfiler(model, repeat=2, ceilings=roofprof.Ceilings()).run(x)
    assert counter.get_total_flops() == 2 * report.total.macs == 2 * MLP_MACS


def test_a_count_inside_a_module_counts_in_that_module_as_with_torch():
    model = Calls(lambda x: roofprof.count(model.part, x) and x)
    model.part = mlp()
    counts = counts_of_both(model, torch.rand(2, 4), backward=False)
    assert set(counts) == {"Global", "Calls", "Calls.part", "Calls.part.0", "Calls.part.1"}


def test_a_profile_that_raises_leaves_the_block_counting():
    model, x = mlp(), torch.rand(2, 4)

    def fails(x):
        model(x)
        raise KeyError

    with FlopCounterMode(display=False) as ours:
        with pytest.raises(KeyError):
            roofprof.count(fails, x)
        model(x)
    assert ours.get_total_flops() == 2 * 2 * MLP_MACS
    assert roofprof.count(model, x).total.macs == MLP_MACS


@pytest.mark.parametrize("mode", [torchs.FlopCounterMode, FlopCounterMode])
def test_blocks_in_blocks_see_modules_that_are_new_and_other_threads_have_their_own(mode):
    model, x, macs_of_new, seen = mlp(), torch.rand(2, 4), 2 * 4 * 3, []

    def elsewhere():
        seen.append(roofprof.count(model, x).total.macs)
        seen.append(counted(mode, model, x, backward=False).get_total_flops())

    with mode(display=False) as outer:
        model(x)
        with mode(display=False) as inner:
            model(x)
            nn.Linear(4, 3)(x)
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        nn.Linear(4, 3)(x)
    assert seen == [MLP_MACS, 2 * MLP_MACS]
    assert inner.get_total_flops() == 2 * (MLP_MACS + macs_of_new)
    assert outer.get_total_flops() == 4 * (MLP_MACS + macs_of_new)
    assert sum(outer.get_flop_counts()["Linear"].values()) == 4 * macs_of_new
