# SPDX-License-Identifier: Apache-2.0
"""Page faults are memory growth within a period, or the summary says that they are not, and why.

Beside what the kernel says of a process's memory.
"""
import contextlib
import json
import os
import platform
import signal
import subprocess
import time

import pytest

from conftest import PYCAP, PYTHON, ROOT

PROGRAM = ROOT / "testdata/programs/grows.py"
PAGE = os.sysconf("SC_PAGESIZE")
MIB = 1 << 20
# What each CPU may hold back of the kernel's counts, before they are exact.
EXACT = tuple(int(x) for x in platform.release().split(".")[:2]) >= (6, 17)
HELD_BACK = 0 if EXACT else 64 * PAGE * os.cpu_count()


def wait_for(pysym, trace, function, recorder):
    """Until the trace shows samples of a Python function: pycap knows its process by then."""
    end = time.monotonic() + 60
    while function not in pysym(trace, "--format", "folded", "--python-only", "--interpreter", "calls").stdout:
        assert recorder.poll() is None and time.monotonic() < end, "no sample of " + function
        time.sleep(0.1)


def summary(pysym, trace, *options):
    return json.loads(pysym(trace, "-f", "summary", "--json", *options).stdout)


def wait_for_child(pysym, trace, recorder):
    """Until the memory of a second process was read."""
    end = time.monotonic() + 60
    while len({row["pid"] for row in summary(pysym, trace)["memory"]}) < 2:
        assert recorder.poll() is None and time.monotonic() < end, "no child"
        time.sleep(0.1)


def bytes_in(pysym, trace, function):
    """Bytes of the page faults below a function."""
    folded = pysym(trace, "--format", "folded", "--python-only", "--interpreter", "calls").stdout
    return sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()
               if function in [frame.split(" (")[0] for frame in line.rsplit(" ", 1)[0].split(";")])


@contextlib.contextmanager
def ended(process):
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def grown(needs_bpf, pysym, tmp_path):
    """Records how grows.py grows: the trace, what it printed, and what the summary says of its memory."""
    def run(way, mib, period, *options):
        trace, gate = tmp_path / "t.bin", tmp_path / "gate"
        with ended(subprocess.Popen([PYTHON, PROGRAM, way, str(mib), gate], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    text=True)) as program:
            assert program.stdout.readline() == "ready\n"
            with ended(subprocess.Popen([PYCAP, "record", "-q", "-e", f"page-faults/period={period}/", "--ring-size", "64M", *options,
                                         "-o", trace, "-p", str(program.pid)])) as recorder:
                wait_for(pysym, trace, "warm", recorder)
                gate.touch()
                if way == "fork":
                    wait_for_child(pysym, trace, recorder)
                    (tmp_path / "gate.child").touch()
                told = json.loads(program.stdout.readline())
                recorder.send_signal(signal.SIGTERM)
                assert recorder.wait(60) == 0
            program.stdin.close()
            program.wait(60)
        rows = [row for row in summary(pysym, trace)["memory"] if row["pid"] == told["pid"]]
        assert len(rows) == 1, rows
        told["anonymous"] = told["after"]["RssAnon"] - told["before"]["RssAnon"]
        return trace, told, rows[0]
    return run


@pytest.mark.parametrize("period", [1, 16])
def test_faults_are_the_growth(grown, pysym, period):
    trace, told, row = grown("anonymous", 64, period)
    # Some pages for reading the status. Beside others, whose faults the same counters count, one of theirs may end a period of ours,
    # or one of ours theirs, at either end, and of each turn on a CPU.
    turns = told["after"]["switches"] - told["before"]["switches"] + 2 if period > 1 else 1
    assert abs(bytes_in(pysym, trace, "work") - told["anonymous"]) <= (4 + period * max(turns, os.cpu_count())) * PAGE + HELD_BACK
    assert told["anonymous"] - HELD_BACK <= row["anonymous_growth_bytes"] <= told["anonymous"] + 16 * MIB
    assert row["event"] == "page-faults" and row["finding"] == "agrees", row
    if period == 1:
        # pycap reads the kernel's count a moment before it takes samples, and warm() touches a page every 10 ms.
        assert abs(row["event_bytes"] - row["anonymous_growth_bytes"]) <= 64 * PAGE + HELD_BACK
    assert "as much as anonymous memory grew\n" in pysym(trace, "-f", "summary").stdout


def test_memory_that_is_given_back(grown, pysym):
    trace, told, row = grown("churn", 64, 1)
    assert row["finding"] == "returned"
    assert 15 * MIB < told["anonymous"] < 18 * MIB
    assert bytes_in(pysym, trace, "work") >= 64 * MIB
    assert "cannot be told from page faults" in pysym(trace, "-f", "summary").stdout


def test_pages_of_files(grown):
    _, told, row = grown("files", 64, 1)
    assert told["after"]["RssFile"] - told["before"]["RssFile"] >= 64 * MIB
    assert row["finding"] == "files" and row["file_growth_bytes"] >= 64 * MIB
    assert row["event_bytes"] > row["anonymous_growth_bytes"]


def test_copies_after_a_fork(grown, pysym):
    trace, told, row = grown("fork", 64, 1)
    assert abs(told["anonymous"]) < MIB  # a copy takes the place of a page
    assert bytes_in(pysym, trace, "work") >= 64 * MIB
    assert row["finding"] == "copied"
    assert "copied after a fork" in pysym(trace, "-f", "summary").stdout


def test_huge_pages(grown, pysym):
    trace, told, row = grown("huge", 64, 1)
    if told["after"]["huge"] - told["before"]["huge"] < 32 * MIB:
        pytest.skip("the kernel gives no huge pages here")
    assert told["anonymous"] >= 60 * MIB and row["anonymous_growth_bytes"] >= 60 * MIB
    assert row["event_bytes"] < row["anonymous_growth_bytes"] / 2
    assert row["finding"] == "huge" and "huge pages" in pysym(trace, "-f", "summary").stdout


def test_memory_that_the_kernel_fills(grown, pysym):
    trace, told, row = grown("populate", 64, 1)
    assert told["anonymous"] >= 60 * MIB
    if row["finding"] == "huge":
        pytest.skip("the kernel fills memory with huge pages here")
    assert row["finding"] == "populated" and "MAP_POPULATE" in pysym(trace, "-f", "summary").stdout


def test_filters(grown, pysym):
    """What is left out by a filter is not missing."""
    trace, _, row = grown("anonymous", 8, 16)
    filtered = [other for other in summary(pysym, trace, "--comm", ".")["memory"] if other["pid"] == row["pid"]]
    assert [other["finding"] for other in filtered] == ["unknown"]
    assert filtered[0]["anonymous_growth_bytes"] == row["anonymous_growth_bytes"]
