# SPDX-License-Identifier: Apache-2.0
"""A function that holds the GIL while others wait is blamed for their waiting.

Functions that hold it in known ways are blamed for as long as another thread waited by its own clock; one that releases it is
not.
"""
import collections
import json

import pytest

import accounts
from conftest import PYSYM, PYTHON, ROOT, record_behind_gate, why_no_bpf
from wait_trace import Trace

PROGRAM = ROOT / "testdata/programs/hogs.py"
HOGS = "blocks", "computes", "loops"
WALL = "--wall", "-F", "999"


def report_of(pysym, trace, *options):
    """What pysym -f gil says of the process."""
    done = pysym(trace, "-f", "gil", "--json", "--top", "0", *options)
    assert done.returncode in (0, 3), done.stderr
    process, = json.loads(done.stdout)["processes"]
    return process


def blame_of(report, names):
    """In ns, by function of the program: that itself or what it calls held the GIL."""
    blame = collections.Counter()
    for row in report["holders"]:
        functions = {name.split(" ")[0] for name in (row["function"], *row["callers"])}
        blame.update({name: row["time_ns"] for name in functions & names})
    return blame


def check(pysym, folder, python, options=WALL, seconds=0.8, sysroot=()):
    """
    Five per cent are wanted where nothing else runs, and a quarter is allowed, and as long as the two threads wanted a CPU and
    had none: what is to wait for the GIL comes late then, which its clock takes for waiting. So it does when the host gives
    this machine no CPU, of which a nap that takes longer than any hog holds the GIL tells, and ticks that the kernel skipped.
    """
    path, told, _ = record_behind_gate(pysym, folder, options, python, PROGRAM, seconds)
    told, report, trace = json.loads(told), report_of(pysym, path, *sysroot), Trace(path)
    blame, threads = blame_of(report, set(told)), trace.accounts()
    skipped = accounts.read(PYSYM, path).losses["tick_skipped"] * 1e9 / int(options[options.index("-F") + 1])
    queued = {name: [threads[tid]["queued"] for tid in row["tids"]] for name, row in told.items()}
    for name in HOGS:
        waited = told[name]["waited_ns"]
        print(f"{python} {name:8} blame {blame[name] / 1e6:7.1f} ms, clock {waited / 1e6:7.1f} ms, without a CPU"
              f" {queued[name][1] / 1e6:6.1f} ms, its hog {queued[name][0] / 1e6:6.1f} ms, ratio {blame[name] / waited:.3f},"
              f" to the clock less that {blame[name] / (waited - queued[name][1]):.3f}")
    print(f"ticks skipped in all {skipped / 1e6:7.1f} ms")
    for name in HOGS:
        waited = told[name]["waited_ns"]
        stalled = max(0, told[name]["longest_ns"] - 50e6)
        assert abs(blame[name] - waited) < 0.25 * waited + sum(queued[name]) + stalled + skipped, \
            (name, blame, told, queued, skipped)
    assert blame["releases"] < 0.05 * report["blamed_ns"] + sum(queued["releases"]), (blame, queued)
    assert report["holders"][0]["function"].split(" ")[0] in HOGS, report["holders"]
    # A thread that was woken still counts as one that waits, until it has a CPU.
    exact = sum(ns for (_, kind), ns in trace.exact().items() if kind in ("GIL", "run queue"))
    assert report["blamed_ns"] < 1.25 * exact, (report["blamed_ns"], exact)
    # Of the calls that do not release it the one that blocks comes first, with the system call that it is in.
    call = report["blocking_calls"][0]
    assert call["function"].startswith("blocks ") and "nanosleep" in call["system_call"], call
    assert 0.75 * blame["blocks"] < call["blamed_ns"] <= blame["blocks"], (call, blame)


@pytest.mark.smoke
def test_hogs(needs_bpf, pysym, tmp_path):
    check(pysym, tmp_path, PYTHON)


@pytest.mark.long
def test_thinned(needs_bpf, pysym, tmp_path):
    """Waits of which no stack was taken have their blame as well."""
    check(pysym, tmp_path, PYTHON, ("-e", "cpu-clock", "-F", "499", "-e", "off-cpu/period=50000000/"), seconds=0.8)


@pytest.mark.long
@pytest.mark.every_python
def test_every_interpreter(python, pysym, tmp_path):
    why = why_no_bpf()
    if why:
        pytest.skip(why)
    check(pysym, tmp_path, python.path, sysroot=["--sysroot", python.root] if python.root else [])
