# SPDX-License-Identifier: Apache-2.0
"""
Judges a recording of a program that keeps clocks of its own (apps/clocks.py): whether its phases have the shares of the time
that the clocks say, whether its stacks are whole, and where those end that are not.
"""
import collections
import json
import math
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOSSES = {int(number): (name, its_class) for number, name, its_class in re.findall(
    r"^LOSS\((\d+), (\w+), (\w+), ", (ROOT / "formats/trace/losses.def").read_text(), re.M)}
NO_STACK = ("none", "expected")  # none was asked for, or the thread has none
# Bounds: of the chance that shares differ so much, of the errors of one phase, of whole native stacks.
LEAST_CHANCE, MOST_ERRORS, LEAST_WHOLE = 0.001, 4, 98
# Until then a table may be missing, as libraries are read and tables made.
SETTLED_S = 10

# `frames`: outermost first, as rows of ndjson; `native`, `python`: how the stacks ended, names of losses.def.
Sample = collections.namedtuple("Sample", "time_s thread weight frames native python")
# A phase's seconds in the trace, those of its clock brought to the same sum, and the difference in standard errors.
Phase = collections.namedtuple("Phase", "name traced clocked errors")


def lines_of(pysym, trace, *options):
    with subprocess.Popen([pysym, trace, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as done:
        yield from done.stdout


def ends(pysym, trace):
    """How the native and the Python stack of each sample ended, by the sample's time and CPU."""
    tuples, found = {}, {}
    for line in lines_of(pysym, trace, "-f", "dump"):
        if match := re.match(r"tuple id=(\d+) .*python_end=(\d+) native_end=(\d+)", line):
            tuples[match[1]] = int(match[3]), int(match[2])
        elif match := re.match(r"  sample time_ns=(\d+) thread=\d+ tuple=(\d+) cpu=(\d+)", line):
            found[int(match[1]), int(match[3])] = tuples[match[2]]
    return found


def samples(pysym, trace):
    found, stacks, begin = ends(pysym, trace), {}, None
    out = []
    for line in lines_of(pysym, trace, "-f", "ndjson", "--interpreter", "show"):
        row = json.loads(line)
        if row["type"] == "stack":
            stacks[row["stack"]] = row["frames"]
        else:
            begin = begin or row["time_ns"]
            native, python = found[row["time_ns"], row["cpu"]]
            out.append(Sample((row["time_ns"] - begin) / 1e9, (row["pid"], row["tid"]), row["value"] / 1e9,
                              stacks[row["stack"]], LOSSES.get(native, NO_STACK), LOSSES.get(python, NO_STACK)))
    return out


def chance(squares, freedom):
    """That squares of so many independent normal deviations add up to so much or more."""
    if freedom % 2 == 0:
        term = total = math.exp(-squares / 2)
        for n in range(1, freedom // 2):
            term *= squares / 2 / n
            total += term
        return total
    total = math.erfc(math.sqrt(squares / 2))
    term = math.sqrt(2 * squares / math.pi) * math.exp(-squares / 2)
    for n in range(3, freedom + 1, 2):
        total += term
        term *= squares / n
    return total


def phases(found, clocks, period):
    """Of all phases. A sample belongs to the phase that is on its stack."""
    traced = collections.Counter()
    for sample in found:
        name = next((f["function"] for f in sample.frames if f["layer"] == "python" and f["function"] in clocks), None)
        traced[name] += sample.weight
    scale = sum(traced[name] for name in clocks) / sum(clocks.values())
    return [Phase(name, traced[name], seconds * scale,
                  (traced[name] - seconds * scale) / math.sqrt(seconds * scale * period)) for name, seconds in clocks.items()]


def place(sample):
    """Where a native stack ends that is cut: its outermost frame's library and function."""
    frame = next((f for f in sample.frames if f["layer"] not in ("mark", "python", "kernel")), None)
    if frame is None:
        return "no native frame"
    return f"{frame['module'].rpartition('/')[2] or 'generated code'} {frame['function'] or frame['address']}"


def known_limit(where):
    """The kind of code that is known to have no call frame information that pycap can read, or None."""
    if re.search(r" mkl_|^libmkl_", where):
        return "MKL"
    return "generated" if re.match(r"generated code|perf-\d+\.map ", where) else None


class Verdict:
    """What is known of one recording; `misses`: the bounds that it is beyond of."""

    def __init__(self, found, clocks, period):
        self.count = len(found)
        self.phases = phases(found, clocks, period) if clocks else []
        self.squares = sum(phase.errors ** 2 for phase in self.phases)
        self.freedom = max(1, len(self.phases) - 1)
        self.chance = chance(self.squares, self.freedom)
        self.worst = max(self.phases, key=lambda phase: abs(phase.errors), default=None)
        self.native = self.whole([s for s in found if s.native[1] != "expected"])
        judged = [s for s in found if s.native[1] != "expected" and not (s.native[0] == "table_missing" and s.time_s < SETTLED_S)]
        self.apart = collections.Counter(known_limit(place(s)) for s in judged if s.native[0] != "complete")
        judged = [s for s in judged if s.native[0] == "complete" or not known_limit(place(s))]
        self.settled = self.whole(judged)
        self.cut = collections.Counter((s.native[0], place(s)) for s in judged if s.native[0] != "complete")
        threads = {s.thread for s in found if s.python[0] == "complete"}
        self.no_python = collections.Counter(s.python[0] for s in found if s.thread in threads and
                                             s.python[1] in ("no_python", "outdated", "expected"))
        of_python = [s for s in found if s.python[1] not in ("no_python", "expected")]
        self.python = self.whole(of_python, lambda s: s.python)
        self.python_cut = collections.Counter(s.python[0] for s in of_python if s.python[0] != "complete")

    @staticmethod
    def whole(found, end=lambda s: s.native):
        return 100 * sum(end(s)[0] == "complete" for s in found) / len(found) if found else None

    @property
    def misses(self):
        out = []
        if self.phases and self.chance < LEAST_CHANCE:
            out.append(f"shares: chance {self.chance:.2g}")
        if self.worst and abs(self.worst.errors) > MOST_ERRORS:
            out.append(f"{self.worst.name}: {self.worst.errors:+.1f} errors")
        if self.settled is not None and self.settled < LEAST_WHOLE:
            out.append("native stacks")
        if self.no_python["no_thread_state"]:
            out.append(f"no Python frames in {self.no_python['no_thread_state']} samples of threads of Python")
        return out


def judge(pysym, trace, clocks, period):
    return Verdict(samples(pysym, trace), clocks, period)
