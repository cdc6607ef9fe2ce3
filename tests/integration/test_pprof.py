# SPDX-License-Identifier: Apache-2.0
"""pysym -f pprof has the right labels, names, addresses, times and comments.

test_formats_agree.py compares its sums.
"""
import json
import re
import subprocess


import profile_readers
from conftest import PYSYM, ROOT
from pysym_output import good

DEMO = ROOT / "testdata/demo/demo.trace"


def sums(p):
    """(pid, tid) -> values."""
    out = {}
    for sample in p.samples:
        key = sample.labels["pid"][0], sample.labels["tid"][0]
        out[key] = tuple(map(sum, zip(sample.values, out.get(key, [0] * len(sample.values)))))
    return out


def places(sample):
    return tuple((f.function, f.file, f.line, f.address) for f in sample.frames)


def test_types(make, pprof):
    cpu = [("samples", "count"), ("cpu", "nanoseconds")]
    faults = [("page_faults_samples", "count"), ("page_faults", "bytes")]
    p = pprof(make(samples=50, second_event=10))
    assert p.types == cpu + faults and p.default_type == "cpu" and p.period_type == ("cpu", "nanoseconds")
    assert p.period == 10**7
    assert all(any(s.values[:2]) != any(s.values[2:]) for s in p.samples)
    p = pprof(make(samples=50, second_event=10), "--event", "page-faults")
    assert p.types == [("samples", "count"), ("page_faults", "bytes")] and p.default_type == "page_faults"
    empty = pprof(make(samples=0))
    assert empty.types == cpu and not empty.samples


def test_labels(make, pprof):
    """Text is what stores make series of; numbers are not. More labels only tell apart what is there."""
    trace = make(samples=400, threads=4, processes=2, cpus=2, gil=1, labels=3, containers=1)
    plain = pprof(trace)
    kinds = {"process": str, "pid": int, "container": str, "thread": str, "tid": int}
    assert all({k: type(v) for k, (v,) in s.labels.items()} == kinds for s in plain.samples)
    more = pprof(trace, "--labels", "--label-cpu")
    assert {s.labels["cpu"][0] for s in more.samples} == {0, 1}
    assert {s.labels["gil"][0] for s in more.samples} == {"held", "not held"}
    assert len({s.labels["asyncio_task"][0] for s in more.samples}) == 3
    assert {str(s.labels.get("interpreter")) for s in more.samples} == {"None", "['1']"}
    assert sums(more) == sums(plain)
    stacks = {places(s) for s in plain.samples}
    assert {places(s) for s in more.samples} == stacks  # labels are no frames here
    assert [s.labels for s in pprof(trace, "--merge", "all").samples] == [{}] * len(stacks)
    assert {frozenset(s.labels) for s in pprof(trace, "--merge", "process").samples} == {frozenset(("process", "pid", "container"))}
    rows = [(places(s), str(s.labels)) for s in more.samples]
    assert len(set(rows)) == len(rows)


def python_frames(p):
    return [f for s in p.samples for f in s.frames if f.mapping["filename"] == "[python]" and f.file]


def test_names(pprof):
    """pprof adds up functions of one name: code of modules says which; --qualify has all say their module."""
    frames = python_frames(pprof(DEMO, "--no-host", "--full-filenames"))
    assert [f for f in frames if f.function == f"<module {f.file.removesuffix('.py')}>" and f.file.endswith("/demo.py")]
    assert {"spend", "parse_orders"} < {f.function for f in frames}
    assert not [f for f in frames if f.function == "<module>" or f.system_name]
    assert all(f.start_line and f.line and f.line >= f.start_line and not f.column for f in frames)
    names = {f.function for f in python_frames(pprof(DEMO, "--no-host", "--qualify")) if f.file.endswith("/demo.py")}
    assert {"demo.spend", "demo.py:<module>"} < names and all(re.match(r"demo\.", name) for name in names)
    assert any(f.column for f in python_frames(pprof(ROOT / "testdata/traces/3.12-shared.trace", "--no-host", "--columns")))


def test_native_code_can_be_looked_up(pprof):
    """An address lies in its mapping, and code whose name is not known has no line; Python's has no address."""
    p = pprof(DEMO, "--no-host", "--show-interpreter")
    unnamed = [f for s in p.samples for f in s.frames if not f.function]
    assert unnamed
    for f in unnamed:
        m = f.mapping
        assert m["memory_start"] <= f.address < m["memory_limit"] and m["build_id"] and m["filename"].startswith("/"), f
        assert not any(key.startswith("has_") for key in m)
        assert not (m["memory_start"] | m["memory_limit"] | m.get("file_offset", 0)) & 4095
    assert "python" in p.mappings[0]["filename"] and p.mappings[0]["filename"].startswith("/")  # pprof: "File:"
    assert {f.address for f in python_frames(p)} == {0}
    assert all(f.mapping["has_functions"] for f in python_frames(p))


