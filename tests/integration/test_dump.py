# SPDX-License-Identifier: Apache-2.0
"""pycap dump shows where each thread of a process is, as the process itself says.

On every version, and with threads in every state.
"""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

from conftest import PYCAP, PYTHON, ROOT, later

STANDING = ROOT / "testdata/programs/standing.py"


@contextlib.contextmanager
def program(python, *arguments, **keywords):
    """A program that says on its first line when it is ready, and ends with its input."""
    with subprocess.Popen([python, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          **keywords) as running:
        try:
            yield running
        finally:
            running.send_signal(signal.SIGCONT)
            running.kill()


def dump(*arguments, said=""):
    """
    What pycap dump --json says: processes by pid, each with its threads by id. `said`: a part of its messages. It ends when
    each thread has a stack, however long it has to wait for a CPU to read them.
    """
    done = subprocess.run([PYCAP, "dump", "--json", "--timeout", "20", *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0 and said in done.stderr, (done.returncode, done.stderr)
    processes = json.loads(done.stdout)["processes"]
    return {p["pid"]: {**p, "threads": {t["tid"]: t for t in p["threads"]}} for p in processes}


def python_frames(thread):
    """[(function without its class, file, line)], innermost first, as sys._current_frames() has them."""
    return [(f["function"].rpartition(".")[2], f["file"], f["line"]) for f in reversed(thread["frames"]) if f["layer"] == "python"]


def names(thread):
    return [f["function"] for f in thread["frames"] if f["layer"] == "python"]


def truth_of(line):
    return {int(tid): [tuple(frame) for frame in frames] for tid, frames in json.loads(line).items()}


def check_truth(threads, truth):
    for tid, frames in truth.items():
        assert python_frames(threads[tid]) == frames, (tid, frames[0])


def states(pid):
    return {int(tid.name): (tid / "stat").read_text().rpartition(")")[2].split()[0] for tid in pathlib.Path(f"/proc/{pid}/task").iterdir()}


def wait_until_all_wait(pid):
    """A thread that has said that it will wait is not there yet on a busy machine."""
    deadline = time.monotonic() + 60
    while set(states(pid).values()) != {"S"}:
        assert time.monotonic() < deadline, states(pid)
        time.sleep(0.01)


# ---- the same as the interpreter says ----

@pytest.mark.smoke(load=True)
@pytest.mark.every_python
def test_current_frames(needs_bpf, python):
    with program(python.path, STANDING) as standing:
        truth = truth_of(standing.stdout.readline())
        found = dump("-p", standing.pid)[standing.pid]["threads"]
        assert set(found) == set(states(standing.pid))
    assert len(truth) > 10
    check_truth(found, truth)
    assert {found[tid]["state"] for tid in truth} <= {"blocked", "lock"}, found


@pytest.mark.live
@pytest.mark.every_python
def test_current_frames_without_bpf(python):
    scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
    if os.geteuid() and scope.exists() and scope.read_text().strip() != "0":
        pytest.skip("kernel.yama.ptrace_scope keeps processes from reading others of their user")
    with program(python.path, STANDING) as standing:
        truth = truth_of(standing.stdout.readline())
        found = dump("-p", standing.pid, "--backend", "proc")[standing.pid]["threads"]
        assert set(found) == set(states(standing.pid))
    check_truth(found, truth)
    # Nobody saw these waits begin.
    assert all(found[tid]["waited_longer"] for tid in truth), found


def test_several_processes(needs_bpf):
    with program(PYTHON, STANDING) as one, program(PYTHON, STANDING) as two:
        truths = {p.pid: truth_of(p.stdout.readline()) for p in (one, two)}
        found = dump("-p", f"{one.pid},{two.pid}")
    assert set(found) == set(truths)
    for pid, truth in truths.items():
        check_truth(found[pid]["threads"], truth)


# ---- threads in every state ----

def voluntary_switches(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(text.split("\nvoluntary_ctxt_switches:")[1].split()[0])


SPINS = """
def spins():
    n = 0
    while True: n ^= 1
print("ready", flush=True)
spins()
"""


def test_the_process_is_not_stopped(needs_bpf):
    """A thread that only computes leaves its CPU of its own accord only when something makes it wait: a stop would."""
    tracers = set()
    with program(PYTHON, "-c", SPINS) as spinning:
        spinning.stdout.readline()
        status = pathlib.Path(f"/proc/{spinning.pid}/status")
        stayed, found = [], []
        # To be moved to another CPU makes a thread wait, too; and on a busy machine it may not run while it is looked at.
        while len(stayed) < 10 and not (any(stayed) and found and found[0]["frames"]):
            before = voluntary_switches(spinning.pid)
            with subprocess.Popen([PYCAP, "dump", "--json", "--timeout", "20", "-p", str(spinning.pid)], stdout=subprocess.PIPE,
                                  text=True) as dumping:
                while dumping.poll() is None:
                    tracers.add(status.read_text().split("\nTracerPid:")[1].split()[0])
                found = json.load(dumping.stdout)["processes"][0]["threads"]
            stayed.append(voluntary_switches(spinning.pid) == before)
    assert any(stayed)
    assert tracers == {"0"}
    assert [names(t) for t in found] == [["<module>", "spins"]] and found[0]["holds_gil"], found


def test_a_stopped_process(needs_bpf):
    with program(PYTHON, STANDING) as standing:
        truth = truth_of(standing.stdout.readline())
        standing.send_signal(signal.SIGSTOP)
        while set(states(standing.pid).values()) != {"T"}:
            time.sleep(0.01)
        found = dump("-p", standing.pid)[standing.pid]["threads"]
        assert set(states(standing.pid).values()) == {"T"}, "it goes on"
    check_truth(found, truth)
    assert {t["state"] for t in found.values()} == {"stopped"}


# A spawned child opens a FIFO before it executes its program, and until then its parent is not to be disturbed.
SPAWNS = """
import os, sys
print("ready", flush=True)
def spawns():
    os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)])
spawns()
"""


def test_an_uninterruptible_thread(needs_bpf, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with program(PYTHON, "-c", SPAWNS, fifo) as spawning:
        spawning.stdout.readline()
        children = pathlib.Path(f"/proc/{spawning.pid}/task/{spawning.pid}/children")
        while not children.read_text() or states(spawning.pid)[spawning.pid] != "D":
            time.sleep(0.01)
        found = dump("-p", spawning.pid, "--no-inherit")[spawning.pid]["threads"][spawning.pid]
        with open(fifo, "w", encoding="utf-8"):
            pass
    assert names(found) == ["<module>", "spawns"] and found["state"] == "uninterruptible", found


LEADER_ENDS = """
import ctypes, os, threading
def stays(): os.read(0, 1)
threading.Thread(target=stays).start()
print("ready", flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


def test_the_first_thread_has_ended(needs_bpf):
    with program(PYTHON, "-c", LEADER_ENDS) as running:
        running.stdout.readline()
        while states(running.pid)[running.pid] != "Z":
            time.sleep(0.01)
        found = dump("-p", running.pid)[running.pid]["threads"]
    other = [t for tid, t in found.items() if tid != running.pid]
    # Its code objects are not named: only the ids of threads that go on lead to its memory.
    assert len(other) == 1 and other[0]["state"] == "blocked" and names(other[0]), other


def test_a_process_that_has_ended(pycap):
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        done = pycap("dump", "-p", child.pid)
        assert done.returncode == 1 and f"process {child.pid}" in done.stderr and not done.stdout, done


MANY = """
import os, sys, threading, time
count, begun = int(sys.argv[1]), []
readable, writable = os.pipe()
def stands():
    begun.append(1)
    os.read(readable, 1)
for _ in range(count): threading.Thread(target=stands, daemon=True).start()
while len(begun) < count: time.sleep(0.01)
print("ready", flush=True)
os.read(0, 1)
"""


@pytest.mark.parametrize("backend", ["bpf", later("proc")])
def test_a_thousand_threads(needs_bpf, backend):
    with program(PYTHON, "-c", MANY, 1000) as many:
        many.stdout.readline()
        while set(states(many.pid).values()) != {"S"}:
            time.sleep(0.05)
        found = dump("-p", many.pid, "--backend", backend)[many.pid]["threads"]
        assert set(found) == set(states(many.pid))
    assert sum(names(t)[-1:] == ["stands"] for t in found.values()) == 1000
    assert names(found[many.pid]) == ["<module>"]


CHURNS = """
import os, threading
def stays(): os.read(0, 1)
def short(): pass
threading.Thread(target=stays, daemon=True).start()
print("ready", flush=True)
while True:
    thread = threading.Thread(target=short)
    thread.start()
    thread.join()
"""


def test_threads_that_come_and_go(needs_bpf):
    with program(PYTHON, "-c", CHURNS) as churning:
        churning.stdout.readline()
        for _ in range(5):  # of its first thread a torn stack may be all there is
            found = dump("-p", churning.pid)[churning.pid]["threads"]
            if names(found[churning.pid])[:1] == ["<module>"]:
                break
    assert any(names(t)[-1:] == ["stays"] for t in found.values()), found
    assert names(found[churning.pid])[0] == "<module>"


# ---- as a file ----

def test_into_a_file(needs_bpf, pycap, pysym, tmp_path):
    with program(PYTHON, STANDING) as standing:
        truth = truth_of(standing.stdout.readline())
        wait_until_all_wait(standing.pid)
        done = pycap("dump", "--timeout", "20", "-p", standing.pid, "-o", tmp_path / "t.bin")
        assert done.returncode == 0 and done.stdout == done.stderr == "", done
    shown = pysym("-f", "threads", "--json", tmp_path / "t.bin")
    assert shown.returncode == 0, shown.stderr
    check_truth({t["tid"]: t for t in json.loads(shown.stdout)["processes"][0]["threads"]}, truth)
    text = pysym("-f", "dump", tmp_path / "t.bin").stdout
    stated = [line for line in text.splitlines() if line.startswith("thread_state ")]
    assert len(stated) == len(truth) + 1 and all("state=2 " in line and "since_ns=0" not in line for line in stated), stated
