"""The parser of the commands, which answers a misspelt word with similar ones, and the examples in their help."""

from __future__ import annotations

import argparse
import difflib
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from roofprof._report import printable


class Parser(argparse.ArgumentParser):
    """An argument parser that names the closest commands, options and choices. Its subcommands are parsed alike."""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, f"'{value}' is not known{near(str(value), map(str, action.choices))}")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        if action.option_strings and arg_strings == ["--"]:  # argparse takes "--" away, and gives an empty list
            raise argparse.ArgumentError(action, "'--' is no value")
        return super()._get_values(action, arg_strings)

    def parse_known_args(  # type: ignore[override]  # the overloads of argparse's stubs
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse as argparse does; refuse unknown words here, in the parser of the command, which knows its options."""
        words = list(sys.argv[1:] if args is None else args)
        if (
            words[:1] == ["predict"] and "--sweep" in words
        ):  # has options of its own, and so a parser, which is not listed
            words = [SWEEP, *(word for word in words[1:] if word != "--sweep")]
        parsed, unknown = super().parse_known_args(words, namespace)
        if unknown:
            self._refuse(unknown[0])
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        """Say in one sentence what is wrong and where the options are listed, and exit with 2; no usage."""
        sentence = " ".join(message.removeprefix("argument COMMAND: ").split())
        self.exit(2, f"{self.prog}: {printable(sentence)} ({self.prog} --help)\n")

    def _refuse(self, word: str) -> NoReturn:
        option = word.split("=", maxsplit=1)[0]
        if option.startswith("-"):
            self.error(f"there is no option {option}{near(option, self._option_string_actions)}")
        self.error(f"'{word}' is one argument too many")


def near(word: str, words: Iterable[str]) -> str:
    """Return what to add to the sentence that refuses a word."""
    known = list(words)
    close = difflib.get_close_matches(word, known, n=3, cutoff=0.7)
    if close:
        return f"; did you mean {' or '.join(close)}?"
    return f"; choose from {', '.join(known)}" if not word.startswith("-") else ""


# ---- each command's examples, files and exit codes; the commands describe themselves

SWEEP = "predict --sweep"

# The first of each stands in `roofprof --help` too. Every line is parsed by a test.
EXAMPLES = {
    "profile": (
        "roofprof profile torchvision.models:resnet50 --input 1x3x224x224 --json r.json",
        "roofprof profile my_model.py:build --inputs my_model.py:example_batch --depth 3 --sort wasted_time",
        "roofprof profile my_model.py:build --input 8x128:int64 --train --dtype bfloat16",
        "roofprof profile my_model.py:build --input 1x4096:int64 --device meta --count",
    ),
    "run": (
        "roofprof run train.py --lr 0.1",
        "roofprof run --model Encoder --skip 5 --steps 20 --stop -m my_package.train --epochs 1",
    ),
    "time": (
        "roofprof time torchvision.models:resnet50 --input 8x3x224x224 --batch auto",
        "roofprof time my_model.py:build --inputs my_model.py:example_batch --repeat 200 --json times.json",
    ),
    "show": (
        "roofprof show r.json --brief",
        "roofprof show r.json --by op --sort time",
        "roofprof show r.json --by kernel --limit 20 --csv kernels.csv",
    ),
    "html": ("roofprof html r.json", "roofprof html r.json -o page.html"),
    "plot": (
        "roofprof plot r.json -o r.svg",
        "roofprof plot after.json --before before.json -o r.png",
    ),
    "trace": (
        "roofprof trace r.json -o r.folded",
        "roofprof trace r.json -o r.speedscope.json",
    ),
    "import": (
        "roofprof import trace.json.gz -o r.json",
        "roofprof import trace.json.gz --device 'H100 SXM' --by kernel --limit 20",
        "roofprof import trace.json --steps 3-5 --model torchvision.models:resnet18 --input 32x3x224x224",
        "roofprof import trace.json.gz --ncu metrics.csv",
        "roofprof import --ncu metrics.csv --device 'H100 SXM'",
    ),
    "compare": (
        "roofprof compare before.json after.json",
        "roofprof compare before.json after.json --all --html change.html",
    ),
    "merge": (
        "roofprof merge r.rank*.json -o all.json",
        "roofprof merge r.rank0.json r.rank1.json --by rank",
    ),
    "scaling": (
        "roofprof scaling r1.json r2.json r4.json r8.json",
        "roofprof scaling r1.json r2.json r4.json -o scaling.html --plot scaling.png",
    ),
    "check": (
        "roofprof check r.json --budget budget.toml",
        "roofprof check r.json --budget budget.toml --baseline main.json",
        "roofprof check r.json --budget budget.toml --write --margin 5%",
    ),
    "predict": (
        "roofprof predict r.json --device 'RTX 4090'",
        "roofprof predict r.json --all --precision fp16",
        "roofprof predict r.json --device L40S --what-if",
    ),
    SWEEP: (
        "roofprof predict --sweep torchvision.models:resnet50 --input Bx3x224x224 --dtype float16 --device 'RTX 4090'",
        "roofprof predict --sweep my_model.py:build --input BxS:int64 --batch 1,8 --sequence 128,1024 --device L40S",
    ),
    "calibrate": (
        "roofprof calibrate 'H100 SXM' --from products.csv --json h100.json",
        "roofprof calibrate h100.json --from report.json --from trace.json.gz --json better.json",
    ),
    "ceilings": (
        "roofprof ceilings --device cuda",
        "roofprof ceilings --json machine.json",
        "roofprof ceilings --published 'H100 SXM'",
    ),
    "doctor": ("roofprof doctor",),
    "ops": ("roofprof ops softmax --family normalization",),
    "explain": (
        "roofprof explain percent_of_roof",
        "roofprof explain above-roof aten::softmax",
    ),
    "docs": (
        "roofprof docs definitions#roofline",
        "roofprof docs",
    ),
    "mcp": (
        "roofprof mcp reports",
        "roofprof mcp reports --allow-run 'my_model.py:build --dtype bfloat16'",
    ),
    "completion": (
        "roofprof completion bash > ~/.local/share/bash-completion/completions/roofprof",
        "roofprof completion fish > ~/.config/fish/completions/roofprof.fish",
    ),
}

_ROOFS = "Measured roofs are kept in $ROOFPROF_CACHE_DIR, else $XDG_CACHE_HOME/roofprof, else ~/.cache/roofprof."
_FILES = {
    "profile": _ROOFS,
    "run": "The report is written to SCRIPT.roofprof.json unless --json names a file; under torchrun one of each rank.",
    "ceilings": _ROOFS,
}

_EXIT_CODES = {
    "run": "the program's own; 2 where the program could not be started, or the report not be made or written",
    "check": "0: every limit is kept; 1: at least one is broken; 2: an error",
}
_USUAL_CODES = "0, or 2 after an error, which is one sentence on stderr; 130 when interrupted"


def filled(text: str) -> str:
    """Return a description with its paragraphs filled."""
    return "\n\n".join(textwrap.fill(paragraph, 100) for paragraph in text.split("\n\n"))


def epilog(command: str) -> str:
    """Return the text below a command's options."""
    parts = [_indented("examples:", EXAMPLES[command])]
    if command in _FILES:
        parts.append(_indented("files:", textwrap.wrap(_FILES[command], 100)))
    parts.append(_indented("exit code:", textwrap.wrap(_EXIT_CODES.get(command, _USUAL_CODES), 100)))
    return "\n\n".join(parts)


def overview() -> str:
    """Return an example of each command."""
    return _indented("examples:", [examples[0] for examples in EXAMPLES.values()])


def _indented(head: str, lines: tuple[str, ...] | list[str]) -> str:
    return "\n".join([head, *(f"  {line}" for line in lines)])
