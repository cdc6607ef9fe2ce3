#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Records a large host that is made for it: thousands of Python processes and threads, of many programs, in cgroups.

The workers of a program are forked before the recording, as a server's are, so each is read from /proc by itself. Most wait, some
work. Prints what pycap took: until it began, per second later, and of memory. Runs in a guest of tests/kernels, too, which can have
more CPUs than this machine: docs/large-hosts.md.
"""
import argparse
import contextlib
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

from recorders import PYCAP, PYSYM
from recording import cpu_seconds
from scaling import first_sample_s
from start import memory_of

WORK = """
import asyncio, ctypes, decimal, gc, json, os, signal, socket, sys, threading, time
processes, threads, busy = map(int, sys.argv[1:])
threading.stack_size(1 << 17)
def work(depth):
    if depth:
        return work(depth - 1)
    while True:
        sum(range(1000))
        time.sleep(0.005)
def wait():
    signal.pause() if threading.current_thread() is threading.main_thread() else time.sleep(1e6)
gc.freeze()
number = processes - 1
for i in range(processes - 1):
    if not os.fork():
        number = i
        break
for _ in range(threads - 1):
    threading.Thread(target=wait, daemon=True).start()
os.write(1, b".")
work(20) if number < busy else wait()
"""


def cgroup_of(number):
    """A folder of the cgroup tree for one program; None where that is not there."""
    for root in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
        if os.access(f"{root}/cgroup.procs", os.W_OK):
            path = pathlib.Path(f"{root}/pycap-large-{os.getpid()}-{number}")
            path.mkdir()
            return path
    return None


def remove(cgroup):
    for _ in range(50):
        with contextlib.suppress(OSError):
            cgroup.rmdir()
            return
        time.sleep(0.1)


@contextlib.contextmanager
def crowd(python, programs, processes, threads, busy):
    """As many processes in all, of so many programs, each with a session and a cgroup of its own."""
    made = []
    try:
        for number in range(programs):
            share = processes // programs + (number < processes % programs)
            cgroup = cgroup_of(number)
            place = str(cgroup / "cgroup.procs") if cgroup else "/dev/null"
            work = subprocess.Popen([python, "-c", WORK, str(share), str(threads), str(busy // programs + (number < busy % programs))],
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True,
                                    preexec_fn=lambda p=place: pathlib.Path(p).write_text("0"))
            made.append((work, cgroup))
            for _ in range(share):
                if not work.stdout.read(1):
                    sys.exit("large: a worker could not be started")
        yield
    finally:
        for work, _ in made:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(work.pid, signal.SIGKILL)
        for work, cgroup in made:
            work.wait()
            if cgroup:
                remove(cgroup)


def map_sizes(pid):
    """Bytes of each BPF map, largest first."""
    sizes = {}
    for info in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):
            fields = dict(re.findall(r"^(\w+):\s*(\d+)", info.read_text(), re.M))
            if "map_type" in fields:
                sizes[fields["map_id"]] = (int(fields["memlock"]), fields["map_type"], fields["max_entries"], fields["value_size"])
    return sorted(sizes.values(), reverse=True)


def record(options, seconds, settle, verbose):
    with tempfile.TemporaryDirectory(prefix="pycap-large-") as directory:
        path = f"{directory}/trace.bin"
        called = time.monotonic()
        recorder = subprocess.Popen([PYCAP, "record", "-q", "-o", path, *options], stdin=subprocess.DEVNULL)
        time.sleep(settle)
        if recorder.poll() is not None:
            sys.exit(f"large: pycap ended with {recorder.returncode}")
        started = cpu_seconds(recorder.pid)
        time.sleep(seconds)
        spent = (cpu_seconds(recorder.pid) - started) / seconds
        found = memory_of(recorder.pid)
        if verbose:
            for bytes_, kind, entries, value in map_sizes(recorder.pid)[:12]:
                print(f"  map of type {kind}: {bytes_ / 2**20:.1f} MiB, {entries} x {value}")
        files = len(os.listdir(f"/proc/{recorder.pid}/fd"))
        ending = time.monotonic()
        recorder.send_signal(signal.SIGINT)
        if recorder.wait(600):
            sys.exit(f"large: pycap ended with {recorder.returncode}")
        ended = time.monotonic() - ending
        print(f"first sample after {first_sample_s(path) - called:.2f} s; {started:.2f} s of CPU in the first {settle:g} s, "
              f"{1000 * spent:.1f} ms a second later; ended in {ended:.2f} s; {files} files open")
        print("MiB: " + ", ".join(f"{name} {found[name] / 2**20:.1f}" for name in ("VmRSS", "RssAnon", "RssShmem", "VmHWM", "maps")))
        summary = subprocess.run([PYSYM, path, "--format", "summary", "-v"], capture_output=True, text=True, check=True).stdout
        print("\n".join(line for line in summary.split("\n") if re.match(r"(samples|threads|processes|python)\b", line.strip(), re.I)))
        print("Losses" + summary.partition("\nLosses")[2].partition("\n\n")[0])
        print(f"trace: {os.path.getsize(path):,} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--programs", type=int, default=40, help="that are executed, each with other addresses")
    parser.add_argument("--processes", type=int, default=2000, help="in all")
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    parser.add_argument("--busy", type=int, default=40, help="processes that work")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--settle", type=float, default=5, help="seconds before")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the largest BPF maps, too")
    parser.add_argument("options", nargs="*", help="of pycap record, behind --")
    o = parser.parse_args()
    with contextlib.suppress(ValueError):
        resource.setrlimit(resource.RLIMIT_NPROC, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    begun = time.monotonic()
    with crowd(o.python, o.programs, o.processes, o.threads, o.busy):
        running = sum(name.isdigit() for name in os.listdir("/proc"))
        threads = pathlib.Path("/proc/loadavg").read_text().split()[3].split("/")[1]
        print(f"{running} processes, {threads} threads, {os.cpu_count()} CPUs; made in {time.monotonic() - begun:.1f} s", flush=True)
        record(o.options, o.seconds, o.settle, o.verbose)


if __name__ == "__main__":
    main()
