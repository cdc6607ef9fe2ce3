# SPDX-License-Identifier: Apache-2.0
"""pysym -f pprof: profiles have the stacks and the sums of the other formats."""
import collections
import gzip
import json
import os
import re
import subprocess

import pytest

import pprof_file
from conftest import PYSYM, ROOT
from test_pysym import good, make  # noqa: F401

TRACES = [ROOT / "testdata" / name for name in (
    "demo/demo.trace", "traces/2.7-shared.trace", "traces/3.11-static.trace", "traces/3.13-free-threaded.trace",
    "traces/3.14-static.trace")]
ALL = ["--no-host", "--full-filenames"]


@pytest.fixture
def profile():
    """Runs pysym -f pprof; returns the Profile."""
    def run(*arguments, **keywords):
        done = subprocess.run([PYSYM, *map(str, arguments), "-f", "pprof"], capture_output=True, check=False, timeout=300,
                              **keywords)
        assert done.returncode == 0, done.stderr
        return pprof_file.parse(done.stdout)
    return run


def spell(frame):
    """As folded shows the frame with --full-filenames."""
    if frame.name is None:
        return f"[{os.path.basename(frame.mapping.file)}]"
    name = re.sub(r"^<module .*>$", "<module>", frame.name)
    if frame.mapping.file == "[python]":
        if frame.file:
            return f"{name} ({frame.file}:{frame.line})" if frame.line else f"{name} ({frame.file})"
        return name
    if frame.mapping.file.startswith("[") and frame.mapping.file not in ("[unknown]", "[vdso]"):
        name += "_[k]"
    return re.sub(r" (?=[0-9.]+$)", "_", name)


def owner(labels):
    word = re.sub(r"\s", "_", str(labels.get("process", "")))
    owners = [f"{word}-{labels['pid']}"] if "pid" in labels else []
    return owners + ([f"{labels.get('thread', 'thread')}-{labels['tid']}"] if "tid" in labels else [])


def folded_of(p, value):
    """The lines of folded stacks, by a type of value."""
    at, out = [name for name, _ in p.types].index(value), collections.Counter()
    for sample in p.samples:
        if sample.values[at]:
            out[";".join(owner(sample.labels) + [spell(f) for f in reversed(sample.frames)])] += sample.values[at]
    return out


def folded(text):
    return collections.Counter({stack: int(count) for stack, count in (line.rsplit(" ", 1) for line in text.splitlines())})


def weights(pysym, *arguments):
    """(event, pid, tid) -> (samples, weight), as top has them."""
    out = collections.Counter()
    for event in json.loads(good(pysym(*arguments, "-f", "top", "--json", "--merge", "thread", "--top", "0")))["events"]:
        for t in event["tables"]:
            weight = next(value for key, value in t.items() if key.startswith("weight_"))
            out[event["event"], t["pid"], t["tid"]] = (t["samples"], weight)
    return out


def weights_of(p, events):
    out = collections.defaultdict(lambda: (0, 0))
    for s in p.samples:
        for i, event in enumerate(events):
            if s.values[2 * i]:
                key = (event, s.labels["pid"], s.labels["tid"])
                out[key] = tuple(a + b for a, b in zip(out[key], s.values[2 * i:2 * i + 2]))
    return out


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.stem)
def test_stacks_are_those_of_folded(trace, pysym, profile):
    """Line by line, in the default view and with the interpreter's frames."""
    for options in ([], ["--show-interpreter", "--merge", "process"], ["--merge", "all", "--python-only"], ["--nolineno"]):
        merge = [] if "--merge" in options else ["--merge", "thread"]
        p = profile(trace, *ALL, *options)
        assert folded_of(p, "samples") == folded(good(pysym(trace, "-f", "folded", *ALL, *options, *merge)))
        period = p.raw[12][0]
        assert all(s.values[1] == s.values[0] * period for s in p.samples)
    assert p.types == [("samples", "count"), ("cpu", "nanoseconds")] and p.default == "cpu"
    assert p.period_type == ("cpu", "nanoseconds")


