# SPDX-License-Identifier: Apache-2.0
"""pysym --wall adds up the time that threads ran and waited, in every format."""
import collections
import json
import re

import pytest

import profile_readers
from conftest import ROOT
from pysym_output import good

WHAT = {"samples": 100, "stacks": 2, "depth": 2, "waits": 5}  # 1 s of cpu-clock; 15 ms blocked, 5 ms in the run queue
BLOCKED, QUEUED = "[wait: blocked]", "[wait: run queue]"


def folded(text):
    return collections.Counter({stack: int(n) for stack, n in (line.rsplit(" ", 1) for line in text.splitlines())})


def test_folded(make, pysym):
    """Under one root, in one unit: both events and nothing else, and which of the time was which kind of wait."""
    trace = make(**WHAT, second_event=10)
    apart, wall = folded(good(pysym(trace, "-f", "folded"))), folded(good(pysym(trace, "-f", "folded", "--wall")))
    expected = collections.Counter()
    for stack, n in apart.items():
        event, _, rest = stack.partition(";")
        if event != "page-faults":
            expected[rest] += n
    assert wall == expected and sum(wall.values()) == 1020000
    waits = {stack.rpartition(";")[2]: n for stack, n in wall.items() if "[wait: " in stack}
    assert waits == {BLOCKED: 15000, QUEUED: 5000}


def test_every_format(make, pysym, tmp_path):
    """The sum is that of both, in ns, and what was waited for is the innermost frame."""
    trace = make(**WHAT, second_event=10)
    profiles = json.loads(good(pysym(trace, "-f", "speedscope", "--wall")))
    frames = [f["name"] for f in profiles["shared"]["frames"]]
    found = collections.Counter()
    for profile in profiles["profiles"]:
        assert profile["unit"] == "nanoseconds"
        for stack, weight in zip(profile["samples"], profile["weights"]):
            found[frames[stack[-1]] if not profile.get("overview") else "overview"] += weight
    assert found["overview"] == 1020000000 and found[BLOCKED] == 15000000 and found[QUEUED] == 5000000
    assert profiles["profiles"][0]["name"] == "all threads (1.0 s)"

    text = good(pysym(trace, "-f", "perf-script", "--wall"))
    heads = re.findall(r": +(\d+) (\S+): $", text, re.M)
    assert {event for _, event in heads} == {"wall"} and sum(int(n) for n, _ in heads) == 1020000000
    assert len(re.findall(rf"^\t +0 {re.escape(BLOCKED)} ", text, re.M)) == 5

    assert pysym(trace, "-o", tmp_path / "w.pb.gz", "--wall").returncode == 0
    p = profile_readers.pprof(tmp_path / "w.pb.gz")
    assert p.types == [("samples", "count"), ("wall", "nanoseconds")] and p.default_type == "wall"
    assert sum(s.values[1] for s in p.samples) == 1020000000
    assert sum(s.values[1] for s in p.samples if s.frames[-1].function == BLOCKED) == 15000000

    rows = [json.loads(line) for line in good(pysym(trace, "-f", "ndjson", "--wall")).splitlines()]
    samples = [row for row in rows if row["type"] == "sample"]
    assert {(row["event"], row["unit"]) for row in samples} == {("wall", "ns")}
    assert sum(row["value"] for row in samples if row["labels"].get("wait") == "blocked") == 15000000
    assert pysym(trace, "-o", tmp_path / "perf.data", "--wall").returncode == 0
    assert b"wall\0" in (tmp_path / "perf.data").read_bytes()


def test_top(make, pysym):
    """A wait is the time of the function that waits, beside what it computes."""
    trace = make(**WHAT)
    text = good(pysym(trace, "-f", "top", "--wall"))
    assert text.startswith("110 samples of wall: 1.0 s of wall time, recorded in 1.0 s\n"
                           "on CPU 1.0 s, blocked 15.0 ms, run queue 5.0 ms\n"), text
    row = re.search(r"^ +2\.0% 0\.02 s #* +51\.0% 0\.52 s  (.*?)  +(.*)$", text, re.M)
    assert row and row.groups() == ("blocked 75%, run queue 25%", "Work.level1_1 (part1.py:11)"), text
    assert "schedule" not in text and "[wait" not in text, text
    event, = json.loads(good(pysym(trace, "-f", "top", "--wall", "--json")))["events"]
    states = {"on CPU": 1000000000, "blocked": 15000000, "run queue": 5000000}
    assert event["event"] == "wall" and event["states_ns"] == states
    rows = {row["function"]: row for row in event["tables"][0]["rows"]}
    assert rows["Work.level1_1"]["self_states_ns"] == {"blocked": 15000000, "run queue": 5000000}
    assert sum(row["self_weight_ns"] for row in rows.values()) == 1020000000
    only = json.loads(good(pysym(trace, "-f", "top", "--event", "cpu-clock", "--json")))["events"][0]
    assert "states_ns" not in only and "self_states_ns" not in only["tables"][0]["rows"][0]


