"""torch's own operator database, run on the CPU: the first samples of each entry, forward and backward."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

SAMPLES_OF_EACH = 3
DTYPES = (torch.float32, torch.float64, torch.complex64, torch.int64, torch.bool)


@dataclass
class Sample:
    """One call of an entry of the database."""

    entry: Any
    input: Any

    @property
    def name(self):
        return self.entry.formatted_name

    def forward(self):
        return self.entry(self.input.input, *self.input.args, **self.input.kwargs)

    def both(self):
        """The backward is left out where the entry has none, or the sample's output needs no gradient."""
        output = self.forward()
        if not self.entry.supports_autograd:
            return
        # Entries whose gradient is defined for a part of the output only say which.
        parts = [part for part in tensors_in(self.input.output_process_fn_grad(output)) if part.requires_grad]
        inputs = [tensor for tensor in self.inputs() if tensor.requires_grad]
        if parts and inputs:
            torch.autograd.grad(parts, inputs, [torch.ones_like(part) for part in parts], allow_unused=True)

    def inputs(self):
        return tensors_in([self.input.input, list(self.input.args), self.input.kwargs])


@dataclass
class Outermost:
    """What torch.profiler saw of the operators that no other operator calls."""

    inside: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # everything below, by name
    alone: set[str] = field(default_factory=set)  # a call of it had nothing below


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [tensor for item in value for tensor in tensors_in(item)] if isinstance(value, list | tuple) else []


def samples(database):
    """The samples that run here, and the entries that have none, with what they raised."""
    torch.manual_seed(0)
    found, without = [], {}
    for entry in database:
        try:
            mine = [Sample(entry, sample) for sample in first_inputs(entry)]
            for sample in mine:
                sample.both()
            found += mine
        except Exception as error:  # noqa: BLE001 - the test names every one of them
            without[entry.formatted_name] = f"{type(error).__name__}: {error}"
    return found, without


def first_inputs(entry):
    supported = entry.supported_dtypes("cpu")
    dtype = next((dtype for dtype in DTYPES if dtype in supported), None) or next(iter(supported))
    differentiable = entry.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    return itertools.islice(entry.sample_inputs("cpu", dtype, requires_grad=differentiable), SAMPLES_OF_EACH)


def outermost(calls):
    """The calls under torch.profiler, whose tree of events tells which operator called which."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for sample in calls:
            with record_function(sample.name):
                sample.both()
    found = Outermost()
    todo = list(profiler.profiler.kineto_results.experimental_event_tree())
    while todo:
        event = todo.pop()
        if is_operator(event.name):
            found.inside[event.name] |= set(names_below(event))
            if not event.children:
                found.alone.add(event.name)
        else:  # a range of ours, or an autograd node
            todo += event.children
    return found


def is_operator(name):
    return "::" in name and not name.startswith(("autograd::", "torch::"))


def names_below(event):
    for child in event.children:
        yield child.name
        yield from names_below(child)


def schemas(name):
    """Of all overloads, out= forms left out."""
    found = torch._C._jit_get_schemas_for_operator(name)
    return [schema for schema in found if not any(argument.is_out for argument in schema.arguments)]


def full_name(schema):
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name


def is_composite(name):
    """Made of other operators, says its registration: it has no kernel of its own."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return any(has_kernel(full_name(schema), "CompositeImplicitAutograd") for schema in schemas(name))


def is_view(name):
    """Every overload returns a view of its input, and writes nothing."""
    found = [result.alias_info for schema in schemas(name) for result in schema.returns]
    return bool(found) and all(alias is not None and not alias.is_write for alias in found)


def tags(name):
    namespace, _, plain = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), plain)
    return {tag for overload in packet.overloads() for tag in getattr(packet, overload).tags}
