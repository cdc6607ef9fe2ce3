# SPDX-License-Identifier: Apache-2.0
"""Where the ticks of a capture went, as its files tell: read from `pysym --format dump`."""
import collections
import os
import pathlib
import re
import subprocess

import chance

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What the scheduler may leave out of a program's CPU time at each preemption, on average: see uncounted_ns().
PREEMPTION_NS = 50_000
ROWS = re.findall(r"^LOSS\((\d+), (\w+), (\w+), ", (ROOT / "formats/trace/losses.def").read_text(), re.M)
LOSSES = {int(number): name for number, name, _ in ROWS}
# What a program uses after it has read its clock, and what its clock lacks of its beginning.
END_NS = 50e6
# What stands in a stack for frames that are missing.
MARKS = {"[torn]", "[truncated]", "[no frames]", "[no Python frames]"}
# Of a trace: a block behind it holds records.
TRACE_HEAD_BYTES = 24
# Samples that the sampler ran for and that are not in the file, by their class.
SEEN_BUT_LOST = tuple(name for _, name, its_class in ROWS if its_class == "sample")
assert SEEN_BUT_LOST

Sample = collections.namedtuple("Sample", "time_ns cpu pid start_ns weight")


class Account:
    """One file's, or the sum of several."""

    def __init__(self):
        self.samples = []
        self.losses = collections.Counter()
        self.seen = self.idle = self.unsampled = self.count_ns = 0
        self.ends = []  # reason of END, a file each; None: it has none
        self.periods = 0  # changes of the rate

    def __add__(self, other):
        out = Account()
        for one in (self, other):
            out.samples += one.samples
            out.losses.update(one.losses)
            out.seen += one.seen
            out.idle += one.idle
            out.unsampled += one.unsampled
            out.count_ns += one.count_ns
            out.ends += one.ends
            out.periods += one.periods
        return out

    @property
    def residue(self):
        """Ticks the sampler saw that are neither samples nor counted. None are."""
        return (self.seen - self.idle - self.unsampled - len(self.samples) -
                sum(self.losses[name] for name in SEEN_BUT_LOST))

    @property
    def early(self):
        """Ticks of Python processes before they, or the program that they had just begun, were known: what ran then is not
        told of."""
        return self.losses["not_yet_known"] + self.losses["known_late"] + self.losses["stale_config"]

    @property
    def missing(self):
        """Ticks that tell nothing of what a program did: early ones, those that the kernel skipped, and those that were lost."""
        return self.early + sum(self.losses[name] for name in ("tick_skipped", "ring_full", "process_gone"))

    @property
    def skipped(self):
        """The most that ticks can be of all, as a share, which the kernel skipped: where the host took a CPU away. Clocks
        may count that time, samples do not."""
        return self.losses["tick_skipped"] / max(1, len(self.samples) + self.losses["tick_skipped"])

    @property
    def weight_ns(self):
        return sum(s.weight for s in self.samples)

    @property
    def weights(self):
        """In ns."""
        return [s.weight for s in self.samples]

    def check_cpu(self, cpu_ns, stolen_ns=0, preemptions=0):
        """
        The weights are the CPU time that the kernel says, within chance, what was lost by name, and what was skipped: ticks
        that never came; where a neighbour of this machine had the CPU meanwhile, the late one stands for none of ours.
        `stolen_ns`: what neighbours had of the CPUs in that time. The kernel takes it off a program's CPU time, and off
        ticks only where it is longer than a period. `preemptions`: how often the program was preempted (ru_nivcsw).
        """
        longest_ns = max(s.weight for s in self.samples)
        slack_ns = chance.of_sum(self.weights) + END_NS + self.losses["tick_skipped"] * longest_ns
        lost_ns = sum(self.losses[name] for name in ("ring_full", "known_late", "process_gone")) * longest_ns
        more_ns = stolen_ns + uncounted_ns(preemptions)
        assert -slack_ns - more_ns <= cpu_ns - self.weight_ns <= slack_ns + lost_ns, \
            f"{cpu_ns / 1e9:.3f} s of CPU, {stolen_ns / 1e9:.3f} s stolen, {preemptions} preemptions, " \
            f"{self.weight_ns / 1e9:.3f} s in samples; {self.text()}"

    def text(self):
        return (f"{self.seen} ticks seen = {self.idle} idle + {self.unsampled} of others + {len(self.samples)} samples + "
                f"{sum(self.losses[name] for name in SEEN_BUT_LOST)} lost + {self.residue} unaccounted; losses "
                f"{dict(self.losses)}")


