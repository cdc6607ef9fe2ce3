# SPDX-License-Identifier: Apache-2.0
"""Samples of real interpreters, by the real kernel, are what the interpreter says of itself."""
import collections
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

import accounts
import chance
from conftest import KINDS, PYCAP, PYSYM, ROOT, why_no_bpf

PROGRAMS = ROOT / "testdata/programs"

Frame = collections.namedtuple("Frame", "name file line")
FRAME = re.compile(r"^(.*) \((.*):(\d+)\)$")


@pytest.fixture
def profile(pysym, tmp_path):
    """A trace as [(profile's name, [frames outermost first], nanoseconds)], from the speedscope output."""
    def run(trace, *options):
        out = tmp_path / "profile.speedscope.json"
        done = pysym(trace, "--format", "speedscope", "--merge", "thread", "--full-filenames", "-o", out, *options)
        assert done.returncode == 0, done.stderr
        data = json.loads(out.read_text())
        frames = data["shared"]["frames"]
        rows = []
        for one in data["profiles"]:
            assert len(one["samples"]) == len(one["weights"])
            for stack, weight in zip(one["samples"], one["weights"]):
                rows.append((one["name"], [frames[i] for i in stack], weight))
        return rows
    return run


# Frames that say that others are missing. "[libfoo.so]" is a native function without a name.


def python_only(frames):
    """Frames of Python code: (qualified name, file, line)."""
    out = []
    for frame in frames:
        match = FRAME.match(frame["name"])
        if match and frame.get("line") and int(match[3]) == frame["line"]:
            out.append(Frame(match[1], frame.get("file", ""), frame["line"]))
    return out


def summary(pysym, trace):
    done = pysym(trace, "--format", "summary", "-v")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("number, samples, share, good", [
    (9, 792, 0.001, True), (10, 792, 0.001, False), (156, 100_000, 0.001, True), (157, 100_000, 0.001, False),
    (30, 1000, 0.01, True), (31, 1000, 0.01, False), (3, 10, 0.001, True), (4, 10, 0.001, False), (0, 0, 0.001, True)])
def test_what_is_rare(number, samples, share, good):
    """The bound of the tests below: a few of a small recording are chance, the same share of a long one is not."""
    assert accounts.is_rare(number, samples, share) == good


# ---- what the stacks say ----

@pytest.mark.smoke
@pytest.mark.usefixtures("needs_bpf")
def test_proportions(python, pycap, profile, tmp_path):
    trace = tmp_path / "t.bin"
    done = pycap("record", "-F", "1999", "-m", "32M", "-o", trace, "--", python.path, PROGRAMS / "proportions.py", "1.5")
    assert done.returncode == 0, done.stderr
    spent = json.loads(done.stdout)
    weights = collections.Counter()
    lines = collections.defaultdict(collections.Counter)
    for _, frames, weight in profile(trace):
        for frame in python_only(frames):
            if frame.name in spent:
                weights[frame.name] += weight
                lines[frame.name][frame.line] += weight
    total = sum(weights.values())
    account = accounts.read(PYSYM, trace)
    unit = min(account.weights)
    text = (PROGRAMS / "proportions.py").read_text().splitlines()
    for name, seconds in spent.items():
        share, truth = weights[name] / total, seconds / sum(spent.values())
        # Chance, what the program does between two functions, and ticks that are missing.
        bound = chance.of_weights(account.weights, truth) / total + 0.005 + account.skipped
        assert abs(share - truth) < bound, f"{name}: {share:.4f} sampled, {truth:.4f} spent"
        first = next(i for i, line in enumerate(text, 1) if line.startswith(f"def {name}"))
        entering = lines[name].pop(first, 0)  # a call begins there, for an instant
        assert set(lines[name]) == {first + 1}
        assert accounts.is_rare(entering / unit, total / unit)


UNWIND = pytest.mark.parametrize("unwind", ["tables", "snapshot"])


@pytest.fixture(scope="module")
def chains_of(tmp_path_factory):
    """One recording of chains.py for each interpreter and way of unwinding, whatever is asked of it."""
    made = {}

    def run(python, unwind):
        why = why_no_bpf()
        if why:
            pytest.skip(why)
        if (python, unwind) not in made:
            trace = tmp_path_factory.mktemp("chains") / "t.bin"
            # Copies of stacks at a higher rate would be more than pycap gets written.
            rate = "1999" if unwind == "tables" else "999"
            seconds = "0.05" if python.version in KINDS or unwind != "tables" else "0.03"
            # A buffer that does not fill where pycap does not run for a while, also in the deepest recursion.
            done = subprocess.run([PYCAP, "record", "-F", rate, "-m", "32M", "--unwind", unwind, "-o", trace, "--",
                                   python.path, PROGRAMS / "chains.py", seconds],
                                  capture_output=True, text=True, timeout=300, check=False)
            made[python, unwind] = trace, done
        trace, done = made[python, unwind]
        assert done.returncode == 0, done.stderr
        return trace, done
    return run


