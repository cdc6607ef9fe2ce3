#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon a recording begins, how soon it ends, and what memory it holds: start.py, bench.py --part start.

It begins with the first sample of a program that ran before: only then does the user get what was asked for. The time counts
from the call of pycap, so the loader, the kernel's verifier and the reading of /proc are in it. The host has 200 processes, 24
of them Pythons of all versions that are here. With --against another build takes turns with this one.
"""
import argparse
import contextlib
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

from recorders import PYCAP, work_command
from recording import cpu_seconds, fail, Workload
from scaling import first_sample_s, stop_all

HERE = pathlib.Path(__file__).resolve().parent
PROCESSES, PYTHONS = 200, 24  # of the host
MEMORY_SECONDS = 8            # a recording holds the most while it starts
IDLE = "import json, decimal, ssl, socket, ctypes, time; time.sleep(10000)"


def interpreters(python):
    """That one, and those of pyenv."""
    versions = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv") / "versions"
    return [python, *map(str, sorted(versions.glob("*/bin/python")))]


def start_idle(command):
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def count_processes():
    return sum(name.isdigit() for name in os.listdir("/proc"))


@contextlib.contextmanager
def crowd(python):
    """A host with many processes that wait."""
    have = interpreters(python)
    processes = [start_idle([have[at % len(have)], "-c", IDLE]) for at in range(PYTHONS)]
    try:
        processes += [start_idle(["sleep", "10000"]) for _ in range(PROCESSES - count_processes())]
        time.sleep(3)
        yield
    finally:
        stop_all([process.pid for process in processes])
        for process in processes:
            process.wait()


def start_once(program, workload, directory, options):
    """Seconds from the call to the first sample of a program that has worked all the time, of CPU, and until pycap has ended,
    of which it was told to record one."""
    path = f"{directory}/start.bin"
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)
    print(f"until {workload.units}", file=workload.process.stdin, flush=True)
    time.sleep(0.2)
    called = time.monotonic()
    recorder = subprocess.Popen([program, "record", "-q", "-F", "999", "-d", "1", "-o", path, *options], stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(recorder.pid, 0)
    recorder.returncode = os.waitstatus_to_exitcode(status)
    ended = time.monotonic()
    workload.order("enough")
    if recorder.returncode:
        fail(f"{program} ended with {recorder.returncode}")
    return first_sample_s(path) - called, usage.ru_utime + usage.ru_stime, ended - called


def memory_of(pid):
    """Bytes by kind, as /proc/PID/status and the BPF maps' fdinfo have them."""
    status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    found = {name: int(status[name].split()[0]) * 1024 for name in ("VmRSS", "RssAnon", "RssFile", "RssShmem", "VmHWM")}
    found["maps"] = 0
    for info in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):
            text = info.read_text()
            locked = re.search(r"^memlock:\s*(\d+)", text, re.M)
            if locked and "map_type:" in text:
                found["maps"] += int(locked[1])
    return found


def measure_memory(program, workload, directory, hz, seconds=MEMORY_SECONDS):
    """Of a recording of one process that works, after so many seconds: bytes by kind, and seconds of CPU."""
    recorder = subprocess.Popen([program, "record", "-q", "-F", str(hz), "-o", f"{directory}/memory.bin", "-p", str(workload.pid)],
                                stdin=subprocess.DEVNULL)
    try:
        time.sleep(1)
        workload.order(f"run {round(seconds / 0.05)} {workload.units}")
        found = memory_of(recorder.pid)
        found["cpu"] = cpu_seconds(recorder.pid)
        return found
    finally:
        recorder.terminate()
        recorder.wait()


def print_starts(title, programs, rounds, start):
    """A row for each build, by `start(program)`; with two of them the ratio of each pair, too."""
    runs = [[start(program) for program in programs] for _ in range(rounds)]
    for at, program in enumerate(programs):
        first, cpu, end = zip(*(run[at] for run in runs))
        print(f"| {title}{f', {program}' if len(programs) > 1 else ''} | {1000 * statistics.median(first):.0f} "
              f"({1000 * min(first):.0f}…{1000 * max(first):.0f}) | {1000 * statistics.median(cpu):.0f} "
              f"| {1000 * statistics.median(end):.0f} |", flush=True)
    if len(programs) > 1:
        ratios = [[new[column] / old[column] for new, old in runs] for column in range(3)]
        print(f"| {title}, ratio | " + " | ".join(f"{statistics.median(column):.3f}" for column in ratios) + " |", flush=True)


def measure_and_print(python, rounds, programs=(PYCAP,)):
    """`programs` are builds of pycap: one, or two that are compared."""
    workload = Workload(work_command(python, HERE / "work.py", "mixed"), 1)
    try:
        with tempfile.TemporaryDirectory(prefix="pycap-bench-") as directory:
            print("| a host with | ms to the first sample (least…most) | CPU ms of all | ms until the end, "
                  "1,000 of them recorded |\n|---|--:|--:|--:|")
            print_starts("few processes, one of them recorded", programs, rounds,
                         lambda program: start_once(program, workload, directory, ["-p", str(workload.pid)]))
            with crowd(python):
                print_starts(f"{count_processes()} processes, all Python ones recorded", programs, rounds,
                             lambda program: start_once(program, workload, directory, []))
            print("\n| one process | resident MiB | anonymous | files | shared, BPF maps among it | most | BPF maps, all of the kernel's |\n"
                  "|---|--:|--:|--:|--:|--:|--:|")
            for hz in (99, 999):
                for program in programs:
                    found = measure_memory(program, workload, directory, hz)
                    print(f"| {hz} Hz{f', {program}' if len(programs) > 1 else ''} | " +
                          " | ".join(f"{found[name] / 2**20:.1f}" for name in
                                     ("VmRSS", "RssAnon", "RssFile", "RssShmem", "VmHWM", "maps")) + " |", flush=True)
    finally:
        workload.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--python", default="/usr/bin/python3", help="of the program that works")
    parser.add_argument("--pycap", default=PYCAP, help="the build that is measured (build/pycap of this tree, or $PYCAP)")
    parser.add_argument("--against", metavar="PYCAP", help="another build: ratios are to it")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    measure_and_print(options.python, options.rounds, [options.pycap, *([options.against] if options.against else [])])


if __name__ == "__main__":
    main()
