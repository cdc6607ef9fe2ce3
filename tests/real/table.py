#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Makes the table of real programs in docs/accuracy.md: runs each program of programs.py, records it with pycap and, at the
same time, with py-spy --native, and prints how much of the stacks was seen and the first ten rows of both.

usage: table.py [--seconds N] [--keep DIR] [PROGRAM...]

By root, on a machine that does nothing else. Programs come from PyPI; what cannot be had is left out with the reason.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import programs
import venvs

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYCAP = os.environ.get("PYCAP", str(ROOT / "build/pycap"))
PYSYM = os.environ.get("PYSYM", str(ROOT / "build/pysym"))
ROWS = 10


def pysym(trace, *options):
    return subprocess.run([PYSYM, trace, *options], capture_output=True, text=True, check=True).stdout


def stacks_of(text):
    """Of folded text: [(frames, weight)]."""
    rows = [line.rsplit(" ", 1) for line in text.splitlines()]
    return [(stack.split(";"), int(count)) for stack, count in rows]


def median_depth(stacks):
    depths = [len(frames) for frames, count in stacks for _ in range(count)]
    return round(statistics.median(depths)) if depths else 0


def hottest(stacks):
    """The functions with the most time of their own, as shares: py-spy has no table."""
    own = collections.Counter()
    for frames, count in stacks:
        own[re.sub(r":\d+\)$", ")", frames[-1])] += count
    total = own.total() or 1
    return [f"{100 * count / total:.1f}% {name}" for name, count in own.most_common(ROWS)]


def top_rows(trace):
    table = json.loads(pysym(trace, "-f", "top", "--json"))["events"][0]["tables"][0]
    return [f"{100 * row['self_weight_ns'] / table['weight_ns']:.1f}% {re.sub(r':[0-9]+[)]$', ')', row['name'])}"
            for row in table["rows"][:ROWS]]


def whole(summary, what):
    found = re.search(what + r".*?([\d.]+) %", summary)
    return found[1] if found else "-"


def process_names(summary):
    """"gunicorn ×21": how often each name stands in the table of processes."""
    lines = summary.partition("\nProcesses\n")[2].partition("\n\n")[0].splitlines()[1:]
    names = collections.Counter(re.sub(r" +\d+\.\d+\.\d+.*", "", re.sub(r"^ *\d+ *", "", line)).strip() for line in lines)
    return ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in names.items())


def record(name, seconds, folder):
    """Records one program with both; returns the two files. py-spy's is None when it fails, as it does with some."""
    program = programs.PROGRAMS[name]
    trace, raw = folder / f"{name}.bin", folder / f"{name}.raw"
    with programs.running(name) as process:
        spy = subprocess.Popen([venvs.venv("py-spy") / "bin/py-spy", "record", "-s", "--native", "-F", "-f", "raw", "-r", "100",
                                "-d", str(seconds), "-o", raw, "-p", str(process.pid)], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
        subprocess.run([PYCAP, "record", "-q", "-F", str(program.hz), "-d", str(seconds), "-o", trace, "-p", str(process.pid)],
                       check=True)
        spy.wait()
    return trace, raw if raw.exists() and raw.stat().st_size else None


def print_program(name, trace, raw):
    program = programs.PROGRAMS[name]
    summary = pysym(trace, "-f", "summary", "-v")
    stacks = stacks_of(pysym(trace, "-f", "folded", "--merge", "all"))
    samples = sum(count for _, count in stacks)
    version = re.search(r"^ +\d+ .*? (\d+\.\d+\.\d+)", summary, re.M)
    theirs = stacks_of(raw.read_text()) if raw else []
    theirs = [([frame for frame in frames if not frame.startswith("process ")], count) for frames, count in theirs]
    print(f"| {program.title} | {version[1] if version else '-'} | {samples:,} | {whole(summary, 'Python stacks that reached')} | "
          f"{whole(summary, 'native stacks that reached')} | {process_names(summary)} | {median_depth(stacks)} | "
          f"{median_depth(theirs) or '-'} |")
    ours, spy = top_rows(trace), hottest(theirs)
    lines = [f"{'pycap':60}  py-spy --native"]
    for i in range(max(len(ours), len(spy))):
        lines.append(f"{(ours[i] if i < len(ours) else '')[:60]:60}  {(spy[i] if i < len(spy) else '')[:60]}".rstrip())
    return "\n".join(["", f"{program.title}, Python {version[1] if version else '?'}:", "", "```", *lines, "```"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--keep", type=pathlib.Path, help="where traces are kept")
    parser.add_argument("programs", nargs="*", default=list(programs.PROGRAMS))
    arguments = parser.parse_args()
    print("| program | Python | samples | Python whole, % | native whole, % | processes | depth | py-spy's |")
    print("|---|---|--:|--:|--:|---|--:|--:|")
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or pathlib.Path(temporary)
        folder.mkdir(exist_ok=True)
        for name in arguments.programs:
            try:
                rows.append(print_program(name, *record(name, arguments.seconds, folder)))
            except (venvs.Missing, RuntimeError, subprocess.CalledProcessError) as error:
                print(f"{name}: {error}", file=sys.stderr)
            sys.stdout.flush()
    print("\n".join(rows))


if __name__ == "__main__":
    main()
