# SPDX-License-Identifier: Apache-2.0
"""What makes a process take memory from the kernel is recorded, by the kernel's own count.

leak() and nothing of churn(), and in sum what VmData grew by.
"""
import json
import subprocess
import time

import pytest

from conftest import PYCAP, PYTHON, ROOT, record_behind_gate

PROGRAM = ROOT / "testdata/programs/takes.py"
PERIOD = 65536
MIB = 1 << 20
GROWTH = ["--event", "memory-growth", "--python-only", "--interpreter", "calls"]


@pytest.fixture
def taken(needs_bpf, pysym, tmp_path):
    """Records takes.py, from when its functions are known: what it printed, and the bytes below each Python function."""
    def run(python, mib, way):
        trace, told, _ = record_behind_gate(pysym, tmp_path, ["-q", "-e", "cpu-clock,memory-growth"], python, PROGRAM, mib, way,
                                            known_by=("--event", "cpu-clock"))
        folded = pysym(trace, "-f", "folded", *GROWTH).stdout
        below = {}
        for line in folded.splitlines():
            stack, count = line.rsplit(" ", 1)
            for name in {frame.split(" (")[0].rsplit(".", 1)[-1] for frame in stack.split(";")}:
                below[name] = below.get(name, 0) + int(count)
        return trace, json.loads(told.splitlines()[-1]), below
    return run


def test_the_leak_is_first(taken, pysym, python):
    trace, told, below = taken(python.path, 32, "plain")
    assert below["leak"] == 32 * MIB
    assert -PERIOD <= below["work"] - told["grown"] <= PERIOD + told["late"], (below, told)
    assert below.get("churn", 0) <= 9 * MIB + told["late"]  # what its last round left in the heap, and arenas
    top = pysym(trace, "-f", "folded", *GROWTH).stdout.splitlines()
    largest = max(top, key=lambda line: int(line.rsplit(" ", 1)[1]))
    assert "leak" in largest and "churn" not in largest


@pytest.mark.smoke(load=True)
def test_threads_at_once(taken):
    _, told, below = taken(PYTHON, 32, "threads")
    assert below["leak"] == 32 * MIB
    assert told["grown"] >= 32 * MIB
    assert below.get("churn", 0) <= 24 * MIB + told["late"]  # a heap of its own for each thread


def test_a_child_has_its_own(taken):
    _, told, below = taken(PYTHON, 32, "fork")
    assert below["leak"] == 48 * MIB  # half of 32 before the fork, and half after it in each
    assert below["work"] >= told["grown"] + 16 * MIB


@pytest.mark.parametrize("way, function, mib", [("larger", "enlarge", 63), ("new", "add", 64)])
def test_the_first_call_after_attaching(way, function, mib, needs_bpf, pysym, tmp_path):
    """What mremap gives is the difference to what there was, which was before the recording. What mmap gives is all new."""
    trace, status = tmp_path / "t.bin", tmp_path / "status.json"
    with subprocess.Popen([PYTHON, PROGRAM, "64", way], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline() == "ready\n"  # what its start takes would be part of the first sample
        with subprocess.Popen([PYCAP, "record", "-e", "memory-growth", "-o", trace, "--status", status, "-p", str(program.pid)],
                              stderr=subprocess.PIPE, text=True) as recorder:
            while not status.exists():  # it is written when all is recorded
                assert recorder.poll() is None
                time.sleep(0.1)
            program.stdin.write("go\n")
            program.stdin.close()
            told = json.loads(program.stdout.readline())
            assert recorder.wait(60) == 0, recorder.stderr.read()
    assert told["grown"] == mib * MIB
    folded = pysym(trace, "-f", "folded", *GROWTH).stdout
    assert sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines() if function in line) == mib * MIB
