# SPDX-License-Identifier: Apache-2.0
"""What threads are called where the program's own table of them does not tell, the same in every output."""
import collections
import json
import os
import re
import shutil
import subprocess

import pytest

import page_data
from conftest import PYCAP, PYTHON, ROOT, why_no_bpf

pytestmark = pytest.mark.live
PROGRAMS = ROOT / "testdata/programs"


@pytest.fixture(params=["bpf", "proc"])
def run(request, pycap, tmp_path):
    """Records a program; returns the trace."""
    why = why_no_bpf()
    if request.param == "bpf" and why:
        pytest.skip(why)

    def record(*command):
        done = pycap("record", "-q", "-F", "499", "--backend", request.param, "-o", tmp_path / "t.bin", "--", *map(str, command))
        if done.returncode == 77:
            pytest.skip(f"{command[0]} has not what {command[1].name} wants")
        assert done.returncode == 0, done.stderr
        return tmp_path / "t.bin"
    return record


def good(done):
    assert done.returncode in (0, 3), done.stderr
    return done.stdout


def threads_by_function(pysym, trace, pattern):
    """{what the pattern matches in names of functions: {(is it the process's first thread, the name that it has at the end)}}"""
    names, functions, stacks = {}, collections.defaultdict(set), {}
    for row in map(json.loads, good(pysym(trace, "-f", "ndjson")).splitlines()):
        if row["type"] == "stack":
            stacks[row["stack"]] = [match[1] for f in row["frames"] for match in [re.fullmatch(pattern, f["function"])] if match]
        elif row["type"] == "sample":
            names[row["tid"]] = row["thread"]
            for function in stacks[row["stack"]]:
                functions[function].add((row["pid"], row["tid"]))
    return {function: {(pid == tid, names[tid]) for pid, tid in threads} for function, threads in functions.items()}


@pytest.mark.each_kind
@pytest.mark.smoke("bpf")
def test_main_threads(python, run, pysym, tmp_path):
    """The first thread is the main thread: under a title, of a greenlet's key, and in a child that another thread has forked."""
    trace = run(python.path, PROGRAMS / "main_threads.py", "4000")
    assert threads_by_function(pysym, trace, "in_(.*)") == {
        "main": {(True, "MainThread")}, "child": {(True, "MainThread")}, "thread": {(False, "forker")}}
    # In the words of each output. The kernel's name may stand there as the process's title, not as a thread's.
    names = {"MainThread", "forker"}
    folded = {line.split(";")[1].rpartition("-")[0] for line in good(pysym(trace, "-f", "folded", "--threads")).splitlines()}
    assert folded == names
    speedscope = json.loads(good(pysym(trace, "-f", "speedscope", "--threads")))
    assert {re.search(r"-\d+ (\w+)", p["name"])[1] for p in speedscope["profiles"]} == names
    good(pysym(trace, "-f", "html", "-o", tmp_path / "page.html"))
    assert {t["name"] for t in page_data.Page(tmp_path / "page.html").head["threads"]} == names
    for thread in ("MainThread", "forker"):
        chosen = good(pysym(trace, "-f", "folded", "--threads", "--thread", thread))
        assert {line.split(";")[1].rpartition("-")[0] for line in chosen.splitlines()} == {thread}


@pytest.mark.each_kind
@pytest.mark.smoke("bpf")
def test_short_threads(python, run, pysym):
    """A thread has its own name, or that of its function, if one was read; never that of the one that has its handle by now."""
    found = threads_by_function(pysym, run(python.path, PROGRAMS / "short_threads.py", "20"), r"only_in_(\d+)")
    assert len(found) > 10
    for number, threads in found.items():
        assert all(not first and not re.match(r"(?:N|only_in_)(?!%s\b)\d" % number, name) for first, name in threads), found


SUBINTERPRETER = """
import sys, threading
try:
    import _interpreters as interpreters
except ImportError:
    try: import _xxsubinterpreters as interpreters
    except ImportError: sys.exit(77)
import _thread
CODE = '''
import threading, time
def in_other():
    end = time.time() + 0.5
    while time.time() < end: sum(range(3000))
in_other()
'''
def runner():
    try: (getattr(interpreters, "run_string", None) or interpreters.exec)(interpreters.create(), CODE)
    finally: over.release()
def in_main():
    for _ in range(5000): sum(range(3000))
over = _thread.allocate_lock()
over.acquire()
in_main()
_thread.start_new_thread(runner, ())
over.acquire()
"""


@pytest.mark.smoke("bpf")
def test_one_main_thread(python, run, pysym, tmp_path):
    """Not the thread that an interpreter was begun in, which that calls so; and no thread is called by how an interpreter begins."""
    if python.version < (3, 10):
        pytest.skip("nothing tells that it is not another thread that runs the subinterpreter")
    program = tmp_path / "subinterpreter.py"
    program.write_text(SUBINTERPRETER)
    found = threads_by_function(pysym, run(python.path, program), "in_(.*)")
    assert found["main"] == {(True, "MainThread")}
    (first, name), = found["other"]
    assert not first and name in ("runner (subinterpreter.py)", "<module> (<string>)", "<module> (<script>)"), found


@pytest.fixture
def library_threads(needs_bpf, tmp_path):
    if not shutil.which(os.environ.get("CC", "cc")):
        pytest.skip("no C compiler")
    library = tmp_path / "libpool-0123abcd.so.1"
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", "-pthread", "-o", library, PROGRAMS / "library_threads.c"], check=True)
    with subprocess.Popen([PYTHON, PROGRAMS / "library_threads.py", library], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline() == "there\n"
        yield program.pid
        program.kill()


@pytest.mark.smoke
def test_threads_of_libraries(library_threads, pycap, pysym, tmp_path):
    """By the library that began them, whatever they run: the same in what is recorded and in what is dumped."""
    trace, names = tmp_path / "t.bin", ["libpool", "libpool", "pool-own-name"]
    done = pycap("record", "-q", "-F", "199", "-d", "1.5", "-o", trace, "-p", library_threads)
    assert done.returncode == 0, done.stderr

    def of_others(rows):
        return sorted(name for tid, name in rows if tid != library_threads)

    samples = [json.loads(line) for line in good(pysym(trace, "-f", "ndjson")).splitlines()]
    assert of_others({r["tid"]: r["thread"] for r in samples if r["type"] == "sample"}.items()) == names
    folded = {tuple(line.split(";")[1].rsplit("-", 1)) for line in good(pysym(trace, "-f", "folded", "--threads")).splitlines()}
    assert of_others((int(tid), name) for name, tid in folded) == names
    for text in (good(pysym(trace, "-f", "threads", "--json")), good(subprocess.run(
            [PYCAP, "dump", "--json", "-p", str(library_threads)], capture_output=True, text=True, timeout=300, check=False))):
        process, = json.loads(text)["processes"]
        assert of_others((t["tid"], t["thread"]) for t in process["threads"]) == names
        assert [t["thread"] for t in process["threads"] if t["tid"] == library_threads] in ([], ["MainThread"])