FILTERS = [["--pid", "1000"], ["--tid", "1101"], ["--thread", "worker-[12]"], ["--cpu", "1"], ["--task", "1"],
           ["--subinterpreter", "1"], ["--event", "page-faults"], ["--gil"], ["--time", "25%,75%"], ["--focus", "level4_2"],
           ["--ignore", "level4_2"], ["--root-at", "level1"], ["--callers-of", "level1"], ["--hide", "level0"],
           ["--show", "level1"], ["--layer", "kernel"], ["--group", "file"], ["--collapse-recursion"], ["-F"]]


def test_sums_are_those_of_top(make, pysym, profile):  # noqa: F811
    """Per event and thread, when the rate changes, with damage, and with every filter."""
    trace = make(samples=1500, threads=6, processes=2, cpus=2, stacks=9, torn=50, unjoined=70, second_event=150, slower_at=700,
                 epoch_samples=400, gil=1, labels=3)
    names = {("samples", "count"): "cpu-clock", ("page_faults_samples", "count"): "page-faults"}
    for options in [[], *FILTERS]:
        wanted = weights(pysym, trace, *options)
        assert wanted, options
        p = profile(trace, *options)
        only = {e for e, _, _ in wanted}
        events = [names[t] for t in p.types[::2]] if len(only) > 1 else list(only)
        assert weights_of(p, events) == wanted, options
    assert "--time" not in p.comments[0]
    assert p.types == [("samples", "count"), ("cpu", "nanoseconds"), ("page_faults_samples", "count"), ("page_faults", "bytes")]
    cut = trace.with_name("cut.bin")
    cut.write_bytes(trace.read_bytes()[:-2000])
    done = pysym(cut, "-f", "folded")
    assert "damaged" in done.stderr or "end" in done.stderr, done.stderr
    assert weights_of(profile(cut), ["cpu-clock", "page-faults"]) == weights(pysym, cut)


def test_two_inputs(make, pysym, profile):  # noqa: F811
    one, two = make(samples=300, threads=3, pid=1000), make(samples=200, pid=2000, interval_us=5000, losses=7)
    p = profile(one, two)
    assert weights_of(p, ["cpu-clock"]) == weights(pysym, one, two)
    assert weights_of(p, ["cpu-clock"]) == {**weights_of(profile(one), ["cpu-clock"]), **weights_of(profile(two), ["cpu-clock"])}
    assert [c.split(": ")[0] for c in p.comments if ": host testhost" in c] == [one.name, two.name]
    assert [c for c in p.comments if c.startswith(f"{two.name}: lost: 7 ring_full")]
    durations = [json.loads(good(pysym(t, "-f", "top", "--json")))["duration_ns"] for t in (one, two)]
    assert p.raw[10] == [sum(durations)]


def test_labels(make, profile):  # noqa: F811
    """Text is what stores make series of; numbers are not. More labels only tell apart what is there."""
    trace = make(samples=400, threads=4, processes=2, cpus=2, gil=1, labels=3, containers=1)
    plain = profile(trace)
    assert {frozenset(s.labels) for s in plain.samples} == {frozenset(("process", "pid", "container", "thread", "tid"))}
    assert all(isinstance(s.labels[k], str) for s in plain.samples for k in ("process", "thread", "container"))
    assert all(isinstance(s.labels[k], int) for s in plain.samples for k in ("pid", "tid"))
    more = profile(trace, "--labels", "--label-cpu")
    assert {s.labels["cpu"] for s in more.samples} == {0, 1}
    assert {s.labels.get("gil") for s in more.samples} == {"held", "not held"}
    assert len({s.labels["asyncio_task"] for s in more.samples}) == 3
    assert {s.labels.get("interpreter") for s in more.samples} == {None, "1"}
    assert weights_of(more, ["cpu-clock"]) == weights_of(plain, ["cpu-clock"])
    assert folded_of(more, "cpu") == folded_of(plain, "cpu")  # labels are no frames
    assert {frozenset(s.labels) for s in profile(trace, "--merge", "all").samples} == {frozenset()}
    rows = [(tuple(s.frames), tuple(s.labels.items())) for s in more.samples]
    assert len(set(rows)) == len(rows)