def check_chains(trace, done, samples, most_torn):
    """Compares samples of chains.py with what it printed of itself; returns those that were in the end of a chain."""
    chains = {c["name"]: [Frame(*f) for f in c["frames"]] for c in json.loads(done.stdout)}
    seen, wrong, torn, passing, compared = collections.Counter(), [], 0, 0, []
    unit = min(weight for _, _, weight in samples)
    for _, frames, weight in samples:
        if [f["name"] for f in frames] in (["[no frames]"], ["[no Python frames]"]):
            continue  # the first moments, before it was known to be Python
        if any(f["name"] in accounts.MARKS for f in frames):
            torn += weight / unit
            continue
        got = python_only(frames)
        at = next((i for i, f in enumerate(got) if f.name.startswith("spin_")), None)
        if at is None or at + 1 != len(got):
            continue  # between two chains, or in tell()
        name = got[at].name[len("spin_"):]
        expected = chains[name]
        seen[name] += weight / unit
        compared.append(frames)
        passing += weight / unit if got[at].line not in (4, 5) else 0  # before and after it spins
        if got[:at] != expected[:-1] or got[at][:2] != expected[-1][:2] or not 1 <= got[at].line <= 6:
            wrong.append((name, got, expected))
    assert not wrong, f"{len(wrong)} wrong, the first: {wrong[0]}"
    # A chain that was over when the process was known to be Python, or that fell into a time without ticks, is told of by its
    # ticks: of each there are 50 to 100. Whatever else is missing is an error: so many do not fail to come by chance.
    missing, account = [name for name in chains if not seen[name]], accounts.read(PYSYM, trace)
    later = [name for first, name in zip(chains, missing) if first != name]
    assert 25 * len(missing) <= account.missing and 25 * len(later) <= account.missing - account.early, \
        f"chains never sampled: {missing}; {account.text()}"
    total = torn + sum(seen.values())
    assert accounts.is_rare(torn, total, most_torn), f"{torn} of {total}"
    assert accounts.is_rare(passing, total), f"{passing} of {total}"
    return compared


@pytest.mark.smoke("tables", load=True)
@pytest.mark.every_python
@UNWIND
@pytest.mark.live
def test_chains(python, unwind, chains_of, pysym, profile):
    trace, done = chains_of(python, unwind)
    check_chains(trace, done, profile(trace), 0.01 if python.version == (3, 12) else 0.001)


def is_stripped(python):
    """Debian's interpreters are, also those in root trees, unless their debug symbols are installed there."""
    return python.name.endswith("debian") or bool(python.root and not os.path.exists(python.root + "/usr/lib/debug/.build-id"))


@pytest.mark.usefixtures("needs_bpf")
def test_perf_trampolines(python, pycap, pysym, profile, tmp_path):
    """-X perf calls each function through made code of its own: unwound through, joined, and not shown."""
    if python.version < (3, 12):
        pytest.skip("-X perf came with 3.12")
    if is_stripped(python):
        pytest.skip("Debian's interpreter is stripped: its functions have no names to look for")
    trace = tmp_path / "t.bin"
    done = pycap("record", "-F", "499", "-m", "32M", "--unwind", "tables", "-o", trace, "--", python.path, "-X", "perf",
                 PROGRAMS / "chains.py", "0.1", "300")  # calls: 3.12 allows some 700 that way
    text = summary(pysym, trace)
    for pid in re.findall(r"^ +(\d+)  \S+ +3\.\d", text, re.M):
        pathlib.Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)
    assert done.returncode == 0, done.stderr
    compared = check_chains(trace, done, profile(trace, "--interpreter", "calls"), 0.02)
    named = [[f["name"] for f in frames] for frames in compared]
    whole = [names for names in named if any(n in ("_start", "__libc_start_main_impl") for n in names[:3])]
    # What came before the mappings and the tables were known is cut (stack copies stand in), and nothing else.
    count = {k: int(n.replace(",", "")) for k, n in re.findall(r"^ *(\w+) +[\d.]+ % +([\d,]+)$", text, re.M)}
    early = sum(count.get(k, 0) for k in ("table_missing", "no_mapping", "stack_cut", "no_module"))
    assert accounts.is_rare(len(named) - len(whole) - early, len(named)), f"{len(whole)} of {len(named)}\n{text}"
    assert len(whole) > 0.2 * len(named), text  # pycap had a CPU in that much of the program's time
    unjoined = sum(n for k, n in count.items() if k.startswith("join_"))
    assert accounts.is_rare(unjoined - early, len(named)), text
    def with_trampolines(stacks):
        return [names for names in stacks if any("trampoline" in n or "EvalFrame" in n or n == "[unknown]" for n in names)]
    shown = with_trampolines(whole)
    assert not shown, f"{len(shown)} of {len(whole)}, the first: {shown[0][-9:]}"
    everything = [[f["name"] for f in frames] for _, frames, _ in profile(trace, "--show-interpreter")]
    assert len(with_trampolines(everything)) >= len(whole), "no trampolines were made"


CALLS_PY = '''import time
def key(x):
    return f(3)
def f(n):
    return f(n - 1) if n else 0
end = time.process_time() + 1
while time.process_time() < end:
    sorted((1, 2, 3), key=key)
'''


def bare_loops(text):
    """Of a summary: samples with an eval loop that runs no Python frame, in all and by cause."""
    found = re.search(r"^  eval loops without a Python frame +[\d.]+ % +([\d,]+)\n((?:    .*\n)*)", text, re.M)
    assert found, text
    causes = {m[1]: int(m[2].replace(",", "")) for m in re.finditer(r"^    (.*?) +[\d.]+ % +([\d,]+)$", found[2], re.M)}
    return int(found[1].replace(",", "")), causes


