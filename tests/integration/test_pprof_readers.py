# SPDX-License-Identifier: Apache-2.0
"""Three readers of pprof profiles read what other formats say.

They share nothing with the writer:

  protobuf      Google's library decodes them (pprof_protobuf.py)
  pprof         `go tool pprof`, whose tables are compared number by number
  speedscope    its importer, by what it saves again
"""
import collections
import gzip
import json
import os
import re
import shutil
import subprocess

import pytest

import stand_in
from conftest import MAKE_TRACE, PYSYM, ROOT, later
from consumers import go_pprof, google_pprof, speedscope_reads
from pprof_protobuf import Profile

pytestmark = pytest.mark.unsanitized

DEMO = ROOT / "testdata/demo"
TRACES = ROOT / "testdata/traces"
MADE = {"samples": 700, "stacks": 12, "threads": 5, "processes": 2, "cpus": 2, "slower_at": 400, "second_event": 150, "torn": 9,
        "unjoined": 11, "gil": 1, "labels": 4, "containers": 1, "epoch_samples": 150}
# Each has what others lack: two events, a rate that changed, labels, epochs; native lines and inlined functions; native
# code without names; functions of one name in several files; functions of a built-in module.
CAPTURES = {"made-up": [], "demo": [DEMO / "demo.trace", "--symfs", DEMO, "--no-host"],
            "demo-unnamed": [DEMO / "demo.trace", "--no-host"], "3.8": [TRACES / "3.8-shared.trace"],
            "3.12": [TRACES / "3.12-shared.trace"], "3.12-gc": [TRACES / "3.12-shared.trace"]}
EVERY_CAPTURE = [*CAPTURES, *(later(path.name) for path in sorted(TRACES.glob("*.trace")))]


