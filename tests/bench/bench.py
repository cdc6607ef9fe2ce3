# SPDX-License-Identifier: Apache-2.0
"""Measures pycap beside `perf record`, and pysym beside `perf script`, on this machine. See docs/benchmarks.md.

A workload is one process that does a fixed number of units of work whenever it is told to. In each round it does them
once unobserved and once under each recorder, so that every ratio compares neighbours in time. Prints markdown tables.
"""
import argparse
import contextlib
import os
import pathlib
import platform
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PYCAP = os.environ.get("PYCAP", str(ROOT / "build/pycap"))
PYSYM = os.environ.get("PYSYM", str(ROOT / "build/pysym"))
WORKLOADS = ["recursion", "json", "sort", "zlib", "threads64"]
# Work in the kernel before the measured part: what a recorder does once, at its first such sample, is done then.
WARM_SECONDS = 0.1
STATS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
# perf's default stack dump is 8 KiB, so one row of pycap has the same limit.
RECORDERS = {
    "pycap": lambda out, hz, pid: [PYCAP, "record", "-F", str(hz), "-o", out, "-p", str(pid)],
    "pycap, 8 KiB stacks": lambda out, hz, pid: [PYCAP, "record", "-F", str(hz), "--stack-size", "8192", "-o", out,
                                                 "-p", str(pid)],
    "pycap, Python only": lambda out, hz, pid: [PYCAP, "record", "-F", str(hz), "--stack-size", "0", "-o", out,
                                                "-p", str(pid)],
    "perf -g": lambda out, hz, pid: ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(hz), "-g", "-o", out,
                                     "-p", str(pid)],
    "perf --call-graph dwarf": lambda out, hz, pid: ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(hz),
                                                     "--call-graph", "dwarf,8192", "-o", out, "-p", str(pid)],
}


def fail(text):
    sys.exit(f"bench: {text}")


def pin(cpu):
    """Recorders on the first CPU, the workload on the last, where there are two."""
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpus[cpu]})


class Workload:
    def __init__(self, python, name, seconds):
        self.process = subprocess.Popen([python, str(HERE / "work.py"), name], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, preexec_fn=lambda: pin(-1))
        self.process.stdout.readline()
        self.units, took = 1, self.once(1)
        while took < 0.2:
            self.units *= 2
            took = self.once(self.units)
        self.units = max(1, round(self.units * seconds / took))

    def once(self, units=None):
        print(units or self.units, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def warm(self):
        print("warm", WARM_SECONDS, file=self.process.stdin, flush=True)
        self.process.stdout.readline()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


@contextlib.contextmanager
def bpf_stats():
    try:
        before = STATS.read_text()
        STATS.write_text("1")
    except OSError:
        print("No BPF times: kernel.bpf_stats_enabled can't be set here.", file=sys.stderr)
        yield
        return
    try:
        yield
    finally:
        STATS.write_text(before)


PERF_EVENT_PROGRAM = "7"  # BPF_PROG_TYPE_PERF_EVENT


def bpf_time_ns(pid):
    """All time in the sampling programs of a process since they were loaded, ticks of other processes included."""
    total = 0
    for info in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(OSError):
            fields = dict(line.split(":\t", 1) for line in info.read_text().splitlines() if ":\t" in line)
            if fields.get("prog_type") == PERF_EVENT_PROGRAM:
                total += int(fields.get("run_time_ns", 0))
    return total


def cpu_seconds(pid):
    """CPU time that a running process has used, to the nanosecond where the kernel keeps it so."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def resident_bytes(pid):
    """The most that a running process has held."""
    fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) * 1024


def wait_usage(process):
    """Waits; returns the CPU seconds and the most memory held. The kernel counts into the latter what this script held
    when it forked: then only that much is known."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


class Recorder:
    """One recording: attached and warm when made, over when stopped."""

    def __init__(self, kind, hz, workload, out):
        self.kind = kind
        with contextlib.suppress(FileNotFoundError):
            os.remove(out)
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(RECORDERS[kind](out, hz, workload.process.pid), stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, preexec_fn=lambda: pin(0))
        deadline = time.monotonic() + 20
        while not os.path.exists(out) or os.path.getsize(out) == 0:
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.fail("did not start")
            time.sleep(0.02)
        time.sleep(0.5)
        workload.warm()
        time.sleep(0.2)  # reading of /proc and of the kernel's symbols is over by then
        self.start_cpu = cpu_seconds(self.process.pid)

    def fail(self, what):
        self.log.seek(0)
        fail(f"{self.kind} {what}: {self.log.read().strip()}")

    def stop(self):
        """Returns what it cost: CPU seconds while it recorded and besides, bytes held, BPF nanoseconds."""
        pid = self.process.pid
        bpf_ns, resident, recording_cpu = bpf_time_ns(pid), resident_bytes(pid), cpu_seconds(pid) - self.start_cpu
        self.process.send_signal(signal.SIGINT)
        cpu, resident_at_end = wait_usage(self.process)
        if self.process.returncode != 0 and self.kind.startswith("pycap"):
            self.fail(f"ended with {self.process.returncode}")
        self.log.close()
        if resident_at_end > 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss:
            resident = max(resident, resident_at_end)
        return {"cpu": recording_cpu, "other": cpu - recording_cpu, "resident": resident, "bpf": bpf_ns}


def samples_in(kind, path):
    if kind.startswith("pycap"):
        text = subprocess.run([PYSYM, path, "--format", "folded"], capture_output=True, text=True, check=False).stdout
        return sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines())
    text = subprocess.run(["perf", "report", "-i", path, "--stats"], capture_output=True, text=True, check=False).stdout
    # The first such line counts all events, those that follow one event each.
    return next(int(line.split()[2]) for line in text.splitlines() if line.split()[:2] == ["SAMPLE", "events:"])


