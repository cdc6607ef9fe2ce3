# SPDX-License-Identifier: Apache-2.0
"""Unwind rows that are cached by address are right, whatever comes to lie at an address.

Programs do all they can to make an address mean something else. Each stack is unwound a second time without the cache
(pycap record --check-unwind), and where the program says what it did, compared with that.
"""
import os
import pathlib
import re
import subprocess
import textwrap
import threading
import time

import pytest

from cached_rows import check, library
from conftest import PYTHON

# Maps the code of both libraries at one address in turns, and spins below it: first as settling_0, settling_1 and so on until the
# turn's file is there, which is when pycap knows the mapping, then under the name of the library.
ONE_ADDRESS = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
files = [(os.open(path, os.O_RDONLY), int(offset)) for path, offset in zip(sys.argv[1:5:2], sys.argv[2:5:2])]
place = libc.mmap(None, 4096, 0, 0x22, -1, 0)
def until(end):
    while time.process_time() < end:
        sum(range(200))
def spin_a(): until(time.process_time() + 0.2)
def spin_b(): until(time.process_time() + 0.2)
def work(i, spin):
    exec(f"def settling_{i}():\\n    while not exists(gate):\\n        sum(range(20000))\\n        sleep(0.002)\\nsettling_{i}()",
         {"exists": os.path.exists, "sleep": time.sleep, "gate": f"{sys.argv[5]}.{i}"})
    spin()
for i in range(8):
    fd, offset = files[i % 2]
    assert libc.mmap(place, 4096, 5, 0x12, fd, offset) == place
    spin = (spin_a, spin_b)[i % 2]
    callback = ctypes.CFUNCTYPE(None)(lambda: work(i, spin))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(place)(ctypes.cast(callback, ctypes.c_void_p))