@pytest.fixture(scope="module")
def run_pysym(tmp_path_factory):
    """pysym over one of CAPTURES, or a file of TRACES; its standard output."""
    if not os.access(MAKE_TRACE, os.X_OK):
        pytest.skip(f"{MAKE_TRACE} is not built")
    folder = tmp_path_factory.mktemp("pprof")

    def run(capture, *options, out=None):
        arguments = CAPTURES.get(capture, [TRACES / capture])
        if capture == "made-up":
            arguments = [folder / "made-up.trace"]
            if not arguments[0].exists():
                subprocess.run([MAKE_TRACE, *arguments, *(f"{k}={v}" for k, v in MADE.items())], check=True)
        if capture == "3.12-gc":
            if not (folder / "binaries").exists():
                stand_in.interpreter(folder / "binaries")
            arguments = [*arguments, "--symfs", folder / "binaries", "--no-host"]
        command = [PYSYM, *arguments, *options, *(["-o", out] if out else [])]
        done = subprocess.run([str(c) for c in command], capture_output=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout
    return run


@pytest.fixture(scope="module")
def profile(run_pysym):
    """A capture's profile as protobuf decodes it."""
    return lambda capture, *options: Profile(run_pysym(capture, "-f", "pprof", *options))


@pytest.fixture(scope="module")
def top(run_pysym):
    """A capture's table of functions or lines, for each event: what the profile has to say, too."""
    return lambda capture, *options: json.loads(run_pysym(capture, "-f", "top", "--json", "--top", "0", *options))["events"]


@pytest.fixture(scope="module")
def pprof(run_pysym, tmp_path_factory):
    """Runs pprof over a file; its standard output. It looks for binaries in a folder, and at their own paths."""
    folder = tmp_path_factory.mktemp("go")
    program = go_pprof()

    def run(*arguments, binaries=folder, by=None):
        environment = {**os.environ, "PPROF_BINARY_PATH": str(binaries), "PPROF_TMPDIR": str(folder)}
        command = [str(a) for a in (by or program, *arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout
    return run


@pytest.fixture(scope="module")
def written(run_pysym, tmp_path_factory):
    """The path of a capture's profile."""
    folder = tmp_path_factory.mktemp("written")

    def write(capture, *options):
        path = folder / (re.sub(r"\W+", "-", " ".join([capture, *options])) + ".pb.gz")
        if not path.exists():
            run_pysym(capture, *options, out=path)
        return path
    return write


# ---- what top says ----
#
# Of native functions it has the names only: equal ones in several binaries and files are one function to it.

def name_of(row):
    """A function's name as a profile has it. Of a module's code the file belongs to the name."""
    if row["layer"] == "python":
        file = re.search(r"^<module> \((.*?)(:\d+)?\)$", row["name"])
        return f"<module {file[1].removesuffix('.py')}>" if file else row["function"]
    return row["name"]


def row_key(row):
    """Of a function, or of a line: that is the difference between tables."""
    return (name_of(row), row.get("file", ""), row.get("line", 0)) if row["layer"] == "python" else name_of(row)


def native_name(frame):
    kernel = frame.mapping.startswith("[") and frame.mapping not in ("[python]", "[vdso]", "[unknown]", "[jit]")
    return frame.name + ("_[k]" if kernel else "")


def is_python(frame):
    return frame.mapping == "[python]" and not re.search(r"^\[.*\]$", frame.name)


def frame_function(frame):
    return (frame.name, frame.file, frame.start) if is_python(frame) else native_name(frame)


def frame_line(frame):
    if is_python(frame):
        return frame.name, frame.file, frame.line
    if frame.line:  # top has it in place of a built-in module
        return f"{re.sub(r' [(][A-Za-z_]+[)]$', '', frame.name)} ({os.path.basename(frame.file)}:{frame.line})"
    return native_name(frame)


def sums_of(events, tables, key):
    """key(row) -> [self, total] of each type."""
    found = collections.defaultdict(lambda: [[0, 0] for _ in range(2 * len(events))])
    for i, event in enumerate(events):
        unit = event["unit"] if event["unit"] in ("ns", "bytes") else "count"
        for row in (row for table in tables(event) for row in table["rows"]):
            sums = found[key(row)]
            for k, name in enumerate(("samples", f"weight_{unit}")):
                sums[2 * i + k][0] += row[f"self_{name}"]
                sums[2 * i + k][1] += row[f"total_{name}"]
    return dict(found)


def every_table(event):
    return event["tables"]


# ---- the decoder ----

@pytest.mark.parametrize("capture", EVERY_CAPTURE)
def test_functions_and_lines(capture, profile, top):
    for options in ((), ("--interpreter", "show")):
        decoded = profile(capture, *options)
        assert decoded.sums(frame_function) == sums_of(top(capture, *options), every_table, row_key)
        assert decoded.sums(frame_line) == sums_of(top(capture, *options, "--by", "line"), every_table, row_key)


@pytest.mark.parametrize("capture", EVERY_CAPTURE)
def test_threads(capture, profile, top):
    decoded = profile(capture)
    samples = collections.defaultdict(list)
    for sample in decoded.samples:
        samples[sample.labels["pid"], sample.labels["tid"], sample.labels["process"], sample.labels["thread"]].append(sample)
    events = top(capture, "--merge", "thread")
    threads = {tuple(t[k] for k in ("pid", "tid", "process", "thread")) for event in events for t in event["tables"]}
    assert set(samples) == threads
    for thread in threads:
        def table(event):
            return [t for t in event["tables"] if (t["pid"], t["tid"]) == thread[:2]]
        assert decoded.sums(frame_function, samples[thread]) == sums_of(events, table, row_key)


def test_types(profile, top):
    decoded = profile("made-up")
    assert decoded.types == [("samples", "count"), ("cpu", "nanoseconds"),
                             ("page_faults_samples", "count"), ("page_faults", "bytes")]
    assert decoded.default_type == "cpu"
    assert decoded.period == ("cpu", "nanoseconds", 10_000_000)
    cpu, faults = top("made-up")
    assert decoded.totals() == [cpu["samples"], cpu["weight_ns"], faults["samples"], faults["weight_bytes"]]
    assert cpu["samples"] == 700 and faults["samples"] == 150


# A label's samples are those that a filter lets through.
LABELS = [("asyncio_task", "task-2", ["--task", "^task-2$"]), ("interpreter", "1", ["--subinterpreter", "1"]),
          ("gil", "held", ["--gil"])]


@pytest.mark.parametrize("key, value, options", LABELS)
def test_labels(key, value, options, profile, top):
    decoded = profile("made-up", "--labels")
    events = top("made-up", *options)
    assert decoded.totals([s for s in decoded.samples if s.labels.get(key) == value]) == \
        [n for event in events for n in (event["samples"], event.get("weight_ns", event.get("weight_bytes")))]
    assert not any(key in sample.labels for sample in profile("made-up").samples)


# ---- pprof ----

ALL = ("-symbolize=none", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0", "-unit=ns")
INLINED = re.compile(r" \((partial-)?inline\)$")


def rows_of(table):
    """name -> [own, total]"""
    rows = re.findall(r"^ *(\d+)(?:ns|B)? +\S+ +\S+ +(\d+)(?:ns|B)? +\S+  (.*)$", table, re.M)
    found = {INLINED.sub("", name): [int(own), int(total)] for own, total, name in rows}
    assert found and len(found) == len(rows)
    return found


def expected_rows(profile, index, lines=False, samples=None):
    """pprof's table of functions with their files, or of lines, as the decoder has it."""
    def label(frame):
        file = os.path.normpath(frame.file) if frame.file else ""
        return " ".join(filter(None, (frame.name, f"{file}:{frame.line}" if lines and frame.line else file)))
    return {name: sums[index] for name, sums in profile.sums(label, samples).items() if any(sums[index])}


@pytest.mark.parametrize("capture", EVERY_CAPTURE)
def test_pprof_top(capture, written, pprof):
    profile = Profile(written(capture).read_bytes())
    for index, (name, _) in enumerate(profile.types):
        for lines in (False, True):
            text = pprof("-top", *ALL, "-lines" if lines else "-filefunctions", f"-sample_index={name}", written(capture))
            assert rows_of(text) == expected_rows(profile, index, lines)


@pytest.mark.parametrize("capture", ["demo", "3.12", "3.8"])
def test_pprof_names(capture, written, pprof):
    """Python's names and files stay as they are when pprof looks all symbols up itself, with the binaries at hand."""
    found = rows_of(pprof("-top", *ALL[1:], "-filefunctions", "-symbolize=force", written(capture), binaries=DEMO))
    expected = {name: sums for name, sums in expected_rows(Profile(written(capture).read_bytes()), 1).items() if ".py" in name}
    assert any(name.startswith("<module ") for name in expected)
    assert capture == "demo" or any("<lambda>" in name for name in expected)
    assert {name: found.get(name) for name in expected} == expected


def test_pprof_equal_names(written, pprof):
    """Functions of one name in several files are one to pprof, unless it is asked for files."""
    apart = rows_of(pprof("-top", *ALL, "-sample_index=samples", "-filefunctions", written("3.8")))
    files = {"find_spec <frozen importlib._bootstrap>", "find_spec <frozen importlib._bootstrap_external>"}
    assert {name for name in apart if name.startswith("find_spec ")} == files
    one = rows_of(pprof("-top", *ALL, "-sample_index=samples", written("3.8")))["find_spec"]
    assert one[0] == sum(apart[name][0] for name in files) and one[1] <= sum(apart[name][1] for name in files)


def test_pprof_symbolizes_later(written, pprof, tmp_path):
    """Native code without a name gets it from the binary, when that is at hand."""
    assert "[demo_native.so]" in rows_of(pprof("-top", *ALL, written("demo-unnamed")))
    # The capture was made elsewhere. `go tool pprof` opens the path: it takes any binary for one without a build ID.
    profile = Profile(written("demo-unnamed").read_bytes())
    for i, text in enumerate(profile.text):
        if text.endswith("/demo_native.so"):
            profile.text[i] = str(DEMO / "demo_native.so")
    moved = tmp_path / "moved.pb.gz"
    moved.write_bytes(gzip.compress(profile.raw.SerializeToString()))
    found = rows_of(pprof("-top", *ALL[1:], moved))
    named = rows_of(pprof("-top", *ALL, written("demo")))
    assert "[demo_native.so]" not in found
    # It reads no inlined functions: they have the name of the function around them.
    assert found["mix_bytes"] == [named["mix_bytes"][1]] * 2


@pytest.mark.long
def test_pprof_finds_build_ids(written, pprof, tmp_path):
    """The same by google's own pprof, which finds the binary by its build ID alone; inlined functions, too."""
    profile = Profile(written("demo-unnamed").read_bytes())
    (native,) = (m for m in profile.raw.mapping if profile.text[m.filename].endswith("/demo_native.so"))
    folder = tmp_path / profile.text[native.build_id]
    folder.mkdir()
    shutil.copy(DEMO / "demo_native.so", folder / "anything")
    found = rows_of(pprof("-top", *ALL[1:], written("demo-unnamed"), binaries=tmp_path, by=google_pprof()))
    named = rows_of(pprof("-top", *ALL, written("demo")))
    assert "[demo_native.so]" not in found
    assert [found[name] for name in ("mix_bytes", "rotate")] == [named[name] for name in ("mix_bytes", "rotate")]


@pytest.mark.parametrize("tag, key, value", [
    ("thread=^worker-1$", "thread", "worker-1"), ("pid=1100:1100", "pid", 1100), ("tid=1103:1103", "tid", 1103),
    ("asyncio_task=^task-2$", "asyncio_task", "task-2"), ("gil=^held$", "gil", "held")])
def test_pprof_labels(tag, key, value, written, pprof):
    """Samples chosen by a label."""
    path = written("made-up", "--labels")
    profile = Profile(path.read_bytes())
    samples = [sample for sample in profile.samples if sample.labels.get(key) == value]
    for index, (name, _) in enumerate(profile.types):
        text = pprof("-top", *ALL, "-filefunctions", f"-sample_index={name}", f"-tagfocus={tag}", path)
        assert rows_of(text) == expected_rows(profile, index, samples=samples)


def test_pprof_peek_and_traces(written, pprof, run_pysym):
    """Callers and whole stacks, which top does not have."""
    folded = collections.Counter()
    for line in run_pysym("3.12-gc", "-f", "folded", "--nolineno", "--merge", "all", "-F").decode().splitlines():
        stack, count = line.rsplit(" ", 1)
        # Without the file of a Python function; a built-in module is part of the name.
        folded[tuple(re.sub(r" \((?!gc\)).*\)$", "", frame) for frame in stack.split(";"))] += int(count)
    assert sum(n for stack, n in folded.items() if f"{stand_in.FUNCTION} (gc)" in stack) == 2
    traces = collections.Counter()
    text = pprof("-traces", "-sample_index=samples", written("3.12-gc"))
    for part in re.split(r"^-+\+-+\n", text, flags=re.M)[1:]:
        frames = re.findall(r"^(?: *(\d+)| {10,})   (\S.*)$", part, re.M)
        if frames:
            names = [re.sub(r"^<module .*>$", "<module>", INLINED.sub("", name)) for _, name in reversed(frames)]
            traces[tuple(names)] += int(frames[0][0])
    assert traces == folded

    text = pprof("-peek", "^Klass.size", "-unit=ns", "-sample_index=samples", written("3.12-gc"))
    callers = sum(n for stack, n in folded.items() if "Klass.method" in stack)
    assert re.search(rf"^ +{callers}ns +100% \| +Klass\.method$", text, re.M), text


def test_pprof_merges(written, pprof, run_pysym, tmp_path):
    """Two profiles are added up as pysym adds up two captures."""
    pprof("-proto", "-output", tmp_path / "merged.pb.gz", written("3.8"), written("3.12"))
    merged = Profile((tmp_path / "merged.pb.gz").read_bytes())
    both = Profile(run_pysym(TRACES / "3.8-shared.trace", TRACES / "3.12-shared.trace", "-f", "pprof"))
    assert merged.totals() == both.totals()
    assert merged.sums(frame_function) == both.sums(frame_function)
    twice = rows_of(pprof("-top", *ALL, "-filefunctions", written("demo"), written("demo")))
    once = rows_of(pprof("-top", *ALL, "-filefunctions", written("demo")))
    assert twice == {name: [2 * own, 2 * total] for name, (own, total) in once.items()}


def test_pprof_comments(written, pprof):
    text = pprof("-comments", written("demo"))
    assert re.search(r"^demo\.trace: host \S+, Linux ", text, re.M)
    assert re.search(r"^demo\.trace: lost: 2 tick_skipped \(", text, re.M)


# ---- speedscope ----

def stacks_of(saved):
    """Stacks of (name, file), outermost first, and their weights, of the one profile that is there."""
    (profile,) = saved["profiles"]
    frames = [(f["name"], f.get("file", "")) for f in saved["shared"]["frames"]]
    found, stack, at = collections.Counter(), [], 0
    for event in profile["events"]:
        if event["at"] > at and stack:
            found[tuple(frames[i] for i in stack)] += event["at"] - at
        at = event["at"]
        if event["type"] == "O":
            stack.append(event["frame"])
        else:
            assert stack.pop() == event["frame"]
    assert profile["unit"] == "nanoseconds"
    return found


@pytest.mark.parametrize("capture", ["demo", "3.8"])
def test_speedscope(capture, profile, written, tmp_path):
    """All but what its importer leaves out: inlined functions, and frames without a name."""
    decoded = profile(capture)
    expected = collections.Counter()
    for sample in decoded.samples:
        places = [(frame.name, frame.file) for frame in sample.frames if not frame.inlined and not frame.unnamed]
        expected[tuple(reversed(places))] += sample.values[1]
    assert stacks_of(speedscope_reads(tmp_path, "x.pb.gz", written(capture).read_bytes())) == expected
