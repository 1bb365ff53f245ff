"""The line of a module's forward: inspect's truth, or nothing where it is not certain."""

from __future__ import annotations

import functools
import inspect
import types

import pytest
import torch
from torch import nn
from written_elsewhere import Base, by_default, by_list, by_object, honest, renamed, silent

import roofprof


def sources_of(model: nn.Module) -> dict[str, str]:
    """Return the source of each module as a report has it."""
    report = roofprof.count(model, torch.rand(2, 4))
    return {module["path"]: module.get("source", "") for module in report.to_dict()["modules"]}


def line(of) -> str:
    """Return where inspect says that a function is written."""
    function = inspect.unwrap(of)
    return f"{function.__code__.co_filename.rpartition('/')[2]}:{inspect.getsourcelines(function)[1]}"


class Plain(nn.Module):
    def forward(self, x):
        return x + 1


class Inherits(Base):
    pass


class Alias(nn.Module):
    def run(self, x):
        return x + 2

    forward = run


class Honest(nn.Module):
    @honest
    @honest
    def forward(self, x):
        return x + 3


class Silent(nn.Module):
    @silent
    def forward(self, x):
        return x + 4


class Renamed(nn.Module):
    @renamed
    def forward(self, x):
        return x + 4


class ThroughObject(nn.Module):
    @by_object
    def forward(self, x):
        return x + 4


class ThroughDefault(nn.Module):
    @by_default
    def forward(self, x):
        return x + 4


class ThroughList(nn.Module):
    @by_list
    def forward(self, x):
        return x + 4


class NoGrad(nn.Module):
    @torch.no_grad()
    def forward(self, x):
        return x + 5


class Compiled(nn.Module):
    @torch.compile(backend="eager")
    def forward(self, x):
        return x + 5


class Ignored(nn.Module):
    @torch.compiler.disable
    def forward(self, x):
        return x + 5


def of_class_in_function():
    helper = functools.partial(torch.add, other=1)

    def other(x):
        return helper(x)

    class Local(nn.Module):
        def forward(self, x):
            return other(x)

    return Local()


def written_on_its_own(self, x):
    return x + 7


def instances():
    """Yield modules whose forward is their own, and the function that is the truth; None where it is not certain."""
    by_lambda = Plain()
    by_lambda.forward = lambda x: x + 6
    yield "lambda", by_lambda, by_lambda.forward
    bound = Plain()
    bound.forward = types.MethodType(written_on_its_own, bound)
    yield "method", bound, written_on_its_own
    by_partial = Plain()
    by_partial.forward = functools.partial(written_on_its_own, by_partial)
    yield "partial", by_partial, written_on_its_own
    as_accelerate = Plain()  # which puts its hooks around a forward so
    as_accelerate.forward = functools.update_wrapper(
        functools.partial(written_on_its_own, as_accelerate), Plain().forward
    )
    yield "partial that says what it wraps", as_accelerate, Plain.forward
    wrapped = Plain()
    wrapped.forward = silent(wrapped.forward)
    yield "silent decorator on the instance", wrapped, None
    named = Plain()
    named.forward = honest(named.forward)
    yield "decorator on the instance", named, Plain.forward
    torchs = nn.Linear(4, 4)
    torchs.forward = honest(torchs.forward)
    yield "torch's own, decorated", torchs, None


CLASSES = [
    (Plain, Plain.forward),
    (Inherits, Base.forward),
    (Alias, Alias.run),
    (Honest, Honest.forward),
    (Silent, None),
    (Renamed, None),
    (ThroughObject, None),
    (ThroughDefault, None),
    (ThroughList, None),
    (NoGrad, NoGrad.forward),
    (Compiled, Compiled.forward),
    (Ignored, Ignored.forward),
]


def patched(forward):
    class Patched(nn.Module):
        pass

    Patched.forward = forward
    return Patched()


def cases():
    """Yield a name, a module, and the function that is the truth; None where it is not certain."""
    yield from ((kind.__name__, kind(), truth) for kind, truth in CLASSES)
    yield from instances()
    local = of_class_in_function()
    yield "a class that a function makes", local, type(local).forward
    yield "patched", patched(written_on_its_own), written_on_its_own
    yield "silently patched", patched(silent(written_on_its_own)), None
    for name, wrapped in (("wraps itself", lambda own: own), ("wraps a partial of itself", functools.partial)):
        circular = patched(lambda self, x: x)
        circular_forward = type(circular).forward
        circular_forward.__wrapped__ = wrapped(circular_forward)
        yield name, circular, None
    yield "torch.compile", torch.compile(Plain(), backend="eager"), Plain.forward


@pytest.mark.parametrize(("module", "truth"), [one[1:] for one in cases()], ids=[one[0] for one in cases()])
def test_forwards(module, truth):
    found = {source.rpartition("/")[2] for path, source in sources_of(nn.Sequential(module)).items() if path}
    assert found - {""} == ({line(truth)} if truth else set())


def test_scripted_forwards_name_no_wrong_line():
    sources = sources_of(torch.jit.script(nn.Sequential(Plain(), nn.Linear(4, 4))))
    assert set(sources.values()) <= {"", sources_of(nn.Sequential(Plain()))["0"]}


@pytest.mark.integration
def test_forwards_of_hugging_face_are_those_of_its_files():
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    for name in ("Llama", "Bert"):
        config = getattr(transformers, f"{name}Config")(**sizes, vocab_size=50)
        model = getattr(transformers, f"{name}Model")(config)
        report = roofprof.count(model, torch.ones(1, 4, dtype=torch.int64))
        modules = {module["path"]: module for module in report.to_dict()["modules"]}
        for path, part in model.named_modules():
            source = modules[path].get("source", "")
            if type(part).__module__.startswith("torch."):
                assert source == "", path
            elif source:
                truth = {line(base.__dict__["forward"]) for base in type(part).__mro__ if "forward" in base.__dict__}
                assert source.rpartition("/")[2] in truth, path
        assert modules[""]["source"]
