"""Calls of modules around torch's code of a call: what users see, and what is counted, is as with torch's code."""

import contextlib
import copy
import functools
import gc
import os
import pickle
import sys
import threading
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


def of_count(model):
    return roofprof.count(model, x())


def of_run(model):
    return profiler(model, repeat=2).run(x())


def of_block(model):
    with profiler(model) as profile:
        model(x())
    return profile.report()


def of_step(model):
    return profiler(model, repeat=2).run_step(lambda: model(x()))


@pytest.mark.parametrize("way", [of_count, of_run, of_block, of_step], ids=lambda way: way.__name__)
def test_calls_are_short_where_only_roofprof_has_hooks(way):
    model = outer()
    report = way(model)
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
    return first, model(x())


def own_call_put_into_class(model):
    class Other(Leaf):
        pass

    model.leaf.__class__ = Other
    first = model(x())
    Other.__call__ = lambda self, value: Leaf.__call__(self, value) * 5
    second = model(x())
    del Other.__call__
    return first, second, model(x())


def called_by_name(model):
    return model.leaf.__call__(x()), nn.Module.__call__(model.leaf, x()), model(x())


def with_keywords(model):
    return model.leaf(input=x()) if not isinstance(model.leaf, Leaf) else model.leaf(value=x(), by=2), model(value=x())


@contextlib.contextmanager
def replaced(owner, name, value):
    before = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield before
    finally:
        setattr(owner, name, before)


def with_patched(name, model):
    seen = []

    def patched(self, *args, **kwargs):
        seen.append(self)
        return call(self, *args, **kwargs)

    first = model(x())
    with replaced(nn.Module, name, patched) as call:
        second = model(x())
    assert seen == [model, model.leaf]
    return first, second, model(x())


def patched_call(model):
    return with_patched("__call__", model)


def patched_call_impl(model):
    return with_patched("_call_impl", model)


def counting(self, *args, **kwargs):
    seen.append(self)  # noqa: F821 (a name of torch's module)
    return self.forward(*args, **kwargs)


def patched_code(model):
    inner = nn.Module._call_impl.__code__

    first = model(x())
    nn_module.seen = seen = []
    nn.Module._call_impl.__code__ = counting.__code__
    try:
        second = model.leaf(x())
    finally:
        nn.Module._call_impl.__code__ = inner
        del nn_module.seen
    assert seen == [model.leaf]
    return first, second, model(x())


def patched_tables(model):
    seen = []
    first = model(x())
    tables = {**nn_module._global_forward_pre_hooks, -1: lambda module, _: seen.append(module)}
    with replaced(nn_module, "_global_forward_pre_hooks", tables):
        second = model(x())
    assert seen == [model, model.leaf]
    return first, second, model(x())


def call_impl_of_instance(model):
    call = model.leaf._call_impl
    model.leaf._call_impl = lambda value: call(value) * 7
    return model(x())


def tables_of_instance(model):
    model.leaf._forward_hooks = {1: lambda _module, _args, output: output + 1}
    return model(x())


def own_pre_hook(model):
    with model.leaf.register_forward_pre_hook(lambda _, args: (args[0] * 2,)):
        first = model(x())
    return first, model(x())


def own_hook(model):
    with model.leaf.register_forward_hook(lambda _module, _args, output: output - 1):
        first = model(x())
    return first, model(x())


def own_hooks_with_keywords(model):
    def before(_module, args, kwargs):
        return args, {"by": 3, **kwargs}

    def after(_module, _args, kwargs, output):
        return output + kwargs["by"]

    with (
        model.leaf.register_forward_pre_hook(before, with_kwargs=True),
        model.leaf.register_forward_hook(after, with_kwargs=True),
    ):
        return model(x())


def global_hooks(model):
    first = model(x())
    with nn_module.register_module_forward_pre_hook(lambda module, args: (args[0] + 1,) if module is model else None):
        second = model(x())
    with nn_module.register_module_forward_hook(lambda module, _, output: output * 2 if module is model.leaf else None):
        third = model(x())
    return first, second, third, model(x())


