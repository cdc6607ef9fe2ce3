# SPDX-License-Identifier: Apache-2.0
"""No data of a sampled program is in a trace or goes to a store, unless it is asked for.

docs/privacy.md promises that.
"""
import gzip
import hashlib
import os
import subprocess

import pytest

from conftest import PYCAP, why_no_bpf
from profile_store import ProfileStore

pytestmark = pytest.mark.live

TRACE_BYTES = os.path.join(os.path.dirname(PYCAP), "tools/trace_bytes")

# The program makes its secrets when it runs, of a seed: they stand in no code object.
PROGRAM = """
import hashlib, os, sys, time
seed = sys.stdin.readline().strip()
def secret(name):
    return "secret-" + hashlib.sha256((seed + name).encode()).hexdigest()
heap = [secret("heap%d" % i) for i in range(100)]
raw = [secret("bytes%d" % i).encode() for i in range(100)]
table = {secret("key"): secret("value")}
class Holder:
    def __init__(self):
        self.attribute = secret("attribute")
        self.__dict__[secret("name-of-attribute")] = 1
def spin(argument, keyword=None, *rest):
    local = secret("local")
    number = int(hashlib.sha256((seed + "number").encode()).hexdigest(), 16)
    clock = getattr(time, "thread_time", time.time)
    end = clock() + 0.6
    while clock() < end:
        sum(range(200))
        os.environ.get("SECRET_OF_ENVIRONMENT", "")
        local.encode().decode()
    return local, argument, rest, keyword, number
def cell():
    closed = secret("closed")
    def inner_function(argument):
        return spin(argument, secret("keyword"), secret("rest")), closed
    return inner_function
holder = Holder()
try:
    raise ValueError(secret("exception"))
except ValueError as error:
    caught = error
    cell()(secret("argument-of-function"))
"""


def secret_of(seed, name):
    return "secret-" + hashlib.sha256((seed + name).encode()).hexdigest()


KINDS = ["comment", *(f"heap{i}" for i in range(100)), *(f"bytes{i}" for i in range(100)), "key", "value", "attribute",
         "name-of-attribute", "local", "closed", "rest", "keyword", "exception", "argument-of-function"]


def bytes_of(trace):
    return subprocess.run([TRACE_BYTES, trace], capture_output=True, check=True, timeout=300).stdout


@pytest.fixture
def run(pycap, tmp_path):
    why = why_no_bpf()
    if why:
        pytest.skip(why)

    def record(python, seed, *options, program=PROGRAM):
        script, trace = tmp_path / "program.py", tmp_path / "t.bin"
        script.write_text(f"# {secret_of(seed, 'comment')}\n{program}")
        done = pycap("record", "-F", "499", "-o", trace, *options, "--", python, script,
                     secret_of(seed, "argument-of-program"), input=seed + "\n",
                     env={**os.environ, "SECRET_OF_ENVIRONMENT": secret_of(seed, "environment")})
        assert done.returncode == 0, done.stderr
        return trace
    return record


@pytest.mark.smoke
def test_no_data(python, run, pysym, tmp_path):
    """The file has the names of functions, and none of what they hold; of their source its size and date alone."""
    seed = os.urandom(16).hex()
    trace = run(python.path, seed, "-e", "cpu-clock,page-faults")
    assert "\nprocess_memory " in pysym(trace, "-f", "dump").stdout
    found = bytes_of(trace)
    for function in (b"spin", b"inner_function", b"program.py"):
        assert function in found
    everything = found + trace.read_bytes()
    leaks = [name for name in [*KINDS, "argument-of-program", "environment"]
             if secret_of(seed, name).encode() in everything]
    assert not leaks
    if not python.root:
        status = os.stat(tmp_path / "program.py")
        assert f"size_bytes={status.st_size} modified_ns={status.st_mtime_ns}\n" in pysym(trace, "-f", "dump").stdout
    # Numbers have no text: their digits, as CPython keeps them, would be seen as bytes.
    number = int(hashlib.sha256((seed + "number").encode()).hexdigest(), 16)
    digits = b"".join((number >> 30 * i & 0x3fffffff).to_bytes(4, "little") for i in range(4))
    assert digits not in everything
    assert trace.stat().st_mode & 0o777 == 0o600


