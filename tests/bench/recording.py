# SPDX-License-Identifier: Apache-2.0
"""One recording of a workload, and what it costs: a workload's process, a recorder's process, and the clocks that are read
of both."""
import contextlib
import json
import os
import pathlib
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import judge
from recorders import EMPTY_TICK, KINDS, MEASURE, Missing, PYSYM, TABLES

# Work in the kernel before the measured part: what a recorder does once, at its first such sample, is done then.
WARM_SECONDS = 0.2
# Of a chunk of work: some ticks fall into each even at 99 Hz, and a neighbour's burst spoils few of them.
CHUNK_SECONDS = 0.05
STATS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
PERF_EVENT_PROGRAM = "7"  # BPF_PROG_TYPE_PERF_EVENT


def fail(text):
    sys.exit(f"bench: {text}")


def say(text):
    print(f"  {text}", file=sys.stderr, flush=True)


def pin(cpu):
    """Recorders on the first CPU, the workload on the last, where there are two."""
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpus[cpu]})


def be_recorder(bound):
    if bound:
        pin(0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background job has it ignored


@contextlib.contextmanager
def taken_of_first_cpu():
    """A list that then holds the share of the first CPU that was taken from a task that gives way to all: by the recorder,
    and by the interrupts that wake it, which nobody's CPU time has."""
    found = []
    with subprocess.Popen([EMPTY_TICK, "taken", str(min(os.sched_getaffinity(0)))], stdout=subprocess.PIPE, text=True) as spare:
        spare.stdout.readline()
        try:
            yield found
        finally:
            spare.terminate()
            found.append(float(spare.stdout.readline()))


class Workload:
    def __init__(self, command, seconds):
        self.spare = False  # while it works, the first CPU is kept busy, and what is taken of that is added to the work's account
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        preexec_fn=lambda: pin(-1))
        self.pid = self.process.pid
        if self.process.stdout.readline().strip() != "ready":
            self.process.kill()
            raise Missing(f"{' '.join(command)} does not run")
        self.units, took = 1, self.order("run 1 1")["chunks"][0][0]
        while took < CHUNK_SECONDS / 2:
            self.units *= 2
            took = min(self.order(f"run 2 {self.units}")["chunks"])[0]
        self.units = max(1, round(self.units * CHUNK_SECONDS / took))
        self.chunks = max(4, round(seconds / CHUNK_SECONDS))

    def order(self, text):
        print(text, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def once(self, share=1.0):
        text = f"run {max(4, round(self.chunks * share))} {self.units}"
        if not self.spare:
            return self.order(text)
        with taken_of_first_cpu() as taken:
            work = self.order(text)
        return {**work, "taken": taken[0]}

    def warm(self):
        self.order(f"warm {WARM_SECONDS}")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


@contextlib.contextmanager
def bpf_stats():
    try:
        before = STATS.read_text()
        STATS.write_text("1")
    except OSError:
        say("No BPF times: kernel.bpf_stats_enabled can't be set here.")
        yield
        return
    try:
        yield
    finally:
        STATS.write_text(before)


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
    """User and system time of all threads of a running process, those that ended included, to the nanosecond."""
    return time.clock_gettime((~pid << 3) | 2)


def measure_floor(rates):
    """CPU nanoseconds that a tick with an empty BPF program takes, by rate."""
    floor = {}
    cpu = sorted(os.sched_getaffinity(0))[-1]
    for hz in rates:
        seconds = "4" if hz > 500 else "12"
        done = subprocess.run([EMPTY_TICK, "gaps", str(hz), seconds, str(cpu)], capture_output=True, text=True,
                              check=False)
        if done.returncode:
            say(f"no floor: {done.stderr.strip()}")
            return {}
        floor[hz] = float(done.stdout)
    return floor


def resident_bytes(pid):
    """The most that a running process has held."""
    fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) * 1024


