"""Two machines on one: network namespaces joined by a link whose rate is shaped."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import uuid

import pytest

import roofprof

PROGRAM = """
import os, sys
import torch
import torch.distributed as dist
import roofprof
from roofprof.roofs.network.measure import measure

rank, folder = int(os.environ["RANK"]), sys.argv[1]
dist.init_process_group("gloo")
roofs = measure("cpu", 20.0, lambda line: None)
layer = torch.nn.Linear(4, 4)
inside = [dist.new_group([0, 1]), dist.new_group([2, 3])]
profiler = roofprof.RooflineProfiler(layer, ceilings=roofs)
value = torch.ones(1 << 18)
dist.all_reduce(value, group=inside[rank // 2])
with profiler:
    dist.all_reduce(value)
    dist.all_reduce(value, group=inside[rank // 2])
merged = roofprof.gather(profiler.report())
if merged:
    merged.to_json(folder + "/all.json")
    roofs.save(folder + "/network.json")
dist.destroy_process_group()
"""


def run(*command):
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)


def why_not():
    if os.geteuid() != 0:
        return "namespaces need root"
    if not shutil.which("ip") or not shutil.which("tc"):
        return "needs ip and tc (iproute2)"
    name = f"rp-{uuid.uuid4().hex[:6]}"
    shape = ["rate", "1gbit", "burst", "1mb", "latency", "1s"]
    try:
        run("ip", "netns", "add", name)
        try:
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("tc", "-n", name, "qdisc", "add", "dev", "lo", "root", "tbf", *shape)
        finally:
            run("ip", "netns", "del", name)
    except (OSError, subprocess.SubprocessError) as error:
        return f"this system has no network namespaces, or cannot shape links: {getattr(error, 'stderr', error)}"
    return ""


@contextlib.contextmanager
def two_nodes(megabits):
    """Names of two namespaces, 10.77.0.1 and 10.77.0.2, whose link carries so much in each direction."""
    tag = uuid.uuid4().hex[:6]
    names = [f"rp-a-{tag}", f"rp-b-{tag}"]
    made = []
    try:
        for name in names:
            run("ip", "netns", "add", name)
            made.append(name)
        run("ip", "-n", names[0], "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", names[1])
        for number, name in enumerate(names, 1):
            run("ip", "-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                run("ip", "-n", name, "link", "set", device, "up")
            shape = ["rate", f"{megabits}mbit", "burst", "64kb", "latency", "200ms"]
            run("tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", "tbf", *shape)
        yield names
    finally:
        for name in made:
            left = subprocess.run(
                ["ip", "netns", "pids", name], check=False, capture_output=True, text=True, timeout=300
            )
            for process in left.stdout.split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True, timeout=300)


@pytest.fixture(scope="module", autouse=True)
def possible():
    if reason := why_not():
        pytest.skip(reason)


def measured(folder, megabits):
    """The merged report of four ranks, two on each node, and the network's roofs."""
    folder.mkdir()
    program = folder / "program.py"
    program.write_text(PROGRAM)
    agents = []
    with two_nodes(megabits) as names:
        try:
            for number, name in enumerate(names):
                command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "2"]
                command += ["--node-rank", str(number), "--master-addr", "10.77.0.1", "--master-port", "29871"]
                # In a namespace of its own, its host has a name of its own.
                named = ["unshare", "--uts", "sh", "-c", f'hostname node{number}; exec "$@"', "sh"]
                settings = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0"}
                settings["ROOFPROF_CACHE_DIR"] = str(folder / f"cache{number}")
                agents.append(
                    subprocess.Popen(
                        ["ip", "netns", "exec", name, *named, *command, str(program), str(folder)],
                        env={**os.environ, **settings},
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        text=True,
                    )
                )
            outputs = [agent.communicate(timeout=1200)[0] for agent in agents]
            assert [agent.returncode for agent in agents] == [0, 0], "\n".join(outputs)
        finally:
            for agent in agents:
                agent.kill()
                agent.wait()
    network = roofprof.Ceilings.load(folder / "network.json").network
    return roofprof.Report.from_json(folder / "all.json"), {roof.collective: roof for roof in network}


@pytest.mark.slow
@pytest.mark.measuring
def test_the_roof_follows_the_links_shape(tmp_path):
    """tbf shapes whole frames of at most 1,514 bytes, of which TCP carries 1,448 (with timestamps)."""
    found = {}
    for megabits in (100, 300):
        merged, roofs = measured(tmp_path / str(megabits), megabits)
        payload = megabits * 1e6 / 8 * 1448 / 1514
        # From rank 0 to the last, on the other node: one stream over the link.
        assert roofs["send"].bytes_per_second == pytest.approx(payload, rel=0.15)
        found[megabits] = roofs["send"].bytes_per_second
        groups = {row.ranks: row for row in merged.collectives}
        assert groups[4].bytes == 4 * (1 << 20)
        assert sum(row.bytes for row in merged.collectives if row.ranks == 2) == 4 * (1 << 20)
        # Across nodes it is the link that takes the time; inside a node it is not.
        assert groups[4].transfer / groups[4].calls > 2 * groups[2].transfer / groups[2].calls
        assert (groups[4].hosts, groups[2].hosts) == (2, 1)
        assert [rank.host for rank in merged.ranks] == ["node0", "node0", "node1", "node1"]
    assert found[300] / found[100] == pytest.approx(3, rel=0.15)