def hook_that_the_forward_registers(model):
    """It is called from the next call on, or from this one: as with torch's code, that depends on other hooks."""
    handles = []
    forward = model.leaf.forward

    def registers(value):
        handles.append(model.leaf.register_forward_hook(lambda *_: None))
        return forward(value)

    model.leaf.forward = registers
    first = model(x())
    for handle in handles:
        handle.remove()
    return first, model.leaf(x())


class ExpectedError(Exception):
    pass


def always_called_hook(model):
    seen = []

    def fail(*_):
        raise ExpectedError

    def always(*_):
        seen.append("called")

    with (
        model.leaf.register_forward_hook(fail),
        model.leaf.register_forward_hook(always, always_call=True),
        contextlib.suppress(ExpectedError),
    ):
        model(x())
    return torch.tensor(len(seen)), model(x())


def raising_hook(model):
    def fail(*_):
        raise ExpectedError

    with model.leaf.register_forward_pre_hook(fail), contextlib.suppress(ExpectedError):
        model(x())
    return model(x())


def raising_forward(model):
    forward = model.leaf.forward

    def fail(_):
        raise ExpectedError("mine")

    model.leaf.forward = fail
    with pytest.raises(ExpectedError, match=r"^mine$") as raised:
        model(x())
    assert raised.value.__context__ is raised.value.__cause__ is None
    model.leaf.forward = forward
    return model(x())


def interrupted_forward(model):
    forward = model.leaf.forward

    def fail(_):
        raise KeyboardInterrupt

    model.leaf.forward = fail
    with pytest.raises(KeyboardInterrupt):
        model(x())
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


def by_name_of_parameters(model):
    doubled = {"leaf.weight": model.leaf.weight * 2}
    return torch.func.functional_call(model, doubled, (x(),)), model(x())


def checkpointed(model):
    given = x().requires_grad_()
    output = torch.utils.checkpoint.checkpoint(model, given, use_reentrant=False)
    return output, *torch.autograd.grad(output.sum(), given)


def transformed(model):
    return torch.vmap(model.leaf)(torch.ones(1, 2, 8)), torch.func.grad(lambda value: model.leaf(value).sum())(x())


def from_threads(model):
    outputs = []
    threads = [threading.Thread(target=lambda: outputs.append(model.leaf(x()))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outputs


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


def script_made(model):
    traced = torch.jit.trace(model.leaf, x(), check_trace=False)
    return traced(x()), model(x())


def graph_made(model):
    graph = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(8, 4, bias=False)))
    assert [node.op for node in graph.graph.nodes] == ["placeholder", "call_module", "output"]
    return model(x())


def changed_class(model):
    class Other(Leaf):
        pass

    model.leaf.__class__ = Other
    return model(x())


def is_called_shortly_now(model):
    model.leaf.__class__ = Leaf
    model(x())
    return model.leaf.short[-1]


