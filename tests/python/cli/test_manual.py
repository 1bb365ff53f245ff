"""Help reads as a manual: what stands in it can be typed, and nothing of it needs torch."""

import argparse
import re
import shlex
from pathlib import Path

import pytest

from roofprof.cli import make_parser
from roofprof.cli.parser import EXAMPLES

ROOT = Path(__file__).parents[3]
COMMANDS = next(action.choices for action in make_parser()._actions if isinstance(action, argparse._SubParsersAction))


def words_of(line):
    """Those of roofprof; the shell's own redirections are left out."""
    return shlex.split(re.split(r"\s[>|]\s|\s&&\s", line)[0], comments=True)


def lines_of_docs():
    """What stands in code blocks of pages, indented or fenced, and begins with the command."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = page.read_text().replace("\\\n", " ")
        blocks = [*re.findall(r"^```[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]
        blocks += re.findall(r"^ {4}.*$", text, re.MULTILINE)
        lines = [line.strip().removeprefix("$ ") for block in blocks for line in block.splitlines()]
        yield from (line for line in lines if re.match(r"roofprof [a-z-]", line))


@pytest.mark.parametrize("line", [*(line for lines in EXAMPLES.values() for line in lines), *lines_of_docs()])
def test_examples_and_lines_of_the_docs_can_be_typed(line, capsys):
    command, *words = words_of(line)
    assert command == "roofprof"
    try:
        assert make_parser().parse_args(words).command
    except SystemExit as end:
        assert end.code == 0, capsys.readouterr().err  # --help and --version


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_says_what_it_does_with_examples_and_exit_codes(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    parser = COMMANDS[name]
    text = parser.format_help()
    assert parser.description and parser.description[0].isupper()
    for example in EXAMPLES[name]:
        assert example.startswith(parser.prog)
        assert f"\n  {example}\n" in text  # whole, to be copied
    assert "\nexit code:\n  " in text
    prose = [line for line in text.splitlines() if not line.startswith("  roofprof ")]
    assert max(map(len, prose)) <= 102  # exit codes are wrapped at 100, and indented


def test_usage_has_both_forms_of_predict():
    forms = COMMANDS["predict"].format_usage().splitlines()
    assert [form.split("roofprof ")[1].split(" [options] ")[0] for form in forms] == ["predict", "predict --sweep"]
    assert [form.split()[-1] for form in forms] == ["report", "target"]


def test_the_overview_has_every_command_and_every_option_its_help():
    text = make_parser().format_help()
    assert set(EXAMPLES) == set(COMMANDS)
    assert all(f"\n  {COMMANDS[name].prog}" in text for name in COMMANDS)
    # Each stands once, below a heading that says what it is for, and the examples keep that order.
    listed = re.findall(r"^  ([a-z]+(?: --sweep)?)  ", text.split("\nexamples:")[0], re.MULTILINE)
    headings = re.findall(r"^([a-z][a-z ]+):$", text, re.MULTILINE)
    assert listed == list(EXAMPLES)
    assert headings[0] == "measure a model"
    assert headings[-2:] == ["options", "examples"]
    assert len(headings) == 10
    silent = [(name, action.dest) for name, parser in COMMANDS.items() for action in parser._actions if not action.help]
    assert silent == []
