# SPDX-License-Identifier: Apache-2.0
"""What leaks memory comes first in every view of memory growth, and the sum is the kernel's.

The program leaks in one function and churns in others.
"""
import collections
import json
import re

import pytest

import chance
from conftest import PYTHON, ROOT, in_roots, interpreters, later, record_behind_gate
from pprof_protobuf import Profile
from trace_text import script_samples

PROGRAM = ROOT / "testdata/programs/leaks.py"
PERIOD = 1 << 20
OPTIONS = ["--python-only", "--interpreter", "calls"]
# The first and the last of the ways in which interpreters take and return memory; the others are for make check-long.
SHORT = {"test_memory_growth": [(2, 7), (3, 14)], "test_page_faults": []}
# Before 3.10 an interpreter gives back small arenas all the time and touches new ones, which are page faults: they don't show
# what leaks. Since then arenas have 1 MiB.
FIRST = {"test_memory_growth": (2, 7), "test_page_faults": (3, 10)}
PAGE = 4096
NAME = re.compile(r"\b(leak_(?:small|large)|churn_(?:small|large|text))\b")


def pytest_generate_tests(metafunc):
    if "any_python" not in metafunc.fixturenames:
        return
    test = metafunc.function.__name__
    found, missing = in_roots()
    by_version = {i.version: i for i in interpreters() + found if i.version >= FIRST[test]}
    metafunc.parametrize("any_python", [
        *((pytest.param if i.version in SHORT[test] else later)(i, id=i.name) for i in by_version.values()),
        *(pytest.param(None, marks=pytest.mark.skip(why), id=name) for name, why in missing)])


# ---- the views: bytes by function, of all stacks that it is on ----

def add_up(stacks):
    found = collections.Counter()
    for frames, value in stacks:
        for name in {m[1] for m in map(NAME.search, frames) if m}:
            found[name] += value
    return found


def of_folded(out):
    return add_up((stack.split(";"), int(value)) for stack, value in (line.rsplit(" ", 1) for line in out.splitlines()))


def of_perf_script(out):
    return add_up((s.functions, s.value) for s in script_samples(out))


def of_speedscope(out):
    data = json.loads(out)
    frames = [f["name"] for f in data["shared"]["frames"]]
    profile, = data["profiles"]
    assert profile["unit"] == "bytes"
    return add_up(([frames[i] for i in stack], weight) for stack, weight in zip(profile["samples"], profile["weights"]))


def of_ndjson(out):
    stacks, samples = {}, []
    for row in map(json.loads, out.splitlines()):
        if row["type"] == "stack":
            stacks[row["stack"]] = [f["function"] for f in row["frames"]]
        else:
            samples.append((stacks[row["stack"]], row["value"]))
    return add_up(samples)


def of_pprof(out):
    profile = Profile(out)
    column, = [i for i, (_, unit) in enumerate(profile.types) if unit == "bytes"]
    return add_up(([f.name for f in s.frames], s.values[column]) for s in profile.samples)


def of_top(out):
    event, = json.loads(out)["events"]
    table, = event["tables"]
    found = collections.Counter()
    for row in table["rows"]:  # of a function and of those within it, such as generators, which it calls
        if NAME.search(row["name"]):
            name = NAME.search(row["name"])[1]
            found[name] = max(found[name], row["total_weight_bytes"])
    return found


VIEWS = {"folded": of_folded, "perf-script": of_perf_script, "speedscope": of_speedscope, "ndjson": of_ndjson, "pprof": of_pprof}
# Of what is for eyes alone, which one is named first.
TEXTS = ["top", "tree", "brief"]


def check_views(pysym, trace, event, python, views=VIEWS):
    """The leaks are first in all of them, and all say the same of each function. Returns the bytes by function."""
    options = [*OPTIONS, "--event", event, *(["--sysroot", python.root] if python.root else [])]
    found = {}
    for view, read in views.items():
        done = pysym(trace, "-f", view, *options, text=view != "pprof")
        assert done.returncode in (0, 3), done.stderr
        found[view] = dict(read(done.stdout))
    done = pysym(trace, "-f", "top", "--json", "--top", "0", *options)
    found["top"] = of_top(done.stdout)
    if event == "page-faults" and "perf-script" in found:  # of which perf has the number
        found["perf-script"] = {name: count * PAGE for name, count in found["perf-script"].items()}
    first = found["folded"]
    for view, by_function in found.items():
        assert by_function == first, view
        leaks = [v for name, v in by_function.items() if name.startswith("leak")]
        assert leaks and min(leaks) > max((v for n, v in by_function.items() if n.startswith("churn")), default=0), (view, by_function)
    for view in TEXTS if views is VIEWS else ():
        named = NAME.search(pysym(trace, "-f", view, *options).stdout)
        assert named and named[1].startswith("leak"), view
    # As it comes, without an option: what the C library and the kernel did for the leak is the leak's.
    top = json.loads(pysym(trace, "-f", "top", "--json", "--event", event, *(["--sysroot", python.root] if python.root else [])).stdout)
    rows = top["events"][0]["tables"][0]["rows"]
    assert not any(re.search(r"mmap64|brk|malloc|\[k\]|_k_", row["name"]) for row in rows[:3]), rows[:3]
    if "leak_large" not in first:
        assert NAME.search(rows[0]["name"]), rows[:5]
    return first


