#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a sample costs beside other profilers, on each version of Python: bench.py --part beside, or beside.py.

The recorders take turns on one process for each version. A ratio is that of two neighbours of one round, so that it holds
on a machine whose speed changes by the minute; printed are medians and quartiles of the rounds.

Two figures. The work for a sample: time in BPF, and the recorder's CPU time while it records. In all: what the host loses by it.
That has the interrupts, too: pycap's tick, measured with an empty BPF program before, and of the first CPU, where the recorders
run, all that was taken from a task that gives way to everybody, which has the timer that wakes a recorder and the switches to it
and back. That is every second round, since a CPU that never sleeps makes the recorders' work cheaper. perf's handler in the kernel
has no clock of its own, so it has no such figure.
"""
import argparse
import os
import pathlib
import statistics
import tempfile

from recorders import KINDS, Missing, Pycap, TABLES, work_command
from recording import bpf_stats, fail, measure_floor, round_of, say, Workload

HERE = pathlib.Path(__file__).resolve().parent
PEERS = ["austin", "profiling.sampling", "py-spy", "py-spy --native", "perf -g"]
FRAMES = {TABLES: "Python, native, kernel", "austin": "Python", "profiling.sampling": "Python", "py-spy": "Python",
          "py-spy --native": "Python, native", "perf -g": "native, kernel"}


def default_pythons():
    """Debian's, pyenv's 3.12 and 3.13, and those of the root tree."""
    versions = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv") / "versions"
    found = [sorted(versions.glob(f"{version}.*/bin/python3")) for version in ("3.12", "3.13")]
    return ["/usr/bin/python3", *(str(paths[-1]) for paths in found if paths), "sid:3.14", "sid:3.15"]


def sample_us(run, name=TABLES):
    """None for perf, and in rounds that measure what is taken in all."""
    return None if name.startswith("perf") or "taken" in run else run["bpf"] / 1000 + 1e6 * run["cpu"]


def all_us(run, name, tick_ns):
    """None for perf, and in rounds that do not measure it. The recorder's CPU time was taken in any case, whatever else happened
    to the first CPU."""
    if name.startswith("perf") or "taken" not in run:
        return None
    wall = run["work"]["end"] - run["work"]["start"]
    return 1e6 * max(run["cpu"], run["taken"] * wall / max(1, run["samples"])) + (run["bpf"] + tick_ns) / 1000 * KINDS[name].bpf


def measure_python(python, names, workload_name, hz, options):
    """Rounds of {recorder: run} on one process. What can't record it is not tried again."""
    workload = Workload(work_command(python, HERE / "work.py", workload_name), options.seconds)
    # On other CPUs there are only ticks of others, whose time would be counted, too.
    kinds = {TABLES: Pycap("-C", str(max(os.sched_getaffinity(0))), *KINDS[TABLES].options, *options.record.split())}
    rounds = []
    try:
        with tempfile.TemporaryDirectory(prefix="pycap-bench-") as directory:
            for at in range(options.rounds):
                workload.spare = at % 2 == 1
                rounds.append({name: run for name, _, run in round_of(names, [hz], workload, workload_name, directory, kinds)})
                names = list(rounds[-1])
    finally:
        workload.close()
    return rounds


def prepared(name):
    try:
        KINDS[name].prepare()
        return True
    except Missing as why:
        say(f"{name} left out: {why}")
        return False


def quartiles_text(values, form):
    if len(values) < 2:
        return f"{values[0]:{form}}"
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:{form}} ({low:{form}}…{high:{form}})"


def ratios_of(rounds, name, figure):
    """What a sample of that recorder costs, in those of pycap in the same round."""
    pairs = [(figure(found[name], name), figure(found[TABLES], TABLES)) for found in rounds if name in found and TABLES in found]
    return [other / ours for other, ours in pairs if other is not None and ours is not None]


def figures_text(rounds, name, figure):
    """Of a recorder's samples, and the ratio to pycap's."""
    values = [value for value in (figure(found[name], name) for found in rounds if name in found) if value is not None]
    if not values:
        return "– | –"
    ratios = ratios_of(rounds, name, figure) if name != TABLES else None
    return f"{quartiles_text(values, '.1f')} | {quartiles_text(ratios, '.1f') if ratios else '–'}"


def print_rows(version, hz, rounds, floor):
    for name in [TABLES, *PEERS]:
        runs = [found[name] for found in rounds if name in found]
        if not runs:
            continue
        right = [100 * run["python_right"] for run in runs if run["python_right"] is not None]
        print(f"| {version} | {name} | {FRAMES[name]} | {hz} | {statistics.median(run['samples'] for run in runs):.0f} "
              f"| {figures_text(rounds, name, sample_us)} "
              f"| {figures_text(rounds, name, lambda run, whose: all_us(run, whose, floor.get(hz, 0)))} "
              f"| {100 * statistics.median(run['wall'] for run in runs):+.1f} "
              f"| {f'{min(right):.2f}' if right else '–'} |", flush=True)


def measure_and_print(names, floor, options):
    print("| Python | recorder | frames | Hz | samples a run | work for a sample, µs | times pycap's | in all, µs | times pycap's "
          "| the program longer, % | Python right %, least |\n"
          "|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    names = [name for name in [TABLES, *PEERS] if name in names]
    for python in options.pythons or default_pythons():
        for hz in options.rates:
            try:
                rounds = measure_python(python, names, "mixed", hz, options)
            except (Missing, OSError) as why:
                say(f"{python} left out: {why}")
                continue
            print_rows(python.rpartition(":")[2] if python.startswith("sid:") else python, hz, rounds, floor)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pythons", type=lambda s: s.split(","), metavar="PATH,...", help="interpreters, also sid:3.14")
    parser.add_argument("--only", type=lambda s: s.split(","), default=[TABLES, "austin", "profiling.sampling"], metavar="NAME,...",
                        help="of " + ", ".join([TABLES, *PEERS]))
    parser.add_argument("--rates", type=lambda s: [int(x) for x in s.split(",")], default=[999])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=2, help="of work in a run")
    parser.add_argument("--record", default="", metavar="OPTIONS", help="more options of pycap record")
    options = parser.parse_args()
    if os.geteuid() != 0:
        fail("has to run as root")
    names = [name for name in options.only if prepared(name)]
    with bpf_stats():
        floor = measure_floor(options.rates)
        print(f"Load average {os.getloadavg()[0]:.1f} at the start; a tick takes " +
              ", ".join(f"{tick_ns / 1000:.1f} µs at {hz} Hz" for hz, tick_ns in floor.items()) + ".\n")
        measure_and_print(names, floor, options)


if __name__ == "__main__":
    main()
