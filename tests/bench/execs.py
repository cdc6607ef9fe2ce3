# SPDX-License-Identifier: Apache-2.0
"""What a recording of the whole host costs where programs are started all the time: bench.py --part execs."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

from recorders import PYCAP

# Commands, and how many of them are to be started in a second. The last is what the host itself costs.
CASES = [(["/bin/true"], 200), (["python", "-c", "pass"], 50), (None, 0)]
HZ = 99
SETTLE_SECONDS, MEASURE_SECONDS = 2, 10


def of_all(pid, cpu_seconds):
    """CPU seconds of a recorder, which may consist of several processes."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(cpu_seconds(int(each)) for each in (pid, *children))


class Starter(threading.Thread):
    """Starts a command at a rate, one after the other: where one takes too long the next waits."""

    def __init__(self, command, rate):
        super().__init__(daemon=True)
        self.command, self.rate, self.stop, self.count = command, rate, threading.Event(), 0

    def run(self):
        due = time.monotonic()
        while self.command and not self.stop.wait(max(0, due - time.monotonic())):
            os.waitpid(os.posix_spawn(self.command[0], self.command, os.environ), 0)
            self.count += 1
            due = max(due + 1 / self.rate, time.monotonic() - 0.1)


def measure_case(command, rate, cpu_seconds):
    """Commands started in a second, and milliseconds of CPU of the recorder in a second."""
    starter = Starter(command, rate)
    with tempfile.NamedTemporaryFile(suffix=".bin") as trace:
        recorder = subprocess.Popen([PYCAP, "record", "-q", "-F", str(HZ), "-o", trace.name], stdin=subprocess.DEVNULL)
        try:
            while not os.path.getsize(trace.name):
                time.sleep(0.01)
            starter.start()
            readings = []
            for wait in (SETTLE_SECONDS, MEASURE_SECONDS):
                time.sleep(wait)
                readings.append((time.monotonic(), starter.count, of_all(recorder.pid, cpu_seconds)))
        finally:
            starter.stop.set()
            recorder.send_signal(signal.SIGINT)
            code = recorder.wait(60)
    if code:
        sys.exit(f"bench: pycap ended with {code}")
    (begin, count_begin, cpu_begin), (end, count_end, cpu_end) = readings
    return (count_end - count_begin) / (end - begin), 1000 * (cpu_end - cpu_begin) / (end - begin)


def measure_and_print(python, cpu_seconds):
    print("| started | each second | recorder, ms of CPU a second |\n|---|--:|--:|")
    for command, rate in CASES:
        command = command and [python if word == "python" else word for word in command]
        done, cpu_ms = measure_case(command, rate, cpu_seconds)
        print(f"| {' '.join(command) if command else 'nothing'} | {done:.0f} | {cpu_ms:.1f} |", flush=True)
