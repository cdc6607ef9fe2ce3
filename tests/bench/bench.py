# SPDX-License-Identifier: Apache-2.0
"""Measures pycap beside other profilers, and pysym beside `perf script`, on this machine. See docs/benchmarks.md.

A workload is one process that does a fixed amount of work, in small chunks, whenever it is told to. Runs without and
with a recorder come in turns, so that every ratio compares neighbours in time. Prints markdown tables.
"""
import argparse
import os
import pathlib
import platform
import shutil
import statistics
import sys
import tempfile

import beside
import day
import events
import execs
import judge
import scaling
import stages
import start
import page_faults
import turns
import waits
from recording import (bpf_stats, bpf_time_ns, cpu_of, cpu_seconds, fail, host_share, measure_floor, middle, Recorder, round_of, say,
                       Workload)
from recorders import KINDS, Missing, PYCAP, PYSYM, PYTHON_ONLY, SNAPSHOT_8K, TABLES

HERE = pathlib.Path(__file__).resolve().parent
WORKLOADS = ["mixed", "towers", "json"]
PARTS = ["beside", "stages", "start", "recording", "long", "reading", "day", "scaling", "execs", "waits", "faults", "calls", "tasks"]
ASKED_PARTS = ["turns"]  # not without being asked for
# What make bench-quick asks for: the claims of docs/benchmarks.md, in three minutes.
QUICK = {"part": ["beside", "stages", "start", "day"], "only": ["pycap", "austin", "profiling.sampling"], "rates": [999], "rounds": 2,
         "seconds": 1.0, "hours": [1.0], "pythons": ["/usr/bin/python3", "sid:3.14", "sid:3.15"]}
# Losses that leave no sample at all; after others there is one with less in it.
LOST_SAMPLES = ("ring_full", "tick_skipped", "nested", "process_gone")


def program(kind, python, workload_name):
    if kind.own_program:
        return kind.program(HERE / "work.py", workload_name)
    return [python, str(HERE / "work.py"), workload_name]


def measure_group(names, workload_name, workload, options, directory, results):
    for _ in range(options.rounds):
        for name, hz, run in round_of(names, options.rates, workload, workload_name, directory):
            results.setdefault((workload_name, name, hz), []).append(run)


def measure_recording(names, options, directory, floor):
    """Prints the rows of a workload when it is done: a run that is broken off is not for nothing."""
    results = {}
    print_recording_head()
    for workload_name in options.workloads:
        for own in (False, True):
            group = [name for name in names if KINDS[name].own_program == own]
            if not group:
                continue
            try:
                workload = Workload(program(KINDS[group[0]], options.python, workload_name), options.seconds)
            except Missing as why:
                say(f"{', '.join(group)} left out of {workload_name}: {why}")
                continue
            try:
                measure_group(group, workload_name, workload, options, directory, results)
            finally:
                workload.close()
        print_recording({key: runs for key, runs in results.items() if key[0] == workload_name}, floor)
        say(f"{workload_name} done")
    return results


def number(value, form, scale=1):
    return "–" if value is None else format(value * scale, form)


def spread(runs, key):
    values = sorted(100 * run[key] for run in runs)
    return f"{statistics.median(values):+.1f} ({values[0]:+.1f}…{values[-1]:+.1f})"


def print_recording_head():
    print("| workload | recorder | Hz | samples | of those due % | slowdown %, wall | slowdown %, CPU | BPF µs/sample "
          "| recorder µs/sample | host CPU % | bytes/sample | Python complete % | Python right % | native complete % "
          "| resident MiB |")
    print("|---|---|" + "--:|" * 13)


def print_recording(results, floor):
    for (workload, name, hz), runs in results.items():
        bpf = middle(runs, "bpf") or None
        share = host_share(name, hz, runs, floor)
        print(f"| {workload} | {name} | {hz} | {middle(runs, 'samples'):.0f} "
              f"| {number(middle(runs, 'got'), '.1f', 100)} "
              f"| {spread(runs, 'wall')} | {spread(runs, 'program_cpu')} | {number(bpf, '.2f', 1e-3)} "
              f"| {number(middle(runs, 'cpu'), '.1f', 1e6)} | {number(share, '.2f', 100)} "
              f"| {number(middle(runs, 'bytes'), '.0f')} | {number(middle(runs, 'python_complete'), '.2f', 100)} "
              f"| {number(middle(runs, 'python_right'), '.2f', 100)} "
              f"| {number(middle(runs, 'native_complete'), '.2f', 100)} | {middle(runs, 'resident') / 2**20:.0f} |",
              flush=True)


