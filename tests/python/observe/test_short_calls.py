"""Calls of modules around torch's code of a call: what users see, and what is counted, is as with torch's code."""

import contextlib
import copy
import functools
import gc
import os
import pickle
import sys
import weakref

import pytest
import torch
from attributed import MACS, Model, calls, linear, macs, x
from given_roofs import profiled_at_once, profiler
from torch import nn
from torch.nn.modules import module as nn_module

import roofprof
from roofprof.models.short_calls import calls_are_torchs_own


def is_short():
    """Return whether the forward that calls this was called around torch's code."""
    return sys._getframe(2).f_globals is not vars(nn_module)


class Leaf(nn.Linear):
    """Keeps how each of its calls came."""

    def __init__(self):
        super().__init__(8, 4, bias=False)
        self.short = []

    def forward(self, value, by=1):
        self.short.append(is_short())
        return super().forward(value) * by


def outer(through=lambda leaf, value: leaf(value), leaf=Leaf):
    return Model(lambda self, value: through(self.leaf, value), leaf=leaf())


def of_block(model):
    with profiler(model) as profile:
        model(x())
    return profile.report()


WAYS = {
    "count": lambda model: roofprof.count(model, x()),
    "run": lambda model: profiler(model, repeat=2).run(x()),
    "block": of_block,
    "step": lambda model: profiler(model, repeat=2).run_step(lambda: model(x())),
}


@pytest.mark.parametrize("way", WAYS)
def test_calls_are_short_where_only_roofprof_has_hooks(way):
    model = outer()
    report = WAYS[way](model)
    assert model.leaf.short == [True]  # a run leaves the model as one call does
    assert (calls(report)[""], calls(report)["leaf"], macs(report)) == (1, 1, {"leaf": MACS})
    model(x())
    assert model.leaf.short == [True, False]


# ---- every kind of call gives what it gives without a profile, and the counts that torch's own calls give


def replaced_in_instance(model):
    forward = model.leaf.forward
    model.leaf.forward = functools.partial(lambda value: forward(value) + 1)
    return model(x())


def replaced_in_class(model):
    class Other(Leaf):
        pass

    model.leaf.__class__ = Other
    first = model(x())
    forward = Other.forward
    Other.forward = lambda self, value: forward(self, value) * 3
    second = model(x())
    Other.__call__ = lambda self, value: Leaf.__call__(self, value) * 5
    third = model(x())
    del Other.__call__
    return first, second, third, model(x())


def called_otherwise(model):
    return model.leaf.__call__(x()), nn.Module.__call__(model.leaf, x()), model.leaf(value=x(), by=2), model(value=x())


@contextlib.contextmanager
def replaced(owner, name, value):
    before = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield before
    finally:
        setattr(owner, name, before)


def patched(model):
    outputs = [model(x())]
    for name in ("__call__", "_call_impl"):
        seen = []

        def of_others(self, *args, **kwargs):
            seen.append(self)  # noqa: B023
            return call(self, *args, **kwargs)

        with replaced(nn.Module, name, of_others) as call:
            outputs.append(model(x()))
        assert seen == [model, model.leaf]
    return *outputs, model(x())


def own_hooks(model):
    def before(_module, args, kwargs):
        return (args[0] * 2,), {"by": 3, **kwargs}

    def after(_module, _args, kwargs, output):
        return output + kwargs["by"]

    with (
        model.leaf.register_forward_pre_hook(before, with_kwargs=True),
        model.leaf.register_forward_hook(after, with_kwargs=True),
    ):
        first = model(x())
    return first, model(x())


def global_hooks(model):
    first = model(x())
    with nn_module.register_module_forward_pre_hook(lambda module, args: (args[0] + 1,) if module is model else None):
        second = model(x())
    with nn_module.register_module_forward_hook(lambda module, _, output: output * 2 if module is model.leaf else None):
        third = model(x())
    return first, second, third, model(x())


class ExpectedError(Exception):
    pass


