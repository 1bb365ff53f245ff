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
    found = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = page.read_text().replace("\\\n", " ")
        blocks = [*re.findall(r"^```[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]
        blocks += re.findall(r"^ {4}.*$", text, re.MULTILINE)
        lines = [line.strip().removeprefix("$ ") for block in blocks for line in block.splitlines()]
        commands = [line for line in lines if re.match(r"roofprof [a-z-]", line)]
        found += [pytest.param(line, id=f"{page.name}: {line[:60]}") for line in commands]
    return found


def parse(line):
    command, *words = words_of(line)
    assert command == "roofprof"
    return make_parser().parse_args(words)


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_examples_can_be_typed(line):
    assert parse(line).command


@pytest.mark.parametrize("line", lines_of_docs())
def test_lines_of_the_docs_can_be_typed(line, capsys):
    try:
        assert parse(line).command
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


def test_the_overview_has_every_command():
    text = make_parser().format_help()
    assert set(EXAMPLES) == set(COMMANDS)
    assert all(f"\n  {COMMANDS[name].prog}" in text for name in COMMANDS)
    assert "\n    sweep" not in text  # the old name of predict --sweep


def test_options_have_help():
    silent = [(name, action.dest) for name, parser in COMMANDS.items() for action in parser._actions if not action.help]
    assert silent == []