def test_deep_and_empty(make, pysym, profile):  # noqa: F811
    trace = make(samples=20, stacks=2, depth=900)
    p = profile(trace, *ALL)
    assert max(len(s.frames) for s in p.samples) >= 900
    assert folded_of(p, "samples") == folded(good(pysym(trace, "-f", "folded", "--merge", "thread", *ALL)))
    p = profile(make(samples=0))
    assert p.types == [("samples", "count"), ("cpu", "nanoseconds")] and not p.samples


def test_names(profile):
    """Code of modules says which; functions of one name stay apart; --qualify names all by their module."""
    p = profile(ROOT / "testdata/demo/demo.trace", *ALL)
    python = {(f.name, f.file) for s in p.samples for f in s.frames if f.mapping.file == "[python]" and f.file}
    assert not any(name == "<module>" for name, _ in python)
    assert [file for name, file in python if name == f"<module {file}>" and file.endswith("demo.py")]
    for s in profile(ROOT / "testdata/demo/demo.trace", "--no-host", "--qualify").samples:
        for f in s.frames:
            assert f.mapping.file != "[python]" or not f.file.endswith("/demo.py") or re.match(r"demo\.|demo\.py:<module>$", f.name)


def test_native_code_can_be_looked_up(profile):
    """An address lies in its mapping, and code whose name is not known has one; what is named has no need of it."""
    p = profile(ROOT / "testdata/demo/demo.trace", "--no-host", "--show-interpreter")
    unnamed = [f for s in p.samples for f in s.frames if f.name is None]
    assert unnamed
    for f in unnamed:
        m = f.mapping
        assert m.start <= f.address < m.limit and m.build_id and m.file.startswith("/") and not any(m.has), f
        assert not (m.start | m.limit | m.offset) & 4095
    assert p.mappings[0].file.startswith("/") and "python" in p.mappings[0].file  # pprof: "File:"
    assert any(m.file == "[python]" and m.has[0] and not m.limit for m in p.mappings)


def test_facts(pysym, profile):
    demo = ROOT / "testdata/demo/demo.trace"
    p = profile(demo, "--no-host", "--focus", "a")
    summary = json.loads(good(pysym(demo, "-f", "summary", "--json", "--no-host")))
    assert p.raw[9][0] // 10**9 == 1795237759 and p.raw[10] == [summary["duration_ns"]]  # 2026-11-21 05:09:19 UTC
    assert re.fullmatch(r"converted by pysym \d+\.\d+\.\d+: \d+\.\d+ s of \d+\.\d+ s shown \(--focus a\)", p.comments[0])
    assert "demo.trace: host vm, Linux " in p.comments[1] and "demo.trace: recorded by pycap " in p.comments[2]
    first = profile(demo, "--no-host", "--time", ",50%")
    assert p.raw[9][0] <= first.raw[9][0] < p.raw[9][0] + summary["duration_ns"] // 2
    assert first.raw[10][0] <= summary["duration_ns"] // 2


def test_same_bytes(make, profile, tmp_path):  # noqa: F811
    """Whichever way it is read and written, but for the name of what was read."""
    trace = make(samples=500, threads=7, stacks=13, processes=3, torn=9)
    plain = subprocess.run([PYSYM, trace, "-f", "pprof"], capture_output=True, check=True).stdout
    for name in ("x.pb.gz", "x.pb", "x.pprof"):
        subprocess.run([PYSYM, f"./{trace.name}", "-o", tmp_path / name], cwd=tmp_path, check=True)
        assert (tmp_path / name).read_bytes() == plain
    with open(trace, "rb") as file:
        piped = profile("-", stdin=file)
    known = pprof_file.parse(plain)
    assert piped.samples == known.samples and piped.raw[9] == known.raw[9]
    assert [c.replace("standard input", trace.name) for c in piped.comments] == known.comments
    assert str(tmp_path).encode() not in gzip.decompress(plain)


def test_refused(make, pysym):  # noqa: F811
    trace = make(samples=1)
    for option in ("--qualify", "--label-cpu"):
        done = pysym(trace, "-f", "folded", option)
        assert done.returncode == 2 and f"{option} is for --format pprof" in done.stderr
    assert pysym(trace, "-f", "pprof", "--min", "1%").returncode == 2
