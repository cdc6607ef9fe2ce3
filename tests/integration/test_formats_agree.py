# SPDX-License-Identifier: Apache-2.0
"""Every format has the same samples, for every filter of pysym.

perf-data, perf-script, pprof, firefox, speedscope, top, the page and ndjson hold what folded stacks hold, in all, by event, thread
and stack; over made-up traces, damaged ones, and those of testdata/.
"""
import collections
import json
import os
import re
import struct
import subprocess
import sys

import pytest

import measured
import page_data
import profile_readers
import stand_in
from conftest import PYSYM, ROOT, later
from frame_names import clean, in_brackets, spelled
from pysym_output import FORMATS

sys.path.insert(0, str(ROOT / "tests/hostile"))
import craft  # noqa: E402

# Every option of pysym that chooses samples or changes stacks, with arguments that leave some samples of rich().
ARGUMENTS = {
    "--pid": ["1000"], "--tid": ["1000,1101"], "--comm": ["^python"], "--exe": ["made-up"], "--cgroup": ["/docker"],
    "--container": ["00000002"], "--thread": ["worker-[12]"], "--cpu": ["1"], "--task": ["task-[01]"],
    "--subinterpreter": ["1", "0"], "--event": ["page-faults", "cpu-clock"], "--gil": [None],
    "--time": ["0.1,0.3", "25%,75%", "22:13:20.1,22:13:20.3"], "--around": ["level4_3$"], "--focus": ["level4_1", "line:unknown"],
    "--ignore": ["level4_1", "line:unknown"], "--root-at": ["level3_[12]"], "--callers-of": ["level2_2"], "--hide": ["level[23]"],
    "--show": ["level1"], "--layer": ["python", "kernel"], "--group": ["module", "package", "file", "layer"],
    "--collapse-recursion": [None], "--threads": [None], "--labels": [None], "--function": [None], "--nolineno": [None],
    "--interpreter": ["show", "calls"], "--show-interpreter": [None], "--python-only": [None],
}
# Those that change only how one format adds up or spells what is shown.
SPELLING = {"--min", "--merge", "--columns", "--full-filenames", "--qualify", "--label-cpu"}
COMBINED = ["--pid", "1000", "--focus", "level4_1", "--hide", "level2", "--group", "file", "--labels"]


def option_sets():
    yield pytest.param((), marks=pytest.mark.sanitized)
    for option, arguments in ARGUMENTS.items():
        for argument in arguments:
            yield (option,) if argument is None else (option, argument)
    yield pytest.param(tuple(COMBINED), marks=pytest.mark.sanitized)


