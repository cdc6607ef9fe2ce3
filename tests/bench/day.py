# SPDX-License-Identifier: Apache-2.0
"""A long recording: a made-up day of a program with many stacks, which pysym reads: bench.py --part day.

The day has the samples of a program that is always at work at 99 Hz, 5,000 stacks of 20 Python frames and native ones, four
threads, times that jitter, and stacks of which some come far more often than others (Zipf's law, as in real programs).
"""
import os
import pathlib
import statistics
import tempfile

from recorders import PYSYM, ROOT
from recording import cpu_of, fail

MAKE_TRACE = pathlib.Path(ROOT) / "build/tools/make_trace"
SAMPLES_A_DAY = 99 * 24 * 3600
SETTINGS = ["stacks=5000", "leaves=1000", "depth=20", "interval_us=10101", "native=1", "threads=4", "gil=1", "jitter_us=20", "zipf=100"]
HOURS = (1, 24)
FORMATS = ("folded", "top", "summary")


def measure_and_print(rounds, hours=HOURS):
    if not os.access(MAKE_TRACE, os.X_OK):
        fail(f"{MAKE_TRACE} is not built")
    print("| hours at 99 Hz | samples | bytes/sample | µs of CPU a sample, writing | read as | million samples/s | resident MiB |\n"
          "|--:|--:|--:|--:|---|--:|--:|")
    with tempfile.TemporaryDirectory(prefix="pycap-bench-") as directory:
        for length in hours:
            path, samples = f"{directory}/day.trace", round(SAMPLES_A_DAY * length / 24)
            written, _, _ = cpu_of([str(MAKE_TRACE), path, f"samples={samples}", *SETTINGS])
            size = os.path.getsize(path)
            for form in FORMATS:
                runs = [cpu_of([PYSYM, "-q", path, "--format", form]) for _ in range(rounds)]
                cpu, _, resident = (statistics.median(column) for column in zip(*runs))
                print(f"| {length:g} | {samples} | {size / samples:.2f} | {written * 1e6 / samples:.2f} | {form} "
                      f"| {samples / cpu / 1e6:.1f} | {resident / 2**20:.0f} |", flush=True)
