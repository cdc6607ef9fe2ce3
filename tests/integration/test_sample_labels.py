# SPDX-License-Identifier: Apache-2.0
"""A sample says whether its thread held the GIL, the thread's name, interpreter and task."""
import collections
import json
import re
import subprocess
import time

import pytest

import accounts
import chance
from conftest import PYCAP, PYSYM, ROOT, why_no_bpf

pytestmark = pytest.mark.live

PROGRAMS = ROOT / "testdata/programs"


@pytest.fixture
def run(pycap, tmp_path):
    """Records a program; returns (trace, what it printed)."""
    why = why_no_bpf()
    if why:
        pytest.skip(why)

    def record(python, program, *arguments):
        trace = tmp_path / "t.bin"
        done = pycap("record", "-F", "999", "-o", trace, "--", python.path, PROGRAMS / program, *arguments)
        if done.returncode == 77:
            pytest.skip(f"{python.name} has not what {program} wants")
        assert done.returncode == 0, done.stderr
        return trace, done.stdout
    return record


def counts(rows, prefix):
    """Samples by the function of that prefix in them."""
    found = collections.Counter()
    for frames, count in rows:
        name = next((m[1] for m in (re.match(prefix + r"(\w+) \(", f) for f in frames) if m), None)
        if name:
            found[name] += count
    return found


@pytest.mark.smoke
def test_gil(python, run, folded, pysym):
    trace, printed = run(python, "gil.py", "0.4")
    spent = json.loads(printed)
    everything = counts(folded(trace), "in_")
    held = counts(folded(trace, "--gil"), "in_")
    assert set(everything) == {name[3:] for name in spent}
    # Other than sampled: the moments of a hand-over. 2.7 lets go of it every hundred instructions.
    slack = 0.1 if python.version == (2, 7) else 0.03
    for name, samples in everything.items():
        wrong = samples - held[name] if name in ("python", "pydll") else held[name]
        assert accounts.is_rare(wrong, samples, slack), f"{name}: {wrong} of {samples}"
    total = sum(everything.values())
    truth = (spent["in_python"] + spent["in_pydll"]) / sum(spent.values())
    bound = chance.of_share(total, truth) / total + slack + accounts.read(PYSYM, trace).skipped
    assert abs(sum(held.values()) / total - truth) < bound
    known = re.search(r"^  held the GIL +([\d,]+) samples of ([\d,]+), ", pysym(trace, "-f", "summary", "-v").stdout, re.M)
    assert known and int(known[1].replace(",", "")) >= sum(held.values())


@pytest.mark.usefixtures("needs_bpf")
def test_thread_names(python, folded, tmp_path):
    trace, gate = tmp_path / "t.bin", tmp_path / "gate"

    def found():
        seen = collections.defaultdict(set)
        for frames, _ in folded(trace, "--threads") if accounts.is_begun(trace) else []:
            function = next((m[1] for m in (re.match(r"only_in_(\w+) \(", f) for f in frames) if m), None)
            if function:
                seen[function].add(frames[0].rsplit("-", 1)[0])
        return seen

    with subprocess.Popen([PYCAP, "record", "-F", "999", "-o", trace, "--", python.path, PROGRAMS / "thread_names.py", "2", gate],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
        names = {function: {name} for function, name in json.loads(recorder.stdout.readline()).items()}
        # Names are read again and again while a thread is sampled; one of its end stands for all of its samples.
        deadline = time.monotonic() + 120
        while found() != names and time.monotonic() < deadline:
            time.sleep(0.2)
        gate.touch()
        _, said = recorder.communicate(timeout=300)
    assert recorder.returncode == 0, said
    assert found() == names


def test_subinterpreters(python, run, folded, pysym):
    trace, printed = run(python, "subinterpreters.py", "0.8")
    label = f"[interpreter {int(printed)}]"
    where, marked = collections.defaultdict(collections.Counter), 0
    for frames, count in folded(trace, "--threads"):
        function = next((m[1] for m in (re.match(r"in_(\w+) \(", f) for f in frames) if m), None)
        if function and accounts.MARKS.intersection(frames):
            marked += count
        elif function:
            where[function][(frames[0].rsplit("-", 1)[0], frames[1] if frames[1].startswith("[") else None)] += count
    assert set(where["main"]) == {("MainThread", None)}
    assert accounts.is_rare(marked, sum(where["main"].values()))
    if python.version < (3, 10):  # nothing tells that it is not another thread that runs it
        assert not where["other"]
        assert re.search(r"^  interpreter_unsure +[1-9]", pysym(trace, "-f", "summary", "-v").stdout, re.M)
        return
    assert set(where["other"]) == {("runner", label)}
    assert not any(label in frames for frames, _ in folded(trace))
    assert re.search(rf"^  interpreter +[\d,]+ samples of {int(printed)}$", pysym(trace, "-f", "summary", "-v").stdout, re.M)
    if python.version >= (3, 12):  # each has a GIL of its own
        held = counts(folded(trace, "--gil"), "in_")
        for name in ("main", "other"):
            samples = sum(where[name].values())
            assert accounts.is_rare(samples - held[name], samples, 0.03), (name, samples, held)


@pytest.mark.smoke
def test_tasks(python, run, folded, pysym):
    if python.version < (3, 14):
        pytest.skip("asyncio of 3.14 is the first that says where its tasks are")
    trace, printed = run(python, "tasks.py", "0.2")
    spent = json.loads(printed)
    seen, outside, marked = collections.Counter(), collections.Counter(), 0
    for frames, count in folded(trace, "--labels"):
        task = re.match(r"\[asyncio task (.*)\]$", frames[0])
        names = [f.split(" (")[0] for f in frames]
        if "burn" not in names:
            continue
        if accounts.MARKS.intersection(frames):
            marked += count
            continue
        name = task and re.sub(r"^short-\d+$", "short", task[1])
        # The function that runs it says which one it is.
        function = next(n for n in ("once", "lazy", "renamed", "work", "outside") if n in names)
        allowed = {"once": {"short"}, "renamed": {"renamed"}, "outside": {None}}
        if function == "lazy":
            assert re.match(r"Task-\d+$", name)
            name = "lazy"
        elif function == "work":
            name = "n" * 300 if name.startswith("nnn") and name.endswith("…") else name
            assert name in ("fetch", "w\u00f6rk", "\u4efb\u52a1", "n" * 300)
        else:
            assert name in allowed[function]
        (seen if name else outside)[name] += count
    assert set(seen) == set(spent) and outside[None] > 20, (seen, outside)
    total, truth = sum(seen.values()), sum(spent.values())
    assert accounts.is_rare(marked, total), (marked, total)
    skipped = accounts.read(PYSYM, trace).skipped
    for name, seconds in spent.items():
        share = seconds / truth
        # Besides chance what the tasks do between their clocks' readings: asyncio's own.
        assert abs(seen[name] / total - share) < chance.of_share(total, share) / total + 0.02 + skipped, name
    assert "asyncio task" in pysym(trace, "-f", "summary", "-v").stdout
