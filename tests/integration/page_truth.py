# SPDX-License-Identifier: Apache-2.0
"""What the page of `pysym -f html` has to show, worked out from what pysym's other formats say of the same samples."""
import collections
import decimal
import json
import re

import profile_readers
from frame_names import clean, spelled

LAYERS = ("python", "native", "kernel")


def rounded(number, digits):
    """As JavaScript's toFixed() rounds: exactly, and halves up."""
    unit = decimal.Decimal(1).scaleb(-digits)
    return str(decimal.Decimal(number).quantize(unit, decimal.ROUND_HALF_UP))


def percent(part, whole):
    return rounded(100 * part / whole if whole else 0, 1) + "%"


class Truth:
    """A trace's samples as `pysym -f ndjson` writes them with these options; `run` is the fixture pysym."""

    def __init__(self, run, trace, *options):
        self.run, self.trace, self.options = run, trace, ("--no-host", *options)
        self.samples, self.frames = profile_readers.ndjson(self._out("-f", "ndjson"))
        self.first_ns = min((s["time_ns"] for s in self.samples), default=0)
        # Short names of Python's files are top's.
        self.short = {}
        for event in self.top():
            for row in event["rows"]:
                short = re.search(r" \((.*)\)$", row["name"], re.S)
                if row["layer"] == "python" and row.get("file") and short:
                    self.short[row["file"]] = re.sub(r":\d+$", "", short[1])

    def _out(self, *options):
        done = self.run(self.trace, *self.options, *options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def top(self, *options):
        """The events of `top`, each with all of its rows."""
        events = json.loads(self._out("-f", "top", "--json", "--top", "0", *options))["events"]
        return [{**event, "rows": [row for table in event["tables"] for row in table["rows"]]} for event in events]

    def event(self, name, *options):
        return next(event for event in self.top(*options) if event["event"] == name)

    def name(self, frame, by="function"):
        """The name of a frame as `top` has it."""
        line = frame["line"] if by == "line" else frame["function_line"] if frame["layer"] == "python" else 0
        if frame["layer"] == "python":
            return spelled({**frame, "file": self.short.get(frame["file"], frame["file"]), "line": line})
        name = spelled({**frame, "file": ""})
        if line and frame["file"] and frame["layer"] != "mark":
            name = spelled({**frame, "file": "", "builtin": ""}) + f" ({clean(re.sub(r'.*/(?=.)', '', frame['file']))}:{line})"
        return name

    def stacks(self, event, by="function", chosen=lambda sample: True):
        """{names, outermost first: (weight, samples)} of an event."""
        names = {number: tuple(self.name(frame, by) for frame in frames) or ("[no frames]",)
                 for number, frames in self.frames.items()}  # fmt: skip
        sums = collections.defaultdict(lambda: [0, 0])
        for sample in self.samples:
            if sample["event"] == event and chosen(sample):
                sums[names[sample["stack"]]][0] += sample["value"]
                sums[names[sample["stack"]]][1] += 1
        return {names: tuple(sum_) for names, sum_ in sums.items()}


# ---- sums over stacks ----


def tree(stacks):
    """{path from the root: weight of all stacks that begin so}."""
    sums = collections.Counter()
    for names, (weight, _) in stacks.items():
        for depth in range(1, len(names) + 1):
            sums[names[:depth]] += weight
    return sums


def inverted(stacks):
    """{path from the leaf outwards: weight}."""
    return tree({names[::-1]: sums for names, sums in stacks.items()})


def neighbours(stacks, name):
    """Of the outermost activation of a function on each stack: {caller: weight}, {callee: weight}. None: no caller."""
    callers, callees = collections.Counter(), collections.Counter()
    for names, (weight, _) in stacks.items():
        if name in names:
            at = names.index(name)
            callers[names[at - 1] if at else None] += weight
            if at + 1 < len(names):
                callees[names[at + 1]] += weight
    return callers, callees


def matching(stacks, pattern):
    """The weight of stacks with a name that matches."""
    return sum(weight for names, (weight, _) in stacks.items() if any(re.search(pattern, name) for name in names))


# ---- as the page writes it ----


def figure(event, value, whole):
    """An amount in a table whose whole amount is `whole`."""
    if not value:
        return ""
    if event["unit"] == "bytes":
        return size(value)
    if event["unit"] != "ns":
        return f"{value:,}"
    return rounded(value / 1e9, 2) + " s" if whole >= 1e9 else rounded(value / 1e6, 1) + " ms"


def size(value):
    units = ["B", "KiB", "MiB", "GiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value} {units[0]}" if units[0] == "B" else f"{rounded(value, 1)} {units[0]}"


def amount(event, value):
    """An amount in a sentence."""
    if event["unit"] == "bytes":
        return size(value)
    if event["unit"] != "ns":
        return f"{value:,} {event['unit']}"
    for ns, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if value >= ns:
            return f"{rounded(value / ns, 1 if value < 100 * ns else 0)} {unit}"
    return f"{value} ns"


def share(part, whole):
    """A share in a sentence: what is not nothing is never "0 %", and what is not all never "100 %"."""
    if not whole:
        return ""
    value = 100 * part / whole
    if part and value < 0.05:
        return "under 0.1 %"
    return (rounded(min(value, 99.9), 1) if part and part != whole else rounded(value, 0)) + " %"
