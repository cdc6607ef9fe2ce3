# SPDX-License-Identifier: Apache-2.0
"""Waits for the GIL, and for a stopped world, are told from all other waits.

The recorder knows no names and goes by the address that a thread waits on; here the names of the functions that wait say what
is right.
"""
import collections
import glob
import json
import os
import re
import subprocess
import time

import pytest

from accounts import is_begun
from conftest import CACHE, PYCAP, PYSYM, ROOT, record_behind_gate, released, why_no_bpf

PROGRAMS = ROOT / "testdata/programs"
# Without symbols only these are judged, not the way into or out of threads, where the C library has locks of its own.
WORK = {"goes_on", "spin", "locked", "polite", "collect"}
OLD_CALLERS = {"PyEval_EvalFrameEx", "PyEval_RestoreThread", "PyEval_AcquireThread"}


def is_by_names(native, symbols):
    """"GIL", "stop the world" or "lock", by the functions on the stack, outermost first; None: they don't tell."""
    if any(name.startswith(("take_gil", "drop_gil")) for name in native):
        return "GIL"
    if any(name.startswith(("tstate_wait_attach", "stop_the_world")) for name in native):
        return "stop the world"
    # 2.7: a lock like others, which the eval loop takes by itself.
    if any(inner == "PyThread_acquire_lock" and outer in OLD_CALLERS for outer, inner in zip(native, native[1:])):
        return "GIL"
    if not symbols and "_PyParkingLot_Park" in native:  # exported, as what waits for a mutex there
        return "lock" if "_PyMutex_LockTimed" in native else "stop the world"
    if symbols or any(re.search("sem_", name) for name in native):
        return "lock"
    # Of a stripped interpreter the C library's names are left: semaphores are locks, the others are the GIL's.
    return "GIL" if any(re.search("pthread_(cond|mutex)_", name) for name in native) else None


def is_by_python(function):
    """The same where the C library can't be unwound through: these wait for nothing but the GIL and to sleep."""
    return "GIL" if function in ("goes_on", "spin", "polite") else None


def compare(trace, *options):
    """In ms: {(what the trace says, what the names say)} of all that waits in futex()."""
    done = subprocess.run([PYSYM, "-f", "ndjson", "--show-interpreter", *options, trace], capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 3), done.stderr
    stacks, samples, out = {}, [], collections.Counter()
    for row in map(json.loads, done.stdout.splitlines()):
        if row["type"] == "stack":
            stacks[row["stack"]] = [[f["function"] for f in row["frames"] if f["layer"] == layer] for layer in ("native", "python")]
        elif row["event"] == "off-cpu" and row["labels"].get("system call") == "futex":
            samples.append(row)
    symbols = any(name.startswith(("take_gil", "tstate_wait_attach")) for native, _ in stacks.values() for name in native)
    for row in samples:
        native, python = stacks[row["stack"]]
        at_work = python and python[-1] in WORK
        if row["labels"]["wait"] not in ("GIL", "lock", "stop the world") or not (symbols or at_work):
            continue
        by_names = is_by_names(native, symbols) if len(native) > 3 else at_work and is_by_python(python[-1])
        out[row["labels"]["wait"], by_names] += row["value"] / 1e6
    return out


def check(waits, free_threaded=False, raced=0.0):
    """`raced`: the share that may count as waits for a lock, as another thread lets this one go just before it sleeps. With
    glibc there is no such moment: the address alone tells."""
    told = {pair: ms for pair, ms in waits.items() if pair[1]}
    wrong = {pair: ms for pair, ms in told.items() if pair[0] != pair[1]}
    assert all(said == "lock" for said, _ in wrong) and sum(wrong.values()) <= raced * sum(told.values()), waits
    assert bool(sum(ms for (kind, _), ms in waits.items() if kind == "GIL")) == (not free_threaded), waits
    assert sum(told.values()) >= 0.2 * sum(waits.values()), waits


def record(pysym, folder, *command):
    """Records one of the programs, from when pycap knows where its lock is."""
    why = why_no_bpf()
    if why:
        pytest.skip(why)
    return record_behind_gate(pysym, folder, ["-e", "off-cpu/period=1/"], *command)[0]


def contended(*command, how="main", seconds=0.4):
    return [*command, PROGRAMS / "contended.py", seconds, how]


def sysroot(python):
    return ["--sysroot", python.root] if python.root else []


@pytest.mark.each_kind
@pytest.mark.live
def test_each_kind_of_interpreter(python, pysym, tmp_path):
    check(compare(record(pysym, tmp_path, *contended(python.path)), *sysroot(python)))


@pytest.mark.live
def test_a_gil_for_each_interpreter(python, pysym, tmp_path):
    if python.version < (3, 12):
        pytest.skip("no GIL but the main interpreter's")
    check(compare(record(pysym, tmp_path, *contended(python.path, how="own")), *sysroot(python)))


