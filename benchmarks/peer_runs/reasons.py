"""Why an original's figure is another one than ours, as data. Each reason's amount is from a plain record of the call.

A difference is explained only where the amounts of its tool's reasons add up to it exactly.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from peer_runs.recorded import Call, Op, Record


@dataclass(frozen=True)
class Reason:
    """A difference in what the original counts. amount: roofprof's figure less the original's, of one recorded call."""

    words: str
    amount: Callable[[Record], int]


# ---- what a record has


def in_multihead(op: Op) -> bool:
    """Return whether the op ran in nn.MultiheadAttention."""
    return any(isinstance(module, nn.MultiheadAttention) for module in op.modules)


def multihead_macs(record: Record) -> int:
    """Return the MACs of nn.MultiheadAttention: projections and products."""
    return record.macs(in_multihead)


def fused_attention_macs(record: Record) -> int:
    """Return the MACs of scaled_dot_product_attention elsewhere."""
    return record.macs(lambda op: "scaled_dot_product" in op.name and not in_multihead(op))


def _of_another_type(op: Op) -> bool:
    innermost = type(op.modules[-1]) if op.modules else None
    return innermost not in {nn.Conv2d, nn.Linear} and "scaled" not in op.name and not in_multihead(op)


def other_layers_macs(record: Record) -> int:
    """Return the MACs of products in modules other than nn.Linear and convolutions, such as GPT-2's Conv1D."""
    return record.macs(_of_another_type)


def sums(record: Record) -> int:
    """Elements of `x + y` and `x * y`, of tensors and numbers."""
    return record.elements("add", "add_", "mul", "mul_")


def gelu_bound_early(record: Record) -> int:
    """Return the elements of a GELU function, not nn.GELU, that the model imported before the tool patched torch."""
    return record.elements("gelu", where=lambda op: not op.modules or not isinstance(op.modules[-1], nn.GELU))


def biases_of_addmm(record: Record) -> int:
    """Return the difference for `torch.addmm` in the model's code: its bias counts once, not for each row."""
    return sum(
        op.elements - math.prod(op.inputs[0]) for op in record.ops if op.name == "addmm" and _of_another_type(op)
    )


def queries_and_softmax(record: Record) -> int:
    """The rule of ptflops for attention layers that know their head's size: the queries' scaling and the softmax."""
    attention = [op for op in record.ops if "scaled_dot_product" in op.name and not in_multihead(op)]
    known = [op for op in attention if hasattr(op.modules[-1], "head_dim")]
    return sum(math.prod(op.inputs[0]) + math.prod(op.inputs[0][:-1]) * op.inputs[1][-2] for op in known)


def _outputs(record: Record, *kinds: type[nn.Module]) -> int:
    return sum(math.prod(call.output) for call in record.of(*kinds))


def _inputs(record: Record, *kinds: type[nn.Module]) -> int:
    return sum(math.prod(call.input) for call in record.of(*kinds))


def relu6(record: Record) -> int:
    """Elements of nn.ReLU6."""
    return _outputs(record, nn.ReLU6)


def counted_twice_by_ptflops(record: Record) -> int:
    """Activations and poolings with both a rule for the module and one for the function that it calls."""
    activations = _outputs(record, nn.ReLU, nn.GELU)
    return -(activations + _inputs(record, nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d))


def parameters_without_rule_in_thop(record: Record) -> int:
    """Return the parameters of modules whose type has no rule, which are left out as well."""
    ruled = {nn.Conv2d, nn.BatchNorm2d, nn.LayerNorm, nn.Linear}
    unruled = (module for module in record.model.modules() if type(module) not in ruled)
    return sum(p.numel() for module in unruled for p in module.parameters(recurse=False))


def _own_parameters(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters(recurse=False))


def linear_by_parameters(record: Record) -> int:
    """Return the MACs of nn.Linear on three or more dimensions: all rows but one of each sample are left out."""

    def missing(call: Call) -> int:
        layer: Any = call.module
        elements = math.prod(call.output)
        real = elements * layer.in_features + (elements if layer.bias is not None else 0)
        return real - call.output[0] * _own_parameters(layer)

    return sum(missing(call) for call in record.of(nn.Linear) if len(call.output) > 2)


def _named(record: Record, name: str) -> list[Call]:
    return [call for call in record.calls if type(call.module).__name__ == name]


def conv1d_by_name(record: Record) -> int:
    """Return the difference for GPT-2's Conv1D: torchinfo takes it for a convolution, and its width for positions."""

    def missing(call: Call) -> int:
        taken = _own_parameters(call.module) * math.prod([call.output[0], *call.output[2:]])
        elements = math.prod(call.output)
        return elements * call.input[-1] + elements - taken

    return sum(missing(call) for call in _named(record, "Conv1D"))


