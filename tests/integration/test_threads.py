# SPDX-License-Identifier: Apache-2.0
"""pysym -f threads shows the threads and tasks that were there at the end of a recording.

Beside what the program and asyncio themselves say.
"""
import collections
import json
import os
import re
import signal
import subprocess
import time

import pytest

from accounts import is_begun
from conftest import PYCAP, PYTHON, ROOT
from known_tasks import Stopped, is_shown

FLASKR = ROOT / "testdata/waiting/flaskr.trace"
# Says so when each thread sleeps where it shall, and one spins: the kernel has not taken it off a CPU again meanwhile.
WAITING = """
import os, re, sys, threading, time
lock, full = threading.Lock(), os.pipe()
def reads(): os.read(full[0], 1)
def locked():
    with lock: pass
def sleeps(): time.sleep(1000)
def spins():
    n = 0
    while True: n += 1
def start(f, i):
    thread = threading.Thread(target=f, name=f"{f.__name__}\\x1b[7m{i}", daemon=True)
    thread.start()
    return thread
def look():
    frames = sys._current_frames()
    for thread in threads:
        status = open(f"/proc/self/task/{thread.native_id}/status").read()
        yield frames[thread.ident].f_code.co_name, re.findall(r"^State:.(.)|^\\w*ctxt_switches:.(.*)", status, re.M)
lock.acquire()
threads = [start(f, i) for f, count in ((reads, 1), (locked, 5), (sleeps, 1)) for i in range(count)]
before = None
while not (before == (now := list(look())) and all(name == thread.name.split("\\x1b")[0] and rows[0][0] == "S"
                                                    for thread, (name, rows) in zip(threads, now))):
    before = now
    time.sleep(0.05)
start(spins, 0)
print("there", flush=True)
threading.Event().wait()
"""
EVENTS = "cpu-clock,off-cpu,task-wait"


def good(done):
    assert done.returncode in (0, 3), done.stderr
    return done.stdout


def threads_of(pysym, trace, *options):
    """The only process of a trace."""
    process, = json.loads(good(pysym(trace, "-f", "threads", "--json", *options)))["processes"]
    return process


@pytest.fixture
def record_pid(needs_bpf, tmp_path):
    def run(pid, until=None):
        """For a while, or until it is true of the trace."""
        trace = tmp_path / "now.bin"
        command = [PYCAP, "record", "-o", trace, "-e", EVENTS, "-p", str(pid), *([] if until else ["-d", "0.7"])]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as recorder:
            deadline = time.monotonic() + 300
            try:
                while until and recorder.poll() is None and time.monotonic() < deadline and not (is_begun(trace) and until(trace)):
                    time.sleep(0.1)
            finally:
                if until:
                    recorder.send_signal(signal.SIGINT)
            _, said = recorder.communicate(timeout=300)
        assert recorder.returncode == 0, said
        return trace
    return run


def test_who_has_ended(record, pysym):
    """Also in the last moment of the recording: then nothing is said of its threads."""
    trace = record(PYTHON, "-c", "import time\nwhile time.process_time() < 0.5: pass", options=("--wall",))
    assert good(pysym(trace, "-f", "threads")) == "No process was left at the end: 1 process had ended.\n"
    assert json.loads(good(pysym(trace, "-f", "threads", "--json")))["processes"] == []


# ---- a recording that is there ----

def test_a_real_server(pysym):
    """Of gunicorn's processes each thread once, with the stack of its newest sample and its state."""
    rows, stacks = collections.defaultdict(list), {}
    for row in map(json.loads, good(pysym(FLASKR, "-f", "ndjson", "--no-host", "--python-only")).splitlines()):
        if row["type"] == "stack":
            stacks[row["stack"]] = [(f["function"], f["line"]) for f in row["frames"] if f["layer"] == "python"]
        elif row["event"] in ("cpu-clock", "off-cpu"):
            rows[row["tid"]].append(row)
    end_ns = max(row["time_ns"] for of_thread in rows.values() for row in of_thread)
    told = {t["tid"]: t for p in json.loads(good(pysym(FLASKR, "-f", "threads", "--json", "--no-host", "--python-only")))["processes"]
            for t in p["threads"]}
    assert set(told) == {tid for tid, of_thread in rows.items() if of_thread[-1]["time_ns"] > end_ns - 2 * 10**9} and len(told) == 11
    for tid, thread in told.items():
        at_ns = end_ns - thread["seen_ns_ago"]
        assert [row for row in rows[tid] if row["time_ns"] == at_ns and stacks[row["stack"]] == [
            (f["function"], f["line"]) for f in thread["frames"]] and thread["stack_state"] == row["labels"].get("wait", "on CPU")
            and thread["system_call"] == row["labels"].get("system call", "")]
        # What is newer are times of other waits, without stacks of their own.
        assert not [row for row in rows[tid] if row["time_ns"] > at_ns and row["event"] == "cpu-clock"]


