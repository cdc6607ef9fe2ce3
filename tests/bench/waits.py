# SPDX-License-Identifier: Apache-2.0
"""What recording waits costs a program that switches between threads 100,000 times a second: bench.py --part waits."""
import contextlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from recorders import PYCAP

HERE = pathlib.Path(__file__).resolve().parent
STATS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
TRACING_PROGRAM = "26"  # BPF_PROG_TYPE_TRACING
CHUNKS, HANDOVERS = 12, 2000
SETTLE_SECONDS = 0.7
# What is recorded, and of whom. "other": a process that sleeps; then each switch here is one that is not followed.
OTHER = "waits of another process"
RECORDINGS = {
    OTHER: ["-e", "off-cpu"],
    "ticks at 99 Hz, no waits": ["-F", "99"],
    "waits": ["-e", "off-cpu"],
    "waits, each with a stack": ["-e", "off-cpu/period=1/"],
    "waits and wakers": ["-e", "off-cpu", "--waker"],
    "waits and ticks": ["--wall", "-F", "99"],
}
SLEEPER = "import time\nwhile True: print(flush=True); time.sleep(0.2)"
THREADS = [0, 2, 64, 1000]  # 0: two processes
SHAPES = {0: "2 processes, pipes"}


class Handover:
    def __init__(self, python, threads):
        self.process = subprocess.Popen([python, str(HERE / "handover.py"), str(threads)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.nice(-10))
        self.pids = self.process.stdout.readline().split()[1]

    def run(self):
        """CPU seconds of a hand-over, and switches in one CPU second."""
        print(f"run {CHUNKS} {HANDOVERS}", file=self.process.stdin, flush=True)
        chunks = json.loads(self.process.stdout.readline())
        return statistics.median(cpu / HANDOVERS for cpu, _ in chunks), statistics.median(count / cpu for cpu, count in chunks)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def tracing_runs(pid):
    """Nanoseconds in a recorder's programs at switches, and how often they ran, while the kernel counted it."""
    spent = runs = 0
    for info in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(OSError):
            fields = dict(line.split(":\t", 1) for line in info.read_text().splitlines() if ":\t" in line)
            if fields.get("prog_type") == TRACING_PROGRAM:
                spent += int(fields.get("run_time_ns", 0))
                runs += int(fields.get("run_cnt", 0))
    return spent, runs


def record(options, pids, work, cpu_seconds):
    """One recording. Counting its programs' time costs time, so that is done in a run of its own."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as trace:
        recorder = subprocess.Popen([PYCAP, "record", "-q", *options, "-o", trace.name, "-p", pids], stdin=subprocess.DEVNULL,
                                    preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}))
        try:
            while not os.path.getsize(trace.name):
                if recorder.poll() is not None:
                    sys.exit(f"bench: pycap ended with {recorder.returncode}")
                time.sleep(0.01)
            time.sleep(SETTLE_SECONDS)
            work.run()
            start, cpu = time.monotonic(), cpu_seconds(recorder.pid)
            took, switches = work.run()
            share = (cpu_seconds(recorder.pid) - cpu) / (time.monotonic() - start)
            STATS.write_text("1")
            spent, runs = tracing_runs(recorder.pid)
            work.run()
            spent, runs = (now - then for now, then in zip(tracing_runs(recorder.pid), (spent, runs)))
            resident = resident_bytes(recorder.pid)
        finally:
            STATS.write_text("0")
            recorder.send_signal(signal.SIGINT)
            code = recorder.wait(60)
    if code:
        sys.exit(f"bench: pycap ended with {code}")
    return {"took": took, "switches": switches, "share": share, "run_ns": spent / runs if runs else 0, "resident": resident}


def resident_bytes(pid):
    fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) * 1024


def recordings():
    options = subprocess.run([PYCAP, "record", "--help"], capture_output=True, text=True, check=False).stdout
    return {name: words for name, words in RECORDINGS.items() if all(word in options for word in words if word[:2] == "--")}


def measure_case(threads, wanted, rounds, python, cpu_seconds):
    """Runs by recording; "loss" is the part of the throughput that it takes, beside runs without before and after."""
    results = {name: [] for name in wanted}
    work = Handover(python, threads)
    sleeper = subprocess.Popen([python, "-c", SLEEPER], stdout=subprocess.PIPE)
    sleeper.stdout.readline()
    try:
        before = work.run()
        for _ in range(rounds):
            for name, options in wanted.items():
                run = record(options, str(sleeper.pid) if name == OTHER else work.pids, work, cpu_seconds)
                after = work.run()
                run["loss"] = 1 - (before[0] + after[0]) / 2 / run["took"]
                run["without"] = (before[1] + after[1]) / 2
                before = after
                results[name].append(run)
    finally:
        sleeper.kill()
        sleeper.wait()
        work.close()
    return results


def measure_and_print(python, rounds, cpu_seconds):
    print("| switches | switches/s without | recorded | throughput lost, % | ns a switch | of them in BPF, at best | recorder's CPU, % "
          "| resident MiB |\n|---|--:|---|--:|--:|--:|--:|--:|")
    before = STATS.read_text()
    STATS.write_text("0")
    try:
        for threads in THREADS:
            for name, runs in measure_case(threads, recordings(), rounds, python, cpu_seconds).items():
                loss = sorted(100 * run["loss"] for run in runs)
                without = statistics.median(run["without"] for run in runs)
                middle = statistics.median(loss)
                print(f"| {SHAPES.get(threads, f'{threads} threads, locks')} | {without:,.0f} | {name} "
                      f"| {middle:.1f} ({loss[0]:.1f}…{loss[-1]:.1f}) | {1e9 / without * middle / (100 - middle):.0f} "
                      f"| {min(run['run_ns'] for run in runs):.0f} | {100 * statistics.median(run['share'] for run in runs):.1f} "
                      f"| {max(run['resident'] for run in runs) / 2**20:.0f} |", flush=True)
    finally:
        STATS.write_text(before)