def wait_usage(process, seconds=60):
    """Waits; returns the CPU seconds and the most memory held. The kernel counts into the latter what this script held
    when it forked: then only that much is known."""
    deadline = time.monotonic() + seconds
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > deadline:
            process.kill()
        time.sleep(0.005)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def cpu_of(command):
    """User and system seconds of a command, its wall time, and the most memory it held: by a small program, since a child of
    this one would seem to be as large as this is."""
    out, to = os.pipe()
    start = time.monotonic()
    process = subprocess.Popen([MEASURE, str(to), *command], pass_fds=[to], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    os.close(to)
    process.wait(600)
    wall = time.monotonic() - start
    with open(out, encoding="ascii") as line:
        status, cpu_us, most_kib = map(int, line.read().split())
    if os.waitstatus_to_exitcode(status) not in (0, 3):
        fail(f"{' '.join(command)}: exit code {os.waitstatus_to_exitcode(status)}")
    return cpu_us / 1e6, wall, most_kib * 1024


class Recorder:
    """One recording: attached and warm when made, over when stopped."""

    def __init__(self, name, hz, workload, out, kind=None):
        self.name, self.kind = name, kind or KINDS[name]
        self.out = self.kind.file(out, workload)
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.out)
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(self.kind.command(out, hz, workload), stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log, preexec_fn=lambda: be_recorder(self.kind.bound))
        deadline = time.monotonic() + 20
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Missing(f"{name} did not start: {self.said()}")
            time.sleep(0.02)
        time.sleep(self.kind.settle_seconds)
        workload.warm()
        time.sleep(0.4)  # reading of /proc and of the kernel's symbols is over by then
        if self.process.poll() is not None:
            raise Missing(f"{name} ended at once: {self.said()}")
        self.start_cpu, self.start_bpf = cpu_seconds(self.process.pid), bpf_time_ns(self.process.pid)

    def said(self):
        self.log.seek(0)
        return (self.log.read().strip() or "it says nothing").splitlines()[-1]

    def is_ready(self):
        if self.kind.ready_text is not None:
            self.log.seek(0)
            return self.kind.ready_text in self.log.read()
        return os.path.exists(self.out) and os.path.getsize(self.out) > 0

    def stop(self):
        """Returns what it cost: CPU seconds while it recorded and besides, bytes held, BPF nanoseconds."""
        pid = self.process.pid
        if self.process.poll() is not None:
            raise Missing(f"{self.name} ended too soon: {self.said()}")
        bpf_ns, resident = bpf_time_ns(pid) - self.start_bpf, resident_bytes(pid)
        recording_cpu = cpu_seconds(pid) - self.start_cpu
        self.process.send_signal(signal.SIGINT)
        cpu, resident_at_end = wait_usage(self.process)
        if self.process.returncode and self.kind.bpf:
            raise Missing(f"{self.name} ended with {self.process.returncode}: {self.said()}")
        if resident_at_end > 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss:
            resident = max(resident, resident_at_end)
        return {"cpu": recording_cpu, "other": cpu - recording_cpu, "resident": resident, "bpf": bpf_ns}

    def discard(self):
        if self.process.returncode is None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.out)


def seconds_of(run, column, pick=statistics.median):
    return pick(chunk[column] for chunk in run["chunks"])


def record_once(name, hz, workload, workload_name, out, kind=None):
    """One run under a recorder. Returns the costs, and the work's own account of itself under "work"."""
    recorder = None
    try:
        recorder = Recorder(name, hz, workload, out, kind)
        work = workload.once(recorder.kind.work_share)
        run = recorder.stop()
        run["work"] = work
        due = hz * seconds_of(work, 0 if recorder.kind.clock == "wall" else 1, sum)
        stacks = recorder.kind.stacks(recorder.out, workload, (work["start"], work["end"]))
        if stacks is None:
            run.update(samples=due, python_complete=None, python_right=None, native_complete=None, got=None, bytes=None)
        else:
            run.update(judge.judge(workload_name, stacks))
            run.update(got=run["samples"] / due, bytes=os.path.getsize(recorder.out) / max(1, run["samples"]))
        if (name, workload_name) == (TABLES, "mixed"):
            run["depths"] = judge.depths(recorder.out, PYSYM, (work["start"], work["end"]))
        samples = max(1, run["samples"])
        wall = work["end"] - work["start"]
        run.update(recorder_share=run["cpu"] / wall, bpf=run["bpf"] / samples, cpu=run["cpu"] / samples)
        return run
    finally:
        if recorder:
            recorder.discard()


def round_of(names, rates, workload, workload_name, directory, kinds=None):
    """Unobserved and observed runs in turns; an observed one is compared with both its neighbours. Yields (recorder, rate, run).
    `kinds` has recorders that are other than usual, by name."""
    before = workload.once(0.5)
    for name in names:
        for hz in rates:
            try:
                run = record_once(name, hz, workload, workload_name, f"{directory}/run.data", (kinds or {}).get(name))
            except (Missing, OSError, ValueError) as why:  # a peer that fails costs its own row only
                say(f"{name} at {hz} Hz left out of {workload_name}: {why}")
                continue
            after = workload.once(0.5)
            for key, column in (("wall", 0), ("program_cpu", 1)):
                idle = statistics.median(chunk[column] for chunk in before["chunks"] + after["chunks"])
                run[key] = seconds_of(run["work"], column) / idle - 1
            if workload.spare:
                run["taken"] = run["work"]["taken"] - (before["taken"] + after["taken"]) / 2
            before = after
            yield name, hz, run


def middle(runs, key):
    values = [run[key] for run in runs if run[key] is not None]
    return statistics.median(values) if values else None


def host_share(name, hz, runs, floor):
    """Share of one core that recording takes: in the kernel and in the recorder."""
    kernel_us = middle(runs, "bpf") / 1000 + floor.get(hz, 0) / 1000
    if not KINDS[name].bpf:
        return middle(runs, "recorder_share") + max(0, middle(runs, "program_cpu"))
    return kernel_us * hz / 1e6 + middle(runs, "recorder_share")
