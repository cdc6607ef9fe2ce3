#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/benchmarks.md, and of docs/benchmarks-tables.md those of the sampler: measured piece by piece, then filled in.

Each piece takes less than three minutes and leaves FOLDER/PIECE.md. A piece that is there is not measured again, so that a run can be
broken off and go on; --pieces names some of them. --against OLD compares with another build of pycap in turns. --fill puts what the
folder has between the marks of the two pages.

usage: claims.py FOLDER [--against OLD] [--pieces NAME,...] [--fill] [--list]
"""
import argparse
import contextlib
import io
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

import turns
from recorders import ROOT

BENCH = pathlib.Path(__file__).resolve().parent
DEBIAN = "/usr/bin/python3"
PAGES = ("docs/benchmarks.md", "docs/benchmarks-tables.md")
FRAMES = {"pycap": "Python, native, kernel", "pycap, Python only": "Python, kernel", "perf dwarf 64 KiB": "native, kernel",
          "perf dwarf 8 KiB": "native, kernel; stacks cut", "perf -g": "native, kernel; short, as Debian keeps no frame pointers",
          "py-spy": "Python", "py-spy --nonblocking": "Python", "py-spy --native": "Python, native", "austin": "Python",
          "profiling.sampling": "Python"}


def pyenv(version):
    versions = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv") / "versions"
    found = sorted(versions.glob(f"{version}.*/bin/python3"))
    return [str(found[-1])] if found else []


def turns_pieces(folder, against):
    """31 pairs of 3.11 and 3.13 at both rates, fewer of the others. At 99 Hz in two pieces, which add up."""
    cases = [(python, 999, 31, "") for python in [DEBIAN, *pyenv("3.13")]]
    cases += [(python, 99, pairs, half) for python in [*pyenv("3.13"), DEBIAN] for pairs, half in ((16, "-a"), (15, "-b"))]
    cases += [(python, 999, 8, "") for python in [*pyenv("3.12"), "sid:3.14", "sid:3.15"]]
    for python, hz, pairs, half in cases:
        yield f"turns-{name_of(python)}-{hz}{half}", 125 if pairs > 8 else 35, [
            "turns.py", "--against", against, "--python", python, "--rates", str(hz), "--pairs", str(pairs), "--within", "140",
            "--window", "1" if hz > 500 else "3", "--append", f"{folder}/turns.pairs"]


def name_of(python):
    found = re.search(r"3\.\d+", python)
    return found[0] if found else "3.11"


def pieces_of(folder, against):
    """(name, seconds it takes, command), the most wanted first."""
    turned = list(turns_pieces(folder, against)) if against else []
    yield from turned[:2]
    for python, only in [(DEBIAN, "pycap,austin,py-spy,perf -g"), ("sid:3.15", "pycap,austin,profiling.sampling"),
                         *[(path, "pycap,austin") for path in pyenv("3.13")]]:
        yield f"beside-{name_of(python)}", 33 * len(only.split(",")), ["beside.py", "--pythons", python, "--only", only, "--rounds", "6"]
    yield from turned[2:6]
    yield "start", 110, ["start.py", "--rounds", "7"]
    yield "stages-999", 25, ["stages.py", "--python", ",".join([DEBIAN, *pyenv("3.13")])]
    yield "stages-99", 35, ["stages.py", "--python", ",".join([DEBIAN, *pyenv("3.13")]), "--rates", "99", "--seconds", "8"]
    yield "day", 30, ["bench.py", "--part", "day", "--hours", "1,24", "--rounds", "3"]
    yield from turned[6:]
    # In two halves: in less than three minutes each.
    yield "recording-pycap", 90, ["bench.py", "--part", "recording", "--workloads", "mixed", "--rounds", "1", "--seconds", "2",
                                   "--only", "pycap,empty"]
    yield "recording-peers", 125, ["bench.py", "--part", "recording", "--workloads", "mixed", "--rounds", "1", "--seconds", "2",
                                   "--only", "perf,py-spy,austin,profiling"]


def measure(folder, options):
    begun = time.monotonic()
    for name, _, command in pieces_of(folder, options.against):
        out = folder / f"{name}.md"
        if out.exists() or options.pieces and not any(name.startswith(piece) for piece in options.pieces):
            continue
        start, load = time.monotonic(), os.getloadavg()[0]
        done = subprocess.run([*shlex.split(options.under), sys.executable, str(BENCH / command[0]), *command[1:]], stdout=subprocess.PIPE,
                              text=True, check=False)
        if done.returncode:
            print(f"{name}: exit code {done.returncode}, nothing kept", flush=True)
            continue
        out.write_text(done.stdout)
        print(f"{name}: {time.monotonic() - start:.0f} s, {time.monotonic() - begun:.0f} s in all; load average {load:.1f} before", flush=True)


def rows(text, *heads):
    """Lines of tables whose first cell is one of those."""
    return [line for line in text.splitlines() if line.startswith("|") and line.split("|")[1].strip() in heads]


def text_of(folder, prefix):
    return "\n".join(path.read_text() for path in sorted(folder.glob(f"{prefix}*.md")))


def once(lines):
    """Tables that were printed in pieces have one head."""
    return "\n".join(line for at, line in enumerate(lines) if line not in lines[:at])


def host_rows(lines):
    """Of the rows of each recorder at both rates one row: what a host notices."""
    cells = {}
    for line in lines:
        row = [cell.strip() for cell in line.split("|")[1:-1]]
        cells[row[1], row[2]] = row
    for name, frames in FRAMES.items():
        slow, fast = cells.get((name, "99")), cells.get((name, "999"))
        if slow and fast:
            size = "counts only" if name.startswith(("py-spy", "profiling")) else f"{int(fast[10]):,}"
            yield f"| {name} | {frames} | {slow[9]} | {fast[9]} | {fast[5].split(' ')[0]} % | {size} |"


def tables_of(folder):
    """By the name of the mark; without those that were not measured."""
    tables = {}
    if (folder / "turns.pairs").exists():
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            turns.print_file(folder / "turns.pairs", short=True)
        tables["turns"] = text.getvalue()
    beside = [line for line in text_of(folder, "beside").splitlines() if line.startswith("|")]
    tables["beside"] = once(beside)
    tables["stages"] = text_of(folder, "stages")
    tables["start"] = text_of(folder, "start")
    tables["day"] = "\n".join(line for line in text_of(folder, "day").splitlines() if line.startswith("|"))
    recording = [line for line in text_of(folder, "recording").splitlines() if re.match(r"\| (workload|mixed) |\|---\|---\|(--:\|){13}$", line)]
    tables["recording"] = once(recording)
    measured = list(host_rows(rows("\n".join(recording), "mixed")))
    tables["host"] = "\n".join([
        "| recorder | frames | at 99 Hz, % of a core | at 999 Hz | the program's wall time at 999 Hz | bytes a sample at 999 Hz |",
        "|---|---|--:|--:|--:|--:|", *measured]) if measured else ""
    return {name: text.strip() for name, text in tables.items() if text.strip()}


def fill(text, tables):
    """A page with what was measured between its marks."""
    def table(found):
        measured = re.sub(r"\S*/versions/([\d.]+)/bin/python3", r"\1", tables.get(found[1], "")).replace(DEBIAN, "Debian's 3.11")
        return f"<!-- measured: {found[1]} -->\n{measured}\n<!-- end -->" if measured else found[0]
    return re.sub(r"<!-- measured: (\w+) -->\n.*?<!-- end -->", table, text, flags=re.S)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--against", metavar="PYCAP", default="", help="an older build, for the turns")
    parser.add_argument("--pieces", type=lambda s: s.split(","), help="those whose names begin so")
    parser.add_argument("--under", default="", metavar="COMMAND", help="what runs each piece, such as flock or timeout")
    parser.add_argument("--fill", action="store_true", help="fill the pages instead of measuring")
    parser.add_argument("--list", action="store_true", help="the pieces, and how long they take")
    options = parser.parse_args()
    if options.fill:
        for page in PAGES:
            path = ROOT / page
            path.write_text(fill(path.read_text(), tables_of(options.folder)))
    elif options.list:
        total = 0
        for name, seconds, command in pieces_of(options.folder, options.against):
            total += seconds
            print(f"{seconds:4} {total:5}  {name}: {shlex.join(command)}")
    else:
        options.folder.mkdir(parents=True, exist_ok=True)
        measure(options.folder, options)


if __name__ == "__main__":
    main()
