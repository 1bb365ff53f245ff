"""Files are regular, whole, of bounded size and keep their permissions; what goes wrong is said with their name."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from given_roofs import profiler, roofs
from torch import nn

import roofprof
from roofprof import Report
from roofprof.budget import Budget
from roofprof.cli import main, shared
from roofprof.render.files import LARGEST_FILE, read_whole, write_whole


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    profiler(nn.Linear(8, 4)).run(torch.rand(2, 8)).to_json("r.json")
    Path("budget.toml").write_text("[total]\nmacs = '<= 1'\n")
    return tmp_path


def test_what_is_too_large_or_leads_to_itself_is_refused(folder, capsys):
    os.truncate(os.open("large", os.O_CREAT | os.O_WRONLY), LARGEST_FILE + 1)  # no block of it is on the disk
    Path("circle").symlink_to("other")
    Path("other").symlink_to("circle")
    for name in ("large", "circle"):
        for command in (("show", name), ("check", "r.json", "--budget", name), ("merge", name)):
            assert main(command) == 2
            out, err = capsys.readouterr()
            assert (out, err.count("\n"), err.startswith("roofprof: "), name in err) == ("", 1, True, True)
    for read in (read_whole, Report.from_json, Budget.load):
        with pytest.raises(OSError, match="not a regular file"):
            read("/dev/zero")


def test_a_replaced_file_keeps_its_permissions(folder):
    report = Report.from_json("r.json")
    for write in (report.to_json, roofs().save, report.to_folded_stacks, roofprof.compare(report, report).to_json):
        path = folder / "written.txt"
        path.touch()
        path.chmod(0o640)
        write(path)
        assert path.stat().st_size > 0
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.unlink()


def test_what_is_kept_elsewhere_is_its_owners(folder, monkeypatch, capsys):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "full.csv")

    monkeypatch.setenv("TMPDIR", str(folder / "tmp"))
    monkeypatch.setattr(shared.tempfile, "tempdir", None)
    (folder / "tmp").mkdir()
    monkeypatch.setattr(Report, "to_csv", refuse)
    assert main(["show", "r.json", "--csv", "full.csv"]) == 2
    (kept,) = (folder / "tmp").iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert Report.from_json(kept) == Report.from_json("r.json")
    err = capsys.readouterr().err
    assert f"full.csv: {os.strerror(errno.ENOSPC)}" in err
    assert str(kept) in err


def test_a_failed_write_leaves_nothing_and_is_named(folder, monkeypatch):
    for write in (lambda path: write_whole(path, b"x" * 10**6), Report.from_json("r.json").to_json):
        with pytest.raises(OSError, match="/dev/full") as raised:
            write("/dev/full")
        assert (raised.value.filename, raised.value.errno) == ("/dev/full", errno.ENOSPC)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = sorted(Path().iterdir())
    monkeypatch.setattr(os, "fchmod", full)  # once the new file is there
    with pytest.raises(OSError, match="r.json"):
        write_whole("r.json", b"text")
    assert sorted(Path().iterdir()) == before
    assert Report.from_json("r.json").model == "Linear"


CHECK = "check r.json --budget budget.toml"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("show r.json <&- >&-", 0),
        ("check no.json --budget budget.toml <&- >&-", 2),
        (f"{CHECK} <&- >&- 2>&-", 1),
        ("show r.json >/dev/full", 2),
        (f"{CHECK} | true", 1),  # a reader that went away does not keep a budget
    ],
)
def test_streams_that_are_closed_or_full(command, code, folder):
    """As a shell closes them."""
    given, bar, reader = command.partition(" |")
    script = f"({sys.executable} -m roofprof {given}; echo $? >code) {bar}{reader}"
    run = subprocess.run(["bash", "-c", script], check=False, capture_output=True, text=True)
    assert Path("code").read_text() == f"{code}\n", run.stderr
    assert "Traceback" not in run.stderr
    if "full" in command:
        assert run.stderr == f"roofprof: cannot write to the standard output: {os.strerror(errno.ENOSPC)}\n"


@pytest.mark.parametrize("debug", [[], ["--debug"]])
@pytest.mark.parametrize("error", [AttributeError("odd"), RecursionError("deep"), MemoryError(), ValueError("wrong")])
def test_no_error_says_that_a_budget_is_broken(error, debug, folder, monkeypatch, capsys):
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(Budget, "check", fail)
    assert main(["check", "r.json", "--budget", "budget.toml", *debug]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("roofprof: ")
