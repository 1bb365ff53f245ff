"""Calls that torch's __call__ does not announce: own __call__, forward called directly; rows as with torch's own."""

import copy
import functools
import inspect
import io
import itertools
import pickle
import weakref

import pytest
import torch
from attributed import MACS, Model, calls, linear, macs, x
from given_roofs import profiler
from torch import nn

import roofprof


class Own(nn.Module):
    """As gpytorch's modules."""

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


class OwnLeaf(Own):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8, 4))

    def forward(self, value):
        return value @ self.weight


class OverSuper(nn.Linear):
    def __call__(self, value):
        return super().__call__(value)


class SuperForward(nn.Linear):
    def forward(self, value):
        with roofprof.scope("inside"):
            return super().forward(value)


def with_own_forward():
    layer = linear()
    forward = layer.forward
    layer.forward = lambda value: forward(value)
    return layer


def decorated(self, value):
    return nn.Linear.forward(self, value)


LEAVES = {
    "torch's": linear,
    "own call": OwnLeaf,
    "own call over super": lambda: OverSuper(8, 4, bias=False),
    "own call is forward": lambda: type("CallIsForward", (OwnLeaf,), {"__call__": OwnLeaf.forward})(),
    "decorated": lambda: type("Decorated", (nn.Linear,), {"forward": functools.wraps(nn.Linear.forward)(decorated)})(
        8, 4, bias=False
    ),
    "super's forward": lambda: SuperForward(8, 4, bias=False),
    "forward of the instance": with_own_forward,
}


class Outer(nn.Module):
    def __init__(self, leaf, through):
        super().__init__()
        self.leaf, self.through = leaf, through

    def forward(self, value):
        return self.through(self.leaf, value)


class OwnOuter(Outer, Own):
    """Its class has a __call__ of its own."""


CALLS = {
    "called": lambda leaf, value: leaf(value),
    "forward": lambda leaf, value: leaf.forward(value),
}


def of_block(model):
    with profiler(model) as profile:
        model(x())
    return profile.report()


WAYS = {
    "count": lambda model: roofprof.count(model, x()),
    "run": lambda model: profiler(model).run(x()),
    "partial": lambda model: profiler(functools.partial(model)).run(x()),
    "block": of_block,
    "step": lambda model: profiler(model).run_step(lambda: model(x())),
    "forward in a step": lambda model: profiler(model).run_step(lambda: model.forward(x())),
    "meta": lambda model: roofprof.count(model.to("meta"), x().to("meta")),
}


def rows_of(report):
    return {
        row.path: (row.calls, row.macs, row.input_shapes, row.output_shapes)
        for row in report.rows
        if row.path in {"", "leaf"}
    }


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize(("outer", "call"), list(itertools.product((Outer, OwnOuter), CALLS)))
def test_every_call_gives_the_rows_of_torchs_own_call(leaf, outer, call):
    if leaf == "forward of the instance" and call != "called":
        return  # what the user puts into an instance is theirs
    for name, way in WAYS.items():
        report = way(outer(LEAVES[leaf](), CALLS[call]))
        expected = (1, MACS, [[2, 8]], [[2, 4]])
        assert rows_of(report) == {"": expected, "leaf": expected}, name
        assert report.total.macs == MACS
        assert report.coverage.uncalled_modules == []
        assert "weights-used-elsewhere" not in {note.code for note in report.coverage.notes}


def test_backward_and_optimizer_have_their_rows():
    model = OwnOuter(OwnLeaf(), lambda leaf, value: leaf.forward(value))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    given = x().requires_grad_()

    def step():
        optimizer.zero_grad()
        model(given).sum().backward()
        optimizer.step()

    report = profiler(model).run_step(step)
    assert report.total.macs == 3 * MACS
    assert report.row("leaf").macs == 3 * MACS
    assert report.row("leaf").calls == 1