KINDS = [
    (replaced_in_instance, 1),
    (replaced_in_class, 2),
    (own_call_put_into_class, 3),
    (called_by_name, 3),
    (with_keywords, 2),
    (patched_call, 3),
    (patched_call_impl, 3),
    (call_impl_of_instance, 1),
    (tables_of_instance, 1),
    (own_pre_hook, 2),
    (own_hook, 2),
    (own_hooks_with_keywords, 1),
    (global_hooks, 4),
    (hook_that_the_forward_registers, 2),
    (always_called_hook, 2),
    (raising_hook, 2),
    (raising_forward, 2),
    (interrupted_forward, 2),
    (full_backward_hooks, 3),
    (by_name_of_parameters, 2),
    (checkpointed, 2),
    (transformed, 2),
    (from_threads, 3),
    (copied, 1),
    (compiled_in_place, 2),
    (script_made, 2),
    (graph_made, 1),
    (changed_class, 1),
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


def test_code_and_tables_of_torchs_that_others_replace_are_those_in_effect():
    for kind in (patched_code, patched_tables):
        plain = kind(fresh())
        output, *_ = in_block(kind)
        torch.testing.assert_close(output, plain)


# ---- classes


class OwnAttributes(Leaf):
    def __getattribute__(self, name):
        value = super().__getattribute__(name)
        return {1: lambda *_: torch.zeros(2, 4)} if name == "_forward_hooks" else value


class HooksOfClass(Leaf):
    @property
    def _forward_hooks(self):
        return {1: lambda *_: torch.zeros(2, 4)}

    @_forward_hooks.setter
    def _forward_hooks(self, value):
        pass


class PropertyForward(Leaf):
    @property
    def forward(self):
        return lambda value: nn.functional.linear(value, self.weight)


class StaticForward(Leaf):
    @staticmethod
    def forward(value):
        return value @ torch.ones(8, 4)


class ClassForward(Leaf):
    @classmethod
    def forward(cls, value):
        return value @ torch.ones(8, 4)


class PartialForward(Leaf):
    forward = functools.partialmethod(Leaf.forward, by=2)


class Slots(Leaf):
    __slots__ = ("extra",)


class ManyArguments(Leaf):
    def forward(self, value, *more):
        return super().forward(value) + len(more)


class OwnGetattr(Leaf):
    def __getattr__(self, name):
        return super().__getattr__(name)


CLASSES = [
    OwnAttributes,
    HooksOfClass,
    PropertyForward,
    StaticForward,
    ClassForward,
    PartialForward,
    Slots,
    ManyArguments,
    OwnGetattr,
]


@pytest.mark.parametrize("kind", CLASSES)
def test_classes_that_change_how_they_are_called(kind):
    torch.manual_seed(0)
    more = range(20 if kind is ManyArguments else 0)
    model = outer(lambda leaf, value: leaf(value, *more), leaf=kind)
    plain = model(x())
    with profiler(model) as profile:
        torch.testing.assert_close(model(x()), plain)
    assert calls(profile.report())["leaf"] == 1
    assert macs(profile.report()) == {"leaf": MACS}


def test_a_subclass_that_is_made_inside_is_called_by_torch():
    with profiler(model := outer()):
        model(x())
        layer = type("Made", (Leaf,), {})()
        layer(x())
    layer(x())
    assert model.leaf.short == [True]
    assert layer.short == [False, False]


def test_no_attribute_of_a_class_changes():
    model = outer()
    kinds = {base for module in model.modules() for base in type(module).__mro__}
    before = {kind: {name: value for name, value in vars(kind).items() if name != "forward"} for kind in kinds}
    with profiler(model):
        model(x())
        inside = {kind: {name: value for name, value in vars(kind).items() if name != "forward"} for kind in kinds}
        assert nn.Module.__call__ is nn.Module._wrapped_call_impl
        assert model.__call__.__func__ is nn.Module.__call__
    assert inside == before


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


def test_torchs_profiler_sees_modules():
    model = outer()
    with profiler(model) as profile, torch.profiler.profile(with_stack=True) as theirs:
        model(x())
    names = {event.name() for event in theirs.profiler.kineto_results.events()}
    assert {"nn.Module: Model_0", "nn.Module: Leaf_0"} <= names
    assert calls(profile.report())["leaf"] == 1


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
    with profiler(model):
        model(x())
    model(x())
    assert model.leaf.short == [False, False, True, False]


class TakesCache(nn.Module):
    def __init__(self):
        super().__init__()
        self.leaf, self.short = Leaf(), []

    def forward(self, input_ids, past_key_values=None, use_cache=None):
        self.short.append(is_short())
        return self.leaf(x())


def test_calls_of_language_models_are_told_and_those_inside_are_short():
    model = TakesCache()
    with profiler(model) as profile:
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


@pytest.mark.parametrize("raised", [ZeroDivisionError, KeyboardInterrupt])
def test_a_block_that_raises_leaves_nothing(raised):
    model = outer()
    with pytest.raises(raised), profiler(model):
        model(x())
        raise raised
    model(x())
    assert model.leaf.short == [True, False]


def test_a_block_that_ends_inside_of_a_call():
    profile = profiler(model := outer(lambda leaf, value: (profile.__exit__(None, None, None), leaf(value))[1]))
    profile.__enter__()
    torch.testing.assert_close(model(x()), model.leaf(x()))
    assert model.leaf.short == [False, False]
    assert calls(profile.report())["leaf"] == 0


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


def test_calls_are_short_again_after_a_compilation(backend):
    model = outer()
    with profiler(model):
        torch.compile(lambda value: value + 1, backend=backend)(x())
        model(x())
    assert model.leaf.short == [True]
