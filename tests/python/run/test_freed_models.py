"""After a run, a block or a window nothing of ours holds the model, its parameters, inputs or outputs."""

import gc
import textwrap
import weakref

import pytest
import torch
from given_roofs import profiler
from torch import nn

from roofprof.callbacks._shared import TrainingWindow
from roofprof.cli import main


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, value):
        return self.second(self.first(value).relu())


def by_run(model, value):
    return profiler(model, repeat=2).run(value)


def by_count(model, value):
    return profiler(model).count(value)


def by_step(model, value):
    return profiler(model, repeat=2).run_step(lambda: model(value).sum().backward())


def by_block(model, value):
    with profiler(model) as prof:
        for _ in range(3):
            model(value).sum().backward()
            prof.step()
    return prof.report()


def by_callback(model, value):
    window = TrainingWindow(1, 2, None, {})
    for _ in range(5):
        window.begin_step(model)
        model(value).sum().backward()
        if window.end_step():
            window.close()
    return window


@pytest.mark.parametrize("way", [by_run, by_count, by_step, by_block, by_callback])
def test_who_keeps_the_report_does_not_keep_the_model(way, monkeypatch):
    monkeypatch.setenv("ROOFPROF_CEILINGS", "off")
    model, value = Net(), torch.ones(2, 4, requires_grad=True)
    kept = way(model, value)
    held = [weakref.ref(each) for each in (model, model.second, model.first.weight, value)]
    del model, value
    gc.collect()
    assert kept is not None
    assert [each() for each in held] == [None] * len(held)


@pytest.mark.parametrize("options", [[], ["--phase", "eval"], ["--skip", "2", "--steps", "3"]])
def test_a_window_lets_the_program_free_its_model(tmp_path, monkeypatch, capsys, options):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOFPROF_CEILINGS", "off")
    (tmp_path / "program.py").write_text(
        textwrap.dedent("""
        import gc, weakref
        import torch
        from torch import nn

        def calls(model, training):
            held = [weakref.ref(model), weakref.ref(model[0].weight)]
            model.train(training)
            for _ in range(20):
                x = torch.ones(2, 4)
                y = model(x).sum()
            held += [weakref.ref(x), weakref.ref(y)]
            return held

        held = [*calls(nn.Sequential(nn.Linear(4, 4)), False), *calls(nn.Sequential(nn.Linear(4, 4)), True)]
        gc.collect()
        print([each() is None for each in held])
        """)
    )
    assert main(["run", "--no-legend", *options, "program.py"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == str([True] * 8)
