# SPDX-License-Identifier: Apache-2.0
"""Lines that do the same work have time in proportion to how often they ran.

A program traces one round of its work line by line, and then repeats that round, untraced, while it is sampled: pysym annotate
beside what the interpreter itself counted.
"""
import collections
import json

import pytest

import chance
from conftest import PYTHON

WORK = "; ".join(["x = x * 5 & 1023"] * 8)

# Each line of "WORK" does the same, and differs from the others in how often it runs, by itself or in a callee.
PROGRAM = f'''\
import json, sys, threading, time

def often(n):
    x = n
    for _ in range(40):
        {WORK}
    return x

def seldom(n):
    x = n
    for _ in range(10):
        {WORK}
    {WORK}
    return x

class Part:
    def recurse(self, n):
        x = n
        {WORK}
        if n:
            self.recurse(n - 1)
        {WORK}

def round_of_work():
    for i in range(6):
        often(i)
        seldom(i)
    Part().recurse(9)
    often(7)

def count_lines():
    """How often each line of this file runs in a round."""
    counts = {{}}

    def trace(frame, event, argument):
        if frame.f_code.co_filename != __file__:
            return None
        if event == "line":
            counts[frame.f_lineno] = counts.get(frame.f_lineno, 0) + 1
        return trace
    sys.settrace(trace)
    round_of_work()
    sys.settrace(None)
    return counts

def monitor_lines():
    """The same by sys.monitoring (3.12)."""
    counts = {{}}
    monitoring = sys.monitoring

    def line(code, number):
        if code.co_filename == __file__:
            counts[number] = counts.get(number, 0) + 1
    monitoring.use_tool_id(monitoring.PROFILER_ID, "lines")
    monitoring.register_callback(monitoring.PROFILER_ID, monitoring.events.LINE, line)
    monitoring.set_events(monitoring.PROFILER_ID, monitoring.events.LINE)
    round_of_work()
    monitoring.set_events(monitoring.PROFILER_ID, 0)
    monitoring.free_tool_id(monitoring.PROFILER_ID)
    return counts

counts = monitor_lines() if hasattr(sys, "monitoring") else count_lines()
with open(sys.argv[1], "w") as out:
    json.dump(counts, out)
clock = getattr(time, "process_time", time.time)
end = clock() + float(sys.argv[2])
while clock() < end:
    for _ in range(50):
        round_of_work()
'''


def lines_of(pysym, trace, *options):
    done = pysym("annotate", "work.py", trace, "--json", *options)
    assert done.returncode == 0, done.stderr
    event = json.loads(done.stdout)["events"][0]
    section, = event["sections"]
    return event, section


def compare(path, record, pysym, folder, cpu_seconds):
    program, told = folder / "work.py", folder / "counts.json"
    program.write_text(PROGRAM)
    trace = record(path, program, told, cpu_seconds, options=("-F", "997"))
    runs = {int(line): count for line, count in json.loads(told.read_text()).items()}
    event, section = lines_of(pysym, trace, "--source", folder)
    # (Its date may be unknown to the trace; a text that contradicts what ran would be found.)
    assert section["source"]["match"] != "changed" and section["source"]["path"] == str(program)
    text = program.read_text().splitlines()
    working = [n for n in runs if text[n - 1].strip() == WORK]
    assert len(working) == 5 and all(line["text"] == text[line["line"] - 1] for line in section["lines"])
    own = collections.Counter({line["line"]: line["self_weight_ns"] + line["native_weight_ns"] for line in section["lines"]})
    period = event["weight_ns"] / event["samples"]
    ran, shown = sum(runs[n] for n in working), sum(own[n] for n in working) / period
    assert shown > 50, (shown, own)  # the rate may have stepped down
    for number in working:
        share = runs[number] / ran
        # Chance, and a fiftieth: lines of the same work cost not quite the same.
        bound = chance.of_share(shown, share) + shown / 50
        assert abs(own[number] / period - shown * share) <= bound, (path, number, own[number] / period, shown * share, bound)
    total = {line["line"]: line["total_weight_ns"] for line in section["lines"]}
    recursion = next(n for n in range(1, len(text)) if "self.recurse" in text[n - 1])
    last = len(text)
    assert total[recursion] <= sum(line["self_weight_ns"] + line["native_weight_ns"] + line["kernel_weight_ns"] for line in
                                   section["lines"] if "recurse" in line["function"])  # once for each sample, not for each call
    assert total[last] >= 0.9 * section["total_weight_ns"]
    return {n: (round(own[n] / period), round(shown * runs[n] / ran, 1)) for n in working}


def test_lines_have_time_as_they_have_runs(needs_bpf, record, pysym, tmp_path):
    compare(PYTHON, record, pysym, tmp_path, 1)


@pytest.mark.long
@pytest.mark.every_python
def test_every_interpreter(python, record, pysym, tmp_path):
    print(python.path, compare(python.path, record, pysym, tmp_path, 8))