def print_depths(results):
    for python, native in (run["depths"] for runs in results.values() for run in runs[:1] if "depths" in run):
        print(f"\nA median stack of mixed has {python:.0f} Python and {native:.0f} native frames.")
        break


def print_floor(floor):
    print("| Hz | µs a tick with an empty BPF program | % of a core |\n|--:|--:|--:|")
    for hz, tick_ns in floor.items():
        print(f"| {hz} | {tick_ns / 1000:.1f} | {tick_ns * hz / 1e7:.2f} |")


def losses_in(path):
    """Of a trace of pycap, by name."""
    text = judge.text_of([PYSYM, path, "--format", "summary", "-v"])
    lines = text.partition("\nLosses\n")[2].split("\n\n")[0].splitlines()
    return {line.split()[0]: int(line.split()[1].replace(",", "")) for line in lines if len(line.split()) > 1}


def measure_long(names, options, directory):
    """A minute at each rate, and the highest rate: bytes, memory and losses settle only then."""
    rows = []
    for name, hz, seconds in ([(name, hz, options.minute) for name in (TABLES, "perf -g") for hz in options.rates] +
                              [(TABLES, 9999, options.minute / 6)]):
        if name not in names:
            continue
        workload = Workload([options.python, str(HERE / "work.py"), "mixed"], seconds)
        recorder = None
        try:
            recorder = Recorder(name, hz, workload, f"{directory}/minute.data")
            work = workload.once()
            run = recorder.stop()
            run["wall"] = work["end"] - work["start"]
            run["samples"] = sum(stack[0] for stack in
                                 recorder.kind.stacks(recorder.out, workload, (work["start"], work["end"])))
            run["due"] = hz * seconds_of(work, 1, sum)
            run["size"] = os.path.getsize(recorder.out)
            run["losses"] = losses_in(recorder.out) if name == TABLES else None
            rows.append((name, hz, run))
            say(f"{run['wall']:.0f} s of {name} at {hz} Hz done")
        except Missing as why:
            say(f"{name} at {hz} Hz left out: {why}")
        finally:
            if recorder:
                recorder.discard()
            workload.close()
    return rows


def print_long(rows):
    print("| recorder | Hz | seconds | samples | of those due % | losses | BPF µs/sample | recorder µs/sample "
          "| its start and end too | bytes/sample | resident MiB |")
    print("|---|--:|--:|--:|--:|---|--:|--:|--:|--:|--:|")
    for name, hz, run in rows:
        samples = max(1, run["samples"])
        losses = "–" if run["losses"] is None else \
            ", ".join(f"{count} {loss}" for loss, count in run["losses"].items()) or "none"
        print(f"| {name} | {hz} | {run['wall']:.0f} | {samples} | {100 * samples / run['due']:.1f} | {losses} "
              f"| {number(run['bpf'] / samples or None, '.2f', 1e-3)} | {1e6 * run['cpu'] / samples:.1f} "
              f"| {1e6 * (run['cpu'] + run['other']) / samples:.1f} "
              f"| {run['size'] / samples:.1f} | {run['resident'] / 2**20:.0f} |")