def measure_recording(python, options, directory):
    rows = []
    for name in options.workloads:
        workload = Workload(python, name, options.seconds)
        results = {}
        try:
            for _ in range(options.rounds):
                for kind in RECORDERS:
                    for hz in options.rates:
                        out = f"{directory}/{len(results)}.data"
                        idle = workload.once()
                        recorder = Recorder(kind, hz, workload, out)
                        busy = workload.once()
                        run = recorder.stop()
                        samples = max(1, samples_in(kind, out))
                        run.update(ratio=busy / idle, samples=samples, bytes=os.path.getsize(out) / samples,
                                   bpf=run["bpf"] / samples, cpu=run["cpu"] / max(1, samples - hz * WARM_SECONDS))
                        os.remove(out)
                        results.setdefault((kind, hz), []).append(run)
        finally:
            workload.close()
        for (kind, hz), runs in results.items():
            rows.append((name, kind, hz, {key: statistics.median(run[key] for run in runs) for key in runs[0]}))
        print(f"  {name} done", file=sys.stderr)
    return rows


def print_recording(rows):
    print("| workload | recorder | Hz | samples | slowdown % | BPF µs/sample | recorder CPU µs/sample "
          "| CPU ms besides | bytes/sample | resident MiB |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, kind, hz, r in rows:
        bpf = f"{r['bpf'] / 1000:.2f}" if r["bpf"] else "–"
        print(f"| {name} | {kind} | {hz} | {r['samples']:.0f} | {100 * (r['ratio'] - 1):+.1f} | {bpf} "
              f"| {1e6 * r['cpu']:.1f} | {1e3 * r['other']:.0f} | {r['bytes']:.0f} | {r['resident'] / 2**20:.0f} |")


def cpu_of(command):
    """User and system seconds of a command, its wall time, and the most memory it held."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    cpu, resident = wait_usage(process)
    if process.returncode not in (0, 3):
        fail(f"{' '.join(command)}: exit code {process.returncode}")
    return cpu, time.monotonic() - start, resident


def measure_reading(python, options, directory):
    """What one long capture costs to read: Python-only stacks beside frame-pointer stacks, snapshots beside dwarf."""
    rows = []
    workload = Workload(python, "recursion", options.long)
    try:
        captures = {}
        for kind, hz in (("pycap, Python only", 9999), ("perf -g", 9999), ("pycap, 8 KiB stacks", 999),
                         ("perf --call-graph dwarf", 999)):
            out = captures[kind] = f"{directory}/long-{len(captures)}.data"
            recorder = Recorder(kind, hz, workload, out)
            workload.once()
            recorder.stop()
    finally:
        workload.close()
    readers = [("pysym --format folded", "pycap, Python only", [PYSYM, None, "--format", "folded"]),
               ("pysym --format speedscope", "pycap, Python only", [PYSYM, None, "--format", "speedscope"]),
               ("perf script", "perf -g", ["perf", "script", "-i", None]),
               ("pysym --format folded", "pycap, 8 KiB stacks", [PYSYM, None, "--format", "folded"]),
               ("perf script --no-inline", "perf --call-graph dwarf", ["perf", "script", "--no-inline", "-i", None]),
               ("perf script", "perf --call-graph dwarf", ["perf", "script", "-i", None])]
    for name, kind, command in readers:
        path = captures[kind]
        samples = samples_in(kind, path)
        runs = [cpu_of([path if word is None else word for word in command]) for _ in range(options.rounds)]
        cpu, wall, resident = (statistics.median(column) for column in zip(*runs))
        rows.append((name, kind, samples, cpu, wall, resident))
        print(f"  {name} on {kind} done", file=sys.stderr)
    return rows


def print_reading(rows):
    print("| reader | recorded with | samples | CPU s | wall s | samples/s | resident MiB |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for name, kind, samples, cpu, wall, resident in rows:
        print(f"| {name} | {kind} | {samples} | {cpu:.2f} | {wall:.2f} | {samples / wall:,.0f} | {resident / 2**20:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--python", default="/usr/bin/python3", help="interpreter of the workloads")
    parser.add_argument("--workloads", type=lambda s: s.split(","), default=WORKLOADS)
    parser.add_argument("--rates", type=lambda s: [int(x) for x in s.split(",")], default=[99, 999])
    parser.add_argument("--rounds", type=int, default=3, help="the tables hold medians of so many")
    parser.add_argument("--seconds", type=float, default=3, help="of work in a run")
    parser.add_argument("--long", type=float, default=20, help="seconds of the captures that are read")
    parser.add_argument("--part", choices=["recording", "reading", "all"], default="all")
    options = parser.parse_args()
    if os.geteuid() != 0:
        fail("has to run as root")
    if not shutil.which("perf"):
        fail("perf is missing (Debian: linux-perf)")
    version = subprocess.run([options.python, "-c", "import sys; print(sys.version.split()[0])"], capture_output=True,
                             text=True, check=True).stdout.strip()
    perf = subprocess.run(["perf", "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    print(f"Linux {platform.release()}, {len(os.sched_getaffinity(0))} CPUs, Python {version}, perf {perf}; "
          f"medians of {options.rounds} runs of {options.seconds:g} s.\n")
    with bpf_stats(), tempfile.TemporaryDirectory() as directory:
        if options.part != "reading":
            print_recording(measure_recording(options.python, options, directory))
            print()
        if options.part != "recording":
            print_reading(measure_reading(options.python, options, directory))


if __name__ == "__main__":
    main()
