"""The table of accepted inputs: forms of arguments and models, and what each tool makes of them.

No model here has a bias, a norm or an activation: every tool's convention is MACs then, 2 for each, or a closed form.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from peer_runs import isolated
from peer_runs.accuracy import NOT_INSTALLED
from peer_runs.judging import share
from peer_runs.markdown import refused, table
from peer_runs.tools import COUNT, Tool

Made = tuple[Any, tuple[Any, ...], dict[str, Any]]
ROWS, IN, OUT = 2, 8, 16
LINEAR_MACS = ROWS * IN * OUT


@dataclass
class Batch:
    """A dataclass as users write them."""

    points: Tensor
    mask: Tensor | None = None


class Layer(nn.Module):
    """One product; subclasses say where its input is."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(IN, OUT, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


class Concatenated(Layer):
    def __init__(self) -> None:
        super().__init__()
        self.other = nn.Linear(IN, OUT, bias=False)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.cat((self.layer(x), self.other(y)))


class OfADict(Layer):
    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        return self.layer(batch["points"])


class OfKeywords(Layer):
    def forward(self, *, points: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.layer(points if mask is None else points[mask])


class OfNested(Concatenated):
    def forward(self, batch: Any, scales: Any) -> Tensor:
        return torch.cat((self.layer(batch.points), self.other(scales[0][1])))


class OfIds(Layer):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(100, IN)

    def forward(self, ids: Tensor) -> Tensor:
        return self.layer(self.words(ids))


class GivesADataclass(Layer):
    def forward(self, x: Tensor) -> Batch:
        return Batch(self.layer(x))


class InTwoPlaces(nn.Module):
    """One layer under two names, called under both."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Layer()
        self.second = nn.Sequential(self.first.layer)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat((self.first(x), self.second(x)))


class Functional(nn.Module):
    """Products without a layer: F.linear, `@`, einsum."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(OUT, IN))

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack((F.linear(x, self.weight), x @ self.weight.T, torch.einsum("bi,oi->bo", x, self.weight)))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(IN, 3 * IN, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.layer(x).chunk(3, dim=-1)
        return F.scaled_dot_product_attention(q, k, v)


def _x() -> Tensor:
    return torch.randn(ROWS, IN)


def _image() -> Made:
    return nn.Sequential(nn.Conv2d(3, OUT, 3, bias=False)), (torch.randn(1, 3, IN, IN),), {}


IMAGE_MACS = 6 * 6 * OUT * 3 * 9
ATTENTION_MACS = 4 * IN * 3 * IN + 2 * 4 * 4 * IN


@dataclass(frozen=True)
class Form:
    """macs: of the one call."""

    name: str
    make: Callable[[], Made]
    macs: int


FORMS = (
    Form("one image", _image, IMAGE_MACS),
    Form("one tensor of two dimensions", lambda: (Layer(), (_x(),), {}), LINEAR_MACS),
    Form("several tensors", lambda: (Concatenated(), (_x(), _x()), {}), 2 * LINEAR_MACS),
    Form("a dict as the argument", lambda: (OfADict(), ({"points": _x()},), {}), LINEAR_MACS),
    Form("keyword arguments", lambda: (OfKeywords(), (), {"points": _x(), "mask": None}), LINEAR_MACS),
    Form("a dataclass and nested lists", lambda: (OfNested(), (Batch(_x()), [[1, _x()]]), {}), 2 * LINEAR_MACS),
    Form("token ids", lambda: (OfIds(), (torch.randint(0, 100, (ROWS,)),), {}), LINEAR_MACS),
    Form("a dataclass as the result", lambda: (GivesADataclass(), (_x(),), {}), LINEAR_MACS),
    Form("a layer in two places", lambda: (InTwoPlaces(), (_x(),), {}), 2 * LINEAR_MACS),
    Form("`F.linear`, `@`, einsum", lambda: (Functional(), (_x(),), {}), 3 * LINEAR_MACS),
    Form(
        "`scaled_dot_product_attention`",
        lambda: (Attention(), (torch.randn(1, 4, IN),), {}),
        ATTENTION_MACS,
    ),
    Form("a TorchScript module", lambda: (torch.jit.script(Layer()), (_x(),), {}), LINEAR_MACS),
    Form("a compiled model", lambda: (torch.compile(Layer(), backend="eager"), (_x(),), {}), LINEAR_MACS),
    Form("a graph of torch.export", lambda: (_exported(), (_x(),), {}), LINEAR_MACS),
    Form("bfloat16", lambda: (Layer().bfloat16(), (_x().bfloat16(),), {}), LINEAR_MACS),
    Form(
        "the meta device",
        lambda: (Layer().to("meta"), (_x().to("meta"),), {}),
        LINEAR_MACS,
    ),
)


def _exported() -> nn.Module:
    return torch.export.export(Layer().eval(), (_x(),)).module()


def right_figure(tool: Tool, form: Form, params: int) -> int:
    """The first figure of the tool as it has to be."""
    word = tool.figures[0]
    if word == "params":
        return params
    counts_twice = word.lower() == "flops" and tool.name not in {"fvcore", "torchstat"}
    return 2 * form.macs if counts_twice else form.macs


def figure_of(tool: Tool, variant: str, name: str) -> dict[str, int]:
    """Return the tool's first figure, and the right one; run in a new process."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    form = next(one for one in FORMS if one.name == name)
    model, args, kwargs = form.make()
    params = sum(p.numel() for p in model.parameters())
    with torch.no_grad():
        try:
            figures = tool.ask(variant, model, args, kwargs)
        except Exception as error:
            figures = tool.rescue(model, isolated.first_line(error)) if variant == "original" and tool.rescue else {}
            if not figures:
                raise
    return {"figure": figures[tool.figures[0]], "right": right_figure(tool, form, params)}


@dataclass(frozen=True)
class Answer:
    """The answer to one form of inputs. figure: None if it was refused; `error` says why."""

    figure: int | None
    right: int
    error: str = ""

    @property
    def is_wrong(self) -> bool:
        """A figure that is not the right one; a refusal says so itself."""
        return self.figure is not None and self.figure != self.right

    def words(self) -> str:
        """A cell."""
        if self.error == NOT_INSTALLED:
            return NOT_INSTALLED
        if self.figure is None:
            return refused(self.error, 60)
        return f"wrong: {share(self.figure, self.right)}" if self.is_wrong else "yes"


@dataclass
class Inputs:
    """The answers of each tool and variant, in the order of :data:`FORMS`."""

    answers: dict[tuple[str, str], list[Answer]] = dataclasses.field(default_factory=dict)

    @property
    def faults(self) -> list[str]:
        """Our wrong cells."""
        return [
            f"{tool}, {form.name}: ours is {answer.words()}"
            for (tool, variant), answers in self.answers.items()
            for form, answer in zip(FORMS, answers, strict=True)
            if variant == "ours" and (answer.is_wrong or answer.error)
        ]


def run(tools: Sequence[Tool], limits: isolated.Limits, say: Callable[[str], None]) -> Inputs:
    """Every form with every tool, each in a process."""
    result = Inputs()
    for tool in (*tools, COUNT):
        for variant in ("original", "ours") if tool is not COUNT else ("ours",):
            say(f"inputs: {tool.name}, {variant}")
            result.answers[tool.name, variant] = [_answer(tool, variant, form, limits) for form in FORMS]
    return result


def _answer(tool: Tool, variant: str, form: Form, limits: isolated.Limits) -> Answer:
    if variant == "original" and not tool.version:
        return Answer(None, 0, NOT_INSTALLED)
    outcome = isolated.run(figure_of, tool, variant, form.name, limits=limits)
    return Answer(**outcome.value) if outcome.succeeded else Answer(None, 0, outcome.error)


def input_table(inputs: Inputs, tools: Sequence[Tool]) -> list[str]:
    """Return the table of forms and these tools, the original and its replacement side by side."""
    variants = [(tool.name, variant) for tool in tools for variant in ("original", "ours")]
    variants = [variant for variant in variants if variant in inputs.answers]
    header = ["input", *(tool if variant == "original" or tool == COUNT.name else "ours" for tool, variant in variants)]
    rows = [[form.name, *(inputs.answers[variant][i].words() for variant in variants)] for i, form in enumerate(FORMS)]
    return table(header, rows)