@pytest.mark.parametrize("perf", (False, True), ids=("plain", "perf"))
def test_calls_begin_and_end(python, perf, record, pysym, folded, tmp_path):
    """An eval loop whose Python frame is not there yet, or no longer: counted, and shown alike with -X perf and without."""
    if perf and python.version < (3, 12):
        pytest.skip("-X perf came with 3.12")
    program = tmp_path / "calls.py"
    program.write_text(CALLS_PY if python.version >= (3, 3) else CALLS_PY.replace("process_time", "clock"))
    trace = record(python.path, *(["-X", "perf"] if perf else []), program, options=("-F", "1999", "--unwind", "tables"))
    text = summary(pysym, trace)
    for pid in re.findall(r"^ +(\d+)  \S+ +3\.\d", text, re.M):
        pathlib.Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)
    count, causes = bare_loops(text)
    entering = causes["entering or leaving a call"]
    assert count > 0 and accounts.is_rare(sum(causes.values()) - entering, entering), text
    def with_python(*options):
        return [names for names, _ in folded(trace, *options) if any(" (calls.py:" in n for n in names)]
    within = with_python("--interpreter", "calls")
    shown = [names for names in within if any(n.startswith("py::") for n in names)]
    assert within and not shown, shown[:1]
    if not is_stripped(python):
        assert any(n in ("_PyEval_EvalFrameDefault", "PyEval_EvalFrameEx") for names in within for n in names), text
    made = any(n.startswith("py::f:") for names in with_python("--show-interpreter") for n in names)
    assert made == perf


def test_frame_that_is_taken_down(python, record, pysym, tmp_path):
    """From 3.12 on the eval loop takes a frame out of the chain, and then lets go of what it held."""
    program = tmp_path / "dropped.py"
    program.write_text("import time\nclass Dropped(object):\n    def __del__(self):\n        for i in range(300): pass\n"
                       "def key(x):\n    dropped = Dropped()\n    return x\n"
                       f"now = time.{'process_time' if python.version >= (3, 3) else 'clock'}\nend = now() + 1\n"
                       "while now() < end:\n    sorted((1, 2), key=key)\n")
    trace = record(python.path, program, options=("-F", "499", "--unwind", "tables"))
    _, causes = bare_loops(summary(pysym, trace))
    taken_down = causes.pop("leaving a call, a finalizer runs Python", 0)
    if python.root:  # stripped perhaps, and told by name
        taken_down += causes.pop("other", 0)
    assert bool(taken_down) == (python.version >= (3, 12)), causes
    others = sum(causes.values()) - causes.get("entering or leaving a call", 0)
    assert accounts.is_rare(others, others + taken_down + causes.get("entering or leaving a call", 0)), causes


# The C functions that must stand between two Python frames, by chain; any name of a row will do.
BETWEEN = {
    "sorted": ("builtin_sorted", "list_sort_impl", "list_sort", "listsort", "PyList_Sort"),
    "reduce": ("functools_reduce", "_functools_reduce", "_functools_reduce_impl"),
    "map": ("map_next", "builtin_map"),
    "resub": ("pattern_subx", "_sre_SRE_Pattern_sub", "_sre_SRE_Pattern_sub_impl"),
}


@UNWIND
@pytest.mark.live
def test_native_between(python, unwind, chains_of, profile):
    """A callback through C: the C function stands between the Python frames, in true order."""
    if is_stripped(python):
        pytest.skip("Debian's interpreter is stripped: the C functions have no names to look for")
    trace, _ = chains_of(python, unwind)
    found, samples = collections.Counter(), collections.Counter()
    rows = profile(trace, "--interpreter", "calls")
    unit = min(weight for _, _, weight in rows)
    for _, frames, weight in rows:
        names = [f["name"] for f in frames]
        if accounts.MARKS.intersection(names):
            continue  # test_chains counts those
        for chain, functions in BETWEEN.items():
            leaf = next((i for i, n in enumerate(names) if n.startswith(f"spin_{chain} (")), None)
            if leaf is None:
                continue
            caller = max(i for i in range(leaf) if names[i].startswith("main ("))
            between = [re.sub(r" \(.*", "", n).split(".")[0] for n in names[caller + 1:leaf]]
            samples[chain] += weight / unit
            found[chain] += weight / unit * any(f in between for f in functions)
            # The eval loop never shows outside of the leaf (inside of it, where a call begins), nor a call shim next to the
            # Python code that it calls.
            assert not any("EvalFrame" in n for n in names[:leaf]), names
            assert not re.match(r"_?PyObject_Vectorcall$|_PyFunction_Vectorcall|_PyEval_Vector", names[leaf - 1]), names
    assert all(samples[chain] for chain in BETWEEN), samples
    assert accounts.is_rare(samples.total() - found.total(), samples.total()), f"{found} of {samples}"


