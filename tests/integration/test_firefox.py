# SPDX-License-Identifier: Apache-2.0
"""The Firefox Profiler reads -f firefox as pysym means it.

Its own parser reads what pysym knows, and markers are where the trace has them. Weights of every stack, thread and event are
compared in test_formats_agree.py.
"""
import collections
import gzip
import json
import re

import pytest

import profile_readers
from conftest import ROOT
from consumers import firefox_profiler
from pysym_output import good

pytestmark = pytest.mark.unsanitized

WAIT = re.compile(r"wait: ")


@pytest.fixture
def firefox(pysym):
    """A trace as the file has it."""
    return lambda trace, *options: profile_readers.firefox(good(pysym(trace, "-f", "firefox", *options)))


def functions_of_top(text):
    """{event: {tid: Counter of (function, self, total)}}, in ns."""
    found = collections.defaultdict(dict)
    for event in json.loads(text)["events"]:
        for table in event["tables"]:
            found[event["event"]][table["tid"]] = collections.Counter(
                (row["function"] or row["name"], row["self_weight_ns"], row["total_weight_ns"]) for row in table["rows"])
    return found


def functions_of_ndjson(text, event):
    """The same of one event, from the stacks of samples."""
    samples, stacks = profile_readers.ndjson(text)
    selfs, totals = collections.Counter(), collections.Counter()
    for row in samples:
        if row["event"] == event:
            functions = [(row["tid"], f["function"], f["file"]) for f in stacks[row["stack"]]]
            selfs[functions[-1]] += row["value"]
            for function in set(functions):
                totals[function] += row["value"]
    found = collections.defaultdict(collections.Counter)
    for (tid, function, file), total in totals.items():
        found[tid][function, selfs[tid, function, file], total] += 1
    return found


def functions_read(ask, handle):
    functions = ask("thread", "functions", "--thread", handle, "--include-idle", "--limit", "0")["functions"]
    return collections.Counter((re.sub("^<module .*>$", "<module>", f["name"]), profile_readers.ns(f["selfSamples"]),
                                profile_readers.ns(f["totalSamples"])) for f in functions)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzipped"])
def test_importer(packed, make, pysym, firefox, tmp_path):
    """Threads, self and total of each function, markers, and what was recorded; the site opens gzipped files, too."""
    trace = make(samples=240, processes=2, threads=4, stacks=7, gil=1, labels=3, waits=6, torn=50, losses=9, hardware=1)
    path = tmp_path / "t.firefox.json"
    good(pysym(trace, "-o", path))
    expected = functions_of_top(good(pysym(trace, "-f", "top", "--json", "--merge", "thread", "--top", "0")))
    # Of waits top shows where, not for what.
    expected["off-cpu"] = functions_of_ndjson(good(pysym(trace, "-f", "ndjson")), "off-cpu")
    mine = firefox(trace)
    if packed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    with firefox_profiler(path, tmp_path) as ask:
        threads = ask("thread", "list")["threads"]
        found = collections.defaultdict(dict)
        for thread in threads:
            event = thread["name"].rpartition(" · ")[2] if " · " in thread["name"] else "cpu-clock"
            found[event][thread["tid"]] = functions_read(ask, thread["threadHandle"])
        meta = ask("profile", "meta")
        info = ask("thread", "info", "--thread", "t-0")
    assert found == expected and set(found) == {"cpu-clock", "off-cpu"}
    by_index = sorted(threads, key=lambda thread: thread["threadIndex"])
    assert [(t["name"], t["pid"], t["tid"], t["markerCount"]) for t in by_index] == [
        (track.name, track.pid, track.tid, len(track.markers)) for track in mine.tracks]
    cpu = {t["tid"]: t["cpuMs"] for t in threads if " · " not in t["name"]}
    weights = {tid: sum(own for _, own, _ in rows.elements()) for tid, rows in expected["cpu-clock"].items()}
    assert cpu == pytest.approx({tid: weight / 1e6 for tid, weight in weights.items()})
    assert info["sampleCount"] == len(mine.tracks[0].rows)
    assert (meta["symbolicated"], meta["interval"], meta["sampleUnits"]["threadCPUDelta"]) == (True, 10, "ns")
    assert meta["startTimeFormatted"] == "2023-11-14T22:13:20.000Z" and meta["logicalCPUs"] >= 1
    losses = {entry["label"]: entry["value"] for entry in meta["extra"][0]["entries"]}
    assert [value for label, value in losses.items() if label.startswith("Samples lost: ")][0].startswith("9")


@pytest.mark.parametrize("settings", [{"samples": 0}, {"samples": 3, "stacks": 1, "depth": 900}, {"samples": 50, "foreign": 1}],
                         ids=["empty", "deep", "foreign"])
