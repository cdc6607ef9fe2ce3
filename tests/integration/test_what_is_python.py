# SPDX-License-Identifier: Apache-2.0
"""What is the interpreter is known by what its file holds, and not by what it is called: the view is of the program's functions."""
import glob
import os
import re
import shutil
import subprocess
import sysconfig

import pytest

from conftest import PYTHON, later

PROGRAM = """
import time
class Thing:
    def __init__(self, n): self.n = n
def hot(end):
    while time.process_time() < end:
        [str(Thing(i).n) for i in range(500)]
        mine(20000)
def main():
    hot(time.process_time() + 1)
"""

OURS = ("main", "hot", "hot.<locals>.<listcomp>", "Thing.__init__", "mine")

# A program of its own, of which mine() is work, and with as many functions as make it no Python.
HOST = """
#include <Python.h>
#define TEN(x) F(x##0) F(x##1) F(x##2) F(x##3) F(x##4) F(x##5) F(x##6) F(x##7) F(x##8) F(x##9)
#define F(n) int shop_##n(void) { return n; }
TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11) TEN(12) TEN(13) TEN(14) TEN(15)
__attribute__((noinline)) long shop_work(long n)
{
    volatile long sum = 0;
    for (long i = 0; i < n; i++)
        sum += i * i;
    return sum;
}
static PyObject *mine(PyObject *self, PyObject *n)
{
    return PyLong_FromLong(shop_work(PyLong_AsLong(n)));
}
static PyMethodDef methods[] = {{"mine", mine, METH_O, 0}, {0, 0, 0, 0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "shop", 0, -1, methods, 0, 0, 0, 0};
static PyObject *init(void) { return PyModule_Create(&module); }
int main(int argc, char **argv)
{
    (void)argc;
    PyImport_AppendInittab("shop", init);
    Py_InitializeEx(0);
    return PyRun_SimpleString("from shop import mine") || PyRun_SimpleString(argv[1]) || PyRun_SimpleString("main()");
}
"""


def leaves(rows):
    """{innermost frame that is not the kernel's: weight}."""
    out = {}
    for frames, weight in rows:
        user = [f.split(" ")[0] for f in frames if not f.endswith("_[k]")]
        if user:
            out[user[-1]] = out.get(user[-1], 0) + weight
    return out


@pytest.fixture
def hot(record, folded):
    """What is innermost in a recording of the program."""
    def run(*command):
        return leaves(folded(record(*command, options=("-F", "499")), "--focus", "^hot$"))
    return run


@pytest.mark.parametrize("name", ["shop", ".python3.11-wrapped"])
def test_another_name(needs_bpf, name, hot, tmp_path):
    """The same interpreter under another name: nothing of it is shown."""
    copy = shutil.copy(PYTHON, tmp_path / name)
    (tmp_path / "app.py").write_text(PROGRAM + "def mine(n): pass\nmain()\n")
    found = hot(copy, tmp_path / "app.py")
    assert sum(found.get(name, 0) for name in OURS) >= 0.8 * sum(found.values()) > 100, found
    assert not any(frame.startswith(("Py", "_Py", "[")) for frame in found), found


def linked(folder, strip, kind=("-no-pie", "-Wl,-E")):
    """The host with Debian's static libpython in it."""
    library = glob.glob(f"/usr/lib/python3.11/config-3.11-*/libpython3.11{'-pic' if '-pie' in kind else ''}.a")
    if not library:
        pytest.skip("no static libpython3.11: it is in libpython3.11-dev")
    (folder / "host.c").write_text(HOST)
    subprocess.run([os.environ.get("CC", "cc"), "-O2", *kind, "-o", folder / "embapp", folder / "host.c",
                    f"-I{sysconfig.get_path('include', scheme='posix_prefix').replace('/local', '')}", *library,
                    "-lexpat", "-lz", "-lm", "-ldl", "-lpthread"], check=True, timeout=300)
    if strip:
        subprocess.run(["strip", "--strip-all", folder / "embapp"], check=True)
    return folder / "embapp"


@pytest.mark.parametrize("strip", [False, True], ids=["with symbols", "stripped"])
def test_in_a_program(needs_bpf, strip, hot, tmp_path):
    """A program with an interpreter in it: its own work is shown, and of the interpreter what has a name of its own at most."""
    found = hot(linked(tmp_path, strip), PROGRAM)
    total, mine = sum(found.values()), found.get("shop_work", 0)
    assert mine > 20, found
    assert not any(frame.startswith(("Py", "_Py", "[embapp]")) for frame in found), found
    if strip:
        assert mine + sum(found.get(name, 0) for name in OURS) >= 0.8 * total, found


@pytest.mark.parametrize("kind", ["-pie", later("-no-pie")])
def test_without_symbols(needs_bpf, kind, record, folded, tmp_path):
    """A program that exports nothing and is stripped: its Python is seen all the same."""
    trace = record(linked(tmp_path, True, (kind,)), PROGRAM, options=("-F", "499"))
    total = whole = 0
    for frames, weight in folded(trace, "--layer", "python"):
        names = [frame.split(" ")[0] for frame in frames]
        total += weight
        whole += weight * (names[:3] == ["<module>", "main", "hot"])
    assert whole >= 0.8 * total and total > 100, (whole, total)


def test_version_unknown(needs_bpf, pycap, tmp_path):
    """One whose version nothing tells: every command says the same, and what to do."""
    program, trace = linked(tmp_path, True, ("-pie",)), tmp_path / "t.bin"
    program.write_bytes(program.read_bytes().replace(b"\0cpython-311\0", b"\0notpython11\0"))
    text = "its version cannot be told: its symbols are stripped. Link the program with -Wl,-E (-rdynamic), or do not strip it\n"
    done = pycap("record", "-o", trace, "--", program, "def mine(n): pass\n" + PROGRAM)
    assert re.search(rf"^pycap: process \d+ \(embapp, CPython \?\) cannot be recorded: {re.escape(text)}", done.stderr, re.M), done
    with subprocess.Popen([program, "def main():\n import sys\n print(1, flush=True)\n sys.stdin.read()\n"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        done = pycap("record", "-o", trace, "-p", str(process.pid))
        assert done.returncode == 1
        assert done.stderr.endswith(f"process {process.pid} (embapp, CPython ?) cannot be recorded: {text}"), done.stderr
        rows = pycap("info").stdout.splitlines(keepends=True)
        row = [i for i, line in enumerate(rows) if line.split()[:1] == [str(process.pid)]][0]
        assert rows[row].split()[1:4] == ["embapp", "-", "?"] and rows[row + 1].strip() == "cannot be recorded: " + text.strip(), rows
        process.stdin.close()