def test_threads(python, record, profile):
    trace = record(python.path, PROGRAMS / "threads.py", "0.04", options=("-F", "999"))
    by_function = collections.defaultdict(set)
    for name, frames, _ in profile(trace):
        for frame in python_only(frames):
            if frame.name.startswith("only_in_"):
                by_function[frame.name].add(name)
                assert frame.file == f"<thread {frame.name[len('only_in_'):]}>"
    # In each there are 40 ticks: where all are missing they were before the process was known, or skipped.
    account = accounts.read(PYSYM, trace)
    assert 20 * (64 - len(by_function)) <= account.missing and len(by_function) > 16, account.text()
    assert all(len(threads) == 1 for threads in by_function.values())
    assert len({next(iter(t)) for t in by_function.values()}) == len(by_function)


def test_without_the_gil(python, record, profile, pysym):
    """A thread that runs C code with the GIL released has its own Python stack, not that of the GIL's holder."""
    trace = record(python.path, PROGRAMS / "no_gil.py", "0.5", options=("-F", "499"))
    by_function, packing, alone = collections.defaultdict(set), 0, 0
    for name, frames, _ in profile(trace):
        own = {f.name for f in python_only(frames) if f.name.startswith("only_in_")}
        pid, tid = re.match(r".*?-(\d+) .*?(\d+)$", name).groups()
        if pid == tid:
            assert not own
            continue  # the main thread packs nothing; it is in zlib when it imports it
        if re.search("zlib|libz|deflate", " ".join(f["name"] for f in frames), re.I):
            packing += 1
            alone += not own
        assert len(own) <= 1
        for function in own:
            by_function[function].add(name)
    assert len(by_function) == 4
    assert all(len(threads) == 1 for threads in by_function.values()), by_function
    assert packing > 50  # of about 1,000, that nothing was judged by too few
    assert accounts.is_rare(alone, packing), f"{alone} of {packing} without a Python stack"


@pytest.mark.live
def test_interpreter_is_hidden(python, chains_of, pysym, profile):
    """Of a stripped interpreter nothing shows unless it is asked for, and all views have the same weight."""
    if not is_stripped(python):
        pytest.skip("built-in modules of an interpreter with symbols show; testdata's traces test the rest")
    trace, _ = chains_of(python, "tables")
    views = {view: profile(trace, "--interpreter", view) for view in ("hide", "calls", "show")}
    own = {view: sum(any(re.match(r"\[(lib)?python", f["name"]) for f in frames) for _, frames, _ in rows)
           for view, rows in views.items()}
    assert own["hide"] == 0 < own["calls"] <= own["show"], own
    assert len({sum(weight for _, _, weight in rows) for rows in views.values()}) == 1
    top = pysym(trace, "--format", "top", "--top", "0").stdout
    assert "<module>" in top and not re.search(r" \[(lib)?python", top), top
    assert not any(frames[0]["name"].startswith("[libc.so") for _, frames, _ in views["hide"] if python_only(frames))


@UNWIND
def test_greenlets(python, unwind, record, pysym, profile):
    """A greenlet's frames stand inside greenlet's own, and nothing of the stack that it was started from among them."""
    if subprocess.run([python.path, "-c", "import greenlet"], capture_output=True, check=False).returncode:
        pytest.skip("this interpreter has no greenlet")
    trace = record(python.path, PROGRAMS / "greenlets.py", "1", options=("-F", "499", "--unwind", unwind))
    right, lacking_some, wrong = 0, 0, []
    rows = profile(trace, "--interpreter", "calls")
    unit = min(weight for _, _, weight in rows)
    for _, frames, weight in rows:
        names = [re.sub(r" \(.*:\d+\)$", "", f["name"]) for f in frames]
        if "spin" not in names:
            continue
        own = [i for i, f in enumerate(frames) if python_only([f])]
        # the chain of Python frames: key, lambda, spin, perhaps call; C between the first two
        shown = [names[i] for i in own]
        switched = max((i for i, n in enumerate(names) if "green" in n.lower() and i not in own), default=-1)
        if shown[:1] == ["key"] and own[0] > switched >= 0 and "functools_reduce" in names[own[0]:own[1]]:
            right += weight / unit
        else:
            lacking_some += weight / unit
            wrong.append(names)
    assert right > 50
    causes = bare_loops(summary(pysym, trace))[1]
    assert causes.pop("outside of the running greenlet", 0) >= right and "other" not in causes, causes
    # the first samples may lack an unwind table
    assert accounts.is_rare(lacking_some, right, 0.005), f"{lacking_some} of {right}, the first: {wrong[0]}"


@pytest.mark.smoke
def test_kernel(python, record, profile):
    trace = record(python.path, "-c", "import time; clock = getattr(time, 'thread_time', None) or time.clock\nend = clock() + 0.5\n"
                   "f = open('/dev/zero', 'rb', buffering=0)\nwhile clock() < end:\n    f.read(1 << 20)\n", options=("-F", "999"))
    under = total = 0
    for _, frames, weight in profile(trace):
        python_frames = python_only(frames)
        if not python_frames or python_frames[-1].line != 5:
            continue
        total += weight
        names = [f["name"] for f in frames]
        last = max(i for i, f in enumerate(frames) if python_only([f]))
        under += weight if any(re.search(r"(read|clear)", n) and "_[k]" in n or "[kernel" in str(frames[i].get("file"))
                               or re.match(r"(vfs_read|ksys_read|read_iter_zero|read_zero)", n)
                               for i, n in enumerate(names) if i > last) else 0
    assert total > 0
    assert under > 0.5 * total


