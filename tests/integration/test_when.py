# SPDX-License-Identifier: Apache-2.0
"""A flight recorder writes a file when its condition holds, and none when it does not.

The file has what was before and then.
"""
import os
import re

import pytest

from conftest import PYTHON

# Takes 10 ms of CPU in each 100 for two seconds, in calm(). Then hot() does so much of what argv[1] says that a condition holds, until
# a file lies in the folder argv[2] and a second longer, for 120 s at most. Processes want one CPU, and have it before other programs.
PROGRAM = """
import glob, os, signal, sys, threading, time

what, folder = sys.argv[1:3]
if what == "processes":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
if os.geteuid() == 0:
    os.setpriority(os.PRIO_PROCESS, 0, -19)

def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(200))

def calm():
    for _ in range(20):
        work(0.01)
        time.sleep(0.09)

def hot(until):
    while time.monotonic() < until and not glob.glob(folder + "/t-*.bin"):
        for _ in range(1000): # to look there releases the GIL
            sum(range(2000))
    until = min(until, time.monotonic() + 1)
    while time.monotonic() < until:
        sum(range(2000))

calm()
until = time.monotonic() + 120
if what == "threads":
    for _ in range(3):
        threading.Thread(target=hot, args=(until,)).start()
if what == "processes":
    for _ in range(3):
        if not os.fork():
            break
if what != "nothing":
    hot(until)
"""


def stand_by(pycap, folder, what, *options, version=PYTHON):
    done = pycap("record", "--on-demand", "--before", "60", "--after", "0.5", "-o", folder / "t-%t.bin", *options, "--", version, "-c",
                 PROGRAM, what, folder)
    assert done.returncode == 0, done.stderr
    return sorted(folder.glob("t-*.bin")), done.stderr


def check_event(pysym, paths, said, reason):
    """One file, though the condition goes on: the distance between events is longer than that. It says what held, and shows it."""
    assert len(paths) == 1 and said.count("event (") == 1, said
    assert re.search(r"event \(" + reason + r"\): ", said), said
    assert re.search(reason, pysym(paths[0], "-f", "summary", "-v").stdout)
    stacks = pysym(paths[0], "-f", "folded", "--python-only").stdout
    assert "calm" in stacks and "hot" in stacks, stacks


@pytest.mark.smoke
@pytest.mark.usefixtures("needs_bpf")
def test_cpu(pycap, pysym, tmp_path):
    paths, said = stand_by(pycap, tmp_path, "spin", "--when", "cpu>30%,for=500ms")
    check_event(pysym, paths, said, r"cpu \d+% > 30% for 0.5s")


@pytest.mark.usefixtures("needs_bpf")
def test_run_queue(pycap, pysym, tmp_path):
    """Four processes want one CPU: three of them wait. A program alone never has more than one thread that does."""
    paths, said = stand_by(pycap, tmp_path, "processes", "--when", "runq>1.2,for=500ms")
    check_event(pysym, paths, said, r"runq \d\.\d\d > 1.2 for 0.5s")


@pytest.mark.usefixtures("needs_bpf")
def test_gil(pycap, pysym, tmp_path):
    """Three of four threads wait for it."""
    paths, said = stand_by(pycap, tmp_path, "threads", "--wall", "--when", "gil>120%,for=500ms")
    check_event(pysym, paths, said, r"gil \d+% > 120% for 0.5s")


@pytest.mark.usefixtures("needs_bpf")
def test_nothing_happens(pycap, tmp_path):
    """
    A fifth of the limit, all the time: no file, also with other conditions beside it. For longer than the interpreter takes to start.
    """
    paths, said = stand_by(pycap, tmp_path, "nothing", "--wall", "--when", "cpu>50%,for=1s", "--when", "gil>1", "--when", "runq>5",
                           "--when", "cpu>900")
    assert "--when 'cpu>900' is no event ever: that is 900 CPUs" in said and said.count("no event ever") == 1, said
    assert not paths and "nothing was written: there was no event (SIGUSR1, or a condition of --when)" in said, said


@pytest.mark.live
def test_without_bpf(pycap, pysym, tmp_path):
    """The clocks of processes are there for everybody."""
    paths, said = stand_by(pycap, tmp_path, "spin", "--backend", "proc", "--when", "cpu>30%,for=500ms")
    check_event(pysym, paths, said, r"cpu \d+% > 30% for 0.5s")


@pytest.mark.parametrize("options, message", [
    (["--when", "cpu>1"], "--when needs --on-demand"),
    (["--on-demand", "--when", "load>1"], "begins with what is measured (cpu, runq, gil)"),
    (["--on-demand", "--when", "gil>1"], "--when gil needs waits: -e off-cpu or --wall"),
    (["--on-demand", "--backend", "proc", "--when", "runq>1"], "--when runq and --when gil need BPF"),
    (["--on-demand", "--wall", "--backend", "proc", "--when", "gil>1"], "--when runq and --when gil need BPF"),
])
def test_usage(pycap, tmp_path, options, message):
    done = pycap("record", *options, "-o", tmp_path / "t-%t.bin", "--", "/bin/true")
    assert done.returncode == 2 and message in done.stderr, done.stderr
    assert not os.listdir(tmp_path)