def print_wanted(results, rows, floor):
    """What is wanted of stacks with 20 Python and 40 native frames, beside what this run measured."""
    lines = []
    for hz, most_us, most_share in ((999, 6, 1.5), (99, 15, 0.2)):
        runs = results.get(("mixed", TABLES, hz))
        if runs:
            lines.append((f"BPF and user space at {hz} Hz, µs/sample", most_us,
                          middle(runs, "bpf") / 1000 + 1e6 * middle(runs, "cpu")))
            lines.append((f"share of a core at {hz} Hz, %", most_share, 100 * host_share(TABLES, hz, runs, floor)))
    for name, hz, run in rows:
        if name != TABLES:
            continue
        samples = max(1, run["samples"])
        if hz < 9999:
            lines.append((f"BPF and user space over a minute at {hz} Hz, µs/sample", 6 if hz > 99 else 15,
                          run["bpf"] / 1000 / samples + 1e6 * run["cpu"] / samples))
            lines.append((f"bytes/sample over a minute at {hz} Hz", 16, run["size"] / samples))
        lines.append((f"resident at {hz} Hz, MiB", 64, run["resident"] / 2**20))
        lines.append((f"samples lost at {hz} Hz", 0, sum(run["losses"].get(name, 0) for name in LOST_SAMPLES)))
    print("| 20 Python and 40 native frames | at most | measured | |\n|---|--:|--:|---|")
    for what, most, value in lines:
        print(f"| {what} | {most} | {value:.2f} | {'yes' if value <= most else 'no'} |")


def samples_in(name, path):
    if KINDS[name].bpf:
        return judge.samples_of([PYSYM, path, "--format", "summary", "-v"])
    text = judge.text_of(["perf", "report", "-i", path, "--stats"])
    # The first such line counts all events, those that follow one event each.
    return next(int(line.split()[2]) for line in text.splitlines() if line.split()[:2] == ["SAMPLE", "events:"])


def measure_reading(names, options, directory):
    """What one long capture costs to read: Python-only stacks beside frame-pointer stacks, snapshots beside dwarf."""
    rows = []
    captures = {}
    workload = Workload([options.python, str(HERE / "work.py"), "recursion"], options.long)
    try:
        for name, hz in ((PYTHON_ONLY, 9999), (TABLES, 9999), ("perf -g", 9999), (SNAPSHOT_8K, 999),
                         ("perf dwarf 8 KiB", 999)):
            if name not in names:
                continue
            captures[name] = f"{directory}/long-{len(captures)}.data"
            recorder = Recorder(name, hz, workload, captures[name])
            workload.once()
            recorder.stop()
    finally:
        workload.close()
    for reader, name, command in [("pysym --format folded", PYTHON_ONLY, [PYSYM, None, "--format", "folded"]),
                                  ("pysym --format speedscope", PYTHON_ONLY, [PYSYM, None, "--format", "speedscope"]),
                                  ("pysym --format folded", TABLES, [PYSYM, None, "--format", "folded"]),
                                  ("perf script", "perf -g", ["perf", "script", "-i", None]),
                                  ("pysym --format folded", SNAPSHOT_8K, [PYSYM, None, "--format", "folded"]),
                                  ("perf script --no-inline", "perf dwarf 8 KiB",
                                   ["perf", "script", "--no-inline", "-i", None]),
                                  ("perf script", "perf dwarf 8 KiB", ["perf", "script", "-i", None])]:
        if name not in captures:
            continue
        path = captures[name]
        samples = samples_in(name, path)
        runs = [cpu_of([path if word is None else word for word in command]) for _ in range(options.rounds)]
        cpu, wall, resident = (statistics.median(column) for column in zip(*runs))
        rows.append((reader, name, samples, cpu, wall, resident))
        say(f"{reader} on {name} done")
    return rows