def test_reuse(python, record, profile):
    """A code object's address is used again and again: never another function's name."""
    trace = record(python.path, PROGRAMS / "reuse.py", "1.5", options=("-F", "1999", "-m", "32M", "--no-native"))
    right = unknown = 0
    for _, frames, _ in profile(trace):
        for frame in frames:
            match = re.match(r"f_(\d+) \(", frame["name"])
            if match:
                n = int(match[1])
                assert frame["file"] == f"<file {n}>", frame
                assert frame["line"] - n % 50000 in (1, 2), frame
                right += 1
            elif frame["name"].startswith("?"):
                unknown += 1
    assert right > 100
    assert accounts.is_rare(unknown, right, 0.01), (unknown, right)


def test_large(python, record, profile, pysym):
    trace = record(python.path, PROGRAMS / "large.py", "0.5", options=("-F", "499"))
    names = collections.Counter()
    for _, frames, weight in profile(trace):
        for frame in python_only(frames):
            names[frame] += weight
    long = [f for f in names if f.name == "long_" + "n" * 700]
    assert long and all(f.file == "<" + "f" * 700 + ">" for f in long)
    # its 10,000 assignments are over in a moment; the loop behind them takes the time
    assert {f.line for f in long} <= set(range(1, 10005))
    looping = sum(n for f, n in names.items() if f in long and f.line >= 10002)
    assert looping > 0.95 * sum(names[f] for f in long)
    if python.version < (3,):
        return  # names are ASCII
    # code objects have qualified names from 3.11 on
    outer, between = ("Ünïcödé.名前", ".<locals>.") if python.version >= (3, 11) else ("名前", "")
    assert any(f.name == outer for f in names)
    assert any(f.name == (outer + between if between else "") + "inner_𐐷" for f in names)


def lacking(text, stacks):
    """Of a summary: samples whose stacks of that kind are cut, and all of them that have such stacks or should."""
    found = re.search(rf"^  {stacks} .* ([\d,]+)\n((?:    .*\n)*)", text, re.M)
    assert found, text
    cut = sum(int(n.replace(",", "")) for n in re.findall(r" ([\d,]+)$", found[2], re.M))
    return cut, cut + int(found[1].replace(",", ""))


@pytest.mark.each_kind
@UNWIND
@pytest.mark.live
def test_completeness(python, unwind, chains_of, pysym):
    """Shares that must hold from a process's first sample on, printed by the summary."""
    trace, _ = chains_of(python, unwind)
    text = summary(pysym, trace)
    print(text)
    assert accounts.is_rare(*lacking(text, "Python stacks"), 0.01 if python.version == (3, 12) else 0.001), text
    # Up to 3.10 recursion fills the native stack, and a copy of it ends at 64 KiB; that is counted.
    cut = re.search(r"^ *stack_cut +([\d,]+) ", text, re.M)
    counts = cut and unwind == "snapshot" and python.version < (3, 11)
    cut_count = int(cut[1].replace(",", "")) if counts else 0
    lack, stacks = lacking(text, "native stacks")
    assert accounts.is_rare(lack - cut_count, stacks), text
    count = {k: int(n.replace(",", "")) for k, n in re.findall(r"^ *(\w+) +[\d.]+ % +([\d,]+)$", text, re.M)}
    assert accounts.is_rare(count.get("join_outside", 0) - cut_count, stacks), text
    assert not count.get("table_missing", 0), text


def test_tables_crowded(record, pysym):
    """More tables than memory for them: native stacks are cut and say so; Python ones are as whole as ever."""
    script = "import hashlib, ssl, sqlite3, decimal, time\nend = time.thread_time() + 1\n" \
             "while time.thread_time() < end: hashlib.pbkdf2_hmac('sha256', b'a', b'b', 1000); sum(range(1000))"
    trace = record("/usr/bin/python3", "-c", script, options=("-F", "499", "--unwind-memory", "1M"))
    text = summary(pysym, trace)
    assert re.search(r"table_no_room +[\d,]+ ", text), text
    assert accounts.is_rare(*lacking(text, "Python stacks")), text


# ---- what a trace does not hold ----

TRACE_BYTES = pathlib.Path(PYSYM).parent / "tools/trace_bytes"
SECRET = "correct horse battery staple"
HOLDER_C = """
#include <string.h>
void hold(const char *text, void (*call)(void))
{
    volatile char copy[256];
    for (unsigned i = 0; i < sizeof copy; i++)
        copy[i] = text[i % strlen(text)] ^ 0x55;
    for (unsigned i = 0; i < sizeof copy; i++)
        copy[i] ^= 0x55;
    call();
    copy[0] = 0;
}
"""
HOLDER = """
import ctypes, sys, time
text = bytes(b ^ 0x55 for b in bytes.fromhex(sys.argv[2]))
def spin():
    end = time.thread_time() + 0.5
    while time.thread_time() < end:
        sum(range(100))
ctypes.CDLL(sys.argv[1]).hold(ctypes.c_char_p(text), ctypes.CFUNCTYPE(None)(spin))
"""