def test_keywords_containers_and_calls_in_a_row():
    stack = nn.Sequential(linear(), nn.ReLU())
    model = Model(lambda self, value: self.stack[0].forward(input=value) + self.stack(value), stack=stack)
    report = roofprof.count(model, x())
    assert calls(report) == {"": 1, "stack": 1, "stack.0": 2, "stack.1": 1}
    assert macs(report) == {"stack.0": 2 * MACS}


def test_work_of_an_own_call_around_forward_is_the_modules():
    class Around(Own):
        def __init__(self):
            super().__init__()
            self.before, self.inner = linear(), nn.Linear(4, 4, bias=False)

        def __call__(self, value):
            return super().__call__(self.before.weight @ value.t())

        def forward(self, value):
            return self.inner(value.t())

    inner = 2 * 4 * 4
    report = roofprof.count(Around(), x())
    assert macs(report) == {"": MACS, "inner": inner}
    assert calls(report)[""] == 1


def test_a_forward_that_raises_is_left():
    error = ZeroDivisionError("mine")

    def fails(self, value):
        raise error

    def forward(self, value):
        with pytest.raises(ZeroDivisionError) as raised:
            self.bad.forward(value)
        assert raised.value is error
        return self.fc(value)

    for way in (WAYS["count"], of_block):
        report = way(Model(forward, bad=Model(fails), fc=linear()))
        assert macs(report) == {"fc": MACS}
        assert calls(report)["bad"] == 1


# ---- what users see of it: nothing


def functions_of(model):
    kinds = {base for module in model.modules() for base in type(module).__mro__}
    return {(kind, name): vars(kind)[name] for kind in kinds for name in ("forward", "__call__") if name in vars(kind)}


def test_classes_and_modules_are_as_before():
    model = OwnOuter(nn.Sequential(OwnLeaf(), nn.ReLU()), CALLS["forward"])
    before, attributes = functions_of(model), [set(vars(module)) for module in model.modules()]
    with profiler(model):
        assert [set(vars(module)) for module in model.modules()] == attributes
        model(x())
    assert all(now is before[key] for key, now in functions_of(model).items())
    with pytest.raises(ZeroDivisionError), profiler(model):
        raise ZeroDivisionError
    assert all(now is before[key] for key, now in functions_of(model).items())


def test_a_forward_looks_the_same():
    model = Outer(linear(), CALLS["called"])
    bound, function = model.leaf.forward, nn.Linear.forward
    shown = inspect.signature(bound), inspect.signature(function), inspect.getsource(bound), repr(function)
    with profiler(model):
        now = nn.Linear.forward
        assert now == function
        assert hash(now) == hash(function)
        assert model.leaf.forward == bound
        assert inspect.isfunction(now)
        assert inspect.ismethod(model.leaf.forward)
        assert (inspect.signature(model.leaf.forward), inspect.signature(now)) == shown[:2]
        assert (inspect.getsource(model.leaf.forward), repr(now)) == shown[2:]
        assert (now.__name__, now.__module__, now.__qualname__) == ("forward", function.__module__, "Linear.forward")
        assert now.__code__ is function.__code__
        assert weakref.ref(now)() is now
        assert copy.deepcopy(now) == function
        named = pickle.dumps(now)
    assert pickle.loads(named) is function


def test_copies_and_pickles_that_are_made_inside():
    model = nn.Sequential(OwnLeaf(), nn.ReLU())
    with profiler(model) as profile:
        same = copy.deepcopy(model)
        shallow = copy.copy(model[0])
        shallow._parameters = {"weight": nn.Parameter(torch.zeros(8, 4))}
        assert not shallow(x()).any()  # its own weights, not the original's
        stored = io.BytesIO()
        torch.save(model, stored)
        assert list(model.state_dict()) == ["0.weight"]
    assert [set(vars(module)) for module in same.modules()] == [set(vars(module)) for module in model.modules()]
    stored.seek(0)
    loaded = torch.load(stored, weights_only=False)
    assert [set(vars(module)) for module in loaded.modules()] == [set(vars(module)) for module in model.modules()]
    assert calls(profile.report())["0"] == 0


