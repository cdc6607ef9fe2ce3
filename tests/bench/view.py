#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What pycap top costs beside pycap record: CPU time and memory of the recorder, and of the view that shows it.

Both record the whole host, on which two Python programs compute, in turns. What each process takes is counted after it has
been there for some seconds, and told by its name: pycap-writer's and pycap-errand's are with the recorder's.
"""
import argparse
import contextlib
import fcntl
import os
import pathlib
import pty
import signal
import statistics
import struct
import subprocess
import tempfile
import termios
import threading
import time

from recorders import PYCAP
from recording import cpu_seconds, fail

WORK = "import json\nd = [{str(i): 'x' * i} for i in range(100)]\nwhile True: json.loads(json.dumps(d))"
SETTLE_SECONDS = 3


def below(pid):
    """The process and its descendants."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(found for child in children for found in below(int(child)))]


def taken(pid, seconds):
    """By the name of a process, of the process and its descendants: share of a CPU in percent, and resident MiB."""
    time.sleep(SETTLE_SECONDS)
    pids = below(pid)
    before = {pid: cpu_seconds(pid) for pid in pids}
    time.sleep(seconds)
    found = {}
    for each in pids:
        name = pathlib.Path(f"/proc/{each}/comm").read_text().strip().removesuffix("-writer").removesuffix("-errand")
        resident = int(pathlib.Path(f"/proc/{each}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
        cpu, held = found.get(name, (0, 0))
        found[name] = (cpu + 100 * (cpu_seconds(each) - before[each]) / seconds, max(held, resident))
    return found


def measure_file(program, rate, seconds, directory):
    recorder = subprocess.Popen([program, "record", "-q", "-F", str(rate), "-o", f"{directory}/view.bin"], stdin=subprocess.DEVNULL)
    try:
        return taken(recorder.pid, seconds)
    finally:
        recorder.terminate()
        recorder.wait()


def empty(terminal):
    with contextlib.suppress(OSError):  # its other side is closed
        while os.read(terminal, 1 << 16):
            pass


def measure_view(program, rate, seconds):
    """On a terminal of 80 by 24, of which everything is read."""
    pid, terminal = pty.fork()
    if not pid:
        os.environ["TERM"] = "xterm"
        os.execv(program, [program, "top", "-F", str(rate)])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
    reader = threading.Thread(target=empty, args=(terminal,))
    reader.start()
    try:
        found = taken(pid, seconds)
        if "pysym" not in found:
            fail(f"{program} top shows nothing")
        return found
    finally:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
        reader.join()
        os.close(terminal)


def print_row(title, runs):
    cpu, held = zip(*runs)
    print(f"| {title} | {statistics.median(cpu):.2f} ({min(cpu):.2f}…{max(cpu):.2f}) | {statistics.median(held):.0f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--python", default="/usr/bin/python3", help="of the programs that compute")
    parser.add_argument("--rates", type=int, nargs="+", default=[99, 999])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    work = [subprocess.Popen([options.python, "-c", WORK], stdin=subprocess.DEVNULL) for _ in range(2)]
    try:
        print("| | % of a CPU (least…most) | resident MiB |\n|---|--:|--:|")
        for rate in options.rates:
            files, views = [], []
            with tempfile.TemporaryDirectory(prefix="pycap-bench-") as directory:
                for _ in range(options.rounds):
                    files.append(measure_file(PYCAP, rate, options.seconds, directory))
                    views.append(measure_view(PYCAP, rate, options.seconds))
            print_row(f"pycap record, {rate} Hz", [run["pycap"] for run in files])
            print_row(f"pycap top, {rate} Hz: its recorder", [run["pycap"] for run in views])
            print_row(f"pycap top, {rate} Hz: its pysym", [run["pysym"] for run in views])
    finally:
        for program in work:
            program.kill()
            program.wait()


if __name__ == "__main__":
    main()