def build(tmp_path, name, text, *options):
    source, out = tmp_path / f"{name}.c", tmp_path / name
    source.write_text(text)
    subprocess.run([os.environ.get("CC", "cc"), *options, "-o", out, source], check=True, timeout=300)
    return out


@pytest.mark.parametrize("unwind, holds", [("tables", False), ("fp", False), ("none", False), ("snapshot", True), ("both", True)])
def test_stack_memory(unwind, holds, record, tmp_path):
    """A secret on the stack of a sampled program is in the trace only where copies of stacks were asked for."""
    library = build(tmp_path, "holder.so", HOLDER_C, "-shared", "-fPIC")
    # On the command line it stands in a form that is not the secret.
    hidden = bytes(b ^ 0x55 for b in SECRET.encode()).hex()
    trace = record("/usr/bin/python3", "-c", HOLDER, library, hidden, options=("-F", "299", "--unwind", unwind))
    found = subprocess.run([TRACE_BYTES, trace], capture_output=True, check=True, timeout=300).stdout
    assert b"spin" in found
    assert (SECRET.encode() in found) == holds
    # Its most is said where stacks are copied.
    summary = subprocess.run([PYSYM, trace, "-f", "summary", "-v"], capture_output=True, text=True, check=True, timeout=300).stdout
    assert re.findall(r"^  unwind +(\S+)$", summary, re.M) == [unwind]
    assert re.findall(r"^  stack-size +(\d+)$", summary, re.M) == (["65536"] if holds else [])


# ---- programs that are not Python ----

NATIVE_C = """
#include <time.h>
volatile unsigned long work;
__attribute__((noinline)) void inner_spin(void)
{
    /* or a leaf would have no frame of its own */
    __asm__ volatile("" : : "r"(__builtin_frame_address(0)));
    for (int i = 0; i < 100000; i++)
        work += i;
}
__attribute__((noinline)) void middle_call(void) { inner_spin(); __asm__(""); }
int main(void)
{
    while (clock() < CLOCKS_PER_SEC)
        middle_call();
    return 0;
}
"""


@pytest.mark.parametrize("unwind", ["tables", "snapshot", "fp"])
def test_all_kinds(unwind, record, folded, tmp_path):
    """-a: native and kernel frames of a C program, of its children, and Python as always."""
    program = build(tmp_path, "native", NATIVE_C, "-g", "-O1", "-fno-omit-frame-pointer")
    script = f"{program} & /usr/bin/python3 -c 'for i in range(60000): sum(range(1000))'; wait"
    trace = record("sh", "-c", script, options=("-F", "299", "-a", "--unwind", unwind))
    rows = folded(trace)
    chains = collections.Counter()
    for frames, weight in rows:
        names = [f.split(" (")[0] for f in frames if not f.endswith("_[k]")]
        if "inner_spin" in names:
            chains[tuple(names[names.index("main"):][:3]) if "main" in names else None] += weight
    whole, total = chains[("main", "middle_call", "inner_spin")], sum(chains.values())
    assert whole > 50 and accounts.is_rare(total - whole, total), chains
    assert any("<module> (<string>:1)" in f for frames, _ in rows for f in frames)


BARE_C = """
#include <time.h>
int main(void)
{
    while (clock() < CLOCKS_PER_SEC)
        __asm__ volatile("mov $1, %%ebp\\n mov $9999, %%ecx\\n 1: dec %%ecx\\n jnz 1b" : : : "rbp", "rcx", "cc");
    return 0;
}
"""


def test_no_frame_pointers(record, pysym, tmp_path):
    """--unwind fp where code uses the register otherwise: that is what is told, and nothing of tables nobody asked for."""
    program = build(tmp_path, "bare", BARE_C, "-O1", "-fomit-frame-pointer")
    trace = record(program, options=("-F", "299", "-a", "--no-kernel", "--unwind", "fp"))
    ends = dict(re.findall(r"^    (\w+) +[\d.]+ % +(\d+)(?:, .*)?$", pysym(trace, "-f", "summary", "-v").stdout, re.M))
    assert int(ends["no_frame_pointer"]) > 50 and "no_unwind_info" not in ends, ends


def test_only_python_unless_asked(record, folded, tmp_path):
    program = build(tmp_path, "native", NATIVE_C, "-g", "-O1")
    trace = record("sh", "-c", f"{program} & /usr/bin/python3 -c 'sum(range(10**7))'; wait", options=("-F", "299"))
    assert not any("inner_spin" in f for frames, _ in folded(trace) for f in frames)


# ---- how recording behaves ----

SPIN = "while True: sum(range(1000))"


def wait_for_records(process, trace, pids=()):
    """Until it has samples, of all these processes if any are named."""
    deadline = time.monotonic() + 120

    def met():
        samples = accounts.read(PYSYM, trace).samples if accounts.is_begun(trace) else []
        return samples and {s.pid for s in samples}.issuperset(pids)
    while not met():
        assert process.poll() is None, process.stderr.read()
        if time.monotonic() > deadline:
            process.kill()
            pytest.fail("nothing is recorded")
        time.sleep(0.05)


def start(trace, *options, command=("/usr/bin/python3", "-c", SPIN)):
    process = subprocess.Popen([PYCAP, "record", "-F", "999", "-o", str(trace), *options, "--", *command],
                               stderr=subprocess.PIPE, text=True)
    wait_for_records(process, trace)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("needs_bpf")
