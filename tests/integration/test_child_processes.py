# SPDX-License-Identifier: Apache-2.0
"""With -p, children that ran before the recording began are recorded, too.

At any depth, and whatever the order of pids.
"""
import os
import re
import subprocess

import pytest

from conftest import PYCAP, PYSYM, PYTHON, why_no_bpf

pytestmark = pytest.mark.live

# A chain of four processes, of which each forks the next one and burns CPU. A pid is smaller than its parent's where that
# can be arranged for.
TREE = """
import os, sys, time
PIDS = "/proc/sys/kernel/ns_last_pid"
print(os.getpid(), flush=True)
for _ in range(3):
    if os.access(PIDS, os.W_OK) and os.getpid() > 1000:
        with open(PIDS, "w") as pids:
            pids.write(str(os.getpid() // 2))
    if os.fork():
        break
    print(os.getpid(), flush=True)
os.close(1)
end = time.monotonic() + 300
while os.getppid() != 1 and time.monotonic() < end:
    sum(range(10000))
"""


@pytest.fixture
def tree():
    """The pids of a chain of processes, outermost first."""
    with subprocess.Popen([PYTHON, "-c", TREE], stdout=subprocess.PIPE, text=True) as outermost:
        pids = [int(outermost.stdout.readline()) for _ in range(4)]
        yield pids
        for pid in reversed(pids):  # an orphan ends by itself
            os.kill(pid, 9)


def record_pids(backend, options, pid, trace):
    """The pids that a recording of a second has samples of."""
    done = subprocess.run([PYCAP, "record", "-F", "499", "-d", "1", "-o", trace, "--backend", backend, *options, "-p", str(pid)],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    text = subprocess.run([PYSYM, "--format", "perf-script", trace], capture_output=True, text=True, timeout=120,
                          check=True).stdout
    return {int(pid) for pid in re.findall(r"^\S.*? +(\d+)/\d+ ", text, re.M)}


@pytest.mark.smoke("bpf")
@pytest.mark.parametrize("backend", ["bpf", "proc"])
def test_older_children(backend, tree, tmp_path):
    if backend == "bpf" and why_no_bpf():
        pytest.skip(why_no_bpf())
    print(f"pids: {tree}")
    seen = set()
    for _ in range(10):  # on a busy machine a second is too short for each to have run
        seen |= record_pids(backend, (), tree[0], tmp_path / "all.bin")
        if seen == set(tree):
            break
    assert seen == set(tree)
    alone = set()
    for _ in range(10):
        alone |= record_pids(backend, ("--no-inherit",), tree[0], tmp_path / "alone.bin")
        if alone:
            break
    assert alone == {tree[0]}
