# SPDX-License-Identifier: Apache-2.0
"""Every view of pysym shows events of every kind rightly.

Over made-up traces: tracepoints, whose names have a colon, counters of a PMU, whose names have commas and slashes, weights in
bytes and in nanoseconds, memory-growth, and asyncio tasks that wait.
"""
import collections
import json
import re
import subprocess
import urllib.parse

import pytest

from conftest import PYSYM, ROOT
from pysym_output import FORMATS, good
from releases import account
from trace_text import script_samples

# As tests/tools/made_up_events.h has them: what 6 samples of each count, and what that is for people.
EVENTS = {
    "syscalls:sys_enter_openat": (6, "6 hits"),
    "syscalls:sys_enter_write": (12 * 4096, "48.0 KiB"),
    "sched:sched_stat_iowait": (12 * 10**6, "12.0 ms"),
    "r1a8:u": (6 * 100003, "600,018 events"),
    "cpu/event=0x3c,umask=1/": (6 + 6 * 1000, "6,006 events"),
    "L1-dcache-load-misses": (6 * 2000, "12,000 events"),
    "memory-growth": (12 * 131072, "1.5 MiB"),
}
TASK_NS = 2 * 4 * 500 * 10**6 + 2 * 20 * 10**6  # of 4 looks


@pytest.fixture
def every(make):
    return make(samples=40, stacks=3, depth=3, events=6, task_waits=4)


def test_top_has_each_by_itself(every, pysym):
    top = good(pysym(every, "-f", "top"))
    for name, (_, amount) in EVENTS.items():
        assert f"\n6 samples of {name}: {amount}, recorded in " in top, name
    assert "40 samples of cpu-clock: 400 ms of CPU time, recorded in " in top
    assert "10 samples of task-wait: 4.0 s of tasks' waiting, recorded in " in top
    assert top.count("of CPU time") == 1  # what is counted in nanoseconds is none
    rows = {e["event"]: e for e in json.loads(good(pysym(every, "-f", "top", "--json")))["events"]}
    assert {name: next(v for k, v in e.items() if k.startswith("weight_")) for name, e in rows.items()} == {
        "cpu-clock": 400 * 10**6, "task-wait": TASK_NS, **{name: value for name, (value, _) in EVENTS.items()}}


def test_the_summary(every, pysym):
    seen = re.search(r"^Seen +(.*)", good(pysym(every, "-f", "summary")), re.M)[1]
    assert seen.startswith("92 samples, 0.400 s of CPU time, 6 syscalls:sys_enter_openat, 48.0 KiB of syscalls:sys_enter_write, "
                           "0.012 s of sched:sched_stat_iowait, 600,018 r1a8:u, ")
    assert ", 1.5 MiB of memory-growth, 4.040 s of tasks' waiting, of 1 process: " in seen
    lines = good(pysym(every, "-f", "summary", "-v")).splitlines()
    table = lines[lines.index("Events") + 1:lines.index("Processes") - 1]
    assert len({line.index(" samples") for line in table}) == 1  # a column, however long names are
    told = {line.split()[0]: line for line in table}
    assert told["memory-growth"].endswith(" 6 samples, of different weights, 1.5 MiB in all")
    assert told["task-wait"].endswith(" 10 samples by looking each 0.500 s, of different weights, 4.040 s in all")
    assert told["r1a8:u"].endswith(" 6 samples of 100,003 events each, 600,018 events in all")
    rows = {row["event"]: row for row in json.loads(good(pysym(every, "-f", "summary", "--json")))["events"]}
    assert (rows["memory-growth"]["unit"], rows["memory-growth"]["weight_bytes"]) == ("bytes", 12 * 131072)


@pytest.mark.parametrize("event", [*EVENTS, "task-wait"])
def test_each_can_be_chosen_in_each_format(event, every, pysym):
    """With nothing of the others, under its own name or an output's spelling of it."""
    others = {*EVENTS, "task-wait", "cpu-clock"} - {event}
    for name in FORMATS:
        if name in ("dump", "gil", "pprof"):  # one has what is in the trace, one no events, one is no text: see below
            continue
        done = pysym(every, "-f", name, "--event", event)
        assert done.returncode == 0, (name, done.stderr)
        if name not in ("html", "ndjson", "summary", "firefox"):  # those say what the file has, too
            assert not [other for other in others if other in done.stdout.replace(event, "")], name
    samples = list(script_samples(good(pysym(every, "-f", "perf-script", "--event", event))))
    assert {s.event for s in samples} == {event}
    assert sum(s.value for s in samples) == (TASK_NS if event == "task-wait" else EVENTS[event][0]) or event in ("r1a8:u", "L1-dcache-load-misses")


def test_pprof_and_speedscope_have_units(every, pysym, pprof):
    assert dict(pprof(every, "--event", "memory-growth").types) == {"samples": "count", "memory_growth": "bytes"}
    types = dict(pprof(every).types)
    assert types == {
        "samples": "count", "cpu": "nanoseconds", "sched_sched_stat_iowait_samples": "count", "sched_sched_stat_iowait": "nanoseconds",
        "task_wait_samples": "count", "task_wait": "nanoseconds",
        **{f"{name}{kind}": "count" for name in ("syscalls_sys_enter_openat", "r1a8_u", "cpu_event_0x3c_umask_1_",
                                                 "L1_dcache_load_misses") for kind in ("", "_samples")},
        "syscalls_sys_enter_write_samples": "count", "syscalls_sys_enter_write": "bytes",
        "memory_growth_samples": "count", "memory_growth": "bytes"}
    units = {p["name"].rpartition(" · ")[2]: p["unit"] for p in json.loads(good(pysym(every, "-f", "speedscope")))["profiles"]}
    assert units == {"cpu-clock": "nanoseconds", "sched:sched_stat_iowait": "nanoseconds", "task-wait": "nanoseconds",
                     "syscalls:sys_enter_write": "bytes", "memory-growth": "bytes", "syscalls:sys_enter_openat": "none",
                     "r1a8:u": "none", "cpu/event=0x3c,umask=1/": "none", "L1-dcache-load-misses": "none"}


