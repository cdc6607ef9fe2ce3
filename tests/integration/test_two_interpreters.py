# SPDX-License-Identifier: Apache-2.0
"""Processes with more than one CPython mapped: the frames are of the one that runs, whichever lies lower."""
import pathlib
import re
import shutil
import subprocess

import pytest

import accounts
from conftest import PYSYM, PYTHON, interpreters

# Maps the code of a file below all else, where Linux puts nothing, and says so.
PROGRAM = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
fd = os.open(sys.argv[1], os.O_RDONLY)
assert libc.mmap(0x20000, min(os.fstat(fd).st_size, 0x3d0000), 5, 0x12, fd, 0) == 0x20000
os.write(1, b"mapped\\n")
def busy():
    while True:
        pass
busy()
"""

# Runs an interpreter in each of two threads, or one after the other.
HOST = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
static const char script[] = "import time\\ndef in_%s():\\n  end = time.time() + 1\\n  while time.time() < end: pass\\nin_%s()\\n";
static const char *names[] = {"first", "second"};
static void *handles[2];
static void *run(void *which)
{
    char text[200];
    long i = (long)which;
    snprintf(text, sizeof text, script, names[i], names[i]);
    ((void (*)(int))dlsym(handles[i], "Py_InitializeEx"))(0);
    ((int (*)(const char *))dlsym(handles[i], "PyRun_SimpleString"))(text);
    ((int (*)(void))dlsym(handles[i], "Py_FinalizeEx"))();
    return 0;
}
int main(int argc, char **argv)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) {
        handles[i] = dlopen(argv[2 + i], RTLD_NOW | RTLD_LOCAL);
        if (!handles[i])
            return puts(dlerror()), 1;
        if (argc && argv[1][0] == 'b')
            pthread_create(&threads[i], 0, run, (void *)i);
        else
            run((void *)i);
    }
    for (int i = 0; argv[1][0] == 'b' && i < 2; i++)
        pthread_join(threads[i], 0);
    return 0;
}
"""


def mapped_file(pid):
    """The file of the interpreter that a process runs: a shared library, or the program."""
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
    return (re.findall(r"(/\S*libpython\S*)$", maps, re.M) or [str(pathlib.Path(f"/proc/{pid}/exe").resolve())])[0]


@pytest.mark.each_kind
@pytest.mark.parametrize("decoy", ["own", "other"])
def test_code_alone(needs_bpf, decoy, python, pycap, folded, tmp_path):
    """Code of an interpreter that is mapped without its data is none that runs, even if it is a second time the same."""
    program = tmp_path / "busy.py"
    program.write_text(PROGRAM)
    other = shutil.copy(PYTHON, tmp_path)  # where a root tree has it, too
    if decoy == "own":
        probe = subprocess.run([python.path, "-c", "import re; print((re.findall(r'(/\\S*libpython\\S*)$', open('/proc/self/maps')"
                                ".read(), re.M) or ['/proc/self/exe'])[0])"], capture_output=True, text=True, check=True)
        other = probe.stdout.strip()
    with subprocess.Popen([python.path, program, other], stdout=subprocess.PIPE) as running:
        try:
            assert running.stdout.readline() == b"mapped\n"
            said = pycap("info").stdout
            row = re.search(rf"^ *{running.pid} .*$", said, re.M)
            assert row and f" {python.version[0]}.{python.version[1]}." in row[0], said
            for backend in ("bpf", "proc"):
                trace = tmp_path / f"{backend}.bin"
                done = pycap("record", "-p", str(running.pid), "-d", "0.7", "-F", "499", "--backend", backend, "-o", trace)
                assert done.returncode == 0, done.stderr
                rows = folded(trace)
                total, right = sum(n for _, n in rows), sum(n for frames, n in rows if any("busy (" in f for f in frames))
                assert total and right >= 0.9 * total, (backend, rows)
        finally:
            running.kill()


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """The program, and two shared libraries of different versions."""
    libraries = sorted({str(lib) for i in interpreters() if i.version >= (3, 6)
                        for lib in pathlib.Path(i.path).resolve().parents[1].glob("lib/libpython3.*.so.1.0")})
    if len(libraries) < 2:
        pytest.skip("two interpreters with a shared library are needed")
    folder = tmp_path_factory.mktemp("host")
    (folder / "host.c").write_text(HOST)
    subprocess.run(["cc", "-O1", "-o", folder / "host", folder / "host.c", "-ldl", "-lpthread"], check=True)
    return folder / "host", libraries[0], libraries[-1]


@pytest.mark.parametrize("backend", ["bpf", "proc"])
def test_one_after_the_other(needs_bpf, host, backend, pycap, folded, tmp_path):
    """The first has ended when the second begins: each is read in its time."""
    trace = tmp_path / "t.bin"
    done = pycap("record", "-F", "499", "--backend", backend, "-o", trace, "--", host[0], "after", *host[1:])
    assert done.returncode == 0, done.stderr
    rows = folded(trace)
    for name in ("in_first", "in_second"):
        assert sum(n for frames, n in rows if any(f.startswith(name) for f in frames)) > 20, rows


@pytest.mark.parametrize("backend", ["bpf", "proc"])
def test_both(needs_bpf, host, backend, pycap, pysym, folded, tmp_path):
    """Both run, each in a thread of its own: each thread has the frames of its own, and both versions are named."""
    trace = tmp_path / "t.bin"
    done = pycap("record", "-F", "499", "--backend", backend, "-o", trace, "--", host[0], "both", *host[1:])
    assert done.returncode == 0, done.stderr
    rows = [(frames, n) for frames, n in folded(trace, "-t") if any(f.startswith(("in_first ", "in_second ")) for f in frames)]
    account = accounts.read(PYSYM, trace)
    for name in ("in_first ", "in_second "):
        own = [(frames, n) for frames, n in rows if any(f.startswith(name) for f in frames)]
        assert sum(n for _, n in own) > 20 and len({frames[0] for frames, _ in own}) == 1, (rows, account.text())
    assert all(sum(f.startswith(("in_first ", "in_second ")) for f in frames) == 1 for frames, _ in rows), rows
    assert 4 * account.losses["other_python"] < len(account.samples), account.text()
    versions = set(re.findall(r"libpython(3\.\d+)", " ".join(host[1:])))
    row = re.search(r"^ +\d+  host +(.*)", pysym(trace, "-f", "summary").stdout, re.M)
    assert set(re.findall(r"\b(3\.\d+)\.\d+", row[1])) == versions
    text = pysym(trace, "-f", "threads").stdout
    assert re.search(r"CPython 3\.\d+\.\d+ and 3\.\d+\.\d+", text) or "had ended" in text, text
