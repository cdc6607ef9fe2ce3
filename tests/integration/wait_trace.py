# SPDX-License-Identifier: Apache-2.0
"""What a trace says of waits, read from pysym's dump, and what holds of every such trace."""
import collections
import json
import os
import pathlib
import re
import subprocess

from trace_text import script_samples

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYSYM = os.environ.get("PYSYM", str(ROOT / "build/pysym"))
KINDS = {int(number): text for number, text in
         re.findall(r'V\(WAIT, \w+, (\d+), "([^"]+)"\)', (ROOT / "formats/trace/enums.def").read_text())}
CONTINUES = 32
OWED = 64
TICK_SKIPPED = 4  # of losses.def

Sample = collections.namedtuple("Sample", "thread time_ns value flags labels")


class Trace:
    """The records of a trace with one epoch that say something of waits."""

    def __init__(self, path):
        done = subprocess.run([PYSYM, "--format", "dump", path], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode in (0, 3), done.stderr  # 3: it is being written
        text = done.stdout
        strings, labels, names, event = {}, [()], {}, None
        self.samples, self.times, self.losses, self.ticks = [], [], collections.Counter(), collections.Counter()
        self.clock = collections.Counter()  # of cpu-clock: ticks by thread
        self.tids = {}  # by thread
        self.periods = []  # of off-cpu, that were set while it was recorded
        for line in text.splitlines():
            name, _, rest = line.strip().partition(" ")
            fields = dict(re.findall(r'(\w+)=(\[[^]]*\]|"(?:[^"\\]|\\.)*"|\S+)', rest))
            if name == "string":
                strings[len(strings) + 1] = fields["data"].strip('"')
            elif name == "label_set":
                labels.append([tuple(strings[int(s)] for s in pair.split(",")) for pair in fields["pairs"].strip("[]").split()])
            elif name == "event":
                names[str(len(names) + 1)] = strings[int(fields["name"])]
            elif name == "samples":
                event = names[fields["event"]]
            elif name == "sample" and event == "off-cpu":
                self.samples.append(Sample(int(fields["thread"]), int(fields["time_ns"]), int(fields["value"]),
                                           int(fields["flags"], 16), dict(labels[int(fields.get("label_set", 0))])))
            elif name == "sample" and event == "cpu-clock":
                self.clock[int(fields["thread"])] += 1
            elif name == "thread":
                self.tids[int(fields["id"])] = int(fields["tid"])
            elif name == "thread_time":
                rows = [tuple(map(int, row.split(","))) for row in fields["waits"].strip("[]").split()]
                self.times.append((int(fields["thread"]), int(fields["since_ns"]), int(fields["until_ns"]),
                                   int(fields["on_cpu_ns"]), rows))
            elif name == "period" and names[fields["event"]] == "off-cpu":
                self.periods.append(int(fields["period"]))
            elif name == "loss":
                self.losses[int(fields["reason"]), names.get(fields["event"])] += int(fields["count"])
            elif name == "ticks" and names[fields["event"]] == "off-cpu":
                self.ticks.update({k: int(fields[k]) for k in ("seen", "thinned", "idle", "unsampled")})

    def written(self):
        """By thread and kind, in ns."""
        out = collections.Counter()
        for s in self.samples:
            out[s.thread, s.labels["wait"]] += s.value
        return out

    def exact(self):
        out = collections.Counter()
        for thread, _, _, _, rows in self.times:
            for kind, ns, _ in rows:
                out[thread, KINDS[kind]] += ns
        return out

    def accounts(self):
        """By tid, in ns: {"wall", "ran", "queued" (wanted to run, woken or preempted), "off" (all kinds)}."""
        out = collections.defaultdict(collections.Counter)
        for thread, since, until, on_cpu, rows in self.times:
            queued = sum(ns for kind, ns, _ in rows if KINDS[kind] in ("run queue", "preempted"))
            out[self.tids[thread]].update(wall=until - since, ran=on_cpu, queued=queued, off=sum(ns for _, ns, _ in rows))
        return out

    def check_sums(self, executes=False):
        """What holds of every trace: the times of a thread add up, and each switch is accounted for. Where a program executes
        another one, switches until that is known are `unsampled`."""
        assert self.times and self.samples
        for thread, since, until, on_cpu, rows in self.times:
            assert since + on_cpu + sum(ns for _, ns, _ in rows) == until, thread
        lost = sum(n for (_, event), n in self.losses.items() if event == "off-cpu")
        first = sum(not s.flags & CONTINUES for s in self.samples)
        unsampled = self.ticks["unsampled"]
        assert self.ticks["seen"] == first + self.ticks["thinned"] + unsampled + lost, (self.ticks, first, self.losses)
        assert not self.ticks["idle"] and (executes or not unsampled)


def clock_error(account, truth, *clocks):
    """How far an account is from what thread_clocks.py says of the thread, of its time. Between its last words and its end a
    thread may still run and wait, for as long as it is seen from outside."""
    rest = truth["outside"] - truth["wall"]
    return max(max(truth[what] - account[what], account[what] - truth[what] - rest, 0) / truth["wall"] for what in clocks)


def waits_in(text, names):
    """By function of `names`, in ns: samples of off-cpu in perf-script's output with that function in their stack."""
    out = collections.Counter()
    for s in script_samples(text):
        for name in set(s.functions) & names:
            out[name] += s.value if s.event == "off-cpu" else 0
    return out


def waits_of(pysym, trace, names):
    """By function of `names`, in ns: samples of off-cpu with that function in their stack."""
    done = pysym(trace, "--format", "perf-script", "--event", "off-cpu")
    assert done.returncode in (0, 3), done.stderr
    return waits_in(done.stdout, set(names))


def check_functions(pysym, trace, truth):
    """Each function waited for as long as its own clock says. A thread that could have run has one place wherever it was
    preempted, and not each time a stack: so which function that was is chance, of which the thread's whole time in this kind is
    the bound. All else is within 2 % on a machine with nothing else to do: the clock, which leaves out what a host steals, is
    read before and after the calls. Five times that is allowed."""
    done = pysym(trace, "--format", "ndjson", "--event", "off-cpu")
    assert done.returncode in (0, 3), done.stderr
    stacks, found, preempted, threads = {}, collections.Counter(), collections.Counter(), {}
    for row in map(json.loads, done.stdout.splitlines()):
        if row["type"] == "stack":
            stacks[row["stack"]] = truth.keys() & {f["function"] for f in row["frames"] if f["layer"] == "python"}
        elif row["type"] == "sample" and row["labels"]["wait"] == "preempted":
            preempted[row["tid"]] += row["value"]
        elif row["type"] == "sample":
            for name in stacks[row["stack"]]:
                found[name] += row["value"]
                threads[name] = row["tid"]
    for name, waited in truth.items():
        by_chance, allowed = preempted[threads.get(name)], 0.1 * waited + 5e6
        assert waited - by_chance - allowed <= found[name] <= waited + allowed, (name, found, truth, preempted)


def off_cpu_samples(trace):
    """The samples of a trace's waits, as script_samples() has them."""
    done = subprocess.run([PYSYM, trace, "--format", "perf-script", "--event", "off-cpu", "--interpreter", "calls"],
                          capture_output=True, text=True, timeout=300, check=False)
    return list(script_samples(done.stdout))


def stacks_of(trace):
    """By tid: the stacks in which threads waited, names of Python functions without their class, innermost first, and for how
    many ns."""
    out = collections.defaultdict(collections.Counter)
    for s in off_cpu_samples(trace):
        out[s.tid][tuple(name.rpartition(".")[2] for name in s.functions)] += s.value
    return out
