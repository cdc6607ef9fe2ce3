# SPDX-License-Identifier: Apache-2.0
"""Threads that slept before the recording began, and never run, are in the trace.

With the stacks that the program itself says they have, for as long as the recording lasted. And long waits of which no stack
was taken.
"""
import collections
import contextlib
import json
import re
import signal
import subprocess
import time

import pytest

from accounts import is_begun
from conftest import PYCAP, PYSYM, PYTHON, ROOT, record_behind_gate
from wait_trace import CONTINUES, OWED, Trace, check_functions, off_cpu_samples, stacks_of

pytestmark = pytest.mark.live

WORKERS = 5


@contextlib.contextmanager
def idle_program(workers=WORKERS):
    """(pid, {tid: names of functions, innermost first}) of a program whose threads all sleep, but for its first, which may."""
    with subprocess.Popen([PYTHON, ROOT / "testdata/programs/idle.py", str(workers)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as program:
        yield program.pid, {int(tid): names for tid, names in json.loads(program.stdout.readline()).items()}
        program.stdin.close()


def switches(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/status") as f:
        return sum(int(n) for n in re.findall(r"ctxt_switches:\s+(\d+)", f.read()))


def record_idle(pid, truth, trace, *options):
    """Records until all threads have been written in two parts; says which threads slept all the while."""
    before = {tid: switches(pid, tid) for tid in truth}
    with subprocess.Popen([PYCAP, "record", "-o", trace, *options, "-p", str(pid)], stderr=subprocess.PIPE, text=True) as recorder:
        while recorder.poll() is None:
            time.sleep(0.2)
            if is_begun(trace):
                seen = collections.Counter(s.thread for s in Trace(trace).samples)
                if sum(n >= 2 for n in seen.values()) >= len(truth):
                    break
        recorder.terminate()
        _, said = recorder.communicate(timeout=300)
    assert recorder.returncode == 0, said
    return {tid for tid, n in before.items() if switches(pid, tid) == n}


@pytest.mark.smoke
def test_idle_threads(needs_bpf, tmp_path):
    path = tmp_path / "t.bin"
    with idle_program() as (pid, truth):
        slept = record_idle(pid, truth, path, "-e", "off-cpu")
    trace, found = Trace(path), stacks_of(path)
    trace.check_sums()
    assert len(slept) >= WORKERS, "the machine woke threads that had nothing to do"
    for tid in slept:
        assert list(found[tid]) == [tuple(truth[tid])], (tid, found[tid])
    # Of the whole time each: from its start, which is when the threads were looked at first, to its end.
    began, ended = min(row[1] for row in trace.times), max(row[2] for row in trace.times)
    whole = [row for row in trace.times if row[3] == 0 and row[2] == ended and row[2] - row[1] > 0.95 * (ended - began)]
    assert len(whole) >= len(slept), trace.times
    for thread, since, until, _, rows in whole:
        parts = [s for s in trace.samples if s.thread == thread]
        assert [bool(s.flags & CONTINUES) for s in parts] == [False] + [True] * (len(parts) - 1)
        assert sum(s.value for s in parts) == until - since == sum(ns for _, ns, _ in rows)
    assert sum(s.value for s in trace.samples) == sum(sum(ns for _, ns, _ in row[4]) for row in trace.times)
    calls = {(s.labels["wait"], s.labels["system call"]) for s in trace.samples}
    assert calls >= {("lock", "futex"), ("blocked", "clock_nanosleep"), ("blocked", "read")}


@pytest.mark.long
def test_recorder_without_time(needs_bpf, tmp_path):
    """A recorder that hardly runs cannot read them all before it ends: it says of how many it did not."""
    def record(pid):
        with subprocess.Popen([PYCAP, "record", "-v", "-o", path, "-e", "off-cpu", "-d", "0.3", "-p", str(pid)],
                              stderr=subprocess.PIPE, text=True) as recorder:
            while recorder.poll() is None and not path.exists():  # the kernel loads no program for one that it is to stop
                time.sleep(0.002)
            while recorder.poll() is None:
                recorder.send_signal(signal.SIGSTOP)
                time.sleep(0.09)
                recorder.send_signal(signal.SIGCONT)
                time.sleep(0.005)
            said = recorder.stderr.read()
        assert recorder.returncode == 0, said
        return said

    path = tmp_path / "t.bin"
    with idle_program(2000) as (pid, truth):
        for _ in range(10):  # where this test gets no CPU, the recorder is not stopped again
            path.unlink(missing_ok=True)
            said = record(pid)
            if "sleeper_unread" in said:
                break
    assert "sleeper_unread" in said, said
    samples = off_cpu_samples(path)
    unread = [s for s in samples if not s.functions]
    count = int(re.search(r"sleeper_unread +(\d+)", said)[1])
    assert count == len(unread) > 0, (len(unread), said)
    assert {s.tid for s in unread} <= truth.keys() | {pid}
    whole = re.search(r"reached their root: (\d+\.\d+) % of (\d+)", said)
    # What a place owes at the end is written with a stack that was counted.
    stacks = len(samples) - sum(bool(s.flags & OWED) for s in Trace(path).samples)
    assert float(whole[1]) == pytest.approx(100 - 100 * count / stacks, abs=0.01) and int(whole[2]) == stacks, said


def test_registers(needs_bpf, tmp_path):
    """Stack pointer and program counter are those that /proc shows; a snapshot has them."""
    path = tmp_path / "t.bin"
    with idle_program() as (pid, truth):
        slept = record_idle(pid, truth, path, "-e", "off-cpu", "--unwind", "snapshot")
        want = set()
        for tid in slept:
            with open(f"/proc/{pid}/task/{tid}/syscall") as f:
                want.add(tuple(int(word, 16) for word in f.read().split()[-2:]))
    dump = subprocess.run([PYSYM, "--format", "dump", path], capture_output=True, text=True, timeout=300, check=True).stdout
    found = set()
    for line in dump.splitlines():
        match = re.match(r" *snapshot .*registers=\[([^]]*)\]", line)
        if match:
            registers = [int(word, 0) for word in match[1].split()]
            found.add((registers[7], registers[16])) # DWARF's numbers of RSP and RIP
    assert want and want <= found, (want, found)


LONG = """
import json, os, sys, time
waited = {"long": 0, "short": 0}
def wait(seconds): time.sleep(seconds)
def long(): wait(2.5)
def short(): wait(0.001)
def measured(function):
    began, cpu = time.monotonic_ns(), time.thread_time_ns()
    function()
    waited[function.__name__] += time.monotonic_ns() - began - (time.thread_time_ns() - cpu)
def warm():
    while not os.path.exists(sys.argv[1]): sum(range(1000))
warm()
for _ in range(400): measured(short)
measured(long)
for _ in range(400): measured(short)
print(json.dumps(waited))
"""


def test_a_long_wait_among_short_ones(needs_bpf, pysym, tmp_path):
    """Hardly any wait at the place has a stack, so when the long one begins none is taken; it is read while it lasts."""
    _, told, _ = record_behind_gate(pysym, tmp_path, ["-e", "cpu-clock", "-e", "off-cpu/period=4000000000/"], PYTHON, "-c", LONG,
                                    known_by=("--event", "cpu-clock"))
    trace, truth = Trace(tmp_path / "t.bin"), json.loads(told)
    trace.check_sums()
    assert trace.ticks["thinned"] > 600, trace.ticks
    check_functions(pysym, tmp_path / "t.bin", truth)


def test_each_file(needs_bpf, pycap, tmp_path):
    """A wait that lasts through several files is in each, in its samples as in its account."""
    with idle_program() as (pid, truth):
        done = pycap("record", "-o", tmp_path / "%t.bin", "--rotate", "1", "-e", "off-cpu", "-d", "3", "-p", pid)
    assert done.returncode == 0, done.stderr
    files = [Trace(path) for path in sorted(tmp_path.glob("*.bin"))]
    assert len(files) > 1
    for trace in files:
        assert all(since + on_cpu + sum(ns for _, ns, _ in rows) == until for _, since, until, on_cpu, rows in trace.times)
    assert sum(len(trace.accounts().keys() & truth.keys()) >= WORKERS for trace in files) > 1
    assert sum(sum(t.written().values()) for t in files) == sum(sum(t.exact().values()) for t in files)