def embedding_tables(record: Record) -> int:
    """Return the difference for embeddings, which count the whole table times the batch for a look-up of rows."""
    return -sum(call.output[0] * _own_parameters(call.module) for call in record.of(nn.Embedding))


def last_call_alone(record: Record) -> int:
    """Elements of activations in all calls of a module but its last one."""
    calls: defaultdict[int, list[int]] = defaultdict(list)
    for call in record.of(nn.ReLU, nn.ReLU6):
        calls[id(call.module)].append(math.prod(call.input))
    return sum(sum(elements[:-1]) for elements in calls.values())


def twice(amount: Callable[[Record], int]) -> Callable[[Record], int]:
    """Return the amount in FLOPs instead of MACs."""
    return lambda record: 2 * amount(record)


# ---- the table

_SUMS = Reason("`x + y` and `x * y` count 0", sums)
_RELU6 = Reason("ReLU6 as a module counts 0", relu6)
_FUSED = Reason("`scaled_dot_product_attention` counts 0", fused_attention_macs)
_FUSED_FLOPS = Reason(_FUSED.words, twice(fused_attention_macs))
_ADDMM = Reason("the bias in `torch.addmm` counts for one row", biases_of_addmm)
_FAST = Reason("the fast path of MultiheadAttention counts 0", multihead_macs)
_FAST_FLOPS = Reason(_FAST.words, twice(multihead_macs))
_GELU = Reason("a GELU taken from torch before the tool patched it counts 0", gelu_bound_early)

REASONS: dict[str, dict[str, tuple[Reason, ...]]] = {
    "thop": {
        "MACs": (
            Reason("no rule for MultiheadAttention: 0", multihead_macs),
            _FUSED,
            Reason("no rule for Conv1D: 0", other_layers_macs),
        ),
        "params": (Reason("parameters of types without a rule are left out", parameters_without_rule_in_thop),),
    },
    "fvcore": {"Flops": (_FAST, _FUSED)},
    "ptflops": {
        "MACs": (
            Reason("activations and poolings as modules count twice", counted_twice_by_ptflops),
            _SUMS,
            _FUSED,
            Reason("so do its scaling and softmax", queries_and_softmax),
            _GELU,
            _ADDMM,
        ),
    },
    "calflops": {"FLOPs": (_FAST_FLOPS, _FUSED_FLOPS, _SUMS, _RELU6, _GELU, _ADDMM), "MACs": (_FAST, _FUSED)},
    "deepspeed": {"flops": (_FAST_FLOPS, _SUMS, _RELU6, _GELU, _ADDMM), "MACs": (_FAST,)},
    "torchinfo": {
        "mult-adds": (
            Reason("MultiheadAttention counts 0", multihead_macs),
            _FUSED,
            Reason("linear layers on three dimensions count one row a sample", linear_by_parameters),
            Reason("Conv1D is taken for a convolution by its name", conv1d_by_name),
            Reason("embeddings count their whole table", embedding_tables),
        ),
    },
    "torchstat": {
        "Flops": (Reason("of a module that is called twice the last call", last_call_alone),),
        "MAdd": (Reason("of a module that is called twice the last call", last_call_alone),),
    },
    "flop_counter": {"FLOPs": (_FAST_FLOPS,)},
}


# ---- what a figure has to be where the original gives none


def parameters(record: Record) -> int:
    """All of them, tied ones once."""
    return sum(p.numel() for p in record.model.parameters())


def convolution_biases(record: Record) -> int:
    """One for each output element of a convolution with a bias."""
    return sum(math.prod(call.output) for call in record.of(nn.Conv2d) if call.module.bias is not None)


def torchstat_flops(record: Record) -> int:
    """Return the Flops of models without the activations and norms that torchstat has a rule for."""
    return record.macs() + convolution_biases(record)


def torchstat_madd(record: Record) -> int:
    """Return the MAdd: 2 for each MAC, less 1 for each sum of a linear layer, whose first product is not added."""
    return 2 * record.macs() - sum(math.prod(call.output) for call in record.of(nn.Linear))


EXPECTED: dict[str, dict[str, Callable[[Record], int]]] = {
    "torchstat": {"Flops": torchstat_flops, "MAdd": torchstat_madd},
}
"""The right figures by tool and figure; parameters are those of the model for every tool."""


def facts(record: Record) -> dict[str, Any]:
    """All amounts of one call, as JSON has them."""
    return {
        "macs": record.macs(),
        "params": parameters(record),
        "reasons": {
            tool: {figure: [[one.words, one.amount(record)] for one in reasons] for figure, reasons in table.items()}
            for tool, table in REASONS.items()
        },
        "expected": {
            tool: {figure: amount(record) for figure, amount in table.items()} for tool, table in EXPECTED.items()
        },
    }
