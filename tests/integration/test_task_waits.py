# SPDX-License-Identifier: Apache-2.0
"""The event task-wait says how long asyncio tasks wait, for what, and in which stack.

Beside the program's own clock.
"""
import collections
import json
import math
import re

import pytest

from conftest import ROOT, pythons_with_tasks, record_behind_gate

pytestmark = pytest.mark.live

PROGRAMS = ROOT / "testdata/programs"
PERIOD_NS = 50_000_000  # between two looks
SECONDS = 4
EXTRA = 20  # looks, at most

# One for each way in which tasks are found; the others are for make check-long.
SHORT = [(3, 12), (3, 14)]

# Of a sample: until when and how long the task waited, what for, Python's functions (name, line), outermost first.
Wait = collections.namedtuple("Wait", "task until_ns ns what stack")


def pytest_generate_tests(metafunc):
    if "any_python" in metafunc.fixturenames:
        found, missing = pythons_with_tasks()
        by_version = {i.version: i for i in found}
        short = SHORT if len(by_version) > 1 else by_version
        metafunc.parametrize("any_python", [
            *(pytest.param(i, id=i.name, marks=[] if i.version in short else pytest.mark.long) for i in by_version.values()),
            *(pytest.param(None, marks=pytest.mark.skip(why), id=name) for name, why in missing)])


def waits_of(pysym, trace, python):
    """Samples of task-wait."""
    roots = ["--sysroot", python.root] if python.root else []
    done = pysym(trace, "-f", "ndjson", "--labels", "--interpreter", "calls", "--event", "task-wait", *roots)
    assert done.returncode in (0, 3), done.stderr
    stacks, found = {}, []
    for row in map(json.loads, done.stdout.splitlines()):
        if row["type"] == "stack":
            stacks[row["stack"]] = row["frames"]
            continue
        frames = stacks[row["stack"]]
        assert frames[-1]["function"] == "[wait: %s]" % row["labels"]["wait"], frames[-1]
        assert row["unit"] == "ns" and row["value"] > 0
        found.append(Wait(row["labels"]["asyncio task"], row["time_ns"], row["value"], row["labels"]["wait"],
                          tuple((f["function"].rpartition(".")[2], f["line"]) for f in frames if f["layer"] == "python")))
    return found


def within(wait, since, until):
    """What of a sample lies in that time."""
    return max(0, min(wait.until_ns, until) - max(wait.until_ns - wait.ns, since))


def overlap(rows, since, until):
    return sum(max(0, min(end, until) - max(begin, since)) for begin, end in rows)


