# SPDX-License-Identifier: Apache-2.0
"""A code object is known for what it is when another one comes to lie at its address.

The program replaces them as fast as it likes.
"""
import bisect
import json
import pathlib
import re
import subprocess

import pytest

import accounts
from conftest import PYSYM

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS, VERSIONS = ROOT / "testdata" / "programs", ROOT / "formats" / "cpython" / "versions.def"

# Whether the number that the layout's row says is the next code object's is that; 3.12 has it in a variable of its own.
PROBE = """
import ctypes, sys
interpreter, offset, version = ctypes.pythonapi.PyInterpreterState_Get, int(sys.argv[1]), int(sys.argv[2])
interpreter.restype = ctypes.c_void_p
def counter():
    return ctypes.c_uint32.from_address(interpreter() + offset).value
for count in range(1, 200):
    before, codes = counter(), [compile("def f(): pass", "x", "exec") for _ in range(count)]
    codes += [c.co_consts[0] for c in codes]
    numbers = sorted(ctypes.c_uint32.from_address(id(c) + version).value for c in codes)
    assert numbers == list(range(before, before + 2 * count)), (before, numbers)
    assert counter() == before + 2 * count
def function(): return [i * i for i in range(10)]
before = counter()
for _ in range(5000): function(), (lambda: 1)(), type(function)(function.__code__, {})
print("stands" if counter() == before else "moves")
"""


def counter_of(version):
    """Its place in the interpreter state, and that of co_version in a code object, by versions.def; None: it has no such place."""
    row = re.search(rf"^PYTHON\({version[0]}, {version[1]},(.*?)\)\)$", VERSIONS.read_text(encoding="utf-8"), re.M | re.S)[1]
    counter = re.search(r"COUNTER\((\d+),", row)
    return counter and (counter[1], re.search(r"CODE\(([^)]*)\)", row)[1].split(",")[8].strip())


@pytest.mark.every_python
def test_counter(python):
    """The row's counter numbers code objects, all of them and nothing else while a program only runs."""
    place = counter_of(python.version)
    if not place:
        pytest.skip("its counter, if it has one, is found by its name")
    done = subprocess.run([python.path, "-c", PROBE, *place], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "stands\n"), done.stderr


def lives(*logs):
    """From the programs' logs {letter: [(begin, end, name)]}, in order."""
    found = {}
    for log in logs:
        for line in log.read_text(encoding="ascii").splitlines():
            name, begun, ended = line.split()
            found.setdefault(name[0], []).append((int(begun), int(ended), name))
    return found


def samples(done):
    """(time, [(name of its function, name by its file)]) of each sample, innermost first, from pysym's ndjson."""
    stacks = {}
    for line in done.stdout.splitlines():
        row = json.loads(line)
        if row["type"] == "stack":
            stacks[row["stack"]] = [(f["function"], pathlib.Path(f["file"]).stem) for f in row["frames"] if f["layer"] == "python"]
        elif row["type"] == "sample":
            yield row["time_ns"], stacks[row["stack"]]


def check(done, logs):
    """Each frame of such a function is in a sample that was taken while it ran. How many there were, by letter; and how many of
    them, and of frames without a name, there were not."""
    assert done.returncode in (0, 3), done.stderr
    ran = lives(*logs)
    right, unknown = {letter: 0 for letter in ran}, 0
    for time_ns, frames in samples(done):
        unknown += any(function.startswith("?") for function, _ in frames)
        for function, file in frames:
            if not re.match(r"[fghi]_\d{6}$", file):
                continue
            letter = file[0]
            at = bisect.bisect(ran[letter], (time_ns + 1000,)) - 1
            near = time_ns, function, file, ran[letter][max(0, at - 1):at + 2]
            if function == "<module>":  # which makes the function that is called next
                assert at < 0 or ran[letter][at][1] <= time_ns + 1000, near
                assert file == ran[letter][at + 1][2], near
                continue
            # A sample is taken of a thread that stands still: it has called the function, which has not returned.
            assert at >= 0 and time_ns <= ran[letter][at][1] + 1000 and file == ran[letter][at][2], near
            assert function == file or "<lambda>" in function or "<listcomp>" in function, near
            right[letter] += 1
    return right, unknown


@pytest.mark.every_python(kinds=True)
def test_reborn(python, record, pysym, tmp_path):
    """Functions of which nothing but the name differs take each other's place a thousand times a second."""
    log = tmp_path / "log"
    trace = record(python.path, PROGRAMS / "reborn.py", "1", log, options=("-F", "1999", "-m", "32M", "--no-native"))
    right, unknown = check(pysym(trace, "--format", "ndjson"), [log])
    assert right["f"] > 100  # of more than 1,000
    # Where the buffer was full there was no room for what a function is called.
    unexplained = unknown - 3 * accounts.read(PYSYM, trace).losses["code_ring_full"]
    assert accounts.is_rare(unexplained, right["f"], 0.01), (unknown, right)


def test_reborn_beside_an_interpreter(python, record, pysym, tmp_path):
    """Another interpreter begins to make functions of its own, and ends before the first one does."""
    if python.version < (3, 12):
        pytest.skip("it has no counter of code objects, which is what this is about")
    log, other = tmp_path / "log", tmp_path / "log.other"
    probe = subprocess.run([python.path, "-c", "try: import _interpreters\nexcept ImportError: import _xxsubinterpreters"],
                           capture_output=True, timeout=60, check=False)
    if probe.returncode:
        pytest.skip("this Python has no way to make an interpreter")
    trace = record(python.path, PROGRAMS / "reborn.py", "2", log, "interpreters",
                   options=("-F", "1999", "-m", "32M", "--no-native"))
    right, unknown = check(pysym(trace, "--format", "ndjson"), [log, other])
    assert all(right[letter] > 20 for letter in "fghi"), right
    assert accounts.is_rare(unknown, sum(right.values()), 0.05), (unknown, right)