def test_parts_and_filters(make, pysym, tmp_path):
    """Parts add up to the whole; filters by kind of wait, and those that --wall adds nothing to."""
    trace = make(**WHAT, threads=2)
    whole = folded(good(pysym(trace, "-f", "folded", "--wall", "-t")))
    for i, options in enumerate((("--split", "thread"), ("--window", "250ms"))):
        done = pysym(trace, "--wall", "-t", *options, "-o", tmp_path / f"{i}.folded")
        assert done.returncode == 0, done.stderr
        parts = sum((folded(path.read_text()) for path in tmp_path.glob(f"{i}.*.folded")), collections.Counter())
        assert sum(parts.values()) == sum(whole.values()) and parts.keys() == whole.keys()
    blocked = folded(good(pysym(trace, "-f", "folded", "--wall", "--focus", "wait: blocked")))
    assert sum(blocked.values()) == 15000 and all(stack.endswith(BLOCKED) for stack in blocked)
    python = folded(good(pysym(trace, "-f", "folded", "--wall", "--python-only")))
    assert sum(python.values()) == 1020000 and any(stack.endswith(f"(part1.py:12);{BLOCKED}") for stack in python)


@pytest.mark.parametrize("made, options, message", [
    ({"waits": 0}, (), "made1.bin does not say where threads waited: record with pycap record --wall"),
    ({"clocks": 0}, (), "made1.bin counts cycles while threads run, and how long that took is not known"),
    ({"clocks": 2}, (), "the clocks cpu-clock and task-clock of made1.bin count the same time: choose one, like --event cpu-clock"),
    ({}, ("--event", "off-cpu"), "made1.bin says where threads waited, but not where they ran"),
    ({}, ("-f", "summary"), "--wall is for stacks: summary has each event by itself"),
])
def test_what_is_no_wall_time(make, pysym, made, options, message):
    done = pysym(make(**{**WHAT, **made}), "--wall", *(options if "-f" in options else ("-f", "top", *options)))
    assert done.returncode == 2 and message in done.stderr and not done.stdout, done.stderr


def test_one_clock_of_two(make, pysym):
    text = good(pysym(make(**WHAT, clocks=2), "-f", "top", "--wall", "--event", "cpu-clock", "--event", "off-cpu"))
    assert "1.0 s of wall time" in text


def test_wall_time_is_all_time(pysym):
    """Of each thread of a real recording both events come to the time that it existed, as the kernel's switches have it: but for
    what the trace says is lost, and within five times the sampling error of the clock's ticks."""
    trace = ROOT / "testdata/waiting/flaskr.trace"
    exact, on_cpu, wall = collections.Counter(), collections.Counter(), collections.Counter()
    for row in json.loads(good(pysym(trace, "--no-host", "-f", "summary", "--json")))["thread_times"]:
        exact[row["tid"]] += row["time_ns"]
        on_cpu[row["tid"]] += row["time_ns"] * (row["state"] == "on-CPU")
        if row["state"] != "on-CPU":
            assert row["sampled_ns"] == pytest.approx(row["time_ns"], rel=0.05, abs=3e7), row
    for line in good(pysym(trace, "--no-host", "-f", "ndjson", "--wall")).splitlines():
        row = json.loads(line)
        if row["type"] == "sample":
            wall[row["tid"]] += row["value"]
    assert wall.keys() == exact.keys() and len(wall) == 11
    for tid, ns in exact.items():
        assert abs(wall[tid] - ns) < 0.01 * ns + 5 * (on_cpu[tid] * 10.1e6) ** 0.5, (tid, wall[tid], ns)