def lateness_ns(waits, said):
    """By how much looks were further apart than a period, in sum: pycap has to wait for a CPU, too. EXTRA: looks that found no
    tasks yet, and the one at the end, which comes early."""
    looks = int(re.search(r"^Looks at tasks: (\d+)", said, re.M)[1]) - EXTRA
    return max(0, max(w.until_ns for w in waits) - min(w.until_ns - w.ns for w in waits) - looks * PERIOD_NS)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A recording of task_waits.py by interpreter, made once."""
    made = {}

    def get(pysym, python):
        if python.name not in made:
            folder = tmp_path_factory.mktemp("tasks")
            trace, told, said = record_behind_gate(pysym, folder, ["-v", "-e", f"task-wait/period={PERIOD_NS}/"], python.path,
                                                   PROGRAMS / "task_waits.py", SECONDS)
            made[python.name] = trace, json.loads(told), said
        return made[python.name]
    return get


@pytest.fixture
def seen(needs_bpf, recorded, pysym, any_python):
    trace, told, said = recorded(pysym, any_python)
    return waits_of(pysym, trace, any_python), told, said


@pytest.mark.smoke("3.14", load=True)
def test_waits_last_as_long_as_the_program_says(seen):
    """Each task by itself. A look finds what a task does at that moment, so each wait is known to within the time between two
    looks; of waits that are shorter it is the sum that is right, as chance has it."""
    waits, told, said = seen
    judged, late_ns = 0, lateness_ns(waits, said)
    for task, rows in told["waits"].items():
        since, until = rows[0][3], rows[-1][4]
        if until - since < 10 * PERIOD_NS or task.startswith("Task-"):
            continue
        truth = sum(end - begin for *_, begin, end in rows)
        found = sum(within(w, since, until) for w in waits if w.task == task)
        slack = PERIOD_NS * min(len(rows) + 1, 4 * math.sqrt((until - since) / PERIOD_NS)) + late_ns
        assert abs(found - truth) <= slack, f"{task}: {truth / 1e9:.3f} s, in samples {found / 1e9:.3f} s, {said}"
        judged += 1
    assert judged >= 8, told["waits"].keys()


def test_waits_are_where_the_program_says(seen):
    """By function and line, of waits that are longer than the time between looks."""
    waits, told, said = seen
    judged, late_ns = 0, lateness_ns(waits, said)
    for task, rows in told["waits"].items():
        if task.startswith("Task-"):
            continue
        since, until = rows[0][3], rows[-1][4]
        by_place = collections.defaultdict(list)
        for _, function, line, begin, end in rows:
            by_place[function, line].append((begin, end))
        for place, times in by_place.items():
            if all(end - begin > 4 * PERIOD_NS for begin, end in times):
                truth = sum(end - begin for begin, end in times)
                found = sum(within(w, since, until) for w in waits if w.task == task and place in w.stack)
                assert abs(found - truth) <= (len(times) + 1) * PERIOD_NS + late_ns, (task, place, truth, found, said)
                judged += 1
    assert judged >= 5


def test_what_tasks_wait_for(seen):
    """A task, a future; or, where another task keeps the loop busy, the loop."""
    waits, told, said = seen
    by_task = collections.defaultdict(collections.Counter)
    for w in waits:
        rows = told["waits"].get(w.task)
        ns = within(w, rows[0][3], rows[-1][4]) if rows else 0
        # warm() is over for a look when the look after it comes, however late that is.
        if ns and "warm" not in [name for name, _ in w.stack]:
            by_task[w.task][w.what] += ns
    busy = sum(end - begin for begin, end in told["busy"])
    late_ns = lateness_ns(waits, said)
    slack = (len(told["busy"]) + 1) * PERIOD_NS + late_ns
    # In the program's eyes the wait goes on until the task runs again, so some of it is for the loop.
    for task, what in (("sleeps", "future"), ("awaits_tasks", "task"), ("between", "task"), ("takes", "future")):
        assert by_task[task][what] >= 0.8 * by_task[task].total() - busy - slack, by_task[task]
        others = by_task[task].total() - by_task[task][what] - by_task[task]["event loop"]
        assert others <= PERIOD_NS + late_ns, by_task[task]
    rows = told["waits"]["always_ready"]
    kept = overlap(told["busy"], rows[0][3], rows[-1][4])
    assert by_task["always_ready"]["event loop"] >= kept - slack and kept > SECONDS * 1e9 / 5
    assert not by_task["always_ready"]["task"]


def test_stacks_begin_with_the_tasks_that_await(seen, any_python):
    waits, _, _ = seen
    chains = collections.Counter()
    for w in waits:
        if w.task == "innermost":
            chains[tuple(name for name, _ in w.stack)] += w.ns
    chain, _ = chains.most_common(1)[0]
    assert chain[-4:] == ("awaits_tasks", "awaits_one", "briefly", "sleep"), chains
    if any_python.version >= (3, 14):  # gather() tells the interpreter who awaits
        gathered = [w for w in waits if w.stack[-2:-1] and w.stack[-2][0] == "briefly" and w.task.startswith("Task-")]
        assert gathered and all("gathers" in [name for name, _ in w.stack] for w in gathered)


def test_a_task_that_runs_does_not_wait(seen):
    waits, told, said = seen
    since, until = told["waits"]["hog"][0][3], told["waits"]["hog"][-1][4]
    ran = sum(sum(within(w, begin, end) for w in waits if w.task == "hog") for begin, end in told["busy"])
    assert ran <= (len(told["busy"]) + 1) * PERIOD_NS + lateness_ns(waits, said) and until > since
