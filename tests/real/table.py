#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Makes the tables of real programs in docs/accuracy.md: runs each program of programs.py, records it with pycap and, at the
same time, with py-spy --native, and prints how much of the stacks was seen and the first ten rows of both. With --group,
runs the programs of a group of judged.py from their start to their end and judges them by their own clocks.

usage: table.py [--seconds N] [--keep DIR] [PROGRAM...]
       table.py --group ml|services [--keep DIR] [--options "PYCAP OPTIONS"] [PROGRAM...]

By root, on a machine that does nothing else. Programs come from PyPI; what cannot be had is left out with the reason. The
environment `ml` is 9 GB large. Ends with 1 if a program of a group is beyond a bound.
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

import judge
import judged
import programs
import venvs
sys.path.insert(0, str(programs.APPS))
import clocks  # noqa: E402

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


JUDGED_HEAD = """\
| program | samples | Python whole, % | native whole, % | judged, % | MKL, generated | phases | largest error | chance |
|---|--:|--:|--:|--:|--:|--:|---|--:|"""


def percent(share):
    return "-" if share is None else f"{share:.1f}"


def judge_program(program, name, folder, options):
    """Records one of a group; its row, and the bounds that it is beyond of with what cuts its stacks."""
    own = folder / name
    own.mkdir()
    trace = own / "trace.bin"
    judged.record(PYCAP, program, trace, own / "clocks", options)
    status = json.loads(pysym(trace, "-f", "summary", "--json"))["files"][0]["settings"].get("command.exit_status")
    if status != "0" and not program.seconds:
        raise RuntimeError(f"the program has ended with {status}: " + (trace.with_suffix(".out").read_text().strip() or "?")[-300:])
    verdict = judge.judge(PYSYM, trace, clocks.read(own / "clocks") if program.clocked else {}, 1 / program.hz)
    worst = f"{verdict.worst.errors:+.1f} {verdict.worst.name}" if verdict.worst else "-"
    print(f"| {program.title} | {verdict.count:,} | {percent(verdict.python)} | {percent(verdict.native)} | "
          f"{percent(verdict.settled)} | {verdict.apart['MKL']}, {verdict.apart['generated']} | {len(verdict.phases) or '-'} | "
          f"{worst} | {f'{verdict.chance:.2g}' if verdict.phases else '-'} |")
    if not verdict.misses:
        return []
    cut = [f"  {count} {reason}: {where}" for (reason, where), count in verdict.cut.most_common(ROWS)]
    return [f"{name}: {'; '.join(verdict.misses)}", *cut]


def judge_group(group, names, folder, options):
    missed = []
    print(JUDGED_HEAD)
    for name in names or judged.GROUPS[group]:
        try:
            missed += judge_program(judged.GROUPS[group][name], name, folder, options)
        except (venvs.Missing, RuntimeError, subprocess.SubprocessError) as error:
            print(f"{name}: {error}", file=sys.stderr)
        sys.stdout.flush()
    print("\n".join(["", "Beyond a bound:", *missed] if missed else []))
    return 1 if missed else 0


def show_all(names, seconds, folder):
    print("| program | Python | samples | Python whole, % | native whole, % | processes | depth | py-spy's |")
    print("|---|---|--:|--:|--:|---|--:|--:|")
    rows = []
    for name in names or programs.PROGRAMS:
        try:
            rows.append(print_program(name, *record(name, seconds, folder)))
        except (venvs.Missing, RuntimeError, subprocess.CalledProcessError) as error:
            print(f"{name}: {error}", file=sys.stderr)
        sys.stdout.flush()
    print("\n".join(rows))
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--keep", type=pathlib.Path, help="where traces are kept")
    parser.add_argument("--group", choices=judged.GROUPS)
    parser.add_argument("--options", default="", help="for pycap record, with --group")
    parser.add_argument("programs", nargs="*")
    arguments = parser.parse_args()
    known = judged.GROUPS[arguments.group] if arguments.group else programs.PROGRAMS
    if set(arguments.programs) - set(known):
        parser.error(f"the programs are {', '.join(known)}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if arguments.group:
            return judge_group(arguments.group, arguments.programs, folder, arguments.options.split())
        return show_all(arguments.programs, arguments.seconds, folder)


if __name__ == "__main__":
    sys.exit(main())
