# SPDX-License-Identifier: Apache-2.0
"""Recording without privilege says where threads wait: all are read at a rate."""
import collections
import json
import pathlib
import re
import signal
import subprocess
import time

import pytest

from accounts import is_begun
from conftest import PYCAP, PYTHON, ROOT, record_behind_gate, unprivileged
from wait_trace import CONTINUES, Trace, waits_of

pytestmark = pytest.mark.live

PROGRAMS = ROOT / "testdata/programs"


def record(trace, *command, options=("--wall",)):
    done = subprocess.run([*unprivileged(), PYCAP, "record", "-o", trace, *options, "--backend", "proc", "--", *map(str, command)],
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done


def sums(trace):
    """In ns by thread: off the CPU by samples, and by the kernel's counts."""
    written, exact = collections.Counter(), collections.Counter()
    for sample in trace.samples:
        written[sample.thread] += sample.value
    for thread, since, until, on_cpu, rows in trace.times:
        assert since + on_cpu + sum(ns for _, ns, _ in rows) == until, thread
        exact[thread] += sum(ns for _, ns, _ in rows)
    return written, exact


def test_waits(pysym, tmp_path):
    """Each function's waits by its own clock, short ones by chance; the sums of each thread are the kernel's."""
    path, told, _ = record_behind_gate(pysym, tmp_path, ["--wall", "--backend", "proc"], PYTHON, PROGRAMS / "waits.py", 2,
                                       before=unprivileged())
    truth = json.loads(told)
    trace = Trace(path)
    written, exact = sums(trace)
    # What came after a thread's last sample has none.
    assert all(written[thread] <= exact[thread] for thread in exact) and written.total() > 0.8 * exact.total()
    found = waits_of(pysym, path, truth)
    for name, waited in truth.items():
        # A thread's last waits are missing or another one's.
        assert waited * 0.5 < found[name] < waited * 1.5, (name, found, truth)
    calls = collections.Counter()
    for s in trace.samples:
        calls[s.labels["wait"], s.labels.get("system call")] += s.value
    assert calls["lock", "futex"] > 1e9 and calls["blocked", "clock_nanosleep"] > 1e9 and calls["blocked", "read"] > 5e8, calls
    summary = pysym(path, "--format", "summary").stdout
    assert "off-cpu by reading threads at 99 Hz" in summary and re.search(r"^Exactly .* asleep", summary, re.M), summary
    slept = re.findall(r" asleep ([0-9.]+) \(([0-9.]+)\)", summary)
    assert sum(float(sampled) for _, sampled in slept) > 0.5 * sum(float(exact) for exact, _ in slept) > 0, summary


GIL = """
import threading
def spin():
    for _ in range(400): sum(range(20000))
threads = [threading.Thread(target=spin) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
"""


def test_gil(tmp_path):
    record(tmp_path / "t.bin", PYTHON, "-c", GIL, options=("-e", "off-cpu/period=2000000/"))
    kinds = collections.Counter()
    for s in Trace(tmp_path / "t.bin").samples:
        kinds[s.labels["wait"]] += s.value
    assert kinds["GIL"] > 0 and kinds["run queue"] > 0, kinds


SCOPE = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")


@pytest.mark.skipif(SCOPE.exists() and SCOPE.read_text().strip() != "0", reason="kernel.yama.ptrace_scope forbids it here")
def test_a_wait_that_lasts(tmp_path):
    """It is in the trace while it lasts, in parts; a stopped process is seen to be."""
    trace = tmp_path / "t.bin"

    def seen(wait):
        return [s for s in Trace(trace).samples if s.labels["wait"] == wait] if is_begun(trace) else []

    with subprocess.Popen([*unprivileged(), PYTHON, "-c", "import time; print(1, flush=True); time.sleep(1000)"],
                          stdout=subprocess.PIPE) as program:
        program.stdout.readline()
        with subprocess.Popen([*unprivileged(), PYCAP, "record", "-o", trace, "-e", "off-cpu", "--backend", "proc", "-p",
                               str(program.pid)], stderr=subprocess.PIPE, text=True) as recorder:
            deadline = time.monotonic() + 300
            while recorder.poll() is None and len(seen("blocked")) < 3 and time.monotonic() < deadline:
                time.sleep(0.1)
            program.send_signal(signal.SIGSTOP)
            while recorder.poll() is None and len(seen("stopped")) < 2 and time.monotonic() < deadline:
                time.sleep(0.1)
            recorder.terminate()
            _, err = recorder.communicate(timeout=300)
        program.kill()
    parts = seen("blocked")
    assert len(parts) >= 3 and len(seen("stopped")) >= 2, err
    assert [bool(s.flags & CONTINUES) for s in parts] == [False] + [True] * (len(parts) - 1), err
    assert all(s.labels["system call"] == "clock_nanosleep" for s in parts)
    # All of its time is in samples, but what came after the last one: that is as long as pycap takes to end.
    whole = Trace(trace)
    written, exact = sums(whole)
    after_ns = max(until for _, _, until, _, _ in whole.times) - max(s.time_ns for s in whole.samples)
    assert written.keys() == exact.keys()
    assert all(0 <= exact[thread] - written[thread] <= after_ns + 1e6 for thread in exact), (written, exact, after_ns, err)


def test_without_the_clock(pysym, tmp_path):
    """Only waits; and in several files each has its own account."""
    record(tmp_path / "%t.bin", PYTHON, "-c", "import time; [time.sleep(.02) for _ in range(110)]",
           options=("-e", "off-cpu", "--rotate", "1"))
    files = [Trace(path) for path in sorted(tmp_path.glob("*.bin"))]
    assert len(files) > 1
    rows = [row for trace in files for row in trace.times]
    assert all(before[2] == after[1] for before, after in zip(rows, rows[1:])), rows
    for path in sorted(tmp_path.glob("*.bin")):
        assert "task-clock" not in pysym(path, "--format", "summary", "-v").stdout