# Tasks that wait, with all that can hang on one. Only their names may be seen.
TASKS = """
import asyncio, contextvars, hashlib, sys
seed = sys.stdin.readline().strip()
def secret(name):
    return "secret-" + hashlib.sha256((seed + name).encode()).hexdigest()
async def child(argument, future):
    local = secret("local")
    await future
    return local, argument
async def done(text):
    return text
async def main():
    loop = asyncio.get_running_loop()
    contextvars.ContextVar(secret("variable")).set(secret("context"))
    queue, failed, result = asyncio.Queue(), loop.create_future(), loop.create_future()
    queue.put_nowait(secret("queue"))
    failed.set_exception(ValueError(secret("exception")))
    result.set_result(secret("result"))
    finished = asyncio.create_task(done(secret("result-of-task")))
    waiting = [asyncio.create_task(child(secret("argument"), loop.create_future()), name="name-of-task-" + str(i))
               for i in range(3)]
    waiting[0].add_done_callback(lambda task, bound=secret("callback"): None)
    attribute = waiting[1]
    await asyncio.wait(waiting, timeout=1.5)
    failed.exception()
    return queue, result, finished
asyncio.run(main())
"""
OF_TASKS = ["local", "variable", "context", "queue", "exception", "result", "result-of-task", "argument", "callback"]


def test_no_data_of_tasks(python, run, tmp_path):
    """Where tasks are looked at the trace has their names and coroutines, and nothing of what they work on."""
    if python.version < (3, 12):
        pytest.skip("tasks are read from CPython 3.12 on")
    seed = os.urandom(16).hex()
    trace = run(python.path, seed, "-e", "cpu-clock,task-wait", program=TASKS)
    everything = bytes_of(trace) + trace.read_bytes()
    for shown in (b"name-of-task-2", b"child", b"asyncio task"):
        assert shown in everything
    assert not [name for name in OF_TASKS if secret_of(seed, name).encode() in everything]


def test_command_line(run, pysym):
    """Only where it is asked for; and then not the environment."""
    seed = os.urandom(16).hex()
    argument = secret_of(seed, "argument-of-program")
    trace = run("/usr/bin/python3", seed, "--cmdline")
    found = bytes_of(trace)
    assert argument.encode() in found
    assert secret_of(seed, "environment").encode() not in found
    summary = pysym(trace, "--format", "summary", "-v").stdout
    assert f"program.py {argument}\n" in summary


def test_pushed(run, pysym):
    """What a store gets: names, and nothing that only the trace has, such as command lines and copies of stacks."""
    seed = os.urandom(16).hex()
    trace = run("/usr/bin/python3", seed, "--cmdline", "--unwind", "snapshot")
    assert secret_of(seed, "argument-of-program").encode() in bytes_of(trace)
    with ProfileStore("pyroscope") as store:
        done = pysym("push", "--pyroscope", store.url, trace, env={**os.environ, "PYSYM_TOKEN": secret_of(seed, "token")})
    assert done.returncode == 0, done.stderr
    sent = b"".join(repr(sorted(p.labels.items())).encode() + gzip.decompress(p.data) for p in store.profiles)
    for name in (b"spin", b"inner_function", b"program.py", b"service_name", os.uname().nodename.encode()):
        assert name in sent
    leaks = [name for name in [*KINDS, "argument-of-program", "environment", "token"]
             if secret_of(seed, name).encode() in sent + (done.stdout + done.stderr).encode()]
    assert not leaks


def test_note_of_the_command(pycap, tmp_path):
    """Of what the command writes into PYCAP_NOTE the lines that are understood, within 4 KiB; and not where the file was."""
    text = "branch=kept-branch\nsecret-line\nkey=secret-\x01\n" + "x" * 4096 + "\nlate=secret-late\n"
    (tmp_path / "note").write_text(text)
    done = pycap("record", "--backend", "proc", "-o", tmp_path / "t.bin", "--", "sh", "-c", f'cat {tmp_path}/note >"$PYCAP_NOTE"')
    assert done.returncode == 0, done.stderr
    found = bytes_of(tmp_path / "t.bin")
    assert b"kept-branch" in found and b"secret-" not in found and b"pycap-note" not in found


