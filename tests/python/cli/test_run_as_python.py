"""``roofprof run`` runs a program as Python does: what the program sees of itself, and the order of its end."""

import subprocess
import sys

import pytest

PROBE = """
import os, sys, traceback, warnings
print(__name__, __file__, sys.argv, sys.path[0], __package__, __cached__, __doc__, __annotations__)
print(__spec__ and (__spec__.name, __spec__.origin), type(__loader__).__name__, sorted(globals()))
print(__builtins__ is sys.modules["builtins"], vars(sys.modules["__main__"]) is globals())
os.chdir("/")
print(open(__file__).readline() == "\\n", os.path.dirname(os.path.abspath(__file__)), sys.path[0])
warnings.warn("of the program")


def fails():
    raise ValueError("caught")


try:
    fails()
except ValueError:
    traceback.print_exc()
import beside
fails()
"""

WAYS = {
    "here": ["./probe.py", "1", "--json", "x"],
    "a link": ["link.py"],
    "in a package": ["-m", "package.probe", "-m"],
}


def ran(*command):
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("way", WAYS)
def test_a_program_sees_of_itself_what_it_sees_in_python(here, way):
    for folder in (here, here / "folder", here / "package"):
        folder.mkdir(exist_ok=True)
        (folder / "probe.py").write_text(PROBE)
        (folder / "beside.py").write_text("")
    (here / "package" / "__init__.py").write_text("")
    (here / "package" / "__main__.py").write_text(PROBE)
    (here / "link.py").symlink_to("folder/probe.py")
    plain = ran(*WAYS[way])
    assert plain.returncode == 1
    assert plain.stderr.count("ValueError: caught") == 2, plain.stderr
    done = ran("-m", "roofprof", "run", *WAYS[way])
    ours = [line for line in done.stderr.splitlines() if not line.startswith("roofprof: ")]
    # Of -m Python shows its own frames as well.
    assert done.stdout == plain.stdout
    assert ours == [line for line in plain.stderr.splitlines() if "runpy" not in line]
    assert done.returncode == 1


THREADS = """
import atexit, concurrent.futures, sys, threading, time
import torch
from torch import nn

model = nn.Linear(4, 4)
ready = threading.Event()


def after_main():
    threading.main_thread().join()
    for _ in range(8):
        model(torch.ones(2, 4))
    print("a thread, after the main code")


def as_task():
    ready.wait()
    print("an executor's thread")


atexit.register(print, "registered first")
atexit.register(print, "registered last")
threading.Thread(target=after_main).start()
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
concurrent.futures.ThreadPoolExecutor(1).submit(as_task)
print("the main code")
ready.set()
END
"""


@pytest.mark.parametrize("end", ["", "raise KeyError"])
def test_the_table_comes_after_the_threads_and_before_what_is_registered(here, end):
    (here / "program.py").write_text(THREADS.replace("END", end))
    plain = ran("program.py")
    done = ran("-m", "roofprof", "run", "--no-legend", "program.py")
    assert done.returncode == plain.returncode
    assert "profiled 5 calls of Linear" in done.stderr
    lines = done.stdout.splitlines()
    printed = plain.stdout.splitlines()
    assert [line for line in lines if line in printed] == printed
    heading = next(place for place, line in enumerate(lines) if line.startswith("roofprof  Linear"))
    assert lines[:heading] == printed[:-2]
    assert lines[-2:] == printed[-2:] == ["registered last", "registered first"]
