# SPDX-License-Identifier: Apache-2.0
"""A recording that is killed at any moment can be opened, and lacks at most its last block.

A block is a second's worth. KILLS: how many recordings (6 unless told; 50 by hand).
"""
import os
import random
import subprocess
import time

import accounts
from conftest import PYCAP, PYSYM, PYTHON, WORKS

KILLS = int(os.environ.get("KILLS", "6"))


def wait_for_growth(recorder, trace):
    """Waits until something is written; when that was seen."""
    before, deadline = trace.stat().st_size if trace.exists() else 0, time.monotonic() + 120
    while not trace.exists() or trace.stat().st_size == before:
        assert recorder.poll() is None and time.monotonic() < deadline, "nothing is written"
        time.sleep(0.005)
    return time.monotonic_ns()


def test_kill_at_random_moments(needs_bpf, pysym, tmp_path):
    """
    The moment of a kill is one between two writes, or in one. How long a machine lets a recorder wait before it writes is no fault of
    it: of all the times between two writes the shortest has to be below two seconds. A recorder that writes every five seconds, or
    when a buffer is full, has none.
    """
    seed = int(os.environ.get("KILL_SEED", random.randrange(1 << 30)))
    moments = random.Random(seed)
    killed, between = [], []
    with subprocess.Popen([PYTHON, "-c", "print(flush=True)\n" + WORKS], stdout=subprocess.PIPE) as target:
        target.stdout.readline()
        try:
            for first in range(0, KILLS, 2):
                traces = [tmp_path / f"t{number}.bin" for number in range(first, min(first + 2, KILLS))]
                recorders = [subprocess.Popen([PYCAP, "record", "-q", "-F", "999", "-p", str(target.pid), "-o", trace]) for trace in traces]
                for recorder, trace in zip(recorders, traces):
                    writes = [wait_for_growth(recorder, trace) for _ in range(moments.randrange(5))]
                    between += [late - early for early, late in zip(writes, writes[1:])]
                    moment = moments.uniform(0, 1.2)
                    time.sleep(moment)
                    end_ns = time.monotonic_ns()
                    recorder.kill()
                    recorder.wait()
                    killed.append((trace, len(writes), moment, end_ns))
        finally:
            target.kill()
    missing = []
    for trace, writes, moment, end_ns in killed:
        where = f"KILL_SEED={seed}, {trace.name} killed {moment:.3f} s after {writes} writes"
        if not trace.exists() or not trace.stat().st_size:
            assert not writes, where
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
    assert missing and (not between or min(between) < 2 * 10**9), (seed, between)
    print(f"{len(killed)} killed, {len(missing)} with samples; the last sample was so long ago, in seconds: "
          f"{', '.join(f'{m:.2f}' for m in sorted(missing))}; seconds between writes: {', '.join(f'{b / 1e9:.2f}' for b in between)}")