def uncounted_ns(preemptions):
    """
    What the kernel's CPU time may lack of a program that was preempted so often. Where another thread is woken that is to run
    next, the scheduler reads its clock, and does not read it again at the switch (rq_clock_skip_update()): what the program
    does until then, such as the rest of a fork, counts for the other thread. Ticks see who ran. Short-lived processes are
    preempted thousands of times a second, also by pycap as it reads about them. With bpf_ktime_get_ns() at each switch as
    the witness (Linux 6.18, two virtual CPUs) their CPU time lacked 6 to 19 us a preemption, and up to 5 % in all; samples were
    within 1 % of it. Five times 10 us are allowed.
    """
    return preemptions * PREEMPTION_NS


def is_begun(trace):
    """Whether a trace has records. A file that was just made is empty, and none that pysym reads."""
    return trace.exists() and trace.stat().st_size > TRACE_HEAD_BYTES


def stolen_ns():
    """What the host has taken away of all CPUs so far."""
    with open("/proc/stat", encoding="ascii") as f:
        return int(f.readline().split()[8]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def is_rare(number, samples, share=0.001):
    """
    Whether so many of the samples can be that share of all, or a smaller one: 3 of 10, 9 of 800, 156 of 100,000 of a share
    of a thousandth.
    """
    return not chance.is_above(number, share * samples)


def period_at(changes, time_ns):
    return next(period for since, period in reversed(changes) if since <= time_ns)


def read(pysym, trace):
    """The account of one file. It may be damaged: what is whole is read."""
    out, fields = Account(), re.compile(r"(\w+)=(-?\w+)")
    processes, threads, periods, event = {}, {}, {}, None
    ended = None
    with subprocess.Popen([pysym, str(trace), "--format", "dump"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as dump:
        for line in dump.stdout:
            kind = line.split(None, 1)[0] if line.strip() else ""
            if kind not in ("sample", "samples", "process", "thread", "event", "ticks", "loss", "end", "period"):
                continue
            f = dict(fields.findall(line))
            if kind == "sample":
                pid, start = processes[threads[f["thread"]]]
                time_ns = int(f["time_ns"])
                weight = int(f["value"]) if "value" in f else period_at(periods[event], time_ns)
                out.samples.append(Sample(time_ns, int(f["cpu"]), pid, start, weight))
            elif kind == "samples":
                event = f["event"]
            elif kind == "process":
                processes[f["id"]] = (int(f["tgid"]), int(f["start_boottime_ns"]))
            elif kind == "thread":
                threads[f["id"]] = f["process"]
            elif kind == "event":
                periods[f["id"]] = [(0, int(f["period"]))]
            elif kind == "period":
                periods[f["event"]].append((int(f["time_ns"]), int(f["period"])))
                out.periods += 1
            elif kind == "ticks":
                out.seen += int(f["seen"])
                out.idle += int(f["idle"])
                out.unsampled += int(f["unsampled"])
                out.count_ns += int(f["count"])
            elif kind == "loss":
                out.losses[LOSSES[int(f["reason"])]] += int(f["count"])
            elif kind == "end":
                ended = int(f["reason"])
        errors = dump.stderr.read()
    assert dump.returncode in (0, 3), errors
    out.ends = [ended]
    return out