def test_every_option_is_tried():
    """A new filter of pysym wants its row above."""
    text = subprocess.run([PYSYM, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    sections = re.findall(r"^(?:which samples|which part of the stacks|how frames are shown).*:\n((?:  .*\n)+)", text, re.M)
    assert len(sections) == 3
    options = set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", "".join(sections), re.M))
    assert options == set(ARGUMENTS) | SPELLING


# ---- one spelling for all: that of folded stacks with whole file names ----

# Events that tick while a thread runs: their samples may be counted. Of others what is shown is what they count, or how long.
TICKING = ("cpu-clock", "r1a8:u", "cpu/event=0x3c,umask=1/", "L1-dcache-load-misses")


class Sums:
    """Samples and weights by (event, pid, tid, frames outermost first)."""

    def __init__(self):
        self.samples, self.weights = collections.Counter(), collections.Counter()
        self.times = set()  # events
        self.alone = collections.defaultdict(set)  # the weights of each event's samples

    def add(self, key, weight, is_time, samples=1):
        self.samples[key] += samples
        self.weights[key] += weight
        self.alone[key[0]].add(weight)
        if is_time:
            self.times.add(key[0])

    def counts_samples(self, event):
        """Are lines of folded stacks counts of this event's samples? Those of all events of time are, or none of them."""
        together = self.times if event in self.times else {event}
        return together <= set(TICKING) and len(set().union(*(self.alone[e] for e in together))) == 1


def sums_of_ndjson(samples, stacks):
    texts = {number: tuple(spelled(frame) for frame in frames) for number, frames in stacks.items()}
    sums = Sums()
    for row in samples:
        sums.add((row["event"], row["pid"], row["tid"], texts[row["stack"]]), row["value"], row["unit"] == "ns")
    return sums


def check_folded(text, sums):
    """Folded stacks count samples, if those of all clocks weigh the same; else they are microseconds, each line rounded."""
    events = {key[0] for key in sums.samples}
    folded = collections.Counter()
    for frames, number in profile_readers.folded(text).items():
        event, owner = (frames[0], frames[1:]) if len(events) > 1 else (next(iter(events)), frames)
        pid, tid = (int(name.rsplit("-", 1)[1]) for name in owner[:2])
        folded[event, pid, tid, owner[2:]] += number
    assert set(folded) == set(sums.samples)
    for key, number in folded.items():
        if sums.counts_samples(key[0]):
            assert number == sums.samples[key], key
        elif key[0] in sums.times:
            assert abs(number - sums.weights[key] / 1000) <= 1, key
        else:
            assert number == sums.weights[key], key
    for event in sums.times:
        if not sums.counts_samples(event):
            keys = [key for key in folded if key[0] == event]
            assert abs(sum(folded[key] for key in keys) - sum(sums.weights[key] for key in keys) / 1000) <= 1


def run(pysym, trace, *arguments):
    """The output; None where nothing passes the filters."""
    done = pysym(trace, "--no-host", *arguments)
    if done.returncode == 1 and "no sample" in done.stderr:
        return None
    assert done.returncode == 0, done.stderr
    return done.stdout


class Formats:
    """A trace in every format, with the same options."""

    def __init__(self, pysym, trace, folder, options=()):
        self.pysym, self.trace, self.folder, self.options = pysym, trace, folder, options
        self.folded = run(pysym, trace, "-f", "folded", "--merge", "thread", "--full-filenames", *options)

    def text(self, name, *options):
        return run(self.pysym, self.trace, "-f", name, *options, *self.options)

    def file(self, name, *options):
        path = self.folder / name
        assert run(self.pysym, self.trace, "-o", path, *options, *self.options) == ""
        return path

    def ndjson(self):
        return profile_readers.ndjson(run(self.pysym, self.trace, "-f", "ndjson", *self.options))


# ---- speedscope, perf-script and top ----


def check_speedscope(text, sums):
    """Weights by event, thread and stack. A profile's name ends with the thread's number, and with the event if that needs saying."""
    data = json.loads(text)
    assert data["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = [frame["name"] for frame in data["shared"]["frames"]]
    found, expected = collections.Counter(), collections.Counter()
    for (event, _, tid, stack), weight in sums.weights.items():
        expected[event, tid, stack] += weight
    for profile in data["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"]) and sum(profile["weights"]) == profile["endValue"]
        if profile.get("overview") or not profile["samples"]:  # of a label; of a trace without samples
            continue
        tid, event = re.search(r"(\d+)(?: (\S*[^\d\s]\S*))?$", profile["name"]).groups()
        event = event or next(iter(sums.samples))[0]
        assert (profile["unit"] == "nanoseconds") == (event in sums.times)
        for stack, weight in zip(profile["samples"], profile["weights"]):
            found[event, int(tid), tuple(frames[i] for i in stack)] += weight
    assert +found == +expected


def check_perf_script(text, samples, stacks):
    """Sample by sample: who, when, where; the addresses, and one period for each sample, or its weight."""
    found = []
    for block in filter(None, text.split("\n\n")):
        head, *frames = block.splitlines()
        pid, tid, cpu, seconds, period, event = re.search(r" +(\d+)/(\d+) +\[(\d+)\] +([\d.]+): +(\d+) (\S+): *$", head).groups()
        found.append((int(pid), int(tid), int(cpu), seconds, event, [int(line.split()[0], 16) for line in frames], int(period)))
    assert [row[:-1] for row in found] == [
        (s["pid"], s["tid"], s["cpu"], "%d.%06d" % divmod(s["time_ns"] // 1000, 10**6), clean(s["event"]),
         [int(f["address"] or "0", 16) for f in reversed(stacks[s["stack"]])]) for s in samples]
    periods = collections.defaultdict(list)
    for row, sample in zip(found, samples):
        periods[sample["event"]].append((row[-1], sample["faults"] or sample["value"]))
    for rows in periods.values():
        is_counted = all(period == 1 for period, _ in rows) and len({value for _, value in rows}) == 1
        assert is_counted or all(period == value for period, value in rows)


def name_in_top(frame):
    """A Python function is told by where it begins, whichever line runs."""
    return spelled({**frame, "line": frame["function_line"]})


def check_top(text, samples, stacks):
    """Own and total weights and samples of each function. A wait is no row, and its time that of whoever waits."""
    names = {number: [name_in_top(f) for f in frames if len(frames) == 1 or not f["function"].startswith("[wait: ")]
             for number, frames in stacks.items()}
    expected, sums = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    for row in samples:
        sums[row["event"]].update(samples=1, weight=row["value"], in_interpreter=row["value"] * row["in_interpreter"])
        for name in set(names[row["stack"]]):
            expected[row["event"]].update({("total", name): row["value"], ("total samples", name): 1})
        innermost = names[row["stack"]][-1]
        expected[row["event"]].update({("self", innermost): row["value"], ("self samples", innermost): 1})
    found, found_sums = collections.defaultdict(collections.Counter), {}
    for event in json.loads(text)["events"]:
        unit = {"ns": "ns", "bytes": "bytes"}.get(event["unit"], "count")
        found_sums[event["event"]] = collections.Counter(samples=event["samples"], weight=event[f"weight_{unit}"],
                                                         in_interpreter=event.get(f"interpreter_weight_{unit}", 0))
        for row in (row for table in event["tables"] for row in table["rows"]):
            found[event["event"]].update({(kind, row["name"]): row[f"{kind}_weight_{unit}"] for kind in ("self", "total")})
            found[event["event"]].update({(f"{kind} samples", row["name"]): row[f"{kind}_samples"] for kind in ("self", "total")})
    assert found_sums == sums
    for event, rows in expected.items():
        kinds = ("total", "self") if event in TICKING else ("total",)
        assert {key: n for key, n in rows.items() if n and key[0].split()[0] in kinds} == {
            key: n for key, n in found[event].items() if n and key[0].split()[0] in kinds}, event


# ---- pprof ----


def name_in_pprof(frame):
    """(name, file, line) of a frame of ndjson as pprof has them."""
    name = clean(frame["function"])
    if not name:
        name = in_brackets(frame["module"]) if frame["layer"] in ("native", "kernel") else "[unknown]"
    elif frame["builtin"]:
        name += f" ({frame['builtin']})"
    return name, clean(frame["file"]), frame["line"]


def name_of_pprof(frame):
    # A module's code has its file in the name; native code without a name is left to pprof to look up.
    name = re.sub(r"^<module .*>$", "<module>", frame.function) or in_brackets(frame.mapping["filename"])
    return clean(name), clean(frame.file), frame.line


def is_label(frame):
    return frame["layer"] == "mark" and frame["function"].startswith(("[asyncio task ", "[interpreter "))


def check_pprof(profile, samples, stacks, labels):
    """`labels`: they are no frames, but labels of the profile's rows."""
    texts = {number: tuple(name_in_pprof(frame) for frame in frames if not (labels and is_label(frame)))
             for number, frames in stacks.items()}
    expected = Sums()
    for row in samples:
        expected.add((row["event"], row["pid"], row["tid"], texts[row["stack"]]), row["value"], False)
    names = [name for name, _ in profile.types]
    columns = {}
    for event in {row["event"] for row in samples}:
        name = "cpu" if event == "cpu-clock" else re.sub(r"\W", "_", event)
        columns[event] = names.index(name)
        assert profile.types[columns[event] - 1][1] == "count"
    found = Sums()
    for sample in profile.samples:
        (event, column), = [(event, column) for event, column in columns.items() if sample.values[column - 1]]
        assert sum(map(bool, sample.values)) <= 2
        (pid,), (tid,) = sample.labels["pid"], sample.labels["tid"]
        found.add((event, pid, tid, tuple(map(name_of_pprof, sample.frames))), sample.values[column], False,
                  sample.values[column - 1])
    assert found.samples == expected.samples
    assert found.weights == expected.weights


# ---- the page ----


def check_page(page, samples, stacks, labels):
    """Sample by sample, but for times, which the page has in steps of its own. `labels`: they are no frames."""
    texts = {number: tuple(spelled({**frame, "file": clean(frame["file"])}) for frame in frames
                           if not (labels and is_label(frame))) for number, frames in stacks.items()}
    expected = collections.Counter(
        (row["event"], row["pid"], row["tid"], row["value"], row["gil"], row["in_interpreter"], row["capture"],
         tuple(row["labels"].items()), texts[row["stack"]]) for row in samples)
    found = collections.Counter(
        (s.event["name"], s.process["pid"], s.thread["tid"], s.value, s.gil, s.in_interpreter, s.capture["name"],
         tuple(s.labels), tuple(spelled({**frame, "layer": frame["kind"]}) for frame in s.frames or [page_data.NO_FRAMES]))
        for s in page.samples)
    assert found == expected


# ---- the Firefox Profiler ----


def check_firefox(profile, samples, stacks):
    """Weights by event, thread and stack. Events behind the first are in the names of their tracks."""
    texts = {number: tuple(map(name_in_pprof, frames)) for number, frames in stacks.items()}
    units = {row["event"]: row["unit"] for row in samples}
    first = "cpu-clock" if "cpu-clock" in units else next(iter(units), None)
    expected, found = collections.Counter(), collections.Counter()
    for row in samples:
        expected[row["event"], str(row["pid"]), row["tid"], texts[row["stack"]]] += row["value"]
    for track in profile.tracks:
        event = track.name.rpartition(" · ")[2] if " · " in track.name else first
        assert track.tid == 0 or track.unit == {"ns": "tracing-ms", "bytes": "bytes"}.get(units[event], "samples")
        for row in track.rows:
            if row.frames is None:
                assert not row.weight
                continue
            frames = tuple((re.sub(r"^<module .*>$", "<module>", f.function), f.file, f.line) for f in row.frames)
            found[event, track.pid, track.tid, frames] += row.weight
    assert +found == +expected


# ---- perf.data ----


def names_in_perf(frame):
    """What a frame of ndjson may be in perf.data: a symbol, or (binary, offset)."""
    name, module = clean(frame["function"]), frame["module"]
    if frame["layer"] == "python":
        return {f"py::{name or '[unknown]'}" + (f":{clean(frame['file'])}" if frame["file"] else "")}
    if frame["layer"] != "native":
        return {name or in_brackets(module)}
    # Of a caller it is the last byte of the call, as perf has it.
    address = int(frame["address"], 16)
    name = name.replace("(anonymous namespace)", "{anonymous}")
    symbol = {name or in_brackets(module)}
    return symbol if frame["inlined"] else symbol | {(module, address), (module, address - 1)}


def frames_of_perf(data, sample):
    """Outermost first: the symbol, of what lies beside; else the binary and the offset in it."""
    for is_kernel, address in reversed(sample.chain):
        place = data.place(sample, is_kernel, address)
        assert place, hex(address)
        yield clean(place.symbol) if place.symbol else (place.path, place.offset)


def is_same_stack(found, expected):
    """Readers add inlined functions themselves, so these may be missing."""
    at = 0
    for names, inlined in expected:
        if at < len(found) and found[at] in names:
            at += 1
        elif not inlined:
            return False
    return at == len(found)


def check_perf_data(data, samples, stacks):
    """Sample by sample. Captures of different clocks get a common one."""
    expected, found = collections.defaultdict(list), collections.defaultdict(list)
    one_clock = len({row["capture"] for row in samples}) < 2
    for row in samples:
        # perf counts page faults, not their bytes.
        period = row["faults"] or row["value"]
        event = "offcpu-time" if row["event"] == "off-cpu" else row["event"]  # as perf calls it
        expected[event, row["pid"], row["tid"], row["cpu"], one_clock and row["time_ns"]].append((period, row["stack"]))
    for sample in data.samples:
        found[sample.event, sample.pid, sample.tid, sample.cpu, one_clock and sample.time_ns].append(sample)
    names = {number: [(names_in_perf(frame), frame["inlined"]) for frame in frames] for number, frames in stacks.items()}
    assert {key: len(rows) for key, rows in found.items()} == {key: len(rows) for key, rows in expected.items()}
    for key, rows in found.items():
        for sample, (period, stack) in zip(rows, expected[key]):
            assert sample.period == period, key
            frames = list(frames_of_perf(data, sample))
            assert is_same_stack(frames, names[stack]), (frames, names[stack])


# ---- all of them ----


def check(formats):
    samples, stacks = formats.ndjson()
    sums = sums_of_ndjson(samples, stacks)
    check_folded(formats.folded, sums)
    check_speedscope(formats.text("speedscope", "--merge", "thread", "--full-filenames"), sums)
    check_perf_script(formats.text("perf-script"), samples, stacks)
    check_top(formats.text("top", "--json", "--top", "0", "--full-filenames"), samples, stacks)
    check_pprof(profile_readers.pprof(formats.file("t.pb.gz", "--merge", "thread")), samples, stacks,
                "--labels" in formats.options)
    check_firefox(profile_readers.firefox(formats.file("t.firefox.json").read_text()), samples, stacks)
    check_page(page_data.Page(formats.file("t.html")), samples, stacks, "--labels" in formats.options)
    path = formats.file("perf.data", "--full-filenames")
    check_perf_data(profile_readers.PerfData(path, path.parent / "perf.data.d"), samples, stacks)
    return sums


@pytest.fixture
def rich(make):
    """A trace for which every filter has something to leave out."""
    return make(samples=240, processes=2, threads=4, cpus=2, stacks=7, gil=1, labels=3, containers=1, second_event=60,
                slower_at=120, torn=50, lineless=4, interval_us=2000)


@pytest.mark.parametrize("options", option_sets(), ids=" ".join)
def test_filters(options, rich, pysym, tmp_path):
    everything = 300
    sums = check(Formats(pysym, rich, tmp_path, options))
    assert 0 < sum(sums.samples.values()) <= everything


@pytest.mark.sanitized
@pytest.mark.parametrize("settings", [
    {"samples": 400, "stacks": 9, "threads": 5, "processes": 2, "uneven": 1},
    {"samples": 400, "slower_at": 150, "second_event": 100},
    {"samples": 400, "slower_at": 150, "epoch_samples": 77},
    {"samples": 300, "epoch_samples": 40, "torn": 7, "unjoined": 5},
    {"samples": 300, "losses": 9, "newer": 3, "end": 0},
    {"samples": 60, "stacks": 3, "depth": 900},
    {"samples": 50, "foreign": 1},
    {"samples": 60, "threads": 3, "processes": 2, "events": 30, "task_waits": 9, "interval_us": 1000},
    {"samples": 100, "stacks": 2, "depth": 2, "waits": 5},
    {"samples": 100, "stacks": 2, "depth": 2, "gil": 1, "gil_waits": 10},
    {"samples": 0, "events": 12},
    {"samples": 0, "task_waits": 6},
    {"samples": 0},
], ids=lambda settings: "-".join(settings))
def test_made_up(settings, make, pysym, tmp_path):
    sums = check(Formats(pysym, make(**settings), tmp_path))
    tasks = settings.get("task_waits", 0)  # three at every other look, else two
    assert sum(sums.samples.values()) == (settings["samples"] + settings.get("second_event", 0) + settings.get("newer", 0) +
                                          2 * settings.get("waits", 0) + 4 * settings.get("gil_waits", 0) +
                                          7 * settings.get("events", 0) + 3 * tasks - tasks // 2)


@pytest.mark.sanitized
@pytest.mark.parametrize("name", ["demo/demo", "traces/2.7-shared", "traces/3.11-static", "traces/3.14-static"])
def test_recorded(name, pysym, tmp_path):
    for options in ((), ("--interpreter", "show", "--function")):
        assert sum(check(Formats(pysym, ROOT / f"testdata/{name}.trace", tmp_path, options)).samples.values()) > 100


@pytest.mark.sanitized
@pytest.mark.parametrize("options", [(), ("--interpreter", "show")], ids=" ".join)
def test_native_names(options, pysym, tmp_path):
    """With --native-names every frame of perf.data has a symbol that travels with it; without, that of the binary counts."""
    trace = ROOT / "testdata/demo/demo.trace"
    formats = Formats(pysym, trace, tmp_path, ("--symfs", ROOT / "testdata/demo", *options))
    samples, stacks = formats.ndjson()
    assert any(frame["function"] == "mix_bytes" for frames in stacks.values() for frame in frames)
    for travel in ((), ("--native-names",)):
        data = profile_readers.PerfData(formats.file("perf.data", "--full-filenames", *travel), tmp_path / "perf.data.d")
        check_perf_data(data, samples, stacks)
        nameless = [frame for sample in data.samples for frame in frames_of_perf(data, sample) if isinstance(frame, tuple)]
        assert bool(nameless) != bool(travel)


@pytest.mark.sanitized
def test_builtin_modules(pysym, tmp_path):
    """Names of functions of a built-in module have it in all formats but those of perf's, where readers look names up."""
    formats = Formats(pysym, ROOT / "testdata/traces/3.12-shared.trace", tmp_path,
                      ("--symfs", stand_in.interpreter(tmp_path / "binaries")))
    sums = check(formats)
    name = f"{stand_in.FUNCTION} (gc)"
    assert sum(n for key, n in sums.samples.items() if name in key[3]) == 2
    assert name in formats.folded


@pytest.mark.sanitized
def test_several_files(make, pysym, tmp_path):
    """The second one is of another rate, another host's pids and a later start."""
    traces = make(samples=100), make(samples=90, pid=7000, interval_us=3000, second_event=20)
    alone = [sum(check(Formats(pysym, trace, tmp_path)).samples.values()) for trace in traces]
    both = check(Formats(lambda trace, *arguments: pysym(*trace, *arguments), traces, tmp_path))
    assert sum(both.samples.values()) == sum(alone) == 210


@pytest.mark.sanitized
def test_damaged(make, pysym, tmp_path):
    """What is left of a damaged trace is the same in every format."""
    data = make(samples=400, interval_us=50000, epoch_samples=50).read_bytes()
    left = set()
    for i, at in enumerate(range(50, len(data), len(data) // 12)):
        path = tmp_path / "damaged.bin"
        path.write_bytes(data[:at] if i % 2 else data[:at] + bytes([data[at] ^ 1 << i % 8]) + data[at + 1:])
        left.add(sum(check(Formats(pysym, path, tmp_path)).samples.values()))
    assert len(left) > 3 and max(left) <= 400


@pytest.mark.sanitized
def test_hostile_names(pysym, tmp_path):
    path = tmp_path / "hostile.bin"
    path.write_bytes(craft.calls_by_name(craft.HOSTILE_NAMES))
    sums = check(Formats(pysym, path, tmp_path))
    assert sum(sums.samples.values()) == len(craft.HOSTILE_NAMES) ** 2


def test_equal_input_gives_equal_bytes(rich, pysym, tmp_path):
    """Also at another time, in another zone and locale, and where an older output lies. (perf.data names a file by its path.)"""
    trees = []
    for environment in ({}, {"TZ": "Asia/Tokyo", "LC_ALL": "C", "HOME": "/nonexistent"}):
        for name in (*FORMATS, "perf-data"):
            done = pysym(rich, "--no-host", "-f", name, "-o", f"out.{name}", cwd=tmp_path, env={**os.environ, **environment})
            assert done.returncode == 0, done.stderr
        trees.append({path.relative_to(tmp_path): os.readlink(path) if path.is_symlink() else path.read_bytes()
                      for path in sorted(tmp_path.rglob("*")) if path.is_symlink() or path.is_file()})
    assert len(trees[0]) > len(FORMATS) + 3 and trees[0] == trees[1]


def resident_kib(pysym_arguments, out):
    """Runs pysym with its output into a file; the most memory that it had."""
    with open(out, "wb") as file:
        used = measured.run(PYSYM, *pysym_arguments, stdout=file)
    assert used.returncode == 0, used.stderr
    return used.resident_kib


@pytest.mark.unsanitized
@pytest.mark.parametrize("count", [80_000, later(1_000_000)])
def test_many_samples(count, make, tmp_path):
    """Totals by thread and event are right, and memory does not grow with samples."""
    settings = {"stacks": 40, "threads": 8, "processes": 2, "depth": 3, "native": 0, "interval_us": 1000}
    many, few = make(samples=count, **settings), make(samples=count // 50, **settings)
    out = tmp_path / "out"
    expected = {1000 + 100 * (i % 2) + i: (count // 8, count // 8 * 1_000_000) for i in range(8)}
    for read, options in READERS_OF_MANY:
        before = resident_kib([few, *options, "-o", out], os.devnull)
        assert resident_kib([many, *options, "-o", out], os.devnull) < before + 2048, options
        assert read(out) == expected, options
        out.unlink()


def many_of_ndjson(path):
    sums = collections.defaultdict(lambda: [0, 0])
    for tid, value in re.findall(rb'"tid":(\d+),.*?"value":(\d+),', path.read_bytes()):
        sums[int(tid)][0] += 1
        sums[int(tid)][1] += int(value)
    return {tid: tuple(both) for tid, both in sums.items()}


def many_of_perf_data(path):
    data, sums = path.read_bytes(), collections.defaultdict(lambda: [0, 0])
    at, length = struct.unpack_from("<QQ", data, 40)
    end = at + length
    while at < end:
        kind, _, size = struct.unpack_from("<IHH", data, at)
        if kind == profile_readers.SAMPLE_RECORD:
            (tid,), (period,) = struct.unpack_from("<I", data, at + 28), struct.unpack_from("<Q", data, at + 48)
            sums[tid][0] += 1
            sums[tid][1] += period
        at += size
    return {tid: tuple(both) for tid, both in sums.items()}


def many_of_pprof(path):
    sums = collections.defaultdict(lambda: [0, 0])
    for sample in profile_readers.pprof(path).samples:
        for i in range(2):
            sums[sample.labels["tid"][0]][i] += sample.values[i]
    return {tid: tuple(both) for tid, both in sums.items()}


READERS_OF_MANY = [(many_of_ndjson, ("-f", "ndjson")), (many_of_perf_data, ("-f", "perf-data")),
                   (many_of_pprof, ("-f", "pprof", "--merge", "thread"))]
