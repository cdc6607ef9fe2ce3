# SPDX-License-Identifier: Apache-2.0
"""Recording without privilege accounts for a program's CPU time: samples stand for it, or it is counted."""
import json
import re
import signal
import subprocess
import time

import pytest

import accounts
from conftest import PYCAP, PYSYM, PYTHON, record_behind_gate, unprivileged

pytestmark = pytest.mark.live

HZ = 99
OPTIONS = ["-F", str(HZ), "--backend", "proc"]
# What a program uses before pycap has found its interpreter needs no samples, and what comes after its clock was read has none.
EDGES = 0.05


def told_of(trace):
    """In seconds: what samples stand for, and what is counted; and the account."""
    account = accounts.read(PYSYM, trace)
    return account.weight_ns / 1e9, (account.losses["time_unseen"] + account.losses["children_unseen"]) / HZ, account


def record(tmp_path, *command):
    """The trace, what the command printed, what pycap said."""
    trace = tmp_path / "t.bin"
    done = subprocess.run([*unprivileged(), PYCAP, "record", "-o", trace, *OPTIONS, "--", *map(str, command)],
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return trace, done.stdout, done.stderr


SHORT_AND_LONG = """
import json, os, sys, threading, time
spent = {"short": 0, "long": 0}
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: sum(range(500))
def short():
    burn(0.003)
    spent["short"] += time.thread_time()
def long():
    burn(0.5)
    spent["long"] += time.thread_time()
def warm(): sum(range(20000))
while not os.path.exists(sys.argv[1]): warm()
spent["begin_ns"], before = time.monotonic_ns(), time.process_time()
beside = threading.Thread(target=long)
beside.start()
for i in range(150):
    thread = threading.Thread(target=short)
    thread.start()
    thread.join()
beside.join()
spent["all"] = time.process_time() - before
print(json.dumps(spent))
"""


def test_short_threads(pysym, tmp_path):
    """Of threads shorter than a period few are met. What they used is told, so that it is known whose share is too small."""
    trace, told, said = record_behind_gate(pysym, tmp_path, OPTIONS, PYTHON, "-c", SHORT_AND_LONG, before=unprivileged())
    spent = json.loads(told)
    _, unseen, account = told_of(trace)
    shown = sum(s.weight for s in account.samples if s.time_ns > spent["begin_ns"]) / 1e9
    # The first sample may stand for time before, too.
    slack = max(account.weights) / 1e9 + EDGES
    assert abs(shown + unseen - spent["all"]) < slack, (shown, unseen, spent)
    stacks = pysym(trace, "--format", "folded").stdout.splitlines()  # in microseconds, as samples weigh differently
    weights = {name: sum(int(stack.rsplit(" ", 1)[1]) for stack in stacks if f";{name} (" in stack) / 1e6
               for name in ("short", "long")}
    missing = {name: spent[name] - weights[name] for name in weights}
    assert -EDGES < missing["long"] < 0.2 * spent["long"] + slack and missing["short"] > 0.2 * spent["short"], (weights, spent)
    # A thread may be met before or behind its function, and that sample stands for all that it has used until then.
    assert sum(missing.values()) < unseen + slack + 0.2 * spent["short"], (weights, spent, unseen)
    # It is said at the end of both.
    lost = account.losses["time_unseen"]
    share = re.search(r"^([\d.]+ s of [\d.]+ s of CPU time \([\d.]+ %\)) has no sample", said, re.M)
    assert share and "No sample was lost" not in said and re.search(rf"time_unseen +{lost} ", said), said
    summary = pysym(trace, "--format", "summary").stdout
    assert re.search(rf"^Lost +{re.escape(share[1])}$", summary, re.M) and f"{lost}: CPU time that no sample stands for" in summary, summary


PLAIN = """
import threading, time
def burn():
    end = time.thread_time() + 0.25
    while time.thread_time() < end: sum(range(500))
threads = [threading.Thread(target=burn) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
print(time.process_time())
"""


def test_long_threads(tmp_path):
    """Of a program without short threads next to nothing is lost."""
    trace, told, _ = record(tmp_path, PYTHON, "-c", PLAIN)
    shown, unseen, account = told_of(trace)
    assert unseen <= max(account.weights) / 1e9 + 4 / HZ, (shown, unseen, told)
    assert shown + unseen < float(told) + EDGES, (shown, unseen, told)


BY_THREADS = """
import os, sys, threading, time
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: sum(range(500))
burn(0.1)
def change():
    burn(0.05)
    os.execv(sys.executable, [sys.executable, '-c', sys.argv[1], sys.argv[1], sys.argv[2][1:]])
if sys.argv[2]:
    thread = threading.Thread(target=change)
    thread.start()
    thread.join()
print(time.process_time())
"""


def test_exec_by_threads(tmp_path):
    """A thread that executes a program gets the number of the main thread, and has used less than that had."""
    trace, told, _ = record(tmp_path, PYTHON, "-c", BY_THREADS, BY_THREADS, "xxxxx")
    shown, unseen, _ = told_of(trace)
    assert 0.7 * float(told) < shown + unseen < float(told) + EDGES, (shown, unseen, told)


ASLEEP = """
import threading, time
over = threading.Event()
def work():
    end = time.thread_time() + 0.004
    while time.thread_time() < end: sum(range(500))
    over.wait()
for i in range(100): threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
print(time.process_time(), flush=True)
over.wait()
"""


def test_asleep_at_the_end(tmp_path):
    """Threads that worked a moment each, and are asleep when the recording ends: no sample comes any more."""
    trace = tmp_path / "t.bin"
    with subprocess.Popen([*unprivileged(), PYCAP, "record", "-o", trace, *OPTIONS, "--", PYTHON, "-c", ASLEEP],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
        told = recorder.stdout.readline()
        time.sleep(0.2)
        recorder.send_signal(signal.SIGINT)
        recorder.communicate(timeout=300)
    shown, unseen, _ = told_of(trace)
    assert 0.8 * float(told) < shown + unseen < float(told) + EDGES, (shown, unseen, told)


CHILDREN = """
import os, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: sum(range(500))
def child(seconds, further=0):
    pid = os.fork()
    if not pid:
        burn(seconds)
        if further: child(further)
        os._exit(0)
    os.waitpid(pid, 0)
child(0.1, 0.2)
for i in range(120): child(0.004)
child(0.1, 0.2)
print(sum(os.times()[:4]), flush=True)
os._exit(0)
"""


def test_children(tmp_path):
    """Children that are not met before they end: their parent has waited for them. Those that are met count once, also with their own."""
    trace, told, said = record(tmp_path, PYTHON, "-c", CHILDREN)
    shown, unseen, account = told_of(trace)
    lost = account.losses["children_unseen"]
    assert 0.8 * float(told) < shown + unseen < float(told) + EDGES, (shown, unseen, told)
    assert not lost or re.search(rf"children_unseen +{lost} ", said), said
