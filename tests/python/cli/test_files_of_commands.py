"""The files of every command: what it reads stays as it is, and each that it writes is one of its own."""

import argparse
import io
import itertools
import os
import signal
import socket
import sys
import zipfile
from pathlib import Path

import pytest
import torch

import roofprof
from roofprof.cli import main, make_parser

PARSERS = next(action.choices for action in make_parser()._actions if isinstance(action, argparse._SubParsersAction))

# A line of each command with all files that it can read, and the options with which it writes. Options come first, as
# `roofprof run` wants them.
LINES = {
    "profile": (
        "m.py:model --inputs n.py:inputs --loss l.py:loss --ceilings roofs.json --train",
        "--json --csv --trace",
    ),
    "run": ("m.py", "--json --csv"),
    "time": ("m.py:model --inputs n.py:inputs", "--json --plot"),
    "show": ("r.json --format md --budget b.toml --baseline s.json", "--json --csv"),
    "html": ("r.json", "-o --json"),
    "plot": ("r.json --before s.json", "-o --json"),
    "trace": ("r.json", "-o --json"),
    "import": (
        "t.json --device roofs.json --model m.py:model --inputs n.py:inputs --ncu c.csv --capture g.json",
        "-o --csv",
    ),
    "compare": ("r.json s.json", "--json --html"),
    "merge": ("r.json s.json", "-o --csv"),
    "scaling": ("r.json s.json", "--json -o --plot"),
    "check": ("r.json --budget b.toml --baseline s.json", "--json"),
    "predict": ("r.json --device roofs.json", "--json --csv"),
    "predict --sweep": ("m.py:model --inputs n.py:inputs --device roofs.json", "--json"),
    "ceilings": ("", "--json"),
    "calibrate": ("roofs.json --from c.csv", "--json"),
    "ops": ("", ""),
    "explain": ("time", ""),
    "docs": ("", ""),
    "mcp": ("reports", ""),
    "doctor": ("", ""),
    "completion": ("bash", ""),
}
# What changes what a command writes, or how it names what it reads.
FURTHER = [
    ("profile", "m:model --input 1x3", "--json"),
    ("profile", "saved.pt2 --input 1x3", "--json"),
    ("time", "saved.pt2 --input 1x3", "--json"),
    ("run", "-m m", "--json"),
    ("run", "-m package.inner", "--csv"),
    ("predict", "r.json --all", "--json"),
    ("predict", "r.json --device roofs.json --what-if", "--json"),
    ("check", "r.json --baseline s.json --write", "--budget"),
    ("trace", "r.json -o r.folded", "--json"),  # which needs -o
]
CASES = [(name, line, option) for name, (line, options) in LINES.items() for option in options.split()]
CASES.remove(("trace", "r.json", "--json"))


@pytest.fixture(name="folder", autouse=True)
def _folder(tmp_path, monkeypatch):
    """All files of the lines, in the folder where commands run."""
    monkeypatch.chdir(tmp_path)
    roofprof.count(torch.nn.Linear(3, 4), torch.rand(2, 3)).to_json("r.json")
    Path("s.json").write_bytes(Path("r.json").read_bytes())
    roofprof.Ceilings.published("L40S").save("roofs.json")
    Path("m.py").write_text("import torch\n\n\ndef model():\n    return torch.nn.Linear(3, 4)\n")
    Path("n.py").write_text("import torch\n\n\ndef inputs(*sizes):\n    return torch.rand(2, 3)\n")
    Path("l.py").write_text("def loss(output):\n    return output.sum()\n")
    Path("b.toml").write_text('[total]\nmacs = "<= 1 G"\n')
    Path("package").mkdir()
    for name in ("t.json", "c.csv", "g.json", "saved.pt2", "package/inner.py"):
        Path(name).write_text("what is in it is not looked at")
    return tmp_path


def files():
    """All that is there, with its bytes."""
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def read_by(line):
    """The files that the words of a line name."""
    named = [place for word in line.split() for place in (word.partition(":")[0], f"{word.partition(':')[0]}.py")]
    return [name for name in named + [place.replace(".", "/", 1) for place in named] if Path(name).is_file()]


def other_names(path):
    """Names of a file besides its own: round about, from the root, links."""
    soft, hard = (Path(f"{kind}{Path(path).suffix}") for kind in ("soft", "hard"))
    for link in (soft, hard):
        link.unlink(missing_ok=True)
    soft.symlink_to(path)
    hard.hardlink_to(path)
    return [f"../{Path.cwd().name}/{path}", str(Path(path).absolute()), str(soft), str(hard)]


def refused(words, capsys):
    """Return the one sentence; nothing was changed or made."""
    before = files()
    assert main(words) == 2, words
    out, message = capsys.readouterr()
    assert (out, message.count("\n")) == ("", 1), words
    assert files() == before, words
    return message


def test_every_file_of_every_command_is_in_the_lines():
    assert set(LINES) == set(PARSERS)
    for name, parser in PARSERS.items():
        line, written = LINES[name]
        takes_files = [one for one in parser._actions if one.type is Path or "FILE" in str(one.metavar)]
        missing = [one.dest for one in takes_files if not {*one.option_strings} & {*line.split(), *written.split()}]
        assert all(one.option_strings or read_by(line) for one in takes_files), name
        assert [dest for dest in missing if f"--{dest}" in parser._option_string_actions] == [], name


