"""Threads, hooks, exceptions, and code that is no module."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from attributed import MACS, Model, linear, macs, x
from given_roofs import profiler
from torch import nn

import roofprof

# ---- threads, hooks, exceptions


def test_threads_inside_forward():
    def forward(self, value):
        results = [None, None, None]

        def work(index):
            results[index] = self.branches[index](value)

        threads = [threading.Thread(target=work, args=(index,)) for index in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.head(sum(results))

    model = Model(forward, branches=nn.ModuleList(nn.Sequential(linear()) for _ in range(3)), head=nn.Linear(4, 4))
    report = profiler(model).run(x())
    assert macs(report) == {"branches.0.0": MACS, "branches.1.0": MACS, "branches.2.0": MACS, "head": 32}
    assert [report.row(f"branches.{index}").calls for index in range(3)] == [1, 1, 1]
    assert report.total.macs == 3 * MACS + 32


def test_threads_that_share_one_module():
    def forward(self, value):
        threads = [threading.Thread(target=self.fc, args=(value,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return value

    report = profiler(Model(forward, fc=linear())).run(x())
    assert report.row("fc").calls == 4
    assert report.row("fc").macs == 4 * MACS
    assert report.row("fc").time > 0


def test_a_thread_of_someone_else_is_not_counted():
    stop = threading.Event()
    other = linear()

    def work():
        while not stop.is_set():
            other(x())

    thread = threading.Thread(target=work)
    thread.start()
    try:
        reports = [roofprof.count(nn.Sequential(linear()), x()) for _ in range(20)]
    finally:
        stop.set()
        thread.join()
    assert all(macs(report) == {"0": MACS} for report in reports)


def test_ops_in_the_user_s_hooks():
    model = nn.Sequential(linear(), nn.ReLU())
    model[0].register_forward_pre_hook(lambda _, args: (args[0] + 1,))  # 16 FLOPs
    model[1].register_forward_hook(lambda _, __, output: output @ torch.ones(4, 3))
    report = roofprof.count(model, x())
    assert report.row("0").flops == 2 * MACS + 16
    # torch runs global hooks before a module's own: what those do after forward belongs to the caller.
    assert macs(report) == {"0": MACS, "": 2 * 4 * 3}


def test_ops_in_a_hook_of_the_model_itself_are_not_lost():
    model = nn.Sequential(linear())
    model.register_forward_hook(lambda _, __, output: output @ torch.ones(4, 3))
    report = profiler(model).run(x())
    assert report.total.macs == MACS + 2 * 4 * 3
    assert macs(report) == {"0": MACS, "(outside)": 2 * 4 * 3}


def test_exception_that_the_parent_catches():
    def fail(self, value):
        self.inner(value)
        raise ValueError("caught above")

    def forward(self, value):
        with contextlib.suppress(ValueError):
            self.bad(value)
        return self.good(value @ torch.ones(8, 8))

    model = Model(forward, bad=Model(fail, inner=linear()), good=linear())
    report = profiler(model).run(x())
    assert macs(report) == {"bad.inner": MACS, "": 2 * 8 * 8, "good": MACS}


def test_pre_hook_that_raises():
    def refuse(*_):
        raise KeyError("not today")

    def forward(self, value):
        with contextlib.suppress(KeyError):
            self.fc(value)
        return value @ torch.ones(8, 8)

    model = Model(forward, fc=linear())
    model.fc.register_forward_pre_hook(refuse)
    report = profiler(model).run(x())
    assert macs(report) == {"": 2 * 8 * 8}


# ---- what is no module


def test_plain_function():
    def double(value, *, by):
        return value @ by

    report = profiler(double).run(x(), by=torch.ones(8, 3))
    assert report.model == "double"
    assert [row.path for row in report.rows] == [""]
    assert macs(report) == {"": 2 * 8 * 3}
    assert report.row("").calls == 1


def test_function_that_uses_a_module_has_one_row():
    net = nn.Sequential(linear())
    report = roofprof.count(lambda value: net(value) + 1, x())
    assert [row.path for row in report.rows] == [""]
    assert report.total.macs == MACS


def test_block_without_a_model():
    prof = profiler(None)
    with prof:
        linear()(x())
    report = prof.report()
    assert macs(report) == {"(outside)": MACS}
    assert report.coverage.uncalled_modules == []
    with pytest.raises(TypeError, match="no model to run"):
        prof.run(x())


def test_block_tells_the_model_from_what_is_around_it():
    model = nn.Sequential(linear())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    prof = profiler(model)
    with prof:
        for _ in range(2):
            (model(x()) @ torch.ones(4, 3)).sum().backward()
            optimizer.step()
            prof.step()
    report = prof.report()
    assert report.row("0").calls == 2
    forward = {tuple(group.keys): group.macs for group in report.group("phase", "module") if group.macs}
    assert forward["forward", "0"] == 2 * MACS
    assert forward["forward", "(outside)"] == 2 * 2 * 4 * 3
    assert forward["backward", "0"] == 2 * MACS  # the weight's gradient; the input needs none
    assert report.row("(optimizer)").flops > 0
    assert report.by_phase()["optimizer"].flops == report.row("(optimizer)").flops


def test_model_that_optimizes_itself():
    """An optimizer's step in a forward, as in test-time adaptation, is still told apart."""
    model = Model(lambda self, value: (self.fc(value).sum().backward(), self.optimizer.step()), fc=linear())
    model.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    report = profiler(model).run(x())
    assert report.by_phase()["backward"].macs == MACS
    assert report.row("(optimizer)").flops > 0


def test_transformer_layer_keeps_its_fast_path():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    with torch.no_grad():
        report = roofprof.count(nn.Sequential(layer), torch.ones(1, 5, 16))
    assert "aten::_transformer_encoder_layer_fwd" in report.by_operator()
    assert report.row("0").macs == report.total.macs > 0


def test_ops_of_a_thread_pool_are_not_silently_missing():
    weight = torch.ones(3, 4)
    with ThreadPoolExecutor(1) as pool:
        report = roofprof.count(lambda value: pool.submit(torch.mm, value, weight).result(), torch.ones(2, 3))
        assert report.total.macs == 0
        assert any("ops ran on other threads" in note for note in report.coverage.notes)
        # Not of earlier ones, nor of those that modules and autograd nodes are known of.
        step = lambda value: linear()(value).sum().backward()  # noqa: E731
        assert not any("other threads" in note for note in roofprof.count(step, x()).coverage.notes)
