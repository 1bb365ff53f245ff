"""What the server starts: two at a time, ended with the server, and others are answered meanwhile."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from mcp_pipes import Pipes

from roofprof.agents import runs
from roofprof.agents.runs import Runs, cancelled

# A program with a child, and one in a session of its own, which says who they are and waits.
FAMILY = """
import os, subprocess, sys, time
child = [sys.executable, "-c", "import time; time.sleep(600)"]
here = subprocess.Popen(child)
away = subprocess.Popen(child, start_new_session=True)
with open(sys.argv[1] + ".part", "w") as file:
    file.write(f"{os.getpid()} {here.pid} {away.pid}")
os.rename(sys.argv[1] + ".part", sys.argv[1])
time.sleep(600)
"""
MODEL = f"""
import sys
import torch


def build():
    sys.argv = ["m", "ids"]
    exec({FAMILY!r})
"""


def waited(condition):
    """Wait for something that comes for sure; a limit ends what hangs."""
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def family(path):
    waited(path.exists)
    return [int(number) for number in path.read_text().split()]


def lives(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def started(function, *arguments):
    """A thread, and what the call raised."""
    raised = []

    def call():
        try:
            function(*arguments)
        except ValueError as error:
            raised.append(str(error))

    thread = threading.Thread(target=call)
    thread.start()
    return thread, raised


def command(path):
    return [sys.executable, "-c", FAMILY, str(path)]


def test_what_a_program_says_last_and_its_code_are_known(tmp_path):
    program = "import sys; print('x' * 2**18); print('y' * 2**18, file=sys.stderr); sys.stderr.write('z'); sys.exit(3)"
    assert Runs().run("m", [sys.executable, "-c", program]) == (3, f"{'y' * (2**16 - 2)}\nz")
    program = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    assert Runs().run("m", [sys.executable, "-c", program])[0] != 0
    program = FAMILY.rpartition("time.sleep")[0]  # what it leaves behind ends with it
    assert Runs().run("m", [sys.executable, "-c", program, str(tmp_path / "ids")]) == (0, "")
    assert not any(map(lives, family(tmp_path / "ids")))


def test_a_third_one_is_refused_and_cancelled_ones_end(tmp_path):
    end = threading.Event()
    here = Runs()

    def run(name):
        cancelled.set(end)  # a thread has a context of its own
        here.run(name, command(tmp_path / name))

    both = [started(run, name) for name in ("a", "b")]
    ids = [*family(tmp_path / "a"), *family(tmp_path / "b")]
    with pytest.raises(ValueError, match="^2 models run already, and no more may: ask again when"):
        here.run("c", command(tmp_path / "c"))
    assert all(map(lives, ids))
    end.set()
    for (thread, raised), name in zip(both, "ab", strict=True):
        thread.join()
        assert raised == [f"'{name}' was cancelled and was ended"]
    assert not any(map(lives, ids))
    assert here.run("d", [sys.executable, "-c", ""]) == (0, "")  # there is room again


def test_one_that_takes_too_long_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "PATIENCE", 0)
    with pytest.raises(ValueError, match="^'m' ran for more than 0 seconds and was ended$"):
        Runs().run("m", [sys.executable, "-c", "import time; time.sleep(600)"])


def test_the_program_dies_with_its_keeper(tmp_path):
    thread, _ = started(Runs().run, "m", command(tmp_path / "ids"))
    ids = family(tmp_path / "ids")
    keeper = int(Path(f"/proc/{ids[0]}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(keeper, signal.SIGKILL)
    waited(lambda: not lives(ids[0]))
    for left in ids[1:]:  # Linux tells those that the program started nothing
        os.kill(left, signal.SIGKILL)
    thread.join()


@pytest.mark.integration
@pytest.mark.parametrize("end", [signal.SIGKILL, None])
def test_runs_die_with_the_server_and_others_are_answered_meanwhile(tmp_path, monkeypatch, end):
    pytest.importorskip("mcp")
    monkeypatch.chdir(tmp_path)
    Path("m.py").write_text(MODEL)
    Path("reports").mkdir()
    server = Pipes("reports", "--allow-run", "m.py:build --input 2x2")
    server.call(1, "profile", target="m.py:build", name="x.json")
    ids = family(tmp_path / "ids")
    Path("ids").unlink()
    server.call(2, "docs", page="")
    assert server.answer()["id"] == 2  # while the first one runs
    server.call(3, "profile", target="m.py:build", name="y.json")
    ids += family(tmp_path / "ids")
    server.call(4, "profile", target="m.py:build", name="z.json")
    answer = server.answer()
    assert (answer["id"], answer["result"]["isError"]) == (4, True)
    assert "2 models run already" in answer["result"]["content"][0]["text"]
    server.send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}')
    waited(lambda: not any(map(lives, ids[3:])))
    assert all(map(lives, ids[:3]))
    if end is None:
        server.process.stdin.close()
    else:
        server.process.send_signal(end)
    waited(lambda: not any(map(lives, ids[:3])))
    server.process.wait(60)
    assert not list(Path("reports").iterdir())
