# SPDX-License-Identifier: Apache-2.0
"""The times of waits are those that strace and perf sched see of the same run.

What they cannot know is bracketed, so that a busy machine changes nothing; the figures are printed.
"""
import collections
import json
import re
import shutil
import subprocess

import pytest

from conftest import PYCAP, PYTHON, ROOT
from wait_trace import Trace

pytestmark = pytest.mark.long
PROGRAM = [PYTHON, ROOT / "testdata/programs/waits.py"]
ALL = ("-e", "off-cpu/period=1/")
ERROR = 0.02  # of a thread's time: what it takes each to look at the clock
Row = collections.namedtuple("Row", "until wait delay run")  # of perf sched timehist, in ns


def needed(program, package):
    found = shutil.which(program, path="/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin")
    if not found:
        pytest.skip(f"no {program}: Debian's package {package} has it")
    return found


def by_call(pysym, trace):
    """By system call and kind of wait, in ns."""
    out = collections.Counter()
    for row in map(json.loads, pysym(trace, "--format", "ndjson", "--labels").stdout.splitlines()):
        if row["type"] == "sample":
            out[row["labels"].get("system call"), row["labels"]["wait"]] += row["value"]
    return out


def test_strace(needs_bpf, pycap, pysym, tmp_path):
    """A call lasts for what it waits, and until strace has looked at it: no less than the time blocked in it, and no more than
    all the time off the CPU in it, the stops for strace included, but for what it runs."""
    trace, counts = tmp_path / "t.bin", tmp_path / "counts"
    done = pycap("record", "-o", trace, *ALL, "--", needed("strace", "strace"), "-f", "-w", "-c", "-o", counts, *PROGRAM, 1, "/")
    if "PTRACE" in done.stderr:
        pytest.skip(f"strace: {done.stderr}")
    assert done.returncode == 0, done.stderr
    Trace(trace).check_sums()
    seconds = {call: float(s) for s, call in re.findall(r"^ +[\d.]+ +([\d.]+) .* (\w+)$", counts.read_text(), re.M)}
    waits = by_call(pysym, trace)
    for call, kinds in ("clock_nanosleep", {"blocked"}), ("futex", {"lock", "GIL"}), ("read", {"blocked"}):
        waited = sum(ns for (name, kind), ns in waits.items() if name == call and kind in kinds) / 1e9
        off = sum(ns for (name, _), ns in waits.items() if name == call) / 1e9
        print(f"{call:16} strace {seconds[call]:.3f} s, pycap {waited:.3f} waiting, {off:.3f} off the CPU in it")
        assert waited > 0 and waited * (1 - ERROR) <= seconds[call] <= off * (1 + 5 * ERROR), (call, waits)


def timehist(perf, data):
    """By tid, the rows in their order. Who ends has no tid any more as it leaves the CPU, so that its last row is not here."""
    rows = collections.defaultdict(list)
    text = subprocess.run([perf, "sched", "timehist", "-i", data], capture_output=True, text=True, timeout=300, check=True).stdout
    for seconds, tid, *times in re.findall(r"^ +([\d.]+) \[\d+\] .*\[(\d+)(?:/\d+)?\] +([\d.]+) +([\d.]+) +([\d.]+) *$", text, re.M):
        rows[int(tid)].append(Row(round(float(seconds) * 1e9), *(round(float(ms) * 1e6) for ms in times)))
    return rows


def test_perf_sched(needs_bpf, tmp_path):
    """What perf adds up from the kernel's switches, from a thread's start until its last row. What it waited since is no longer
    than it lived since."""
    perf, trace, data = needed("perf", "linux-perf"), tmp_path / "t.bin", tmp_path / "sched.data"
    # -k: pycap's clock. The trace points are named by tracefs, which is mounted for perf alone.
    done = subprocess.run(["unshare", "-m", "sh", "-c", 'mount -t tracefs none /sys/kernel/tracing && exec "$@"', "-",
                           perf, "sched", "record", "-B", "-N", "-m", "4096", "-k", "CLOCK_MONOTONIC", "-o", data, "--",
                           PYCAP, "record", "-o", trace, "-e", "off-cpu", "--", *PROGRAM, "1", "/"],
                          capture_output=True, text=True, timeout=300, check=False)
    if done.returncode and not trace.exists():
        pytest.skip(f"perf sched does not record here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    stats = subprocess.run([perf, "report", "-i", data, "--stats"], capture_output=True, text=True, timeout=300, check=False).stdout
    if "LOST" in stats:
        pytest.skip("perf lost events")
    waits, rows = Trace(trace), timehist(perf, data)
    waits.check_sums()
    accounts, ends = waits.accounts(), {waits.tids[time[0]]: time[2] for time in waits.times}
    threads = accounts.keys() - {waits.tids[1]}  # the first one was there before the program was
    assert len(threads) == 9
    for tid in sorted(threads):
        account, seen = accounts[tid], rows[tid]
        waited = sum(row.wait for row in seen) + seen[0].delay
        rest = ends[tid] - seen[-1].until
        print(f"{tid}: pycap {account['off'] / 1e6:.3f} ms off the CPU, perf {waited / 1e6:.3f} and {rest / 1e6:.3f} since")
        assert rest >= -ERROR * account["wall"]
        assert -ERROR * account["wall"] <= account["off"] - waited <= rest + ERROR * account["wall"], (account, seen)