def test_chains_of_tasks(every, pysym):
    """Outermost the task that awaits; at the end what is waited for; the weight is how long."""
    assert good(pysym(every, "-f", "folded", "--event", "task-wait")).splitlines() == [
        "python3.11-1000;outer (tasks.py:1);[wait: task] 2000000",
        "python3.11-1000;outer (tasks.py:1);inner (tasks.py:12);[wait: future] 2000000",
        "python3.11-1000;ready (tasks.py:23);[wait: event loop] 40000"]
    assert good(pysym(every, "-f", "folded", "--task", "^inner$")).splitlines() == [
        "python3.11-1000;outer (tasks.py:1);inner (tasks.py:12);[wait: future] 2000000"]
    assert "task 2.0 s, future 2.0 s, event loop 40.0 ms" in good(pysym(every, "-f", "top", "--event", "task-wait"))
    assert "[asyncio task ready <go>]" in good(pysym(every, "-f", "folded", "--event", "task-wait", "--labels"))


def test_tasks_are_no_threads_that_wait(every, make, pysym):
    """Their waiting is no part of wall time, of what threads waited for, or of the GIL's account."""
    done = pysym(every, "--wall", "-f", "folded")
    assert done.returncode == 2 and "does not say where threads waited" in done.stderr
    both = make(samples=40, stacks=3, depth=3, task_waits=4, waits=5, gil=1)
    wall = good(pysym(both, "--wall", "-f", "top"))
    assert "samples of wall: 420 ms of wall time" in wall and "task" not in wall
    gil = pysym(both, "-f", "gil")
    assert gil.returncode == 0 and "tasks.py" not in gil.stdout and "future" not in gil.stdout
    shown = json.loads(good(pysym(both, "-f", "summary", "--json")))
    assert {row["state"] for row in shown["exact_times"]} == {"on-CPU", "blocked", "run queue"}
    sampled = collections.Counter()
    for row in shown["thread_times"]:
        sampled[row["state"]] += row.get("sampled_ns", 0)
    assert not sampled.keys() & {"task", "future", "event loop"}


def test_diff_and_baselines(make, pysym, tmp_path):
    """Each event is compared by its name, also with runs that are only kept; its words fit its kind."""
    runs = [make(samples=300, stacks=3, depth=3, events=200, task_waits=100, run=i, interval_us=1000) for i in range(1, 9)]
    kept = tmp_path / "old.pyb"
    good(pysym("baseline", *runs[:4], "-o", kept))
    for event, matter in (("syscalls:sys_enter_openat", "hits"), ("cpu/event=0x3c,umask=1/", "events"), ("memory-growth", "bytes"),
                          ("sched:sched_stat_iowait", "time"), ("task-wait", "waiting"), ("cpu-clock", "time")):
        reports = []
        for old in (runs[:4], ["--baseline", kept]):
            done = pysym("diff", *old, "--", *runs[4:], "--event", event)
            assert done.returncode == 0, done.stderr
            head, *_ = done.stdout.splitlines()
            reports.append(head)
            kind = {"task-wait": ", time that tasks waited", "cpu-clock": ", CPU time"}.get(event, "")
            assert head == f"4 old and 4 new runs of python3.11: {event}{kind}"
            assert re.search(rf"%  ?{matter} \(", done.stdout) or event == "cpu-clock", done.stdout
        assert len(set(reports)) == 1
        told = json.loads(good(pysym("diff", *runs[:4], "--", *runs[4:], "--event", event, "-f", "json")))
        assert (told["event"], told["is_cpu"], told["is_task"]) == (event, event == "cpu-clock", event == "task-wait")


def test_releases_read_them(released, every, pysym):
    """Samples, values and frames are those of this version; only what it is called differs."""
    assert account(released, every) == account(PYSYM, every)


def test_perf_reads_them(every, pysym, tmp_path):
    """perf shows each event by its name, with its sum."""
    good(pysym(every, "-f", "perf-data", "-o", tmp_path / "perf.data"))
    done = subprocess.run(["perf", "script", "-i", tmp_path / "perf.data", "-F", "event,period"], capture_output=True, text=True,
                          timeout=300, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    sums = collections.Counter()
    for period, event in re.findall(r"^ *(\d+) +(\S+): *$", done.stdout, re.M):
        sums[event] += int(period)
    assert sums == {"cpu-clock": 400 * 10**6, "task-wait": TASK_NS, **{name: value for name, (value, _) in EVENTS.items()}}


@pytest.mark.parametrize("event, shown", [
    *((name, f"{amount} of {name}") for name, (_, amount) in EVENTS.items()), ("task-wait", "4.0 s of tasks’ waiting"),
], ids=lambda text: text.split(" ")[0])  # fmt: skip
def test_the_page(user, page, made, event, shown):
    """By its address; it is in the list, and what is shown is said in its own words."""
    user.open(page(made(samples=40, stacks=3, depth=3, events=6, task_waits=4)), "event=" + urllib.parse.quote(event, safe=""))
    assert user.tab.evaluate("page.data.head.events[page.view.event].name") == event
    assert f"{shown} shown, all of it" in "".join(user.everything())
    listed = user.tab.evaluate("[...document.getElementById('event').options].map(option => option.textContent)")
    assert [text for text in listed if text.split(": ")[0] == event] == [event + (": tasks’ waiting" if event == "task-wait" else "")]
