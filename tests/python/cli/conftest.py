"""What the tests of commands share: a folder of their own, and what a command printed."""

import textwrap

import pytest

import roofprof
from roofprof.cli import main


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The folder in which commands run; nothing is measured for roofs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOFPROF_CEILINGS", "off")
    return tmp_path


@pytest.fixture
def shell(tmp_path, monkeypatch, capsys):
    """Runs a command in that folder; gives exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(word) for word in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def run(here, capsys):
    """Runs a program; gives its report, or None where the exit code says that there is none, and what was said."""

    def of(text, *options, code=0):
        (here / "program.py").write_text("import torch\nfrom torch import nn\n" + textwrap.dedent(text))
        assert main(["run", "--no-legend", *options, "program.py"]) == code
        return roofprof.Report.from_json("program.roofprof.json") if code == 0 else None, capsys.readouterr()

    return of
