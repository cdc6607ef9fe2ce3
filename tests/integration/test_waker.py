# SPDX-License-Identifier: Apache-2.0
"""A wait says who ended it (--waker): a thread, another process, a timer or a stranger.

The thread is one of the process, or one of another process that is recorded.
"""
import collections
import json
import os
import subprocess
import time

import pytest

from accounts import TRACE_HEAD_BYTES
from conftest import PYCAP, PYTHON, ROOT

ROUNDS = 300


def feed(fifo, recorder):
    """Writes what the program reads, a while after it says that it is about to. This process is not recorded. Returns what the
    program says at its end."""
    while recorder.poll() is None:
        try:
            fd = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError:  # nobody reads yet
            time.sleep(0.01)
    else:
        return ""
    while (line := recorder.stdout.readline()) == "\n":
        time.sleep(0.003)
        try:
            os.write(fd, b"x")
        except BrokenPipeError:
            break
    os.close(fd)
    return line


def wakers(pysym, trace):
    """By thread's tid and by what it waits for: how many samples have which waker."""
    out = collections.defaultdict(collections.Counter)
    done = pysym(trace, "--format", "ndjson", "--labels")
    assert done.returncode in (0, 3), done.stderr
    for sample in map(json.loads, done.stdout.splitlines()):
        if sample["type"] == "sample":
            labels = sample["labels"]
            out[sample["tid"], labels["wait"], labels.get("system call")][labels.get("waker")] += 1
    return out


@pytest.mark.smoke
def test_wakers(needs_bpf, pysym, tmp_path):
    fifo, trace = tmp_path / "fifo", tmp_path / "t.bin"
    os.mkfifo(fifo)
    with subprocess.Popen([PYCAP, "record", "-o", trace, "-e", "off-cpu/period=1/", "--waker", "--", PYTHON,
                           ROOT / "testdata/programs/wakers.py", str(ROUNDS), fifo],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
        told = feed(fifo, recorder)
        _, said = recorder.communicate(timeout=300)
    assert recorder.returncode == 0, said
    ids, found = json.loads(told), wakers(pysym, trace)

    def of(name, wait, call):
        return found[ids[name], wait, call]

    def who(name, pid=ids["pid"]):
        return f"{pid}/{ids[name]} {name}"

    # Most threads find nothing there yet, so they wait. Rarely it is not known who woke one that had not quite gone yet.
    for waits, by in ((of("reads pipe", "blocked", "read"), who("child", ids["child"])),
                      (of("reads fifo", "blocked", "read"), "other"),
                      (of("asks", "blocked", "clock_nanosleep"), "interrupt")):
        assert waits[by] > ROUNDS // 4 and waits.keys() <= {by, None}, found
    assert of("serves", "lock", "futex")[who("asks")] > ROUNDS // 4, found
    assert of("asks", "lock", "futex")[who("serves")] > 0, found
    # The GIL is handed over by any thread of the process; a timer ends waiting for it after 5 ms.
    everybody = {f"{ids['pid']}/{tid}" for tid in ids.values()} | {"interrupt"}
    assert {waker.split()[0] for waker in of("serves", "lock", "futex") if waker} <= everybody, found
    for (_, wait, _), by in found.items():
        assert wait != "preempted" or by.keys() == {None}, found


def test_thinned(needs_bpf, pysym, pycap, tmp_path):
    """The time of waits without a stack goes to a waker that was seen at the same place."""
    done = pycap("record", "-o", tmp_path / "t.bin", "-e", "off-cpu/period=50000000/", "--waker", "--", PYTHON, "-c",
                 "import time\nfor _ in range(1500): time.sleep(.001)")
    assert done.returncode == 0, done.stderr
    by = collections.Counter()
    for (_, wait, call), counts in wakers(pysym, tmp_path / "t.bin").items():
        if (wait, call) == ("blocked", "clock_nanosleep"):
            by.update(counts)
    # Rarely it is not known who woke a thread that had not quite gone yet, nor of a part of a wait that lasts.
    assert by["interrupt"] and by.keys() <= {"interrupt", None} and by.total() < 1500, by


@pytest.mark.parametrize("options", [(), ("-e", "cpu-clock"), ("-e", "page-faults")])
def test_without_waits(pycap, options):
    done = pycap("record", "--waker", *options, "--", PYTHON, "-c", "0")
    assert done.returncode == 2 and "--waker needs waits: -e off-cpu or --wall" in done.stderr, done.stderr


def test_not_asked_for(needs_bpf, pysym, pycap, tmp_path):
    work = "import os, sys, time\nwhile os.path.getsize(sys.argv[1]) <= int(sys.argv[2]): time.sleep(0.01)"  # until it is in the trace
    done = pycap("record", "-o", tmp_path / "t.bin", "-e", "off-cpu/period=1/", "--", PYTHON, "-c", work, tmp_path / "t.bin",
                 TRACE_HEAD_BYTES)
    assert done.returncode == 0, done.stderr
    assert {waker for counts in wakers(pysym, tmp_path / "t.bin").values() for waker in counts} == {None}
