"""Writes benchmarks/peers.md: an introduction, the versions, the tables, and how to read them."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import textwrap
from collections.abc import Sequence

from peer_runs import accuracy, inputs, overhead, side_effects
from peer_runs.tools import COUNT, Tool

WIDTH = 120


def page(
    tools: Sequence[Tool],
    figures: accuracy.Accuracy | None,
    forms: inputs.Inputs | None,
    effects: side_effects.SideEffects | None,
    times: overhead.Overhead | None,
) -> str:
    """The whole page; a part that was not run is left out."""
    lines = [
        "# Comparison with other tools",
        "",
        *_text(
            "This page compares tools that count parameters, MACs or FLOPs of PyTorch models, as they are installed "
            "from their packages, with roofprof's replacements ([compat.md](../docs/compat.md)). One run of"
        ),
        "",
        "    python benchmarks/peers.py --write benchmarks/peers.md",
        "",
        *_text(
            "made this page, in some 15 minutes. Each cell ran in a separate process. The run fails if a figure of "
            "roofprof lacks an explanation or is wrong, or if roofprof leaves something behind."
        ),
        "",
        *_text(f"{_versions(tools)} {_machine()}"),
        "",
    ]
    if figures is not None:
        lines += _accuracy(figures, tools)
    if forms is not None:
        lines += _inputs(forms, tools)
    if effects is not None:
        lines += _effects(effects, tools)
    if times is not None:
        lines += _overhead(times, tools)
    return "\n".join(lines).rstrip() + "\n"


def _versions(tools: Sequence[Tool]) -> str:
    ours = [f"{name} {importlib.metadata.version(name)}" for name in ("torch", "torchvision", "transformers")]
    others = [f"{tool.name} {tool.version or 'not installed'}" for tool in tools if tool.distribution != "torch"]
    return f"Versions: {', '.join(ours + others)}; flop_counter is torch's `torch.utils.flop_counter`."


def _machine() -> str:
    cores = f"{os.cpu_count()} CPU cores ({platform.machine()})"
    return f"Python {platform.python_version()} on {cores}, no GPU used, one thread."


def _text(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _accuracy(figures: accuracy.Accuracy, tools: Sequence[Tool]) -> list[str]:
    lines = [
        "## Figures",
        "",
        *_text(
            "Random weights, eval mode, no gradients. Images are 1x3x224x224, texts 128 tokens; BERT and GPT-2 are "
            "`BertModel` and `GPT2Model` of transformers with the sizes of their configurations, without heads, with "
            "tuples as results and no cache, which all tools can take."
        ),
        "",
        *_text("`roofprof.count` next to figures that others publish, or the closed form of the model's dimensions:"),
        "",
        *accuracy.count_table(figures),
        "",
        *_text(
            'The original\'s main figure over ours in the same convention; "equal" is to the last digit. What is not '
            "equal has its reason below."
        ),
        "",
        *accuracy.overview(figures, tools),
        "",
        *_text(
            'In the tables below "=" is the original\'s own figure. Amounts in brackets are what a reason adds to or '
            "takes from the original's figure. They come from the shapes that a plain dispatch mode and module hooks "
            "see, without roofprof, and add up to the difference exactly."
        ),
        "",
    ]
    for tool in tools:
        lines += [f"### Figures of {tool.name}", ""]
        if tool.rescue is not None:
            lines += [
                *_text("torchstat fails where it prints. Its figures are read from the buffers that it leaves."),
                "",
            ]
        lines += [*accuracy.tool_table(figures, tool), ""]
    return lines


_TOGETHER = 3


def _inputs(forms: inputs.Inputs, tools: Sequence[Tool]) -> list[str]:
    lines = [
        "## Accepted inputs",
        "",
        *_text(
            "Small models without biases, norms and activations, so that every convention has the same closed form. "
            '"yes" is the right figure, "wrong" another one as a multiple of it, "refused" what the tool says. '
            'The compiled model has the backend "eager".'
        ),
        "",
    ]
    shown = [*tools, COUNT]
    for first in range(0, len(shown), _TOGETHER):
        lines += [*inputs.input_table(forms, shown[first : first + _TOGETHER]), ""]
    return lines


def _effects(effects: side_effects.SideEffects, tools: Sequence[Tool]) -> list[str]:
    return [
        "## What is left behind",
        "",
        *_text(
            "The model is in training mode, one part in eval mode and one frozen. Compared before and after: hooks, "
            "attributes, buffers, keys and values of `state_dict`, modes, `requires_grad`, gradients, devices, grad "
            "mode, random numbers (a draw of the model's own is none of a tool's), functions of torch and classes of "
            "its layers, torch's switches, and what is printed by a call that was asked not to. torchstat and "
            "torchsummary print by purpose. In flop_counter's block the call is the user's own, and `roofprof.count` "
            "makes exactly one call, whose own effects stay. A model's own exception has to come through as it is."
        ),
        "",
        *side_effects.effects_table(effects, tools),
        "",
    ]


def _overhead(times: overhead.Overhead, tools: Sequence[Tool]) -> list[str]:
    return [
        "## Time of a counting call",
        "",
        *_text(
            "A whole call of the tool over a plain forward of the same round, the median of "
            f"{overhead.ROUNDS} rounds. In each one the plain forward, the original and roofprof run one after the "
            "other, each with a fresh model that was called once, deepspeed without its warm-up. The second model has "
            "ops of a few microseconds, and takes milliseconds in all. There roofprof shows a fixed cost of up to half "
            "a second. The functions of fvcore, torchinfo, torchstat and torchsummary look at everything that a call "
            "can reach, to put it back; flop_counter looks for the modules of the program. roofprof's torchstat runs "
            "the model several times, to time the layers. The ratios are of a shared machine; nothing is asserted."
        ),
        "",
        *overhead.overhead_table(times, tools),
        "",
    ]
