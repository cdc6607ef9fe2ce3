# SPDX-License-Identifier: Apache-2.0
"""Whether the cost of a sample depends on how many threads or processes are followed: bench.py --part scaling."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import judge
from recorders import PYCAP, PYSYM

CASES = [(1, 1), (1, 64), (1, 1000), (200, 1)]  # processes, threads of each
HZ = 999
# What is seen for the first time (code objects, modules) is copied in the first seconds, once.
SETTLE_SECONDS, MEASURE_SECONDS = 3, 4
WORK = """
import os, sys, threading, time
processes, threads = int(sys.argv[1]), int(sys.argv[2])
threading.stack_size(1 << 18)
go = threading.Event()  # or each start of a thread would wait for its turn behind all that run
def recurse(depth):
    if depth:
        return recurse(depth - 1)
    go.wait()
    while True:
        sum(range(1000))
for _ in range(processes - 1):
    if not os.fork():
        break
for _ in range(threads - 1):
    threading.Thread(target=recurse, args=(20,), daemon=True).start()
os.write(1, b"%d\\n" % os.getpid())
go.set()
recurse(20)
"""


def stop_all(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def samples_between(path, begin, end):
    return judge.samples_of([PYSYM, path, "--format", "summary", "-v", "--time", f"{begin},{end}"])


def first_sample_s(path):
    """When the first sample was taken, by the clock of time.monotonic()."""
    with subprocess.Popen([PYSYM, path, "--format", "dump"], stdout=subprocess.PIPE, text=True) as dump:
        first = next(found for found in (re.match(r"  sample time_ns=(\d+)", line) for line in dump.stdout) if found)
        dump.kill()
    return int(first[1]) / 1e9


def measure_case(processes, threads, python, bpf_time_ns, cpu_seconds):
    """Samples, BPF ns and the recorder's CPU seconds of the time after the first seconds; shares and losses of all; how
    long after the recorder's start its first sample was."""
    work = subprocess.Popen([python, "-c", WORK, str(processes), str(threads)], stdout=subprocess.PIPE, text=True,
                            preexec_fn=lambda: os.nice(5))
    pids = []
    try:
        pids = [int(work.stdout.readline()) for _ in range(processes)]
        with tempfile.NamedTemporaryFile(suffix=".bin") as trace:
            called = time.monotonic()
            recorder = subprocess.Popen([PYCAP, "record", "-q", "-F", str(HZ), "-o", trace.name, "-p", ",".join(map(str, pids))],
                                        stdin=subprocess.DEVNULL)
            while not os.path.getsize(trace.name):
                time.sleep(0.01)
            start = time.monotonic()
            readings = []
            for wait in (SETTLE_SECONDS, MEASURE_SECONDS):
                time.sleep(wait)
                readings.append((time.monotonic() - start, bpf_time_ns(recorder.pid), cpu_seconds(recorder.pid)))
            recorder.send_signal(signal.SIGINT)
            if recorder.wait(60):
                sys.exit(f"bench: pycap ended with {recorder.returncode}")
            (begin, bpf_begin, cpu_begin), (end, bpf_end, cpu_end) = readings
            summary = judge.text_of([PYSYM, trace.name, "--format", "summary", "-v"])
            whole = re.search(r"Python stacks that reached their root +([\d.]+) %", summary)[1]
            losses = summary.partition("\nLosses\n")[2].partition("\n\n")[0].split("\n")
            lost = ", ".join(" ".join(line.split()[1::-1]) for line in losses if len(line.split()) > 1)
            return (samples_between(trace.name, begin, end), bpf_end - bpf_begin, cpu_end - cpu_begin, whole, lost or "none",
                    first_sample_s(trace.name) - called)
    finally:
        stop_all([work.pid, *pids])
        work.wait()


def measure_and_print(python, bpf_time_ns, cpu_seconds):
    print("| processes | threads of each | samples | BPF µs/sample | recorder µs/sample | Python complete % | first sample after s | losses |\n"
          "|--:|--:|--:|--:|--:|--:|--:|---|")
    for processes, threads in CASES:
        samples, bpf_ns, cpu, whole, lost, first_s = measure_case(processes, threads, python, bpf_time_ns, cpu_seconds)
        print(f"| {processes} | {threads} | {samples} | {bpf_ns / max(1, samples) / 1000:.2f} "
              f"| {1e6 * cpu / max(1, samples):.1f} | {whole} | {first_s:.2f} | {lost} |", flush=True)
