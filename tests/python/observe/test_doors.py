"""Calls that torch's __call__ does not announce: own __call__, forward called directly; rows as with torch's own."""

import copy
import functools
import gc
import inspect
import io
import pickle
import threading
import weakref

import pytest
import torch
from attributed import MACS, Model, calls, linear, macs, x
from given_roofs import profiled_at_once, profiler
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


class CallIsForward(OwnLeaf):
    __call__ = OwnLeaf.forward


class OwnCallImpl(nn.Linear):
    def _call_impl(self, *args, **kwargs):
        return super()._call_impl(*args, **kwargs)


def decorated(forward):
    @functools.wraps(forward)
    def around(self, value):
        return forward(self, value)

    return around


class Decorated(nn.Linear):
    forward = decorated(nn.Linear.forward)


class SuperForward(nn.Linear):
    def forward(self, value):
        with roofprof.scope("inside"):
            return super().forward(value)


class ClassForward(nn.Linear):
    def forward(self, value):
        return nn.Linear.forward(self, value)


def with_own_forward():
    layer = linear()
    forward = layer.forward
    layer.forward = lambda value: forward(value)
    return layer


LEAVES = {
    "torch's": linear,
    "own call": OwnLeaf,
    "own call over super": lambda: OverSuper(8, 4, bias=False),
    "own call is forward": CallIsForward,
    "own call impl": lambda: OwnCallImpl(8, 4, bias=False),
    "decorated": lambda: Decorated(8, 4, bias=False),
    "super's forward": lambda: SuperForward(8, 4, bias=False),
    "class's forward": lambda: ClassForward(8, 4, bias=False),
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


DOORS = {
    "called": lambda leaf, value: leaf(value),
    "forward": lambda leaf, value: leaf.forward(value),
}


def of_count(model):
    return roofprof.count(model, x())


def of_run(model):
    return profiler(model).run(x())


def of_partial(model):
    return profiler(functools.partial(model)).run(x())


def of_block(model):
    with profiler(model) as profile:
        model(x())
    return profile.report()


def of_forward_in_block(model):
    with profiler(model) as profile:
        model.forward(x())
    return profile.report()


def of_step(model):
    return profiler(model).run_step(lambda: model(x()))


def of_forward_in_step(model):
    return profiler(model).run_step(lambda: model.forward(x()))


def of_meta(model):
    return roofprof.count(model.to("meta"), x().to("meta"))


WAYS = [of_count, of_run, of_partial, of_block, of_forward_in_block, of_step, of_forward_in_step, of_meta]


def rows_of(report):
    return {
        row.path: (row.calls, row.macs, row.input_shapes, row.output_shapes)
        for row in report.rows
        if row.path in {"", "leaf"}
    }


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("outer", [Outer, OwnOuter])
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("leaf", LEAVES)
def test_every_door_gives_the_rows_of_torchs_own_call(leaf, door, outer, way):
    if leaf == "forward of the instance" and door != "called":
        pytest.skip("what the user puts into an instance is theirs")
    report = way(outer(LEAVES[leaf](), DOORS[door]))
    expected = (1, MACS, [[2, 8]], [[2, 4]])
    assert rows_of(report) == {"": expected, "leaf": expected}
    assert report.total.macs == MACS
    assert report.coverage.uncalled_modules == []
    assert "weights-used-elsewhere" not in {note.code for note in report.coverage.notes}


def test_keywords_and_their_shapes():
    report = roofprof.count(Model(lambda self, value: self.leaf.forward(input=value), leaf=linear()), x())
    assert rows_of(report)["leaf"] == (1, MACS, [[2, 8]], [[2, 4]])


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


def test_containers_and_calls_in_a_row():
    stack = nn.Sequential(linear(), nn.ReLU())
    model = Model(lambda self, value: self.stack.forward(value) + self.stack(value), stack=stack)
    report = roofprof.count(model, x())
    assert calls(report) == {"": 1, "stack": 2, "stack.0": 2, "stack.1": 2}
    assert macs(report) == {"stack.0": 2 * MACS}


def test_a_forward_that_calls_itself_is_one_call():
    def forward(self, value, again=True):
        return torch.cat([self.forward(half, again=False) for half in value.chunk(2)]) if again else self.fc(value)

    report = roofprof.count(Model(lambda self, value: self.part.forward(value), part=Model(forward, fc=linear())), x())
    assert calls(report) == {"": 1, "part": 1, "part.fc": 2}
    assert report.total.macs == MACS


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
    report = roofprof.count(Model(lambda self, value: self.around(value), around=Around()), x())
    assert macs(report) == {"around": MACS, "around.inner": inner}
    assert calls(report)["around"] == 1


@pytest.mark.parametrize("way", [of_count, of_block], ids=lambda way: way.__name__)
def test_a_forward_that_raises_is_left(way):
    def forward(self, value):
        try:
            self.bad.forward(value)
        except ZeroDivisionError:
            return self.fc(value)

    bad = Model(lambda self, value: 1 / 0)
    report = way(Model(forward, bad=bad, fc=linear()))
    assert macs(report) == {"fc": MACS}
    assert calls(report)["bad"] == 1


def test_an_exception_comes_through_as_it_was():
    error = ZeroDivisionError("mine")

    def forward(self, value):
        raise error

    with pytest.raises(ZeroDivisionError) as raised:
        roofprof.count(OwnOuter(Model(forward), lambda leaf, value: leaf.forward(value)), x())
    assert raised.value is error


def test_work_that_bypasses_torch_and_work_for_later_are_seen():
    def bypasses(self, value):
        return torch.from_numpy(value.numpy() * 2)

    def later(self, value):
        yield value

    model = Model(
        lambda self, value: (self.a.forward(value), self.b.forward(value))[0], a=Model(bypasses), b=Model(later)
    )
    report = roofprof.count(model, x())
    assert "deferred-work" in {note.code for note in report.coverage.notes}
    assert report.coverage.unobserved


def test_threads_of_the_call():
    def forward(self, value):
        results = []
        thread = threading.Thread(target=lambda: results.append(self.leaf(value)))
        thread.start()
        thread.join()
        return results[0]

    report = roofprof.count(Model(forward, leaf=OwnLeaf()), x())
    assert macs(report) == {"leaf": MACS}
    assert calls(report)["leaf"] == 1


def test_two_profiles_of_one_model_at_once():
    model = OwnOuter(OwnLeaf(), DOORS["forward"])
    assert [calls(report)["leaf"] for report in profiled_at_once(model, x())] == [1, 1]
    assert vars(nn.Linear)["forward"].__class__ is type(lambda: 0)


def test_calls_of_other_models_are_others():
    model, other = OwnOuter(OwnLeaf(), DOORS["forward"]), OwnOuter(OwnLeaf(), DOORS["forward"])
    with profiler(model) as profile:
        other(x())
        model(x())
    report = profile.report()
    assert macs(report) == {"leaf": MACS, "(outside)": MACS}
    assert calls(report)["leaf"] == 1


# ---- what users see of it: nothing


def functions_of(model):
    kinds = {base for module in model.modules() for base in type(module).__mro__}
    return {(kind, name): vars(kind)[name] for kind in kinds for name in ("forward", "__call__") if name in vars(kind)}


def test_classes_and_modules_are_as_before():
    model = OwnOuter(nn.Sequential(OwnLeaf(), nn.ReLU()), DOORS["forward"])
    before, attributes = functions_of(model), [set(vars(module)) for module in model.modules()]
    with profiler(model):
        assert [set(vars(module)) for module in model.modules()] == attributes
        model(x())
    assert all(now is before[key] for key, now in functions_of(model).items())
    with pytest.raises(ZeroDivisionError), profiler(model):
        raise ZeroDivisionError
    assert all(now is before[key] for key, now in functions_of(model).items())


def test_a_forward_looks_the_same():
    model = Outer(linear(), DOORS["called"])
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
    original = Layer.forward
    with profiler(model) as profile:
        replaced = Layer.forward

        def mine(self, value):
            return replaced(self, value)

        Layer.forward = mine
        model(x())
    assert Layer.forward is mine
    assert macs(profile.report()) == {"0": MACS}
    assert calls(profile.report())["0"] == 1
    Layer.forward = replaced  # as a context manager of the user's would
    report = roofprof.count(model, x())
    assert (calls(report)["0"], macs(report)) == (1, {"0": MACS})
    assert Layer.forward == original


def test_an_instances_forward_that_is_set_inside_is_the_users():
    model = nn.Sequential(linear())
    with profiler(model) as profile:
        forward = model[0].forward
        model[0].forward = functools.partial(lambda value: forward(value))  # as accelerate's hooks do
        model(x())
    assert (calls(profile.report())["0"], macs(profile.report())) == (1, {"0": MACS})
    assert set(vars(model[0])) >= {"forward"}
    torch.testing.assert_close(model(x()), torch.nn.functional.linear(x(), model[0].weight))


def test_bound_methods_of_the_block_work_after_it():
    model = nn.Sequential(linear())
    with profiler(model):
        forward = model[0].forward
    torch.testing.assert_close(forward(x()), model(x()))


def test_nothing_keeps_a_model_alive():
    model = OwnOuter(OwnLeaf(), DOORS["forward"])
    gone = weakref.ref(model)
    roofprof.count(model, x())
    with profiler(model):
        model(x())
    del model
    gc.collect()
    assert gone() is None


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


def test_compiled_code_stays_compiled_and_compiles_inside():
    made = []

    def backend(graph, _):
        made.append(graph)
        return graph.forward

    model = Outer(nn.Sequential(linear(), nn.ReLU()), lambda leaf, value: leaf.forward(value) + 1)
    compiled = torch.compile(model, backend=backend)
    compiled(x())
    assert len(made) == 1
    with profiler(model) as profile:
        compiled(x())
    assert len(made) == 1
    assert calls(profile.report())[""] == 1
    torch._dynamo.reset()
    with profiler(model):
        torch.compile(lambda value: model(value) * 2, backend=backend, fullgraph=True)(x())
    assert len(made) == 2


# ---- modules whose parameters others use


def used(report):
    return [note.where for note in report.coverage.notes if note.code == "weights-used-elsewhere"]


class Projects(nn.Module):
    """Uses the parameters of what is inside of it."""

    def __init__(self, **children):
        super().__init__()
        for name, child in children.items():
            setattr(self, name, child)

    def forward(self, value):
        for child in self.children():
            value = nn.functional.linear(value, child.weight)
        return value


def test_modules_whose_weights_others_use_are_named():
    report = roofprof.count(Projects(a=linear()), x())
    assert (calls(report), macs(report)) == ({"": 1, "a": 0}, {"": MACS})
    assert used(report) == [["a"]]
    assert report.coverage.uncalled_modules == []
    assert "that work is in the rows of others: a" in str(report)


def test_a_forward_that_was_taken_before_the_block_is_named():
    layer = linear()
    forward = layer.forward
    report = roofprof.count(Model(lambda self, value: forward(value), fc=layer), x())
    assert (calls(report)["fc"], macs(report)) == (0, {"": MACS})
    assert used(report) == [["fc"]]


def tied():
    table, head = nn.Embedding(5, 8), nn.Linear(8, 5, bias=False)
    head.weight = table.weight
    model = Model(
        lambda self, value: nn.functional.linear(self.table(value), self.table.weight), table=table, head=head
    )
    return model, torch.zeros(2, dtype=torch.long)


def called_too():
    return Model(lambda self, value: self.fc(value) + nn.functional.linear(value, self.fc.weight), fc=linear()), x()


def table_alone():
    return Model(lambda self, value: value @ self.queries.weight.t(), queries=nn.Embedding(4, 8)), x()


def attention():
    attend = nn.MultiheadAttention(8, 2, batch_first=True)
    return Model(lambda self, value: self.attend(value, value, value)[0], attend=attend), torch.ones(1, 2, 8)


def fast_path():
    return nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), torch.ones(1, 2, 8)


def parametrized():
    layer = torch.nn.utils.parametrizations.weight_norm(nn.Linear(8, 4))
    return Model(lambda self, value: self.fc(value), fc=layer), x()


def spectral():
    return nn.Sequential(torch.nn.utils.parametrizations.spectral_norm(nn.Linear(8, 4))), x()


def old_weight_norm():
    return nn.Sequential(torch.nn.utils.weight_norm(nn.Linear(8, 4))), x()


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    "make", [tied, called_too, table_alone, attention, fast_path, parametrized, spectral, old_weight_norm]
)
def test_who_uses_parameters_as_all_do_is_not_named(make):
    model, value = make()
    with torch.no_grad():
        assert used(roofprof.count(model, value)) == []
        with profiler(model) as profile:
            model(value)
        assert used(profile.report()) == []


def test_modules_inside_compiled_code_are_not_named():
    model = Outer(nn.Sequential(linear(), nn.ReLU()), DOORS["called"])
    compiled = torch.compile(model, backend="aot_eager")
    with profiler(model) as profile:
        compiled(x())
        compiled(x())
    assert used(profile.report()) == []
    assert used(profiler(compiled).run(x())) == []
