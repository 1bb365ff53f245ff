"""DeepSpeed's replacement beside DeepSpeed's own profiler, and what that one refuses, misses or leaves behind."""

import time
import warnings

import pytest
import torch
from replaced_layers import Calls
from replacements import Raises, nothing_left_on, small_cnn
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from roofprof.compat import ConventionWarning, _call
from roofprof.compat import deepspeed as ours
from roofprof.compat.deepspeed import FlopsProfiler, get_model_profile

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("one_thread")]


@pytest.fixture(scope="module")
def theirs():
    return pytest.importorskip("deepspeed.profiling.flops_profiler.profiler")


def totals(model, *args, module=ours, **options):
    return module.get_model_profile(model, args=list(args), print_profile=False, as_string=False, **options)


def started(model):
    profiler = FlopsProfiler(model)
    profiler.start_profile()
    return profiler


# ---- beside the original


def test_numbers_and_ignored_modules_are_the_originals(theirs):
    for what in ("number", "flops", "macs", "bytes", "params", "duration"):
        to_string, original = (getattr(module, f"{what}_to_string") for module in (ours, theirs))
        for number in (0, 1, 999, 1000, 1.5e6, 2e9, 3.21e12, 0.0123, 4e-6, 1e-9):
            assert to_string(number) == original(number)
            assert to_string(number, "G", 4) == original(number, "G", 4)
    model, x = small_cnn(), torch.rand(2, 3, 9, 9)
    for ignored in ([nn.ReLU], [nn.Conv2d, nn.Linear]):
        assert totals(model, x, ignore_modules=ignored) == totals(model, x, ignore_modules=ignored, module=theirs)


def test_ignored_modules_count_for_their_parent():
    model, x = small_cnn(), torch.rand(2, 3, 9, 9)
    assert totals(model, x, ignore_modules=[nn.Sequential])[1] == 2 * (81 * 8 * 27 + 2 * 2 * 8 * 18 + 8 * 5)
    lstm = nn.Sequential(nn.LSTM(3, 5))
    assert totals(lstm, torch.rand(7, 2, 3), ignore_modules=[nn.LSTM]) == totals(lstm, torch.rand(7, 2, 3))


# ---- in a training loop

MLP_FLOPS, MLP_MACS = 2 * (4 * 8 * 16 + 4 * 16 * 3) + 4 * 16, 4 * 8 * 16 + 4 * 16 * 3


def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))


def test_one_step_of_a_training_loop(capsys, monkeypatch):
    monkeypatch.setattr(_call, "_warned", set())
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    profiler = FlopsProfiler(model)
    for step in range(4):
        if step == 2:
            profiler.start_profile()
        F.cross_entropy(model(torch.rand(4, 8)), torch.tensor([0, 1, 2, 0])).backward()
        if step == 2:
            profiler.stop_profile()
            with pytest.warns(ConventionWarning, match="those of the forward alone, .*run_step"):
                assert profiler.get_total_flops() == MLP_FLOPS
            with warnings.catch_warnings():  # once
                warnings.simplefilter("error")
                assert profiler.get_total_flops(as_string=True) == "1.47 K"
            assert (profiler.get_total_macs(), profiler.get_total_macs(as_string=True)) == (MLP_MACS, "704 MACs")
            params = profiler.get_total_params(), profiler.get_total_params(as_string=True)
            assert params == (8 * 16 + 16 + 16 * 3 + 3, "195")
            assert profiler.get_total_duration() > 0
            assert profiler.get_total_duration(as_string=True).endswith("s")
            profiler.print_model_profile(profile_step=step)
            profiler.end_profile()
        optimizer.step()
    printed = capsys.readouterr().out
    assert "profile step: 2" in printed and "fwd flops per GPU: 1.47 K" in printed
    profiler.print_model_profile()
    assert not capsys.readouterr().out
    with pytest.raises(RuntimeError, match="call start_profile\\(\\) before the forward"):
        profiler.get_total_flops()


def test_figures_before_stop_go_on_adding_up():
    model = mlp()
    profiler = started(model)
    for calls in (1, 2):
        model(torch.rand(4, 8))
        assert profiler.get_total_macs() == calls * MLP_MACS
    profiler.reset_profile()
    assert profiler.get_total_macs() == 0
    model(torch.rand(4, 8))
    profiler.stop_profile()
    model(torch.rand(4, 8))
    assert profiler.get_total_macs() == MLP_MACS
    profiler.end_profile()