def test_what_the_user_puts_into_a_class_inside_stays():
    class Layer(nn.Linear):
        def forward(self, value):
            return super().forward(value)

    model = nn.Sequential(Layer(8, 4, bias=False))
    with profiler(model) as profile:
        replaced = Layer.forward

        def mine(self, value):
            return replaced(self, value)

        Layer.forward = mine
        model(x())
    assert Layer.forward is mine
    assert macs(profile.report()) == {"0": MACS}
    assert calls(profile.report())["0"] == 1


def test_an_instances_forward_that_is_set_inside_is_the_users():
    model = nn.Sequential(linear())
    with profiler(model) as profile:
        forward = model[0].forward
        model[0].forward = functools.partial(lambda value: forward(value))  # as accelerate's hooks do
        model(x())
    assert (calls(profile.report())["0"], macs(profile.report())) == (1, {"0": MACS})
    assert set(vars(model[0])) >= {"forward"}
    torch.testing.assert_close(model(x()), torch.nn.functional.linear(x(), model[0].weight))
    torch.testing.assert_close(forward(x()), model(x()))  # bound inside of the block


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_torchscript_and_graphs_are_made_inside_as_outside():
    layer = nn.Sequential(linear(), nn.ReLU())
    with profiler(layer) as profile:
        scripted = torch.jit.script(layer)
        traced = torch.jit.trace(layer, x())
        graph = torch.fx.symbolic_trace(layer)
        exported = torch.export.export(layer, (x(),))
    assert profile.report() is not None
    for made in (scripted, traced, graph, exported.module()):
        torch.testing.assert_close(made(x()), layer(x()))
    assert [node.op for node in graph.graph.nodes] == ["placeholder", "call_module", "call_module", "output"]


# ---- modules whose parameters others use


def used(report):
    return [note.where for note in report.coverage.notes if note.code == "weights-used-elsewhere"]


@pytest.mark.parametrize("taken", [True, False], ids=["forward taken before", "weight used"])
def test_modules_whose_weights_others_use_are_named(taken):
    layer = linear()
    forward = layer.forward
    use = lambda _, value: forward(value) if taken else nn.functional.linear(value, layer.weight)  # noqa: E731
    report = roofprof.count(Model(use, fc=layer), x())
    assert (calls(report), macs(report)) == ({"": 1, "fc": 0}, {"": MACS})
    assert used(report) == [["fc"]]
    assert report.coverage.uncalled_modules == []


def tied():
    table, head = nn.Embedding(5, 8), nn.Linear(8, 5, bias=False)
    head.weight = table.weight
    model = Model(
        lambda self, value: nn.functional.linear(self.table(value), self.table.weight), table=table, head=head
    )
    return model, torch.zeros(2, dtype=torch.long)


def called_too():
    return Model(lambda self, value: self.fc(value) + nn.functional.linear(value, self.fc.weight), fc=linear()), x()


def fast_path():
    return nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), torch.ones(1, 2, 8)


def parametrized():
    layer = torch.nn.utils.parametrizations.weight_norm(nn.Linear(8, 4))
    return Model(lambda self, value: self.fc(value), fc=layer), x()


@pytest.mark.parametrize("make", [tied, called_too, fast_path, parametrized])
def test_who_uses_parameters_as_all_do_is_not_named(make):
    model, value = make()
    with torch.no_grad():
        assert used(roofprof.count(model, value)) == []
        with profiler(model) as profile:
            model(value)
        assert used(profile.report()) == []


def test_modules_inside_compiled_code_are_not_named():
    model = Outer(nn.Sequential(linear(), nn.ReLU()), CALLS["called"])
    compiled = torch.compile(model, backend="aot_eager")
    with profiler(model) as profile:
        compiled(x())
        compiled(x())
    assert used(profile.report()) == []
    assert used(profiler(compiled).run(x())) == []