def raising_hooks(model):
    seen = []

    def fail(*_):
        raise ExpectedError

    for before in (True, False):
        leaf = model.leaf
        fails = leaf.register_forward_pre_hook(fail) if before else leaf.register_forward_hook(fail)
        always = leaf.register_forward_hook(lambda *_: seen.append("called"), always_call=True)
        with fails, always, pytest.raises(ExpectedError):
            model(x())
    return torch.tensor(len(seen)), model(x())


def raising_forward(model):
    forward = model.leaf.forward
    for error in (ExpectedError("mine"), KeyboardInterrupt("mine")):

        def fail(_):
            raise error  # noqa: B023

        model.leaf.forward = fail
        with pytest.raises(type(error), match=r"^mine$") as raised:
            model(x())
        assert raised.value is error
        assert error.__context__ is error.__cause__ is None
    model.leaf.forward = forward
    return model(x())


def full_backward_hooks(model):
    gradients = []

    def keep(_module, given, _output=None):
        gradients.extend(given)

    with model.leaf.register_full_backward_pre_hook(keep), model.leaf.register_full_backward_hook(keep):
        model(x().requires_grad_()).sum().backward()
    with nn_module.register_module_full_backward_hook(lambda module, given, _: gradients.extend(given)):
        model(x().requires_grad_()).sum().backward()
    return gradients, model(x())


def copied(model):
    same = copy.deepcopy(model)
    again = pickle.loads(pickle.dumps(model.leaf))
    assert list(vars(model.leaf)) == list(vars(same.leaf)) == list(vars(again))
    assert list(model.state_dict()) == ["leaf.weight"]
    return same(x()), again(x()), model(x())


def compiled_in_place(model):
    model.leaf.compile(backend="eager")
    first = model(x())
    model.leaf._compiled_call_impl = None
    return first, model(x())


def is_called_shortly_now(model):
    model.leaf.__class__ = Leaf
    model(x())
    return model.leaf.short[-1]


KINDS = [
    (replaced_in_instance, 1),
    (replaced_in_class, 4),
    (called_otherwise, 4),
    (patched, 4),
    (own_hooks, 2),
    (global_hooks, 4),
    (raising_hooks, 3),
    (raising_forward, 3),
    (full_backward_hooks, 3),
    (copied, 1),
    (compiled_in_place, 2),
]


def fresh():
    torch.manual_seed(0)
    return outer()


def in_block(kind):
    model = fresh()
    with profiler(model) as profile:
        output = kind(model)
    return output, profile.report(), model


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:Dynamo does not know")
@pytest.mark.parametrize(("kind", "expected"), KINDS, ids=lambda each: getattr(each, "__name__", None))
def test_every_kind_of_call_is_as_torchs(kind, expected):
    plain = kind(fresh())
    output, short, model = in_block(kind)
    torch.testing.assert_close(output, plain)
    with nn_module.register_module_forward_pre_hook(lambda *_: None):
        output, long, _ = in_block(kind)
    torch.testing.assert_close(output, plain)
    assert calls(short)["leaf"] == calls(long)["leaf"] == expected
    assert calls(short) == calls(long)
    assert macs(short) == macs(long)
    model.leaf.__dict__.pop("forward", None)
    assert not is_called_shortly_now(model)


CLASSES = {
    "hooks": {"_forward_hooks": property(lambda _: {1: lambda *_: torch.zeros(2, 4)}, lambda *_: None)},
    "property": {"forward": property(lambda self: lambda value: nn.functional.linear(value, self.weight))},
    "static": {"forward": staticmethod(lambda value: value @ torch.ones(8, 4))},
    "class's": {"forward": classmethod(lambda _, value: value @ torch.ones(8, 4))},
    "partial": {"forward": functools.partialmethod(Leaf.forward, by=2)},
    "many arguments": {"forward": lambda self, value, *more: Leaf.forward(self, value) + len(more)},
    "getattr": {"__getattr__": lambda self, name: nn.Module.__getattr__(self, name)},
}


@pytest.mark.parametrize("kind", CLASSES)
def test_classes_that_change_how_they_are_called(kind):
    torch.manual_seed(0)
    more = range(20 if kind == "many arguments" else 0)
    model = outer(lambda leaf, value: leaf(value, *more), leaf=type("Other", (Leaf,), CLASSES[kind]))
    plain = model(x())
    with profiler(model) as profile:
        torch.testing.assert_close(model(x()), plain)
    assert calls(profile.report())["leaf"] == 1
    assert macs(profile.report()) == {"leaf": MACS}