def test_a_forward_that_the_backward_runs_again_counts_once():
    layer = nn.Linear(8, 8)
    model = Calls(lambda x: checkpoint(layer, x, use_reentrant=False))
    model.layer = layer
    profiler = started(model)
    model(torch.rand(4, 8)).sum().backward()
    profiler.stop_profile()
    assert profiler._known().macs(model) == 4 * 8 * 8
    profiler.end_profile()


# ---- what the original cannot do


def test_transformed_linear_layers_equal_plain_ones():
    layer, x = nn.Linear(4, 3), torch.rand(5, 4)
    model = Calls(lambda x: torch.vmap(layer)(x))
    model.layer = layer
    assert totals(model, x)[:2] == totals(layer, x)[:2] == (2 * 60, 60)
    profiler = started(layer)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        layer(x)
    assert profiler.get_total_flops() == 2 * 60
    profiler.end_profile()


@pytest.mark.usefixtures("nothing_compiled")
def test_compiled_and_exported_models_equal_their_module_and_work_that_is_not_seen_is_logged(caplog):
    model, x = small_cnn().eval(), torch.rand(1, 3, 9, 9)
    compiled = torch.compile(model, backend="eager")
    expected = totals(model, x)
    assert totals(compiled, x) == totals(torch.export.export(model, (x,)).module(), x) == expected
    profiler = started(compiled)
    compiled(x)
    assert (profiler.get_total_flops(), profiler.get_total_macs()) == expected[:2]
    profiler.end_profile()
    assert "not counted" not in caplog.text
    totals(Calls(lambda x: torch.from_numpy(x.numpy() @ x.numpy())), torch.rand(4, 4))
    assert "not counted, done outside of torch's operators: Calls, 1 calls" in caplog.text


def test_what_the_original_gets_wrong():
    x, weight = torch.rand(5, 3, 4), torch.rand(4, 2)
    for function, flops_and_macs in (
        (lambda x: x + x * 2, (2 * 60, 0)),
        (lambda x: F.interpolate(x, size=8), (5 * 3 * 8, 0)),
        (lambda x: torch.addmm(torch.ones(2), x[0], weight), (2 * 24 + 6, 24)),
    ):
        assert totals(Calls(function), x)[:2] == flops_and_macs
    even = nn.Conv1d(3, 2, 2, padding="same", bias=False)
    assert totals(even, x)[1] == 5 * 4 * 3 * 2 * 2
    packed = nn.utils.rnn.pack_sequence([torch.rand(5, 3), torch.rand(2, 3)])
    assert totals(nn.LSTM(3, 4), packed)[1] == (5 + 2) * 4 * 4 * (3 + 4)


def test_latencies_are_those_of_the_forward_calls():
    class Sleeps(nn.Module):
        def forward(self, x):
            time.sleep(0.05)
            return x

    model = nn.Sequential(nn.ModuleList([Sleeps(), Sleeps()]))
    model.forward = lambda x: model[0][1](model[0][0](x))
    profiler = started(model)
    begin = time.perf_counter()
    model(torch.rand(2))
    took = 1.001 * (time.perf_counter() - begin)  # by another clock
    time.sleep(0.05)
    profiler.stop_profile()
    figures = profiler._known()
    first, second = (figures.seconds(layer) for layer in model[0])
    assert min(first, second) >= 0.9 * 0.05
    assert figures.seconds(model[0]) == pytest.approx(first + second)
    assert first + second <= figures.seconds(model) <= took  # what slept after the call is not in it
    assert profiler.get_total_duration() >= 0.9 * 0.1
    profiler.end_profile()


def test_a_file_is_written_in_place_of_stdout_and_generate_called_where_it_is_requested(tmp_path, capsys):
    path, model = tmp_path / "new" / "profile.txt", mlp()
    get_model_profile(model, (4, 8), output_file=str(path))
    assert "704 MACs" in path.read_text() and not capsys.readouterr().out
    model.generate = lambda x: model(model[0].weight.new_ones(2, 8))
    assert totals(model, torch.rand(4, 8), mode="generate")[1] == MLP_MACS // 2
    with pytest.raises(ValueError, match='"forward" or "generate", not \'sample\''):
        totals(model, torch.rand(4, 8), mode="sample")


def test_the_models_own_exception_comes_through_and_nothing_stays():
    model = Raises()
    with nothing_left_on(model):
        profiler = started(model)
        with pytest.raises(KeyError, match="mine"):
            model(torch.rand(2, 4))
        assert profiler.get_total_macs() == 2 * 4 * 4
        profiler.end_profile()
