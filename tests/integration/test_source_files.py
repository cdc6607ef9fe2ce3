# SPDX-License-Identifier: Apache-2.0
"""What a recording says of source files (SOURCE) is what os.stat says."""
import collections
import os
import pathlib
import re
import subprocess
import tempfile
import time

import pytest

from conftest import PYCAP, PYTHON, why_no_bpf

FILE, NONE = 1, 2
Source = collections.namedtuple("Source", "process state size_bytes modified_ns")

# Runs a function of each file named, whatever that is, until the gate is there.
PROGRAM = """
import os, sys
gate, spins = sys.argv[1], []
for number, name in enumerate(sys.argv[2:]):
    space = {}
    source = "def spin%d():\\n    n = 0\\n    while n < 100000:\\n        n += 1\\n" % number
    exec(compile(source, name, "exec"), space)
    spins.append(space["spin%d" % number])
while not os.path.exists(gate):
    for spin in spins:
        spin()
"""


def sources(pysym, trace):
    """What the trace says, by name, in the order of its records. The dump ends a long name with how much more there is."""
    found, strings = collections.defaultdict(list), {}
    for line in pysym(trace, "-f", "dump").stdout.splitlines():
        if line.startswith("epoch "):
            strings = {}
        string = re.match(r'string id=(\d+) data=["<](.*)[">](\+\d+)?$', line)
        if string:
            strings[string[1]] = string[2]
        source = re.match(r"source process=(\d+) file=(\d+) time_ns=\d+ state=(\d) size_bytes=(\d+) modified_ns=(-?\d+)$", line)
        if source:
            found[strings[source[2]]].append(Source(*(int(source[i]) for i in (1, 3, 4, 5))))
    return found


def fact(path):
    st = os.stat(path)
    return FILE, st.st_size, st.st_mtime_ns


def said(rows):
    """Each fact once: a long recording says it in each epoch."""
    return list(dict.fromkeys(row[1:] for row in rows))


@pytest.fixture
def folder():
    """With a short path, as the dump cuts long strings."""
    with tempfile.TemporaryDirectory(prefix="s", dir="/tmp") as path:
        yield pathlib.Path(path)


def check_kinds_of_names(pysym, folder, python, backend):
    """Files, links, what is no file, and one that is edited while it is recorded; nothing of them is opened."""
    program, gate, trace = folder / "program.py", folder / "gate", folder / "t.bin"
    program.write_text(PROGRAM)
    for name in ("file.py", "edited.py", "app.zip"):
        (folder / name).write_text(name)
    os.mkfifo(folder / "fifo.py")
    (folder / "link.py").symlink_to("file.py")
    (folder / "device.py").symlink_to("/dev/zero")
    names = [str(folder / name) for name in
             ("file.py", "link.py", "edited.py", "fifo.py", "device.py", "missing.py", "app.zip/module.py")]
    first = fact(folder / "edited.py")
    with subprocess.Popen([PYCAP, "record", "--backend", backend, "-F", "199", "-o", trace, "--", python, program, gate,
                           *names, "<string>"], stderr=subprocess.PIPE, text=True) as recorder:
        try:
            while recorder.poll() is None and not set(names) <= sources(pysym, trace).keys():
                time.sleep(0.1)
            (folder / "new").write_text("something longer")
            (folder / "new").replace(folder / "edited.py")  # it is never empty
        finally:
            gate.touch()
        errors = recorder.communicate(timeout=300)[1]
    assert recorder.returncode == 0, errors
    found = sources(pysym, trace)
    assert said(found[names[0]]) == said(found[names[1]]) == [fact(folder / "file.py")]
    assert said(found[names[2]]) == [first, fact(folder / "edited.py")]
    for name in names[3:]:
        assert said(found[name]) == [(NONE, 0, 0)], name
    assert said(found[str(program)]) == [fact(program)]
    assert not any(name.startswith("<") for name in found)


@pytest.mark.live
@pytest.mark.smoke("bpf")
@pytest.mark.parametrize("backend", ["bpf", "proc"])
def test_kinds_of_names(pysym, folder, backend):
    if backend == "bpf" and why_no_bpf():
        pytest.skip(why_no_bpf())
    check_kinds_of_names(pysym, folder, PYTHON, backend)


@pytest.mark.long
def test_each_version(pysym, needs_bpf, folder, python):
    if python.root:
        pytest.skip("an interpreter in a root of its own sees other files")
    check_kinds_of_names(pysym, folder, python.path, "bpf")


MOUNTED = """
run() { unshare --mount sh -ec 'mount --make-rprivate / && mount --bind "$1" "$2" && shift 2 && exec "$@"' sh "$@"; }
run "$1" "$3" "$4" "$5" "$6" "$3" &
run "$2" "$3" "$4" "$5" "$6" "$3" &
wait
"""


def test_whose_file(pysym, needs_bpf, needs_namespaces, folder):
    """One name in two mount namespaces: each process has its own file."""
    program, gate, trace, name = folder / "program.py", folder / "gate", folder / "t.bin", folder / "name.py"
    program.write_text(PROGRAM)
    files = [folder / "one.py", folder / "two.py"]
    for size, path in enumerate(files, 1):
        path.write_text("#" * size)
    name.write_text("what is there outside")
    with subprocess.Popen([PYCAP, "record", "-F", "199", "-o", trace, "--", "sh", "-c", MOUNTED, "sh", *files, name, PYTHON, program,
                           gate], stderr=subprocess.PIPE, text=True) as recorder:
        try:
            while recorder.poll() is None and len(sources(pysym, trace)[str(name)]) < 2:
                time.sleep(0.1)
        finally:
            gate.touch()
        errors = recorder.communicate(timeout=300)[1]
    assert recorder.returncode == 0, errors
    found = sources(pysym, trace)[str(name)]
    assert sorted(said(found)) == [fact(path) for path in files]
    assert len({source.process for source in found}) == 2
