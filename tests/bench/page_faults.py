# SPDX-License-Identifier: Apache-2.0
"""What recording page faults costs a program that does nothing but touch new memory: bench.py --part faults."""
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from recorders import PYCAP

CHUNKS, MIB = 16, 32
SETTLE_SECONDS = 0.7
PERIODS = [1, 16, 256]
# Each chunk touches new memory: "pages" by one call that does nothing else, "objects" as a program of Python does. Prints the
# CPU time of each chunk for each page fault that it had.
TOUCHING = f"""
import json, mmap, resource, time
data = b"x" * ({MIB} << 20)
def pages():
    memory = mmap.mmap(-1, len(data))
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    memory.write(data)
def objects():
    kept = [(i, str(i)) for i in range({MIB} * 6000)]
def chunk(way):
    faults, begun = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.process_time()
    way()
    spent = time.process_time() - begun
    return 1e6 * spent / (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults)
print(flush=True)
while True:
    way = globals()[input()]
    print(json.dumps([chunk(way) for _ in range({CHUNKS})]), flush=True)
"""
WAYS = ["pages", "objects"]


class Toucher:
    def __init__(self, python):
        cpu = {max(os.sched_getaffinity(0))}
        self.process = subprocess.Popen([python, "-c", TOUCHING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        preexec_fn=lambda: (os.nice(-10), os.sched_setaffinity(0, cpu)))
        self.process.stdout.readline()

    def run(self, way):
        """CPU microseconds for each page that was new."""
        print(way, file=self.process.stdin, flush=True)
        return statistics.median(json.loads(self.process.stdout.readline()))

    def close(self):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def recorded(period, pid):
    with tempfile.NamedTemporaryFile(suffix=".bin") as trace:
        recorder = subprocess.Popen([PYCAP, "record", "-q", "-e", f"page-faults/period={period}/", "--ring-size", "64M", "--max-cpu",
                                     "100", "-o", trace.name, "-p", str(pid)], stdin=subprocess.DEVNULL)
        try:
            while not os.path.getsize(trace.name):
                if recorder.poll() is not None:
                    sys.exit(f"bench: pycap ended with {recorder.returncode}")
                time.sleep(0.01)
            time.sleep(SETTLE_SECONDS)
            yield recorder.pid
        finally:
            recorder.send_signal(signal.SIGINT)
            if recorder.wait(60):
                sys.exit("bench: pycap failed")


def measure(way, period, python, cpu_seconds):
    """Microseconds a page without and with a recording, before it and after it; the recorder's share of a CPU."""
    toucher = Toucher(python)
    try:
        toucher.run(way)
        before = toucher.run(way)
        with recorded(period, toucher.process.pid) as recorder:
            toucher.run(way)
            begun, spent = time.monotonic(), cpu_seconds(recorder)
            during = toucher.run(way)
            share = (cpu_seconds(recorder) - spent) / (time.monotonic() - begun)
        return (before + toucher.run(way)) / 2, during, share
    finally:
        toucher.close()


def measure_and_print(python, rounds, cpu_seconds):
    print("| new memory | recorded | µs a page without | µs a page with | ratio | recorder's CPU, % |\n|---|---|--:|--:|--:|--:|")
    for way in WAYS:
        for period in PERIODS:
            runs = [measure(way, period, python, cpu_seconds) for _ in range(rounds)]
            ratios = sorted(during / without for without, during, _ in runs)
            without, during, share = (statistics.median(run[i] for run in runs) for i in range(3))
            print(f"| {way} | each {period} | {without:.2f} | {during:.2f} | {statistics.median(ratios):.3f} "
                  f"({ratios[0]:.3f}…{ratios[-1]:.3f}) | {100 * share:.1f} |", flush=True)