def test_signal(number, pysym, tmp_path):
    trace = tmp_path / "t.bin"
    process = start(trace)
    process.send_signal(number)
    _, message = process.communicate(timeout=300)
    assert "Recorded" in message
    done = pysym(trace, "--format", "summary", "-v", "--strict")
    assert "good order" in done.stdout or "ended" in done.stdout, done.stdout


@pytest.mark.usefixtures("needs_bpf")
def test_kill_9(pysym, tmp_path):
    trace = tmp_path / "t.bin"
    process = start(trace)
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    (child,) = [c for c in children if pathlib.Path(f"/proc/{c}/comm").read_text() not in ("pycap-writer\n", "pycap-errand\n", "pycap-tables\n", "pycap-note\n")]

    def spent():
        stat = pathlib.Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
    deadline = time.monotonic() + 300
    while spent() < 3.5:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    cpu = spent()
    process.kill()
    os.kill(int(child), signal.SIGKILL)  # what was recorded goes on, and holds the pipes
    process.communicate(timeout=300)
    done = pysym(trace, "--format", "folded")
    assert done.returncode == 0, done.stderr
    # What is in the file comes up to two seconds before its end (docs/trace-format.md); test_kill.py measures that.
    account = accounts.read(PYSYM, trace)
    slack_ns = chance.of_sum(account.weights) + account.missing * max(account.weights)
    assert account.weight_ns > (cpu - 2) * 1e9 - slack_ns, (cpu, account.text())


@pytest.mark.smoke
@pytest.mark.usefixtures("needs_bpf")
def test_exit_status_and_output(pycap, tmp_path):
    trace = tmp_path / "t.bin"
    done = pycap("record", "-o", trace, "--", "/usr/bin/python3", "-c", "print('said'); raise SystemExit(7)")
    assert done.returncode == 7
    assert done.stdout == "said\n"
    assert trace.stat().st_mode & 0o777 == 0o600
    missing = pycap("record", "-o", trace, "--", tmp_path / "no-such-program")
    assert missing.returncode == 1 and "no-such-program" in missing.stderr


@pytest.mark.usefixtures("needs_bpf")
def test_owner(pycap, tmp_path):
    trace = tmp_path / "t.bin"
    done = pycap("record", "-o", trace, "-d", "0.3", env={**os.environ, "SUDO_UID": "65534", "SUDO_GID": "65534"})
    assert done.returncode == 0, done.stderr
    assert (trace.stat().st_uid, trace.stat().st_gid) == (65534, 65534)


@pytest.mark.usefixtures("needs_bpf")
def test_pids(pycap, pysym, tmp_path):
    spinners = [subprocess.Popen(["/usr/bin/python3", "-c", f"print(flush=True)\n{SPIN} # {i}"], stdout=subprocess.PIPE)
                for i in range(3)]
    other = subprocess.Popen(["/bin/sleep", "600"])
    try:
        for spinner in spinners:
            spinner.stdout.readline()  # it is Python now
        trace = tmp_path / "t.bin"
        wanted = {spinners[0].pid, spinners[1].pid}
        recorder = subprocess.Popen([PYCAP, "record", "-F", "199", "-o", trace, "-p", ",".join(map(str, wanted))],
                                    stderr=subprocess.PIPE, text=True)
        wait_for_records(recorder, trace, wanted)
        recorder.terminate()
        _, said = recorder.communicate(timeout=300)
        assert recorder.returncode == 0, said
        assert {s.pid for s in accounts.read(PYSYM, trace).samples} == wanted
        done = pycap("record", "-o", tmp_path / "u.bin", "-d", "1", "-p", other.pid)
        assert done.returncode == 1 and "no CPython was found" in done.stderr
        assert not (tmp_path / "u.bin").exists()
        done = pycap("record", "-o", tmp_path / "u.bin", "-d", "1", "-p", "4194300")
        assert done.returncode == 1 and "no process" in done.stderr
        # the end of what is followed ends the recording
        late = subprocess.Popen([PYCAP, "record", "-o", str(tmp_path / "v.bin"), "-p", str(spinners[2].pid)],
                                stderr=subprocess.PIPE, text=True)
        wait_for_records(late, tmp_path / "v.bin")
        spinners[2].kill()
        spinners[2].wait()
        assert late.wait(timeout=300) == 0
    finally:
        for process in [*spinners, other]:
            process.kill()
            process.wait()


