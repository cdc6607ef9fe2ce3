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

from conftest import PYCAP, PYSYM, PYTHON, why_no_bpf

pytestmark = pytest.mark.live

WAKES_A_SECOND = 6
SETTLE_SECONDS = 5  # what is new in the beginning, and two seconds of calm
SECONDS = 7
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


def wakes_by_second(pid):
    """In a single second there may be more: the names of threads are looked for, less and less often, by many reads."""
    counts = []
    for _ in range(SECONDS):
        begin, before = time.monotonic(), wakes(pid)
        time.sleep(1)
        counts.append((wakes(pid) - before) / (time.monotonic() - begin))
    return counts


@pytest.mark.parametrize("hz, ring_cpus", [("99", ""), ("999", "1")])
def test_wakes(hz, ring_cpus, tmp_path):
    if why_no_bpf():
        pytest.skip(why_no_bpf())
    trace = tmp_path / "capture.bin"
    environment = {**os.environ, "PYCAP_RING_CPUS": ring_cpus} if ring_cpus else None
    with subprocess.Popen([PYTHON, "-c", BURN]) as program:
        command = [PYCAP, "record", "-q", "-F", hz, "-o", trace, "-p", str(program.pid)]
        with subprocess.Popen(command, env=environment) as recorder, others(100) as started:
            time.sleep(SETTLE_SECONDS)
            before = started()
            by_second = wakes_by_second(recorder.pid)
            began = started() - before
            recorder.send_signal(signal.SIGTERM)
        program.kill()
    assert recorder.returncode == 0
    print(f"wakes by second: {[round(count) for count in by_second]}, beside {began} other programs")
    assert began > 0
    assert statistics.median(by_second) < 5 * WAKES_A_SECOND
    # Nothing was forgotten over it.
    text = subprocess.run([PYSYM, trace, "--format", "folded"], capture_output=True, text=True, timeout=120, check=True).stdout
    assert sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines()) > 0