# ---- who else looks


@pytest.mark.parametrize("watch", [sys.settrace, sys.setprofile])
def test_tracers_and_profilers_see_torchs_code(watch):
    model, seen = outer(), set()

    def note(frame, _event, _argument):
        seen.add(frame.f_code)

    with profiler(model) as profile:
        before = sys.gettrace() if watch is sys.settrace else sys.getprofile()
        watch(note)
        try:
            model(x())
        finally:
            watch(before)
        model(x())
    assert nn.Module._call_impl.__code__ in seen
    assert model.leaf.short == [False, True]
    assert calls(profile.report())["leaf"] == 2


def test_code_that_does_more_than_is_known_is_left_alone():
    assert calls_are_torchs_own()
    original = nn.Module._call_impl

    def more(self, *args, **kwargs):
        return original(self, *args, **kwargs)

    with replaced(nn.Module, "_call_impl", more):
        assert not calls_are_torchs_own()
        model = outer()
        report = of_block(model)
    assert model.leaf.short == [False]
    assert calls(report)["leaf"] == 1


def test_two_blocks_at_once_and_what_remains_of_them():
    model = outer()
    assert [calls(report)["leaf"] for report in profiled_at_once(model, x())] == [1, 1]
    assert model.leaf.short == [False, False]
    with pytest.raises(KeyboardInterrupt), profiler(model):
        model(x())
        raise KeyboardInterrupt
    model(x())
    assert model.leaf.short == [False, False, True, False]


def test_calls_of_language_models_are_reported_and_those_inside_are_short():
    class TakesCache(nn.Module):
        def __init__(self):
            super().__init__()
            self.leaf, self.short = Leaf(), []

        def forward(self, input_ids, past_key_values=None, use_cache=None):
            self.short.append(is_short())
            return self.leaf(x())

    with profiler(model := TakesCache()) as profile:
        model(torch.zeros(2, 3, dtype=torch.long), use_cache=True)
    [phase] = profile.report().language_model
    assert (phase.name, phase.calls, phase.tokens) == ("prefill", 1, 6)
    assert (model.short, model.leaf.short) == ([False], [True])


def test_a_forked_child_calls_modules():
    model = outer()
    plain = model(x())
    with profiler(model) as profile:
        child = os.fork()
        if child == 0:
            os._exit(0 if torch.equal(model(x()), plain) else 1)
        assert os.waitpid(child, 0)[1] == 0
        model(x())
    assert calls(profile.report())["leaf"] == 1


def test_an_exception_has_the_frames_of_the_users_code_alone():
    def fail(self, value):
        raise ExpectedError

    model = outer(leaf=lambda: Model(fail))
    with profiler(model), pytest.raises(ExpectedError) as raised:
        model(x())
    files = {entry.path.name for entry in raised.traceback}
    assert files == {"test_short_calls.py", "attributed.py"}


def test_classes_and_models_go_when_nobody_has_them():
    model = outer(leaf=type("Made", (Leaf,), {}))
    gone = weakref.ref(model), weakref.ref(type(model.leaf))
    of_block(model)
    del model
    gc.collect()
    assert [each() for each in gone] == [None, None]


# ---- torch.compile


def test_compiled_code_breaks_and_is_compiled_as_often(backend):
    def forward(self, value):
        value = self.first(value)
        torch._dynamo.graph_break()
        return self.last(value)

    def compiled():
        return torch.compile(model, backend=backend)

    model = nn.Sequential(Model(forward, first=linear(), last=nn.Sequential(nn.Linear(4, 4, bias=False), nn.ReLU())))
    compiled()(x())
    graphs = backend.frame_count
    with profiler(model) as profile:
        compiled()(x())
        model(x())
        compiled()(x())
    compiled()(x())
    assert backend.frame_count == graphs == 2
    assert calls(profile.report())[""] == 3
    torch._dynamo.reset()
    with profiler(model):
        compiled()(x())
    compiled()(x())
    assert backend.frame_count == 2 * graphs
