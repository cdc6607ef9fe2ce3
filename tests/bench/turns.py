#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of pycap on the same process, in turns: turns.py --against OTHER/pycap, or bench.py --part turns.

Both record the process at once, but only one of them ticks: this script takes duplicates of their perf events and disables
those of one while the other is measured. So a pair of windows is a second or a few apart, both recordings are long past
their start, and what a neighbour does meets both. Pairs are A B, B A, A B, so that a drift favours nobody.

At high rates pycap wakes for so many samples, so a window is over when it has had time to read the last of them. At low ones it
wakes so often in a second, and what the last second left is as much as each window begins without.

A window's figures: time in BPF (kernel.bpf_stats_enabled), CPU time of the recorder, samples in its trace, and the CPU time
that the process took for its work, which has the ticks and the cold caches in it. The ratio is that of each pair; printed
are medians and quartiles. Neither start nor end of a recording is in it.

--append FILE keeps each pair as a line of JSON and prints what the whole file says: runs that are too short add up.
"""
import argparse
import array
import bisect
import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import judge
from recorders import Missing, PYCAP, Pycap, PYSYM, work_command
from recording import CHUNK_SECONDS, bpf_stats, bpf_time_ns, cpu_seconds, fail, Recorder, say, Workload

HERE = pathlib.Path(__file__).resolve().parent
SYS_PIDFD_OPEN, SYS_PIDFD_GETFD = 434, 438
PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_DISABLE = 0x2400, 0x2401
SIDES = ("old", "new")
# What is seen for the first time is copied in the first seconds, once.
SETTLE_SECONDS = 3
ROUND_PAIRS = 8


class Ticks:
    """The perf events at whose counts a running recorder samples. Its others (side-band) never count anything."""

    def __init__(self, pid):
        self.fds = []
        libc = ctypes.CDLL(None, use_errno=True)
        pidfd = libc.syscall(SYS_PIDFD_OPEN, pid, 0)
        for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if os.readlink(link) != "anon_inode:[perf_event]":
                    continue
                fd = libc.syscall(SYS_PIDFD_GETFD, pidfd, int(link.name), 0)
                if fd < 0:
                    raise Missing(f"no perf event of process {pid}: {os.strerror(ctypes.get_errno())}")
                if array.array("Q", os.read(fd, 8 * 3))[0]:
                    self.fds.append(fd)
                else:
                    os.close(fd)
        os.close(pidfd)
        if not self.fds:
            raise Missing(f"process {pid} has no perf event that counts")

    def switch(self, on):
        for fd in self.fds:
            fcntl.ioctl(fd, PERF_EVENT_IOC_ENABLE if on else PERF_EVENT_IOC_DISABLE, 0)

    def close(self):
        for fd in self.fds:
            os.close(fd)


class Beside:
    """Other programs that start and end, so many a second."""

    def __init__(self, rate):
        self.rate, self.over = rate, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        due = time.monotonic()
        while not self.over.wait(max(0, due - time.monotonic())):
            subprocess.run(["/bin/true"], check=False)
            due += 1 / self.rate

    def __enter__(self):
        if self.rate:
            self.thread.start()

    def __exit__(self, *_):
        self.over.set()
        if self.rate:
            self.thread.join()


def window_of(recorder, ticks, workload, seconds, drain_seconds):
    """One window of a recorder that stands still before and after. Its samples are counted when its trace is whole."""
    pid = recorder.process.pid
    if recorder.process.poll() is not None:
        raise Missing(f"{recorder.name} ended too soon: {recorder.said()}")
    ticks.switch(True)
    try:
        bpf, cpu = bpf_time_ns(pid), cpu_seconds(pid)
        work = workload.order(f"run {max(4, round(seconds / workload.chunk_seconds))} {workload.units}")
        bpf = bpf_time_ns(pid) - bpf
    finally:
        ticks.switch(False)
    time.sleep(drain_seconds)
    cpu = cpu_seconds(pid) - cpu
    return {"bpf_ns": bpf, "recorder_s": cpu, "begin": work["start"], "end": work["end"],
            "work_s": statistics.median(chunk[1] for chunk in work["chunks"])}


def sample_times(path):
    """Of all samples of a trace, sorted; seconds of CLOCK_MONOTONIC."""
    lines = judge.lines_of([PYSYM, path, "--format", "dump"])
    return sorted(int(found[1]) / 1e9 for found in (re.match(r" +sample time_ns=(\d+)", line) for line in lines) if found)


def count_samples(pairs, recorders):
    for side, recorder in recorders.items():
        times = sample_times(recorder.out)
        for pair in pairs:
            window = pair[side]
            window["samples"] = bisect.bisect(times, window["end"]) - bisect.bisect(times, window["begin"])


def measure_pairs(recorders, ticks, workload, options, hz, count, deadline):
    """So many pairs, or those that fit into the time there is, but one."""
    pairs, longest = [], 0
    seconds = options.window or (1 if hz > 500 else 4)
    drain_seconds = 0.3 if hz > 500 else 0
    for at in range(count):
        start = time.monotonic()
        if pairs and start + longest > deadline:
            break
        order = SIDES if at % 2 == 0 else SIDES[::-1]
        pairs.append({side: window_of(recorders[side], ticks[side], workload, seconds, drain_seconds)
                      for side in order})
        longest = max(longest, time.monotonic() - start)
    return pairs


def start_all(programs, order, hz, workload, directory, options):
    recorders = {}
    try:
        for side in order:
            # On other CPUs there are only ticks of others, whose time would be counted, too.
            kind = Pycap("-C", str(max(os.sched_getaffinity(0))), *options.record.split(), program=programs[side])
            recorders[side] = Recorder(side, hz, workload, f"{directory}/{side}.bin", kind)
        return recorders
    except Exception:
        stop_all(recorders)
        raise


def stop_all(recorders):
    for recorder in recorders.values():
        recorder.discard()


def judge_work(workload_name, recorder, workload, span):
    """Stacks of the span but those between two orders."""
    stacks = recorder.kind.stacks(recorder.out, workload, span)
    return judge.judge(workload_name, (stack for stack in stacks if not judge.waits(stack[1])))


def measure_round(workload_name, workload, hz, options, order, count, deadline):
    """Some pairs within one recording of each side, and how good the stacks of each side were."""
    recorders, ticks = {}, {}
    with tempfile.TemporaryDirectory(prefix="pycap-bench-") as directory:
        try:
            recorders = start_all({"old": options.against, "new": options.pycap}, order, hz, workload, directory, options)
            settled = workload.order(f"run {round(SETTLE_SECONDS / CHUNK_SECONDS)} {workload.units}")
            workload.chunk_seconds = statistics.median(chunk[0] for chunk in settled["chunks"])
            for side in SIDES:
                ticks[side] = Ticks(recorders[side].process.pid)
                ticks[side].switch(False)
            with Beside(options.beside):
                pairs = measure_pairs(recorders, ticks, workload, options, hz, count, deadline)
            for side in SIDES:
                ticks[side].switch(True)
                recorders[side].stop()
            count_samples(pairs, recorders)
            span = (min(pair[side]["begin"] for pair in pairs for side in SIDES),
                    max(pair[side]["end"] for pair in pairs for side in SIDES))
            return pairs, {side: judge_work(workload_name, recorders[side], workload, span) for side in SIDES}
        finally:
            for some in ticks.values():
                some.close()
            stop_all(recorders)


def measure(workload_name, hz, options):
    """Pairs of one workload at one rate. Each round records anew, since what memory a recording got is part of its speed."""
    workload = Workload(work_command(options.python, HERE / "work.py", workload_name), 1)
    deadline = time.monotonic() + options.within
    pairs = []
    try:
        for at in range(-(-options.pairs // ROUND_PAIRS)):
            start = time.monotonic()
            order = SIDES if at % 2 == 0 else SIDES[::-1]
            count = min(ROUND_PAIRS, options.pairs - len(pairs))
            more, stacks = measure_round(workload_name, workload, hz, options, order, count, deadline)
            pairs += more
            print_stacks(stacks)
            if len(more) < count or time.monotonic() + (time.monotonic() - start) / 2 > deadline:
                break
    finally:
        workload.close()
    if len(pairs) < options.pairs:
        say(f"{len(pairs)} pairs of {options.pairs}: the time is over (--within)")
    return pairs


FIGURES = {
    "BPF, µs/sample": lambda w: w["bpf_ns"] / w["samples"] / 1000,
    "user space, µs/sample": lambda w: w["recorder_s"] / w["samples"] * 1e6,
    "both, µs/sample": lambda w: w["bpf_ns"] / w["samples"] / 1000 + w["recorder_s"] / w["samples"] * 1e6,
    "the program's CPU time, ms a chunk": lambda w: w["work_s"] * 1000,
}


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0], values[0]
    return statistics.quantiles(values, n=4, method="inclusive")


def quartiles_text(values, form):
    low, middle, high = quartiles(values)
    return f"{middle:{form}} ({low:{form}}…{high:{form}})"


def usable(pairs):
    return [pair for pair in pairs if all(pair[side]["samples"] for side in SIDES)]


def print_pairs(title, pairs):
    """Ratios are of pairs, so that the median of the ratios is not the ratio of the medians."""
    pairs = usable(pairs)
    if not pairs:
        print(f"{title}: no pairs\n")
        return
    samples = [sum(pair[side]["samples"] for pair in pairs) for side in SIDES]
    print(f"{title}: {len(pairs)} pairs, {samples[0]} and {samples[1]} samples\n\n"
          "| median (quartiles) | old | new | new / old | |\n|---|--:|--:|--:|--:|")
    for name, figure in FIGURES.items():
        old, new = ([figure(pair[side]) for pair in pairs] for side in SIDES)
        ratios = [b / a for a, b in zip(old, new) if a]
        if ratios:
            print(f"| {name} | {quartiles_text(old, '.2f')} | {quartiles_text(new, '.2f')} "
                  f"| {quartiles_text(ratios, '.3f')} | {100 * quartiles(ratios)[1] - 100:+.1f} % |")
    print(flush=True)


def print_short(groups):
    """A row for each of {key: pairs}."""
    print("| workload, Python | Hz | pairs | BPF before | now | now / before | user space before | now | now / before "
          "| both before | now | now / before |\n|---|--:|--:|" + "--:|" * 9)
    for key, pairs in groups:
        pairs = usable(pairs)
        if not pairs:
            continue
        cells = []
        for figure in list(FIGURES.values())[:3]:
            old, new = ([figure(pair[side]) for pair in pairs] for side in SIDES)
            ratios = [b / a for a, b in zip(old, new) if a]
            cells += [f"{statistics.median(old):.2f}", f"{statistics.median(new):.2f}", quartiles_text(ratios, ".3f") if ratios else "–"]
        print(f"| {key['workload']}, {key['python']}{', ' + key['record'] if key['record'] else ''} | {key['hz']} | {len(pairs)} "
              f"| " + " | ".join(cells) + " |", flush=True)


def print_stacks(stacks):
    for side in SIDES:
        found = stacks[side]
        shares = ", ".join(f"{name.replace('_', ' ')} {100 * found[name]:.3f} %" for name in
                           ("python_complete", "python_right", "native_complete") if found[name] is not None)
        print(f"  {side}: {found['samples']} samples, {shares}", file=sys.stderr, flush=True)


def title_of(key):
    return "{workload}, {python}, {hz} Hz".format(**key) + (f", {key['record']}" if key["record"] else "") + \
        (f", {key['beside']} other programs a second" if key["beside"] else "")


def append(path, key, pairs):
    with open(path, "a", encoding="utf-8") as file:
        for pair in pairs:
            file.write(json.dumps({"key": key, **pair}) + "\n")


def print_file(path, short=False):
    groups = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            groups.setdefault(json.dumps(row["key"], sort_keys=True), []).append(row)
    if short:
        print_short([(json.loads(key), pairs) for key, pairs in groups.items()])
        return
    for key, pairs in groups.items():
        print_pairs(title_of(json.loads(key)), pairs)


def measure_and_print(options):
    """For bench.py, too: `options` has what add_options() adds, and python, workloads and rates."""
    for program in (options.against, options.pycap):
        if not os.access(program, os.X_OK):
            fail(f"{program} can't be run")
    for workload_name in options.workloads:
        for hz in options.rates:
            key = {"workload": workload_name, "python": options.python, "hz": hz, "record": options.record,
                   "beside": options.beside}
            with bpf_stats():
                pairs = measure(workload_name, hz, options)
            if options.append:
                append(options.append, key, pairs)
            else:
                print_pairs(title_of(key), pairs)
    if options.append:
        print_file(options.append)


def add_options(parser):
    group = parser.add_argument_group("two builds in turns")
    group.add_argument("--against", metavar="PYCAP", help="the other build: ratios are to it")
    group.add_argument("--pycap", default=PYCAP, help="the build that is judged (build/pycap of this tree, or $PYCAP)")
    group.add_argument("--pairs", type=int, default=31, help="of windows, for each workload and rate")
    group.add_argument("--window", type=float, help="seconds (1 at 999 Hz, 4 at 99 Hz)")
    group.add_argument("--within", type=float, default=130, help="seconds: of pairs, only those that fit")
    group.add_argument("--append", metavar="FILE", help="keep the pairs there, and print what all of the file say")
    group.add_argument("--beside", type=float, default=0, metavar="N", help="start N other programs a second")
    group.add_argument("--record", default="", metavar="OPTIONS", help="more options of pycap record, for both")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--python", default="/usr/bin/python3", help="a path, or sid:3.14, sid:3.15")
    parser.add_argument("--workloads", type=lambda s: s.split(","), default=["mixed"])
    parser.add_argument("--rates", type=lambda s: [int(x) for x in s.split(",")], default=[999])
    add_options(parser)
    options = parser.parse_args()
    if os.geteuid() != 0:
        fail("has to run as root")
    if not options.against:
        if options.append:
            sys.exit(print_file(options.append))
        parser.error("--against PYCAP says what to compare with")
    measure_and_print(options)


if __name__ == "__main__":
    main()
