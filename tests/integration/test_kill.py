# SPDX-License-Identifier: Apache-2.0
"""A recording that is killed at any moment can be opened, and lacks at most its last block.

A block is a second's worth. KILLS: how many recordings (6 unless told; 50 by hand).
"""
import os
import random
import subprocess
import threading
import time

import pytest

import accounts
from conftest import PYCAP, PYSYM, why_no_bpf

pytestmark = pytest.mark.live

KILLS = int(os.environ.get("KILLS", "6"))
TARGET = """
import time
print("up", flush=True)
while True:
    sum(range(1000))
"""


def monotonic_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def waited_s(pid):
    """How long a process was ready to run and did not get a CPU: on a busy machine that comes on top of the second."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[1]) / 1e9


class Stalls:
    """How long nothing ran on a CPU, as when the host has taken it away: a thread on each sleeps, and wakes too late."""

    def __init__(self):
        self.late_s, self.ended = dict.fromkeys(os.sched_getaffinity(0), 0.0), False
        for cpu in self.late_s:
            threading.Thread(target=self.watch, args=(cpu,), daemon=True).start()

    def watch(self, cpu):
        os.sched_setaffinity(0, {cpu})
        last = time.monotonic()
        while not self.ended:
            time.sleep(0.01)
            now = time.monotonic()
            self.late_s[cpu] += now - last if now - last > 0.05 else 0
            last = now

    def total_s(self):
        return sum(self.late_s.values())


@pytest.mark.alone
def test_kill_at_random_moments(pysym, tmp_path):
    why = why_no_bpf()
    if why:
        pytest.skip(why)
    seed = int(os.environ.get("KILL_SEED", random.randrange(1 << 30)))
    moments = random.Random(seed)
    stalls = Stalls()
    with subprocess.Popen(["/usr/bin/python3", "-c", TARGET], stdout=subprocess.PIPE) as target:
        target.stdout.readline()
        try:
            killed = []
            for first in range(0, KILLS, 2):
                pair, waited_before = [], waited_s(target.pid) + stalls.total_s()
                for number in range(first, min(first + 2, KILLS)):
                    trace = tmp_path / f"t{number}.bin"
                    recorder = subprocess.Popen([PYCAP, "record", "-q", "-F", "999", "-p", str(target.pid), "-o", trace])
                    pair.append((recorder, trace, moments.uniform(0, 3.5)))
                start = time.monotonic()
                # The moment counts from when the file is there: before that there is nothing to lose.
                for recorder, trace, _ in pair:
                    while not trace.exists():
                        assert recorder.poll() is None and time.monotonic() < start + 60
                        time.sleep(0.005)
                start = time.monotonic()
                for recorder, trace, moment in sorted(pair, key=lambda p: p[2]):
                    time.sleep(max(0, start + moment - time.monotonic()))
                    end_ns, target_waited = monotonic_ns(), waited_s(target.pid) + stalls.total_s()
                    waited = waited_s(recorder.pid) + target_waited - waited_before
                    recorder.kill()
                    recorder.wait()
                    killed.append((trace, end_ns, moment, waited))
        finally:
            target.kill()
            stalls.ended = True
    missing = []
    for trace, end_ns, moment, waited in killed:
        most = 1.3 + waited  # a second, a drain's period, and what nobody could help
        where = f"KILL_SEED={seed}, {trace.name} killed after {moment:.3f} s, {trace.stat().st_size} bytes"
        if not trace.stat().st_size:
            assert moment < most, where  # nothing was written yet: that is the first second
            continue
        done = pysym(trace, "--format", "summary", "-v")
        assert done.returncode == 0, where + done.stderr
        assert "NOT ended in good order" in done.stdout, where
        account = accounts.read(PYSYM, trace)
        assert account.ends == [None], where
        # Whole blocks only, written at once: nothing in them is damaged.
        assert "damage" not in done.stderr, where + done.stderr
        if account.samples:
            assert "<module>" in pysym(trace, "--format", "folded").stdout, where
            missing.append((end_ns - max(s.time_ns for s in account.samples)) / 1e9)
            assert missing[-1] < most, f"{where}: {missing[-1]:.3f} s are missing, {waited:.3f} s were waited"
    missing.sort()
    print(f"{len(killed)} killed, {len(missing)} with samples; the last sample was so long ago, in seconds: "
          f"{', '.join(f'{m:.2f}' for m in missing)}")