NAMED = """
import time
end = time.thread_time() + 0.5
while time.thread_time() < end:
    sum(range(200))
"""

# Puts a title over its command line, as setproctitle does, and runs until it is killed.
TITLED = """
import ctypes, sys
title = sys.stdin.readline().strip().encode()
fields = open("/proc/self/stat").read().rpartition(")")[2].split()
start, size = int(fields[45]), int(fields[46]) - int(fields[45])
ctypes.memset(start, 0, size)
ctypes.memmove(start, title, min(len(title), size - 1))
print("ready", flush=True)
while True:
    sum(range(200))
"""


def names_of(pysym, trace):
    """The names of processes: the first frames of folded stacks, without the pid."""
    folded = pysym(trace, "-f", "folded", "--python-only").stdout
    return {line.split(";")[0].rpartition("-")[0] for line in folded.splitlines()}


def test_names_of_programs(pycap, pysym, tmp_path):
    """A process has the name of its script or module. No other argument is in the file."""
    why = why_no_bpf()
    if why:
        pytest.skip(why)
    argument = secret_of(os.urandom(16).hex(), "argument")
    (tmp_path / "named.py").write_text(NAMED)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/__main__.py").write_text(NAMED)
    trace = tmp_path / "t.bin"
    done = pycap("record", "-F", "199", "-o", trace, "--", "sh", "-c",
                 f"cd {tmp_path}; python=/usr/bin/python3; $python -u -X dev named.py {argument}; "
                 f"$python -m shop {argument}; $python -c 'import named # {argument}' {argument}; :",
                 env={**os.environ, "SECRET_OF_ENVIRONMENT": argument})
    assert done.returncode == 0, done.stderr
    assert {"named.py", "-m shop", "-c"} <= names_of(pysym, trace)
    assert argument.encode() not in bytes_of(trace) + trace.read_bytes()


def test_title(pycap, pysym, tmp_path):
    """A command line that the program has replaced is not used: titles hold arguments."""
    argument = secret_of(os.urandom(16).hex(), "argument")
    (tmp_path / "titled.py").write_text(TITLED)
    trace = tmp_path / "t.bin"
    with subprocess.Popen(["/usr/bin/python3", tmp_path / "titled.py", 100 * "x"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as titled:
        try:
            titled.stdin.write(f"python3 titled [{argument}]\n")
            titled.stdin.close()
            assert titled.stdout.readline() == "ready\n"
            with open(f"/proc/{titled.pid}/cmdline", encoding="ascii") as cmdline:
                assert argument in cmdline.read()
            done = pycap("record", "--backend", "proc", "-F", "199", "-d", "1", "-o", trace, "-p", str(titled.pid))
        finally:
            titled.kill()
    assert done.returncode == 0, done.stderr
    assert names_of(pysym, trace) == {"titled.py"}
    assert argument.encode() not in bytes_of(trace) + trace.read_bytes()


# Begins a worker that has an idle parent, in a cgroup and with arguments of its own.
SPAWNING = """
import multiprocessing, os, sys
def work(master):
    while os.getppid() == master:
        sum(range(200))
if __name__ == "__main__":
    worker = multiprocessing.get_context("spawn").Process(target=work, args=(os.getpid(),), daemon=True)
    worker.start()
    print(worker.pid, flush=True)
    sys.stdin.read()
"""


def test_parent(pycap, tmp_path):
    """Of a parent that was not asked for there is in the file what its worker's name takes, and nothing else."""
    argument = secret_of(os.urandom(16).hex(), "argument")
    folder = tmp_path / "secret-folder"
    folder.mkdir()
    (folder / "spawning.py").write_text(SPAWNING)
    trace = tmp_path / "t.bin"
    with subprocess.Popen(["/usr/bin/python3", folder / "spawning.py", argument], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True, env={**os.environ, "SECRET_OF_ENVIRONMENT": argument}) as parent:
        try:
            worker = parent.stdout.readline().strip()
            done = pycap("record", "--backend", "proc", "-F", "199", "-d", "1", "-o", trace, "-p", worker)
        finally:
            parent.communicate()  # it ends, and its worker
    assert done.returncode == 0, done.stderr
    found = bytes_of(trace) + trace.read_bytes()
    assert b"spawning.py" in found and argument.encode() not in found