def print_reading(rows):
    print("| reader | recorded with | samples | CPU s | wall s | samples/s | resident MiB |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for name, kind, samples, cpu, wall, resident in rows:
        print(f"| {name} | {kind} | {samples} | {cpu:.2f} | {wall:.2f} | {samples / wall:,.0f} "
              f"| {resident / 2**20:.0f} |")


def usable(wanted):
    """Of the recorders asked for those that can run here; the reasons of the others are printed."""
    names = []
    for name, kind in KINDS.items():
        if wanted and not any(word in name for word in wanted):
            continue
        try:
            kind.prepare()
            names.append(name)
        except Missing as why:
            print(f"Left out: {name}: {why}\n")
    if not names:
        fail("no such recorder: " + ", ".join(KINDS))
    return names


def words(text):
    return text.split(",")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--python", default="/usr/bin/python3", help="interpreter of the workloads")
    parser.add_argument("--pythons", type=words, metavar="PATH,...", help="interpreters of the parts beside and stages, also sid:3.14")
    parser.add_argument("--workloads", type=words, default=WORKLOADS, help="of " + ", ".join(judge.CHAINS))
    parser.add_argument("--only", type=words, metavar="NAME,...", help="recorders with one of these in their name")
    parser.add_argument("--rates", type=lambda s: [int(x) for x in s.split(",")], default=[99, 999])
    parser.add_argument("--rounds", type=int, default=2, help="the tables hold medians of so many")
    parser.add_argument("--seconds", type=float, default=3, help="of work in a run")
    parser.add_argument("--minute", type=float, default=60, help="seconds of the long recordings")
    parser.add_argument("--long", type=float, default=10, help="seconds of the captures that are read")
    parser.add_argument("--hours", type=lambda s: [float(x) for x in s.split(",")], default=day.HOURS, help="of the part day")
    parser.add_argument("--part", type=words, default=PARTS, help="of " + ", ".join(PARTS + ASKED_PARTS))
    parser.add_argument("--quick", action="store_true", help="a few of the parts, in three minutes")
    turns.add_options(parser)
    if "--quick" in sys.argv:
        parser.set_defaults(**QUICK)
    options = parser.parse_args()
    if os.geteuid() != 0:
        fail("has to run as root")
    if set(options.workloads) - set(judge.CHAINS) or set(options.part) - set(PARTS + ASKED_PARTS):
        parser.error("no such workload or part")
    if "turns" in options.part and not options.against:
        parser.error("--part turns wants --against PYCAP")
    names = usable(options.only)
    version = judge.text_of([options.python, "-c", "import sys; print(sys.version.split()[0])"]).strip()
    perf = judge.text_of(["perf", "--version"]).split()[-1] if shutil.which("perf") else "not here"
    print(f"Linux {platform.release()}, {len(os.sched_getaffinity(0))} CPUs, Python {version}, perf {perf}; medians of "
          f"{options.rounds} runs of {options.seconds:g} s; load average {os.getloadavg()[0]:.1f} at the start.\n",
          flush=True)
    with bpf_stats(), tempfile.TemporaryDirectory(prefix="pycap-bench-") as directory:
        results, rows, floor = {}, [], {}
        if {"beside", "recording", "long"} & set(options.part):
            floor = measure_floor(options.rates + [9999] * ("long" in options.part))
            print_floor(floor)
            print(flush=True)
        if "beside" in options.part:
            beside.measure_and_print(names, floor, options)
            print(flush=True)
        if "stages" in options.part:
            stages.measure_and_print(options.pythons or beside.default_pythons(), ["mixed"], options.rates, options.seconds,
                                     options.record.split())
        if "start" in options.part:
            start.measure_and_print(options.python, max(5, options.rounds), [PYCAP, *([options.against] if options.against else [])])
            print(flush=True)
        if "recording" in options.part:
            results = measure_recording(names, options, directory, floor)
            print_depths(results)
            print(flush=True)
        if "long" in options.part:
            rows = measure_long(names, options, directory)
            print_long(rows)
            print(flush=True)
        if rows or ("mixed", TABLES, options.rates[0]) in results:
            print_wanted(results, rows, floor)
            print(flush=True)
        if "reading" in options.part:
            print_reading(measure_reading(names, options, directory))
            print(flush=True)
        if "day" in options.part:
            day.measure_and_print(options.rounds, options.hours)
            print(flush=True)
        if "scaling" in options.part:
            scaling.measure_and_print(options.python, bpf_time_ns, cpu_seconds)
            print(flush=True)
        if "execs" in options.part:
            execs.measure_and_print(options.python, cpu_seconds)
            print(flush=True)
    if "turns" in options.part:
        turns.measure_and_print(options)
    if "waits" in options.part:  # counts its programs' time only where that does not disturb
        waits.measure_and_print(options.python, options.rounds, cpu_seconds)
        print(flush=True)
    if "faults" in options.part:
        page_faults.measure_and_print(options.python, options.rounds, cpu_seconds)
        print(flush=True)
    if "calls" in options.part:
        events.measure_calls(options.python, options.rounds, cpu_seconds)
        print(flush=True)
    if "tasks" in options.part:
        events.measure_tasks(options.rounds, cpu_seconds)


if __name__ == "__main__":
    main()