@pytest.mark.live
@pytest.mark.long
@pytest.mark.every_python
@pytest.mark.parametrize("how", ["main", "own"])
def test_every_interpreter(python, pysym, how, tmp_path):
    if how == "own" and python.version < (3, 12):
        pytest.skip("no GIL but the main interpreter's")
    check(compare(record(pysym, tmp_path, *contended(python.path, how=how, seconds=10)), *sysroot(python)))


def flavours():
    """Interpreters that tests/flavours.sh has made: free-threaded, musl."""
    found = {path.split("/")[-3]: path for path in sorted(glob.glob(f"{CACHE}/flavours/*/bin/python3.*[0-9t]"))}
    return [pytest.param(path, id=name) for name, path in found.items()] or [
        pytest.param(None, marks=pytest.mark.skip("none made: see tests/flavours.sh"), id="none")]


@pytest.mark.live
@pytest.mark.parametrize("path", flavours())
def test_other_builds(path, pysym, tmp_path):
    """With musl those who wait are in a list; a free-threaded build has no GIL unless it is told to."""
    free_threaded = path.endswith("t")
    check(compare(record(pysym, tmp_path, *contended(path))), free_threaded, raced=0.05 if free_threaded or "musl" in path else 0)
    if free_threaded:
        with_gil, world = tmp_path / "gil", tmp_path / "world"
        with_gil.mkdir(), world.mkdir()
        check(compare(record(pysym, with_gil, *contended("env", "PYTHON_GIL=1", path))))
        waits = compare(record(pysym, world, path, PROGRAMS / "collects.py", 20))
        check(waits, free_threaded, raced=0.05)
        assert waits["stop the world", "stop the world"], waits


@pytest.mark.live
@pytest.mark.parametrize("path", released("manylinux.*t", ["manylinux-3.15t"]))
def test_stopped_world(path, pysym, tmp_path):
    """As users install them, without symbols. In 3.15 a thread that sleeps until it may go on has a state of its own."""
    waits = compare(record(pysym, tmp_path, path, PROGRAMS / "collects.py", 20))
    check(waits, free_threaded=True, raced=0.05)
    assert waits["stop the world", "stop the world"], waits


def pyenv(version):
    found = glob.glob(os.path.expanduser(f"{os.environ.get('PYENV_ROOT', '~/.pyenv')}/versions/{version}.*/bin/python{version}"))
    if not found:
        pytest.skip(f"no Python {version} of pyenv")
    return found[0]


def without_symbols(python, folder):
    """How to run a copy of an interpreter that is stripped, and where pysym finds its symbols nevertheless."""
    library = next(iter(glob.glob(os.path.dirname(python) + "/../lib/libpython[23].*.so.1.0")))
    copy = folder / os.path.basename(library)
    subprocess.run(["strip", "-o", copy, library], check=True)
    notes = subprocess.run(["readelf", "-n", library], capture_output=True, text=True, check=True).stdout
    build_id = re.search("Build ID: ([0-9a-f]+)", notes)[1]
    place = folder / "symbols/.build-id" / build_id[:2]
    place.mkdir(parents=True)
    (place / (build_id[2:] + ".debug")).symlink_to(os.path.realpath(library))
    return ["env", f"LD_PRELOAD={copy}", python], ["--symfs", folder / "symbols"]


@pytest.mark.live
def test_stripped_2_7(pysym, tmp_path):
    """Its code says where the lock is."""
    command, symbols = without_symbols(pyenv("2.7"), tmp_path)
    check(compare(record(pysym, tmp_path, *contended(*command)), *symbols))


@pytest.mark.smoke
@pytest.mark.live
def test_learnt_from_a_stack(tmp_path):
    """Stripped 3.6: the first waits are for some lock; once a stack has shown for which, they are for the GIL."""
    why = why_no_bpf()
    if why:
        pytest.skip(why)
    command, symbols = without_symbols(pyenv("3.6"), tmp_path)
    trace, end, gate = tmp_path / "t.bin", tmp_path / "end", tmp_path / "gate"
    gate.touch()
    with subprocess.Popen([PYCAP, "record", "-o", trace, "-e", "off-cpu/period=1/", "--", *command,
                           *map(str, contended(seconds=120, how=end)), gate],
                          stderr=subprocess.PIPE, text=True) as recorder:
        waits = {}
        while recorder.poll() is None and not waits.get(("GIL", "GIL")):
            time.sleep(0.2)
            if is_begun(trace):
                waits = compare(trace, *symbols)
        end.touch()
        _, said = recorder.communicate(timeout=300)
    assert recorder.returncode == 0, said
    waits = compare(trace, *symbols)
    assert waits["GIL", "GIL"] and waits["lock", "lock"], waits
    assert not {pair for pair in waits if pair[0] != pair[1]} - {("lock", "GIL")}, waits
