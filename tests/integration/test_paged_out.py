# SPDX-License-Identifier: Apache-2.0
"""A process whose memory is paged out all the time: what can be read of its stacks is true, and what cannot is counted.

The kernel's sampler cannot page memory in. What it misses is a frame, a name or a line less, and never another one.
"""
import contextlib
import ctypes
import os
import pathlib
import subprocess
import textwrap
import threading
import time

import pytest

import accounts
from conftest import PYSYM

# Samples that met pages that were out, of a recording that is judged, and how often it is tried: the kernel chooses its pages.
PAGED_OUT, TRIES = 20, 3
SYS_PIDFD_OPEN, SYS_PROCESS_MADVISE, MADV_PAGEOUT = 434, 440, 21
CHAIN, CALL_LINE = 40, 4
# What the walk met at pages that were out. The rest of a sample's Python stack is missing then, or all of it.
MISSED = ("python_fault", "thread_state_fault", "python_torn", "bad_code", "not_yet_known", "stale_config", "python_changed")

# A chain of functions that are called at their fourth line, each with its own pages: `how` pages all out that can be. Which
# of them share a page with what runs is chance, so the program asks for them itself now and then: for a moment, all is there.
PROGRAM = textwrap.dedent("""
    import ctypes, sys, time
    how, seconds = sys.argv[1], float(sys.argv[2])
    names = {}
    for i in range(%d):
        exec("def f%%d(g):\\n\\n\\n  return g()\\n" %% i, names)
        names["pad%%d" %% i] = [bytes(bytearray(200)) for _ in range(500)]
    libc = ctypes.CDLL(None)
    def page_out():
        for line in open("/proc/self/maps"):
            start, end = [int(x, 16) for x in line.split()[0].split("-")]
            if "[v" not in line:
                libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), 21)
    def leaf():
        end = time.time() + seconds
        while time.time() < end:
            if how == "itself":
                page_out()
            for i in range(2):
                until = time.time() + 0.05
                while time.time() < until: pass
                frame = sys._getframe() if i == 0 else None
                while frame:
                    frame = frame.f_lineno and frame.f_back
    g = leaf
    for i in range(%d):
        g = (lambda f, g: lambda: f(g))(names["f%%d" %% i], g)
    print("ready")
    sys.stdout.flush()
    g()
""" % (CHAIN, CHAIN))


@pytest.fixture(scope="module")
def swap(tmp_path_factory):
    """Something to page out to: 256 MiB, for as long as the tests take."""
    place = tmp_path_factory.mktemp("swap") / "file"
    with open(place, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, 256 << 20)
    place.chmod(0o600)
    for command in (["mkswap", place], ["swapon", place]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{command[0]}: {done.stderr.strip()}")
    yield
    subprocess.run(["swapoff", place], check=True)
    place.unlink()


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


def page_out(pid):
    """All that a process has, from outside. The error's number, 0: it was done."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(SYS_PIDFD_OPEN, pid, 0)
    if fd < 0:
        return ctypes.get_errno()
    failed = 0
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        start, end = (int(x, 16) for x in line.split()[0].split("-"))
        vector = Vector(start, end - start)
        if "[v" not in line and libc.syscall(SYS_PROCESS_MADVISE, fd, ctypes.byref(vector), ctypes.c_size_t(1), MADV_PAGEOUT, 0) < 0:
            failed = ctypes.get_errno()
    os.close(fd)
    return failed


def reclaim(group):
    """Has the kernel take what it can of a memory cgroup's pages, as a manager of memory does."""
    new = group / "memory.reclaim"
    with contextlib.suppress(OSError):  # not all of it could be had
        (new if new.exists() else group / "memory.force_empty").write_text("64M" if new.exists() else "0")


@pytest.fixture
def group():
    """A memory cgroup of its own, for how = "reclaim"."""
    root = pathlib.Path("/sys/fs/cgroup")
    place = (root if (root / "cgroup.controllers").exists() else root / "memory") / f"pycap-test-{os.getpid()}"
    try:
        place.mkdir()
    except OSError as error:
        pytest.skip(f"no memory cgroup can be made: {error.strerror}")
    if not any((place / name).exists() for name in ("memory.reclaim", "memory.force_empty")):
        place.rmdir()
        pytest.skip("this kernel has no memory.reclaim")
    yield place
    place.rmdir()


@pytest.fixture
def paged_out(needs_bpf, swap, pycap, tmp_path, request):
    """A recording of the program; how it is paged out is "itself", "from outside" or "reclaim"."""
    def run(python, how, *options):
        program, trace = tmp_path / "program.py", tmp_path / "t.bin"
        program.write_text(PROGRAM)
        place = request.getfixturevalue("group") if how == "reclaim" else None
        recorded = subprocess.Popen([python.path, program, how, "60"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    preexec_fn=(lambda: (place / "cgroup.procs").write_text(str(os.getpid()))) if place else None)
        ended = threading.Event()

        def pages_out():
            while not ended.wait(0.02):
                try:
                    reclaim(place) if place else page_out(recorded.pid)
                except OSError:  # it has ended
                    return
        pager = threading.Thread(target=pages_out)
        try:
            recorded.stdout.readline()  # its functions are there
            if how != "itself":
                pager.start()
            done = pycap("record", "-F", "999", "-d", "2", "-p", str(recorded.pid), "-o", trace, *options)
            assert done.returncode == 0, done.stderr
        finally:
            ended.set()
            if pager.ident:
                pager.join()
            recorded.kill()
            recorded.wait()
        return trace
    return run


def lines_of_chain(folded, trace):
    """{line, or None: how many frames of the chain's functions have it}, and samples without any frame of Python."""
    lines, without = {}, 0
    for frames, count in folded(trace):
        chain = [f for f in frames if f.startswith("f") and f.split(" ")[0][1:].isdigit()]
        for frame in chain:
            line = int(frame.rstrip(")").split(":")[1]) if ":" in frame else None
            lines[line] = lines.get(line, 0) + count
        without += count if not chain and not any("leaf" in f for f in frames) else 0
    return lines, without


@pytest.mark.each_kind
@pytest.mark.parametrize("how", ["itself", "from outside", "reclaim"])
def test_lines(paged_out, python, how, folded):
    """No caller is shown at another line than its own, least of all that of `def`; a sample without a stack says why."""
    for _ in range(TRIES):
        trace = paged_out(python, how)
        losses = accounts.read(PYSYM, trace).losses
        missed = sum(losses[name] for name in MISSED)
        if missed + losses["native_fault"] > PAGED_OUT:
            break
    else:
        if how == "reclaim":
            pytest.skip("the kernel took hardly a page of a program that runs all the time")
        pytest.fail(f"nothing was paged out: {losses}")
    lines, without = lines_of_chain(folded, trace)
    assert set(lines) <= {CALL_LINE, None}, lines
    assert without <= missed, (without, losses)
    assert not lines.get(None) or losses["line_unknown"], (lines, losses)
    assert lines.get(CALL_LINE, 0) > 10, (lines, losses)
    if python.version >= (3, 11):
        assert None not in lines, (lines, losses)


def test_from_the_side(paged_out, python, folded):
    """The other backend pages in what it reads."""
    lines, _ = lines_of_chain(folded, paged_out(python, "itself", "--backend", "proc"))
    assert set(lines) == {CALL_LINE}