@pytest.mark.parametrize(("name", "line", "option"), CASES + FURTHER)
def test_what_is_read_is_never_written(name, line, option, capsys):
    read = read_by(line)
    assert bool(read) == (name != "ceilings")
    for path in read:
        for spelling in (path, *other_names(path)):
            message = refused([name, option, spelling, *line.split()], capsys)
            assert message == (
                f"roofprof: '{spelling}' is read by this command and would be lost: give the output another name\n"
            )


@pytest.mark.parametrize("name", LINES)
def test_each_output_has_a_file_of_its_own(name, capsys):
    line, options = LINES[name]
    for new in (True, False):
        if not new:
            Path("x.svg").write_text("of an earlier run")
        for first, second in itertools.combinations(options.split(), 2):
            for spelling in ("x.svg", f"../{Path.cwd().name}/x.svg"):
                message = refused([name, first, "x.svg", second, spelling, *line.split()], capsys)
                assert message == f"roofprof: '{spelling}' is named for two outputs: give each a file of its own\n"


def test_a_name_that_is_made_of_the_inputs_is_no_other(capsys):
    for command, name in (("html", "r.html"), ("plot", "r.svg")):
        Path("r.json").rename(name)
        assert "is read by this command" in refused([command, name], capsys)
        Path(name).rename("r.json")


def test_what_the_standard_input_comes_from_is_read_too(capsys, monkeypatch):
    with Path("r.json").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        for name, option in (("show", "--json"), ("merge", "-o")):
            assert "is read by this command" in refused([name, "-", option, "r.json"], capsys)


def test_what_variables_name_is_read_too(capsys, monkeypatch):
    for variable in ("ROOFPROF_CEILINGS", "ROOFPROF_REPLAY_DEVICE"):
        with monkeypatch.context() as patch:
            patch.setenv(variable, os.path.join("..", Path.cwd().name, "roofs.json"))  # noqa: PTH118
            for line in ("profile m.py:model --input 1x3 --json roofs.json", "run --json roofs.json m.py"):
                assert "is read by this command" in refused(line.split(), capsys)
    # Roofs may be measured again into that file.
    monkeypatch.setenv("ROOFPROF_CEILINGS", "roofs.json")
    assert main(["ceilings", "--published", "L4", "--json", "roofs.json"]) == 0


def test_what_is_written_last_time_is_replaced_and_devices_hold_nothing(capsys):
    for _ in range(2):
        assert main(["show", "r.json", "--json", "x.json", "--csv", "x.csv"]) == 0
    assert main(["show", "r.json", "--json", os.devnull, "--csv", os.devnull]) == 0
    assert main(["predict", "r.json", "--device", "L40S", "--json", "L40S"]) == 0  # a card is no file
    assert capsys.readouterr().err.count("\n") == 7


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


MAKERS = (os.mkfifo, lambda path: path.symlink_to("/dev/zero"), make_socket, Path.mkdir)  # pipe, device, ...


@pytest.fixture(name="patience")
def _patience():
    """Ends a command that waits for what a pipe never sends."""

    def end(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


SAVED = [("profile", "saved.pt2 --trust --input 1x3"), ("import", "t.json --model saved.pt2 --trust --input 1x3")]
READERS = [(name, line) for name, (line, _) in LINES.items() if "." in line]


@pytest.mark.parametrize(("name", "line"), READERS + SAVED)
def test_no_command_reads_what_is_no_regular_file(name, line, capsys, patience):
    command = {"trace": ["trace", "-o", "t.folded"]}.get(name, name.split())
    Path("t.json").write_text('{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 2}]}')
    for make, read in itertools.product(MAKERS, dict.fromkeys(read_by(line))):
        kept = Path(read).rename("kept")
        make(Path(read))
        assert main([*command, *line.split()]) == 2, read
        out, message = capsys.readouterr()
        assert (out, message.count("\n"), "fault of roofprof" in message) == ("", 1, False), read
        Path(read).rmdir() if make is Path.mkdir else Path(read).unlink()
        kept.rename(read)


@pytest.mark.parametrize("line", ["profile saved.ts --input 1x3", *(f"{name} {line}" for name, line in SAVED)])
def test_a_saved_model_is_loaded_only_when_it_is_trusted(line, capsys):
    Path("t.json").write_text("{}")
    with_pickle("saved.pt2")
    script("saved.ts")
    assert "add --trust" in refused(line.replace(" --trust", "").split(), capsys)
    assert not Path("ran").exists()


def test_what_is_trusted_is_loaded(capsys):
    script("saved.ts")
    assert main(["profile", "saved.ts", "--trust", "--input", "1x3", "--count", "--json", "-"]) == 0
    assert '"params": 16' in capsys.readouterr().out
    with_pickle("saved.pt2")
    main(["profile", "saved.pt2", "--trust", "--input", "1x3", "--count"])
    assert Path("ran").exists()  # so the question is no empty one


class Pickled:
    def __reduce__(self):
        return os.mkdir, ("ran",)


def with_pickle(name):
    """Write an exported program whose weights hold a pickle that runs a command."""
    program = torch.export.export(torch.nn.Linear(3, 4), (torch.rand(1, 3),))
    torch.export.save(program, name)
    bomb = io.BytesIO()
    torch.save(Pickled(), bomb)
    with zipfile.ZipFile(name) as whole:
        parts = {part: whole.read(part) for part in whole.namelist()}
    with zipfile.ZipFile(name, "w") as whole:
        for part, content in parts.items():
            whole.writestr(part, bomb.getvalue() if content.startswith(b"PK") else content)


def script(name):
    torch.jit.save(torch.jit.script(torch.nn.Linear(3, 4)), name)
