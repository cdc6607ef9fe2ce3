# SPDX-License-Identifier: Apache-2.0
"""pycap wakes seldom while others start and end on the host.

Waking is what a sample costs at low rates. Where nothing is new for the recording it wakes some five times a second: to drain
the rings, to look whether an event is about the program, and to write.
"""
import contextlib
import os
import pathlib
import re
import signal
import statistics
import subprocess
import threading
import time

import pytest

from conftest import PYCAP, PYSYM, PYTHON

WAKES_A_SECOND = 6
SETTLE_SECONDS = 5  # what is new in the beginning, and two seconds of calm
SECONDS = 5
BURN = "import os\nwhile os.getppid() != 1:\n    sum(range(10000))"


def wakes(pid):
    """How often the thread that records has gone to sleep."""
    return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1])


@contextlib.contextmanager
def others(rate):
    """Other programs that start and end, up to so many a second; yields a function that says how many have."""
    over, count = threading.Event(), 0

    def run():
        nonlocal count
        while not over.wait(1 / rate):
            os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
            count += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield lambda: count
    finally:
        over.set()
        thread.join()


def wakes_by_second(recorders):
    """Of each recorder. In a single second there may be more: the names of threads are looked for, less and less often, by many reads."""
    counts = [[] for _ in recorders]
    for _ in range(SECONDS):
        begin, before = time.monotonic(), [wakes(recorder.pid) for recorder in recorders]
        time.sleep(1)
        for own, recorder, earlier in zip(counts, recorders, before):
            own.append((wakes(recorder.pid) - earlier) / (time.monotonic() - begin))
    return counts


@pytest.mark.long
def test_wakes(needs_bpf, tmp_path):
    """
    At two rates, and with a ring of all CPUs, beside the same others. A recorder that is woken for each of these, or for each sample,
    is beyond the limit; one of a busy machine wakes less often, never more.
    """
    traces = {tmp_path / f"{hz}.bin": [hz, environment] for hz, environment in (("99", {}), ("999", {"PYCAP_RING_CPUS": "1"}))}
    with contextlib.ExitStack() as stack:
        program = stack.enter_context(subprocess.Popen([PYTHON, "-c", BURN]))
        stack.callback(program.kill)
        recorders = [subprocess.Popen([PYCAP, "record", "-q", "-F", hz, "-o", trace, "-p", str(program.pid)],
                                      env={**os.environ, **environment}) for trace, (hz, environment) in traces.items()]
        for recorder in recorders:
            stack.callback(recorder.kill)
        with others(100) as started:
            time.sleep(SETTLE_SECONDS)
            before = started()
            counts = wakes_by_second(recorders)
            began = started() - before
        for recorder in recorders:
            recorder.send_signal(signal.SIGTERM)
            assert recorder.wait(120) == 0
    assert began > 0
    for by_second, (trace, (hz, _)) in zip(counts, traces.items()):
        print(f"{hz} Hz: wakes by second: {[round(count) for count in by_second]}, beside {began} other programs")
        assert statistics.median(by_second) < 5 * WAKES_A_SECOND
        # Nothing was forgotten over it.
        text = subprocess.run([PYSYM, trace, "--format", "folded"], capture_output=True, text=True, timeout=120, check=True).stdout
        assert sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines()) > 0