"""

# The same with one path, at which each file is put in the place of the one before.
ONE_PATH = ONE_ADDRESS.replace("import ctypes, os,", "import ctypes, os, shutil,").replace("""
files = [(os.open(path, os.O_RDONLY), int(offset)) for path""", """
files = [(path, int(offset)) for path""").replace("""
    fd, offset = files[i % 2]
""", """
    source, offset = files[i % 2]
    shutil.copy(source, sys.argv[5] + ".new")
    os.replace(sys.argv[5] + ".new", sys.argv[5] + ".so")
    fd = os.open(sys.argv[5] + ".so", os.O_RDONLY)
""")

@pytest.fixture
def checked(needs_bpf, pycap, tmp_path):
    """Records a program that is given as text; returns the trace and what pycap said."""
    def run(program, *arguments, options=("-F", "1999")):
        path, trace = tmp_path / "program.py", tmp_path / "t.bin"
        path.write_text(textwrap.dedent(program))
        done = pycap("record", "--check-unwind", "-o", trace, *options, "--", PYTHON, path, *arguments)
        assert done.returncode == 0, done.stderr
        return trace, done.stderr
    return run


def open_gates(pysym, trace, gate):
    """Lets each turn go on when there is a stack of it that was unwound by the row of its library."""
    for i in range(8):
        known, end = re.compile(rf"^[^;]*;_start.*;through_{'ab'[i % 2]}.*;settling_{i} ", re.M), time.monotonic() + 180
        while time.monotonic() < end and not known.search(pysym(trace, "--format", "folded", "--show-interpreter").stdout):
            time.sleep(0.2)
        pathlib.Path(f"{gate}.{i}").touch()


@pytest.mark.smoke
def test_other_code_at_one_address(checked, folded, pysym, tmp_path):
    gate = tmp_path / "gate"
    opener = threading.Thread(target=open_gates, args=(pysym, tmp_path / "t.bin", gate))
    opener.start()
    trace, said = checked(ONE_ADDRESS, *library(tmp_path, "a", 88, 0), *library(tmp_path, "b", 4184, 88), gate)
    opener.join()
    check(said, 500, 50)
    for name, other in (("a", "b"), ("b", "a")):
        rows = folded(trace, "--focus", f"spin_{name}", "--show-interpreter")
        total = sum(count for _, count in rows)
        # The address of the call is one for both: only the frames behind it tell by which row it was unwound.
        right = sum(count for frames, count in rows
                    if frames[0].startswith("_start") and any(f.startswith(f"through_{name}") for f in frames) and
                    not any(f.startswith(f"through_{other}") for f in frames))
        assert total > 100 and right >= 0.99 * total, (total, right, rows)


@pytest.mark.long
def test_another_file_of_one_name(checked, folded, pysym, tmp_path):
    """A library that is built anew and loaded where the one before was is another one, with other rows."""
    gate = tmp_path / "gate"
    libraries = [*library(tmp_path, "a", 88, 0), *library(tmp_path, "b", 4184, 88)]
    assert libraries[1] == libraries[3] and ONE_PATH.count("os.replace") == 1
    opener = threading.Thread(target=open_gates, args=(pysym, tmp_path / "t.bin", gate))
    opener.start()
    trace, said = checked(ONE_PATH, *libraries, gate)
    opener.join()
    check(said, 500, 50)
    for name in "ab":  # what is named is only the file that is there at the end
        rows = folded(trace, "--focus", f"spin_{name}", "--show-interpreter")
        total = sum(count for _, count in rows)
        right = sum(count for frames, count in rows if frames[0].startswith("_start"))
        assert total > 100 and right >= 0.99 * total, (total, right, rows)


def test_libraries_that_come_and_go(checked):
    """As often as the machine can: a thousand times a second or so."""
    _, said = checked("""
        import _ctypes, ctypes.util, time
        paths = [p for p in map(ctypes.util.find_library, ("lzma", "bz2", "z", "expat")) if p]
        loads = 0
        while time.process_time() < 1.5 or loads <= 400:
            lib = _ctypes.dlopen(paths[loads % len(paths)], 0)
            sorted(range(100), key=lambda n: -n)
            _ctypes.dlclose(lib)
            loads += 1
    """)
    check(said, 500, 50)


def test_forks_and_programs(checked):
    """Children that fork, map other code, and become other programs, while process ids are used again."""
    _, said = checked("""
        import ctypes, ctypes.util, os, sys, time
        def work(seconds):
            until = time.process_time() + seconds
            while time.process_time() < until: sorted(range(100), key=lambda n: -n)
        if len(sys.argv) > 1:
            work(0.02)
            sys.exit()
        n = 0
        while sum(os.times()[:4]) < 2:  # with its children
            n += 1
            pid = os.fork()
            if not pid:
                work(0.005)
                if n % 3 == 0: ctypes.CDLL(ctypes.util.find_library("lzma"))
                work(0.01)
                if n % 4 == 0: os.execv(sys.executable, [sys.executable, sys.argv[0], "child"])
                os._exit(0)
            work(0.01)
            os.waitpid(pid, 0)
    """)
    check(said, 500, 30)


# Functions with three rows each, of which the first calls its argument.
FUNCTION = """
.globl {name}_{i}
.type {name}_{i}, @function
{name}_{i}:
    .cfi_startproc
    push %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    call *%rdi
    pop %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    ret
    .cfi_endproc
.size {name}_{i}, . - {name}_{i}
"""


def large_library(folder, name, functions):
    source, out = folder / f"{name}.S", folder / f"lib{name}.so"
    source.write_text(".text\n" + "".join(FUNCTION.format(name=name, i=i) for i in range(functions)) +
                      '.section .note.GNU-stack,"",@progbits\n')
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-nostdlib", "-o", out, source], check=True)
    return out


@pytest.mark.long
def test_a_table_that_is_taken_out(checked, tmp_path):
    """There is no room for the tables of all: those that a program uses at each of its samples make room for its child's."""
    libraries = [large_library(tmp_path, f"large{i}", 12000 + i) for i in range(8)]
    _, said = checked("""
        import ctypes, subprocess, sys, time
        def spin(seconds):
            until = time.process_time() + seconds
            while time.process_time() < until: sorted(range(100), key=lambda n: -n)
        def below(library, name, seconds):
            callback = ctypes.CFUNCTYPE(None)(lambda: spin(seconds))
            getattr(ctypes.CDLL(library), name + "_0")(callback)
        libraries = sys.argv[2:]
        if sys.argv[1] == "child":
            below(libraries[0], libraries[0].rsplit("/lib")[-1][:-3], 0.5)
            sys.exit()
        for library in libraries[:4]:
            below(library, library.rsplit("/lib")[-1][:-3], 0.15)
        for library in libraries[4:]:
            child = subprocess.Popen([sys.executable, sys.argv[0], "child", library])
            for used in libraries[:4]:
                below(used, used.rsplit("/lib")[-1][:-3], 0.15)
            child.wait()
    """, "parent", *libraries, options=("-F", "1999", "--unwind-memory", "2M"))
    assert check(said, 500, 20) > 0, said