@pytest.mark.usefixtures("needs_bpf")
def test_new_processes(pycap, profile, tmp_path):
    """Fork, exec and programs that start later are followed."""
    program = ("import os, subprocess, sys, time\n"
               "def burn(seconds):\n"
               "    end = time.thread_time() + seconds\n"
               "    while time.thread_time() < end: sum(range(1000))\n"
               "def forked(): burn(1)\n"
               "if len(sys.argv) > 1:\n"
               "    def executed(): burn(1)\n"
               "    executed()\n"
               "    raise SystemExit\n"
               "child = os.fork()\n"
               "if not child:\n"
               "    forked()\n"
               "    os._exit(0)\n"
               "os.waitpid(child, 0)\n"
               "subprocess.run([sys.executable, sys.argv[0], 'x'], check=True)\n")
    script = tmp_path / "p.py"
    script.write_text(program)
    trace = tmp_path / "t.bin"
    done = pycap("record", "-F", "999", "-o", trace, "--", "/usr/bin/python3", script)
    assert done.returncode == 0, done.stderr
    spent_ns = collections.Counter()
    for _, frames, weight in profile(trace):
        for name in {frame.name for frame in python_only(frames)} & {"forked", "executed"}:
            spent_ns[name] += weight
    account = accounts.read(PYSYM, trace)
    # The child has its parent's configuration, if that is known by then; of what is executed the first may come before it is
    # known. It takes long where pycap is kept from running, which is told.
    least_ns = 1e9 - chance.of_sum(account.weights) - account.missing * max(account.weights)
    assert min(spent_ns["forked"], spent_ns["executed"]) > max(least_ns, 0), (spent_ns, account.text())


@pytest.mark.usefixtures("needs_bpf")
def test_full_disk(pysym, tmp_path):
    if os.geteuid():
        pytest.skip("mounting a small file system needs root")
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], check=True)
    try:
        trace, gate = small / "t.bin", tmp_path / "gate"
        # With new functions all the time, so that the trace soon needs another page of the disk.
        program = """
import itertools, os, sys, time
end = None
for n in itertools.count():
    exec(f"def function_{n}(): sum(range(20000))\\nfunction_{n}()")
    if not end and os.path.exists(sys.argv[1]):
        end = time.process_time() + 1
    if end and time.process_time() > end:
        break
"""
        with subprocess.Popen([PYCAP, "record", "-F", "999", "-o", trace, "--", "/usr/bin/python3", "-c", program, gate],
                              stderr=subprocess.PIPE, text=True) as recorder:
            # The disk is full once the file has something; at the latest its end finds no room.
            while recorder.poll() is None and not pysym(trace, "--format", "folded").stdout:
                time.sleep(0.1)
            with pytest.raises(OSError, match="No space left"), open(small / "full", "wb", buffering=0) as full:
                while full.write(bytes(512)):
                    pass
            gate.touch()
            said = recorder.communicate(timeout=300)[1]
        assert recorder.returncode == 1 and "t.bin" in said and "space" in said, said
        assert pysym(trace, "--format", "folded").stdout.count("\n") > 0
    finally:
        subprocess.run(["umount", small], check=True)


def test_without_privilege(tmp_path):
    if os.geteuid():
        pytest.skip("dropping privilege needs root")
    done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", PYCAP, "record",
                           "-o", "/tmp/never.bin", "-d", "1"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1, done
    assert "root" in done.stderr and "CAP_BPF" in done.stderr
    assert not os.path.exists("/tmp/never.bin")


# ---- elsewhere ----

def modules_of(pysym, trace):
    """[(path, build ID)] of a trace's modules, as the summary lists them."""
    return re.findall(r"^ +[\d,]+ +[\d,]+  (/.*)\n +build ID ([0-9a-f]+)", summary(pysym, trace), re.M)


def copy_into(root, path):
    target = root / str(path).lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(os.path.realpath(path), target)


@pytest.mark.live
def test_empty_root(python, chains_of, pysym, tmp_path):
    """The trace and the binaries it names, in a root without the original paths, without privilege: the same output."""
    if os.geteuid():
        pytest.skip("a root of its own needs root")
    if "asan" in PYSYM:
        pytest.skip("the sanitizers want /proc")
    trace, _ = chains_of(python, "tables")
    root = tmp_path / "root"
    (root / "symbols").mkdir(parents=True)
    (root / "tmp").mkdir(mode=0o777)
    shutil.copy(PYSYM, root / "pysym")
    for library in re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", PYSYM], capture_output=True, text=True, check=True).stdout):
        copy_into(root, library)
    shutil.copy(trace, root / "t.bin")
    os.chmod(root / "t.bin", 0o644)
    copied = 0
    tree = python.root or ""
    for path, build_id in modules_of(pysym, trace):
        name = f"{build_id[:2]}/{build_id[2:]}"
        for source, to in ((tree + path, name), (f"{tree}/usr/lib/debug/.build-id/{name}.debug", name + ".debug")):
            if os.path.exists(source):
                (root / f"symbols/.build-id/{build_id[:2]}").mkdir(parents=True, exist_ok=True)
                shutil.copy(source, root / f"symbols/.build-id/{to}")
                copied += 1
    assert copied >= 2
    for directory in [tmp_path, *tmp_path.parents]:
        if str(directory).startswith("/tmp/"):
            os.chmod(directory, 0o755)
    os.chmod(root / "tmp", 0o777)
    for name in ("folded", "speedscope", "perf-script", "top"):
        here = pysym("t.bin", "--format", name, cwd=trace.parent if trace.name == "t.bin" else root)
        there = subprocess.run(["chroot", "--userspec=65534:65534", root, "/pysym", "t.bin", "--format", name,
                                "--symfs", "/symbols"], capture_output=True, text=True, timeout=300, check=False)
        assert there.returncode == 0, there.stderr
        # Not compared as a whole: pytest would take minutes to print how they differ.
        assert [a for a, b in itertools.zip_longest(there.stdout.splitlines(), here.stdout.splitlines()) if a != b][:1] == [], name