def test_facts(pysym, pprof):
    p = pprof(DEMO, "--no-host", "--focus", "a")
    duration_ns = json.loads(good(pysym(DEMO, "-f", "summary", "--json", "--no-host")))["duration_ns"]
    samples = [json.loads(line) for line in good(pysym(DEMO, "-f", "ndjson", "--no-host")).splitlines()]
    times = [row["time_ns"] for row in samples if row["type"] == "sample"]
    assert p.time_ns // 10**9 == 1795237759 and p.duration_ns == duration_ns  # 2026-11-21 05:09:19 UTC
    assert re.fullmatch(r"converted by pysym \d+\.\d+\.\d+: \d+\.\d+ s of \d+\.\d+ s shown \(--focus a\)", p.comments[0])
    assert "demo.trace: host vm, Linux " in p.comments[1] and "demo.trace: recorded by pycap " in p.comments[2]
    half = pprof(DEMO, "--no-host", "--time", "50%,")  # from the first sample to the last
    assert duration_ns // 2 <= half.time_ns - p.time_ns < duration_ns
    assert half.duration_ns <= max(times) - min(times) - (duration_ns // 2 - duration_ns // 10)


def test_two_inputs(make, pysym, pprof):
    one, two = make(samples=300, threads=3, pid=1000), make(samples=200, pid=2000, interval_us=5000, losses=7)
    p = pprof(one, two)
    assert sums(p) == {**sums(pprof(one)), **sums(pprof(two))}
    assert [c.split(": ")[0] for c in p.comments if ": host testhost" in c] == [one.name, two.name]
    assert [c for c in p.comments if c.startswith(f"{two.name}: lost: 7 ring_full of cpu-clock (")]
    durations = [json.loads(good(pysym(t, "-f", "top", "--json")))["duration_ns"] for t in (one, two)]
    assert p.duration_ns == sum(durations)


def test_windows(make, pysym, pprof, tmp_path):
    """Windows have the types, the time and the part of the recording that are theirs, so that pprof can add them up."""
    trace = make(samples=400, threads=4, processes=2, second_event=1)
    whole = pprof(trace)
    assert pysym(trace, "-o", tmp_path / "w.pb.gz", "--window", "1s").returncode == 0
    windows = [profile_readers.pprof(path) for path in sorted(tmp_path.glob("w.*.pb.gz"))]
    assert len(windows) == 5 and {str(w.types) for w in windows} == {str(whole.types)} and len(whole.types) == 4
    assert [w.time_ns - whole.time_ns for w in windows] == [second * 10**9 for second in range(5)]
    assert [w.duration_ns for w in windows] == [10**9] * 4 + [0]  # the last sample is at the end
    for key, values in sums(whole).items():
        assert values == tuple(map(sum, zip(*(sums(w)[key] for w in windows if key in sums(w)))))
    assert pysym(trace, "-o", tmp_path / "p.pb.gz", "--split", "process").returncode == 0
    processes = [profile_readers.pprof(path) for path in tmp_path.glob("p.*.pb.gz")]
    assert [(p.time_ns, p.duration_ns) for p in processes] == [(whole.time_ns, whole.duration_ns)] * 2


def test_same_bytes(make, pprof, tmp_path):
    """Whichever way it is read and written, but for the name of what was read."""
    trace = make(samples=500, threads=7, stacks=13, processes=3, torn=9)
    plain = subprocess.run([PYSYM, trace, "-f", "pprof"], capture_output=True, check=True).stdout
    assert plain[:10] == b"\x1f\x8b\x08" + bytes(6) + b"\x03"  # no time, no name
    for name in ("x.pb.gz", "x.pb", "x.pprof"):
        subprocess.run([PYSYM, f"./{trace.name}", "-o", tmp_path / name], cwd=tmp_path, check=True)
        assert (tmp_path / name).read_bytes() == plain
    with open(trace, "rb") as file:
        piped = pprof("-", stdin=file)
    known = profile_readers.pprof(tmp_path / "x.pb.gz")
    assert [c.replace("standard input", trace.name) for c in piped.comments] == known.comments
    assert piped._replace(comments=()) == known._replace(comments=())


def test_refused(make, pysym):
    trace = make(samples=1)
    for option in ("--qualify", "--label-cpu"):
        done = pysym(trace, "-f", "folded", option)
        assert done.returncode == 2 and f"{option} is for --format pprof" in done.stderr
    assert pysym(trace, "-f", "pprof", "--min", "1%").returncode == 2
