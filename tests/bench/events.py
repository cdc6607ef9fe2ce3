# SPDX-License-Identifier: Apache-2.0
"""What recordings of events other than clocks cost: bench.py --part calls, where a program's system calls are recorded, and
bench.py --part tasks, where tasks of asyncio that wait are."""
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
TESTS = HERE.parent
CHUNKS = 12
SETTLE_SECONDS, TASK_SECONDS = 1, 12
SLEEPER = "import time\nwhile True: print(flush=True); time.sleep(0.2)"
OTHER = "of another process"
# What the program does, how often in a chunk, and how it is recorded.
CALLS = [
    ("getppid", 100000, {
        "cpu-clock at 99 Hz": ["-F", "99"],
        "another system call": ["-e", "syscalls:sys_enter_pivot_root"],
        "memory-growth": ["-e", "memory-growth"],
        OTHER: ["-e", "syscalls:sys_enter_getppid"],
        "each 1,000th": ["-e", "syscalls:sys_enter_getppid/period=1000/"],
        "each 10th": ["-e", "syscalls:sys_enter_getppid/period=10/"],
    }),
    ("map", 20000, {
        OTHER: ["-e", "memory-growth"],
        "memory-growth": ["-e", "memory-growth"],
    }),
]
# Tasks that wait, coroutines in the stack of each, and how many of them run and wait again in a second.
TASKS = [(0, 1, 0), (100, 5, 1000), (1000, 5, 0), (10000, 5, 0), (10000, 5, 1000), (10000, 5, 20000)]
CACHE = pathlib.Path(os.environ.get("PYCAP_TEST_CACHE") or
                     os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "pycap-tests"))


def of_all(pid, cpu_seconds):
    """CPU seconds of a recorder, which may consist of several processes."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(cpu_seconds(int(each)) for each in (pid, *children))


@contextlib.contextmanager
def recording(options, pid):
    """A recording of that process, which has settled."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as trace:
        recorder = subprocess.Popen([PYCAP, "record", "-q", *options, "-o", trace.name, "-p", str(pid)],
                                    stdin=subprocess.DEVNULL, preexec_fn=be_recorder)
        try:
            while not os.path.getsize(trace.name):
                if recorder.poll() is not None:
                    sys.exit(f"bench: pycap ended with {recorder.returncode}")
                time.sleep(0.01)
            time.sleep(SETTLE_SECONDS)
            yield recorder.pid, trace.name
        finally:
            recorder.send_signal(signal.SIGINT)
            code = recorder.wait(60)
    if code not in (0, 1):  # 1: there was no sample, as of what the program does not do
        sys.exit(f"bench: pycap ended with {code}")


def be_recorder():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def be_program():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


class Calls:
    def __init__(self, python, what, count):
        self.count = count
        self.process = subprocess.Popen([python, str(HERE / "calls.py"), what], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, preexec_fn=be_program)
        self.pid = self.process.stdout.readline().split()[1]

    def run(self):
        """Nanoseconds of CPU time that one takes, in the chunk in the middle."""
        print(f"run {CHUNKS} {self.count}", file=self.process.stdin, flush=True)
        return 1e9 * statistics.median(json.loads(self.process.stdout.readline())) / self.count

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measure_call(what, count, wanted, rounds, python, cpu_seconds):
    """By recording: [(ns without, ns with, the recorder's share of a CPU, its bytes)]."""
    work, results = Calls(python, what, count), {name: [] for name in wanted}
    sleeper = subprocess.Popen([python, "-c", SLEEPER], stdout=subprocess.PIPE)
    try:
        work.run()
        before = work.run()
        for _ in range(rounds):
            for name, options in wanted.items():
                with recording(options, sleeper.pid if name == OTHER else work.pid) as (pid, path):
                    start, cpu = time.monotonic(), of_all(pid, cpu_seconds)
                    observed = work.run()
                    share = (of_all(pid, cpu_seconds) - cpu) / (time.monotonic() - start)
                    size = os.path.getsize(path)
                after = work.run()
                results[name].append(((before + after) / 2, observed, share, size))
                before = after
    finally:
        sleeper.kill()
        sleeper.wait()
        work.close()
    return results


def measure_calls(python, rounds, cpu_seconds):
    print("| the program | ns without | recorded | ns with | ratio | recorder's CPU, % | bytes |\n|---|--:|---|--:|--:|--:|--:|")
    for what, count, wanted in CALLS:
        for name, runs in measure_call(what, count, wanted, rounds, python, cpu_seconds).items():
            without, observed, share, size = (statistics.median(column) for column in zip(*runs))
            ratios = sorted(with_it / idle for idle, with_it, _, _ in runs)
            print(f"| {what} | {without:.0f} | {name} | {observed:.0f} | {statistics.median(ratios):.3f} "
                  f"({ratios[0]:.3f}…{ratios[-1]:.3f}) | {100 * share:.2f} | {size:,.0f} |", flush=True)


def task_pythons():
    """Interpreters whose tasks can be read, by name: commands."""
    found = {}
    root = CACHE / "roots/sid"
    for minor in (12, 13):
        for path in sorted(pathlib.Path(os.path.expanduser("~/.pyenv/versions")).glob(f"3.{minor}.*/bin/python3.{minor}")):
            found[f"3.{minor}"] = [str(path)]
    for minor in (14, 15):
        if (root / ".complete").exists():
            found[f"3.{minor}"] = [str(TESTS / "in-root.sh"), str(root), f"/usr/bin/python3.{minor}"]
    return found


def measure_task(command, case, options, cpu_seconds):
    """The recorder's share of a CPU, the program's own, what ran meanwhile by its own count, and the trace's bytes."""
    arguments = [str(TESTS.parent / "testdata/programs/many_tasks.py"), *map(str, case[:2]), "3600", str(case[2])]
    with subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True, preexec_fn=be_program) as program:
        try:
            program.stdout.readline()
            with recording(options, program.pid) as (pid, path):
                readings = []
                for wait in (0, TASK_SECONDS):
                    time.sleep(wait)
                    readings.append((time.monotonic(), of_all(pid, cpu_seconds), cpu_seconds(program.pid), os.path.getsize(path)))
        finally:
            program.kill()
    wall, cpu, own, size = (end - begin for begin, end in zip(*readings))
    return cpu / wall, own / wall, size / wall


def measure_tasks(rounds, cpu_seconds):
    print("| Python | tasks | run in a second | recorded | recorder's CPU, % | the program's CPU, % | bytes/s |"
          "\n|---|--:|--:|---|--:|--:|--:|")
    for name, command in task_pythons().items():
        for case in TASKS:
            for what, options in (("cpu-clock", ["-F", "99"]), ("task-wait", ["-e", "task-wait"])):
                runs = [measure_task(command, case, options, cpu_seconds) for _ in range(rounds)]
                share, own, size = (statistics.median(column) for column in zip(*runs))
                print(f"| {name} | {case[0]:,} | {case[2]:,} | {what} | {100 * share:.2f} | {100 * own:.2f} | {size:,.0f} |",
                      flush=True)