def test_a_moment_before(pysym):
    """--time chooses the moment: the newest samples until then."""
    first, last = (json.loads(good(pysym(FLASKR, "-f", "threads", "--json", "--no-host", *options)))["processes"][0]["end_realtime_ns"]
                   for options in (["--time", "0,2"], []))
    assert 5 * 10**9 < last - first < 7 * 10**9


def test_text_is_for_terminals(pysym):
    text = good(pysym(FLASKR, "-f", "threads", "--no-host"))
    assert re.search(r"^Process 24034 -m gunicorn, CPython 3\.11\.2: 9 threads at 2026-11-22 16:14:50\.\d+ UTC,$\n  the most recent call first$", text, re.M)
    assert re.search(r"^  24035 Thread-1 \(_run_loop\): blocked in epoll_wait, at least 7\.9 s$", text, re.M)
    assert "schedule" not in text and "[wait" not in text


# ---- programs that run ----

@pytest.fixture
def waiting():
    with subprocess.Popen([PYTHON, "-c", WAITING], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "there\n"
        yield process.pid
        process.kill()


@pytest.mark.smoke
def test_what_threads_wait_for(record_pid, waiting, pysym):
    def waits_are_known(trace):
        """Of these and the main thread, for as long as is judged below; and the one that spins has been seen."""
        threads = [t for p in json.loads(good(pysym(trace, "-f", "threads", "--json")))["processes"] for t in p["threads"]]
        return sum((t["waited_ns"] or 0) > 5 * 10**8 for t in threads) > len(wanted) and any(t["holds_gil"] for t in threads)

    wanted = {"reads0": ("blocked", "read"), "sleeps0": ("blocked", "clock_nanosleep"), **{f"locked{i}": ("lock", "futex") for i in range(5)}}
    trace = record_pid(waiting, until=waits_are_known)
    threads = {re.sub(r"[^a-z].*", "", t["thread"]) + t["thread"][-1]: t for t in threads_of(pysym, trace)["threads"]}
    for name, (state, call) in wanted.items():
        thread = threads[name]
        assert (thread["state"], thread["system_call"]) == (state, call), thread
        assert thread["waited_ns"] > 5 * 10**8 and not thread["holds_gil"]
        frames = [f["function"] for f in thread["frames"] if f["layer"] == "python"]
        assert name[:-1] in frames, frames
    # "ran": it was on a CPU again after its last wait for one, and no tick has met it since.
    assert threads["spins0"]["holds_gil"] and threads["spins0"]["state"] in ("on CPU", "run queue", "preempted", "ran")
    assert [t["holds_gil"] for t in threads.values()].count(True) == 1
    text = good(pysym(trace, "-f", "threads"))
    assert "  5 threads: wait for a lock, at least " in text and "\x1b" not in text
    each = good(pysym(trace, "-f", "threads", "--merge", "thread"))
    assert len(re.findall(r"^  \d+ locked\S+: waits for a lock, at least ", each, re.M)) == 5


def places(frames):
    return [(f["function"].rpartition(".")[2], f["line"]) for f in frames if f["layer"] == "python"]


@pytest.mark.parametrize("where", ["task", "callback", "thread"])
def test_tasks_beside_the_program(with_tasks, where, record_pid, pysym):
    """All tasks that wait, each with its frames, what it waits for, and who awaits it, of a program that has stopped itself."""
    with Stopped(with_tasks, where) as truth:
        roots = ["--sysroot", with_tasks.root] if with_tasks.root else []
        shown = threads_of(pysym, record_pid(truth.process.pid), *roots)["tasks"]
        told = [task for task in truth.tasks.values() if task["state"] != "running"]
        left = [task for task in shown for _ in range(task["count"])]
        assert len(left) == len(told) > 30
        names = {task["task"] for task in shown}
        await_tasks = {awaiter for task in truth.tasks.values() for awaiter in truth.awaiters(task)}
        for task in told:
            frames = [(name, line) for name, _, line, _ in task["frames"]]
            waits = task["state"] == "task" or task["tasks"] or task["id"] in await_tasks
            state = "event loop" if task["state"] == "ready" else "task" if waits else "future"
            found = next((t for t in left if is_shown(t["task"], task["name"].replace(";", ":")) and places(t["frames"])[-len(frames):] == frames
                          and t["state"] == state), None)
            assert found, (task, [t for t in shown if is_shown(t["task"], task["name"].replace(";", ":"))])
            left.remove(found)
            awaiters = {truth.tasks[a]["name"] for a in truth.awaiters(task)}
            by = re.sub(r" and \d+ more$", "", found["awaited_by"])
            assert any(is_shown(by, a.replace(";", ":")) for a in awaiters) if awaiters else not by, (found, awaiters)
            if by in names:
                assert len(places(found["frames"][-found["own_frames"]:])) == len(frames), found
        assert not left


def asyncio_ps(python, pid):
    """What python -m asyncio ps says: lines behind the number of each task. From outside of a root tree, as it opens the files of
    the process by the paths that /proc has from there."""
    command, environment = [python.path], dict(os.environ)
    if python.root:
        command = [f"{python.root}/lib64/ld-linux-x86-64.so.2", "--library-path", f"{python.root}/usr/lib/x86_64-linux-gnu",
                   f"{python.root}/usr/bin/python{python.version[0]}.{python.version[1]}"]
        environment["PYTHONHOME"] = f"{python.root}/usr"
    done = subprocess.run([*command, "-m", "asyncio", "ps", str(pid)], capture_output=True, text=True, timeout=60, check=False, env=environment)
    if done.returncode or " 0x" not in done.stdout:
        pytest.skip(f"asyncio ps cannot read the process: {(done.stderr or done.stdout)[-300:]}")
    rows = done.stdout.replace("\0", "")  # which 3.14 puts behind names that are not of Latin-1
    return [(int(task, 16), rest) for task, rest in re.findall(r"^\d+ +(0x[0-9a-f]+) +(.*)$", rows, re.M)]


@pytest.mark.parametrize("where", ["callback", "thread"])
def test_tasks_beside_asyncio_ps(with_tasks, where, record_pid, pysym):
    """The same beside python -m asyncio ps, which reads the process from outside, too. It stops at generators, and has a row for each
    awaiter."""
    if with_tasks.version < (3, 14):
        pytest.skip("asyncio ps is in Python 3.14 and later")
    with Stopped(with_tasks, where) as truth:
        told = asyncio_ps(with_tasks, truth.process.pid)
        roots = ["--sysroot", with_tasks.root] if with_tasks.root else []
        shown = threads_of(pysym, record_pid(truth.process.pid), *roots)["tasks"]
    assert 30 < len({number for number, _ in told}) <= sum(task["count"] for task in shown)
    awaiters = collections.defaultdict(set)
    for number, rest in told:
        awaiters[number].add(truth.tasks[int(rest.split()[-1], 16)]["name"] if int(rest.split()[-1], 16) else "")
    judged = 0
    for number, rest in told:
        name = truth.tasks[number]["name"]
        if len(name) > 100:  # ps cuts it
            continue
        chain = re.match(r" *(\S+(?: -> \S+)*)", rest.removeprefix(name))[1].split(" -> ")[::-1]
        found = [t for t in shown if is_shown(t["task"], name.replace(";", ":"))
                 and [f["function"] for f in t["frames"][-t["own_frames"]:]][:len(chain)] == chain
                 and any(is_shown(re.sub(r" and \d+ more$", "", t["awaited_by"]), by.replace(";", ":")) for by in awaiters[number])]
        assert found, (name, rest, [t for t in shown if t["task"] == name])
        judged += len(chain) > 1
    assert judged > 10