def test_importer_opens(settings, make, pysym, tmp_path):
    path = tmp_path / "t.firefox.json"
    done = pysym(make(**settings), "-o", path)
    assert done.returncode in (0, 3), done.stderr
    with firefox_profiler(path, tmp_path) as ask:
        assert ask("thread", "list")["threads"]


def test_waits(make, pysym, firefox):
    """A wait is a marker from its begin to its end, with its stack, and a sample that begins when it did."""
    trace = make(samples=100, stacks=2, depth=2, waits=5)
    samples, stacks = profile_readers.ndjson(good(pysym(trace, "-f", "ndjson")))
    waits = [row for row in samples if row["event"] == "off-cpu"]
    first = min(row["time_ns"] for row in samples)
    profile = firefox(trace)
    origin = first - min(row.time_ns + row.weight for track in profile.tracks for row in track.rows if row.weight)
    markers = sorted((m for track in profile.tracks for m in track.markers if WAIT.match(m.name)), key=lambda m: m.end_ns)
    assert collections.Counter(row["labels"]["wait"] for row in waits) == {"blocked": 5, "run queue": 5}
    assert [(m.name, m.start_ns + origin, m.end_ns + origin, m.data["kind"], m.category) for m in markers] == [
        (f"wait: {row['labels']['wait']}", row["time_ns"] - row["value"], row["time_ns"], row["labels"]["wait"], "Waiting")
        for row in waits]
    assert [[f.function for f in m.frames if f.is_python] for m in markers] == [
        [f["function"] for f in stacks[row["stack"]] if f["layer"] == "python"] for row in waits]
    assert all(m.frames[-1].category == ("Waiting", m.data["kind"]) for m in markers)
    track, = (track for track in profile.tracks if track.name.endswith(" · off-cpu"))
    assert [(row.time_ns + origin, row.weight) for row in track.rows if row.weight] == [
        (row["time_ns"] - row["value"], row["value"]) for row in waits]
    assert not any(row.cpu_ns for row in track.rows) and not track.markers


def test_wall(make, firefox):
    """One track has both: CPU time where the thread ran, none where it waited."""
    track, = firefox(make(samples=100, threads=1, stacks=2, depth=2, waits=5), "--wall").tracks
    waiting = [row for row in track.rows if row.weight and row.frames[-1].category[0] == "Waiting"]
    assert sum(row.weight for row in track.rows) == 1020000000 and sum(row.weight for row in waiting) == 20000000
    # The made-up clock ticks on while the thread waits: what does not fit in between is left out.
    assert 950000000 <= sum(row.cpu_ns for row in track.rows) <= 980000000


def test_spans(make, pysym, firefox):
    """Of samples in a row with the same task, and of those that held the GIL; each such sample is in one."""
    trace = make(samples=90, threads=2, gil=1, labels=3)
    samples, _ = profile_readers.ndjson(good(pysym(trace, "-f", "ndjson")))
    start = min(row["time_ns"] for row in samples)
    origin = None
    for track in firefox(trace).tracks:
        rows = [row for row in samples if row["tid"] == track.tid]
        if origin is None:
            origin = start - min(row.time_ns + row.weight for row in track.rows if row.weight)
        for kind, wanted in (("task", lambda row: row["labels"].get("asyncio task")), ("gil", lambda row: row["gil"] == "held")):
            spans = [m for m in track.markers if m.data["type"] == kind]
            for row in rows:
                at = row["time_ns"] - origin
                inside = [m for m in spans if m.start_ns < at <= m.end_ns]
                assert len(inside) == bool(wanted(row)), (kind, row, inside)
                if kind == "task" and inside:
                    assert inside[0].data["task"] == wanted(row) and inside[0].name == "asyncio task"
            assert kind == "gil" or spans


def test_real_time(make, firefox):
    """Several inputs share one line of time, and what they have in common is written once."""
    a, b = make(samples=10, threads=1), make(samples=10, threads=1, pid=2000)
    one, both = firefox(a), firefox(a, b)
    assert both.meta["startTime"] == one.meta["startTime"] == 1700000000000
    assert len(both.tracks) == 2 and {track.pid for track in both.tracks} == {"1000", "2000"}
    assert both.meta["product"] == one.meta["product"] and both.meta["profilingEndTime"] == one.meta["profilingEndTime"]
    assert [section["label"] for section in both.meta["extra"]] == [a.name, b.name]


def test_golden_trace(pysym, firefox):
    """A real recording: Python's functions with their lines, native code with symbols below build IDs."""
    profile = firefox(ROOT / "testdata/traces/3.12-shared.trace", "--interpreter", "show")
    frames = {frame for track in profile.tracks for row in track.rows if row.frames for frame in row.frames}
    python = {frame for frame in frames if frame.is_python}
    assert python and all(f.category == ("Python", "Other") and f.file and f.address == -1 for f in python)
    assert sum(bool(f.line) for f in python) > len(python) / 2
    assert all(f.library is None for f in python)
