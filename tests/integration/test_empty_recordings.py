# SPDX-License-Identifier: Apache-2.0
"""A mistake that would end in an empty trace is named, with what to do.

Nothing recorded of what was asked for is exit status 1; with a command its status stays; an idle host is no failure.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

import accounts
from conftest import PYCAP, PYTHON

IDLE = "import threading, time\nthreading.Thread(target=time.sleep, args=(120,), daemon=True).start()\n" \
       "print('ready', flush=True)\ntime.sleep(120)\n"

pytestmark = pytest.mark.usefixtures("needs_bpf")


def wait_for_state(pid, state):
    """Until all threads of the process are in this state."""
    tasks = pathlib.Path(f"/proc/{pid}/task")
    while {(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks.iterdir()} != {state}:
        time.sleep(0.01)


@pytest.fixture
def idle():
    """A Python process with two threads that wait."""
    with subprocess.Popen([PYTHON, "-c", IDLE], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        wait_for_state(process.pid, "S")
        yield process.pid
        process.kill()


@pytest.fixture
def record(tmp_path):
    """Runs pycap record; returns (status, messages)."""
    def run(*options, status):
        done = subprocess.run([PYCAP, "record", "-o", tmp_path / "t.bin", *map(str, options)], capture_output=True, text=True,
                              timeout=120, check=False)
        assert done.returncode == status, done.stderr
        return done.stderr
    return run


def called(pid, said):
    """The text, in which a process that runs by -c is called after the program that began it, whatever runs the tests."""
    return re.sub(rf"process {pid} \((?:.* \(-c\)|-c)\)", f"process {pid} (-c)", said)


def test_thread(record, idle):
    thread = max(int(tid) for tid in os.listdir(f"/proc/{idle}/task"))
    said = record("-d", "0.1", "-p", thread, status=1)
    assert said == f"pycap: {thread} is a thread of process {idle}; record that one: -p {idle}\n"


@pytest.mark.smoke
def test_idle(record, idle):
    said = called(idle, record("-d", "0.1", "-p", idle, status=1))
    assert f"process {idle} (-c) did not run at a tick: it waits, and only threads that run are sampled\n" in said


def test_idle_without_a_clock(record, idle):
    """What has no ticks did not miss one."""
    said = called(idle, record("-d", "0.3", "-e", "task-wait", "-p", idle, status=1))
    assert f"process {idle} (-c) runs CPython before 3.12, whose asyncio tasks cannot be looked at\n" in said
    said = called(idle, record("-d", "0.3", "-e", "page-faults", "-p", idle, status=1))
    assert f"process {idle} (-c) did nothing that the events count\n" in said


def test_idle_host(record):
    """Recording a host is no mistake, whether something runs on it or not."""
    said = record("-d", "0.1", status=0)
    assert re.match(r"Recorded [\d,]+ samples? of|No sample fell on a Python process\.\npycap: all were idle, or there is none", said), said


def test_zombie(record, idle):
    os.kill(idle, signal.SIGKILL)
    os.waitid(os.P_PID, idle, os.WEXITED | os.WNOWAIT)
    said = record("-d", "0.1", "-p", idle, status=1)
    assert said == f"pycap: process {idle} (python3) has ended: its parent has not waited for it yet (a zombie)\n"


def test_stopped(record, idle):
    os.kill(idle, signal.SIGSTOP)
    wait_for_state(idle, "T")
    words = f"process {idle} (-c) is stopped (SIGSTOP): kill -CONT {idle} lets it go on"
    for backend in ("bpf", "proc"):
        said = called(idle, record("-d", "0.1", "--backend", backend, "-p", idle, status=1))
        assert said.count(words) == 2, said  # at once, and when nothing came


def test_filters(record):
    said = record("-d", "0.1", "--comm", "nope", status=1)
    assert "pycap: no process is named 'nope' yet\n" in said and "pycap: no process is named 'nope'\n" in said
    said = record("-d", "0.1", "--cgroup", "/no/such.service", status=1)
    assert "no such cgroup yet: /" in said and "no such cgroup: /" in said and said.count("/no/such.service\n") == 2
    said = record("--comm", "nope", "true", status=0)
    assert "no process asked for is named 'nope'\n" in said


def test_command(record, tmp_path):
    assert "true: no CPython was found; -a records" in record("true", status=0)
    assert "false: no CPython was found; -a records" in record("false", status=1)
    shutil.copy("/bin/sleep", tmp_path / "pypy3")
    assert "pypy3 is PyPy, which pycap cannot read (only CPython); -a records its native frames\n" in \
        record(tmp_path / "pypy3", "0.05", status=0)


def test_pypy(record, tmp_path):
    shutil.copy("/bin/sleep", tmp_path / "pypy3")
    with subprocess.Popen([tmp_path / "pypy3", "120"]) as process:
        while str(tmp_path / "pypy3") not in pathlib.Path(f"/proc/{process.pid}/maps").read_text():
            time.sleep(0.01)
        said = record("-d", "0.1", "-p", process.pid, status=1)
        process.kill()
    assert said == f"pycap: process {process.pid} (pypy3) is PyPy, which pycap cannot read (only CPython); " \
                   "-a records its native frames\n"


def test_small_cgroup(tmp_path):
    """A limit of memory that is too small for the sampler is told in figures."""
    if "asan" in PYCAP:
        pytest.skip("the sanitizer takes more memory than the limit")
    folders = [(pathlib.Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"), (pathlib.Path("/sys/fs/cgroup"), "memory.max")]
    for mount, limit in folders:
        group = mount / f"pycap-test-{os.getpid()}"
        if os.access(mount / "cgroup.procs", os.W_OK):
            group.mkdir()
            if (group / limit).exists():
                break
            group.rmdir()
    else:
        pytest.skip("no cgroup with a limit of memory can be made here")
    try:
        (group / limit).write_text("30M")
        done = subprocess.run(["sh", "-c", f"echo $$ > {group}/cgroup.procs; exec {PYCAP} record -d 1 -o {tmp_path}/t.bin"],
                              capture_output=True, text=True, timeout=120, check=False)
    finally:
        while (group / "cgroup.procs").read_text():
            time.sleep(0.01)
        group.rmdir()
    assert done.returncode == 1
    assert re.fullmatch(r"pycap: the cgroup's memory limit of 30 MB is too small: the sampler needs about \d+ MB\n", done.stderr)


def test_daemon(record, tmp_path):
    """The command ends when it is in the trace, and leaves a process behind."""
    program = "import os, sys, time\nwhile os.path.getsize(sys.argv[1]) <= int(sys.argv[2]): sum(range(10000))\n" \
              "child = os.fork()\nif child:\n    print(child, file=open(sys.argv[3], 'w'))\n    sys.exit(3)\n" \
              "os.setsid()\nos.close(1), os.close(2)\ntime.sleep(120)\n"
    said = record(PYTHON, "-c", program, tmp_path / "t.bin", accounts.TRACE_HEAD_BYTES, tmp_path / "pid", status=3)
    child = int((tmp_path / "pid").read_text())
    os.kill(child, signal.SIGKILL)
    assert f"the command has ended; its child {child} (-c) runs on and is not recorded any more: pycap record -p " \
           f"{child}\n" in said
