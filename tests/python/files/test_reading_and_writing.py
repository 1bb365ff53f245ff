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


READERS = {
    "show": ("show", "FILE"),
    "check": ("check", "FILE", "--budget", "budget.toml"),
    "budget": ("check", "r.json", "--budget", "FILE"),
    "baseline": ("check", "r.json", "--budget", "budget.toml", "--baseline", "FILE"),
    "compare": ("compare", "r.json", "FILE"),
    "merge": ("merge", "FILE"),
    "scaling": ("scaling", "FILE"),
    "predict": ("predict", "r.json", "--device", "FILE.json"),
    "trace": ("trace", "FILE", "-o", "t.json"),
    "html": ("html", "FILE", "-o", "p.html"),
    "plot": ("plot", "FILE", "-o", "p.svg"),
}


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_large(path: Path) -> None:
    path.touch()
    os.truncate(path, LARGEST_FILE + 1)  # no block of it is on the disk


def make_circle(path: Path) -> None:
    other = path.with_name("other")
    path.symlink_to(other)
    other.symlink_to(path)


@pytest.mark.parametrize("make", [make_pipe, make_large, make_circle])
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file_is_refused(reader, make, folder, capsys):
    name = "odd.json" if reader == "predict" else "odd"
    make(folder / name)
    command = [part.replace("FILE.json", name).replace("FILE", name) for part in READERS[reader]]
    assert main(command) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("roofprof: ")
    assert name in err
    assert err.count("\n") == 1


def test_devices_are_not_read():
    for read in (read_whole, Report.from_json, Budget.load):
        with pytest.raises(OSError, match="not a regular file"):
            read("/dev/zero")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_a_replaced_file_keeps_its_permissions(mode, folder):
    report = Report.from_json("r.json")
    for name, write in {
        "a.json": report.to_json,
        "a.csv": report.to_csv,
        "roofs.json": roofs().save,
        "t.folded": report.to_folded_stacks,
        "c.json": roofprof.compare(report, report).to_json,
    }.items():
        path = folder / name
        path.touch()
        path.chmod(mode)
        write(path)
        assert path.stat().st_size > 0
        assert stat.S_IMODE(path.stat().st_mode) == mode


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


def test_a_full_disk_leaves_nothing_and_is_named(folder):
    for write in (lambda path: write_whole(path, b"x" * 10**6), Report.from_json("r.json").to_json):
        with pytest.raises(OSError, match="/dev/full") as raised:
            write("/dev/full")
        assert raised.value.filename == "/dev/full"
        assert raised.value.errno == errno.ENOSPC


def test_a_failed_write_leaves_nothing(folder, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = sorted(Path().iterdir())
    monkeypatch.setattr(os, "fchmod", full)  # once the new file is there
    with pytest.raises(OSError, match="r.json"):
        write_whole("r.json", b"text")
    assert sorted(Path().iterdir()) == before
    assert Report.from_json("r.json").model == "Linear"


def run_closed(closed: str, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    """The command with those of its streams closed, as `>&-` does."""
    command = f'exec "$@" {closed}'
    return subprocess.run(
        ["sh", "-c", command, "sh", sys.executable, "-m", "roofprof", *arguments],
        check=False,
        capture_output=True,
        text=True,
        **options,
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("show", "r.json"), 0),
        (("check", "r.json", "--budget", "budget.toml"), 1),
        (("check", "no.json", "--budget", "budget.toml"), 2),
        (("ops",), 0),
    ],
)
def test_closed_streams(arguments, code, folder):
    run = run_closed("<&- >&-", *arguments)
    assert run.returncode == code, run.stderr
    assert "Traceback" not in run.stderr


def test_all_streams_closed(folder):
    assert run_closed("<&- >&- 2>&-", "check", "r.json", "--budget", "budget.toml").returncode == 1


def test_a_full_stdout_is_said(folder):
    run = run_closed(">/dev/full", "show", "r.json")
    assert run.returncode == 2
    assert run.stderr == f"roofprof: cannot write to the standard output: {os.strerror(errno.ENOSPC)}\n"


def test_a_reader_that_went_away_does_not_keep_a_budget(folder):
    command = f"{sys.executable} -m roofprof check r.json --budget budget.toml; echo code $? >&2"
    run = subprocess.run(["bash", "-c", f"({command}) | true"], check=False, capture_output=True, text=True)
    assert "code 1" in run.stderr


@pytest.mark.parametrize("debug", [[], ["--debug"]])
@pytest.mark.parametrize("error", [AttributeError("odd"), RecursionError("deep"), MemoryError(), ValueError("wrong")])
def test_no_error_says_that_a_budget_is_broken(error, debug, folder, monkeypatch, capsys):
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(Budget, "check", fail)
    assert main(["check", "r.json", "--budget", "budget.toml", *debug]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("roofprof: ")