def record_growth(pysym, tmp_path, python, events, kind, mib, *options):
    """The trace, what the program printed, and what pycap said. It leaks when its functions are known."""
    trace, told, said = record_behind_gate(pysym, tmp_path, ["-v", "-e", events, *options], python, PROGRAM, kind, mib, "0.5",
                                           known_by=("--event", "cpu-clock"))
    return trace, json.loads(told.splitlines()[-1]), said


def test_memory_growth(needs_bpf, pysym, tmp_path, any_python):
    """Of small objects and of large blocks at once, 48 MiB of each; what came and went beside them is twelve times as much."""
    trace, told, _ = record_growth(pysym, tmp_path, any_python.path, "cpu-clock,memory-growth", "both", 96)
    # What the views make of the same samples does not depend on the interpreter.
    views = VIEWS if any_python.version == (3, 11) else {"folded": of_folded}
    by_function = check_views(pysym, trace, "memory-growth", any_python, views)
    assert 48 << 20 <= by_function["leak_large"] <= 50 << 20  # and where it is the one that needs them, arenas of the interpreter's
    assert told["churned"] > 10 * told["leaked"]
    work = pysym(trace, "-f", "ndjson", *OPTIONS, "--event", "memory-growth", "--focus", "function:^work$",
                 *(["--sysroot", any_python.root] if any_python.root else [])).stdout
    grown = sum(row["value"] for row in map(json.loads, work.splitlines()) if row["type"] == "sample")
    assert abs(grown - (told["after"]["VmData"] - told["before"]["VmData"])) <= PERIOD + told["lived"], told


def test_page_faults(needs_bpf, pycap, pysym, tmp_path, any_python):
    """Of small objects among small objects that come and go."""
    trace = tmp_path / "t.bin"
    # A file that is there opens its gate: the churn before it would count.
    done = pycap("record", "-o", trace, "-e", "page-faults", "--", any_python.path, PROGRAM, "objects", "64", "0.5", "/")
    assert done.returncode == 0, done.stderr
    check_views(pysym, trace, "page-faults", any_python)


def test_growth_beside_a_budget(needs_bpf, pysym, tmp_path):
    """What the recorder may take changes periods, not sums: what the calls gave is in a sample, soon came back, or is owed."""
    trace, told, said = record_growth(pysym, tmp_path, PYTHON, "cpu-clock,memory-growth", "large", 256, "-F", "999", "--max-cpu",
                                      "0.5")
    assert "Hz" in said and "from here on" in said, said
    folded = pysym(trace, "-f", "folded", *OPTIONS, "--event", "memory-growth").stdout
    shown = sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines())
    gave, back, owed, period = (int((re.findall(pattern, said) or [0])[-1]) for pattern in (
        r"calls gave (\d+) KiB", r"(\d+) KiB soon came back", r"growth_owed +(\d+)", r"memory-growth each (\d+) bytes"))
    assert abs((gave - back << 10) - shown - owed) <= 2 << 10, (shown, said)
    # Calls of less than a period share samples, and which of them has one is chance. What the place of the leak has no sample of is
    # owed, as is the churn's.
    grown, weights = of_folded(folded)["leak_large"], [period] * ((gave - back << 10) // period + 1)
    bound = chance.of_weights(weights, min(1, told["leaked"] / sum(weights))) + period
    assert 0.9 * told["leaked"] - owed - bound <= grown <= 1.1 * told["leaked"] + bound, (grown, said)


def test_nothing_is_said_where_growth_is_not_recorded(needs_bpf, pycap, tmp_path):
    program = "import os, time\nfor _ in range(20): os.fork() or os._exit(0)\ntime.sleep(0.3)"
    done = pycap("record", "-v", "-F", "99", "-o", tmp_path / "t.bin", "--", PYTHON, "-c", program)
    assert "growth_" not in done.stderr and "Memory:" not in done.stderr, done.stderr
