# SPDX-License-Identifier: Apache-2.0
"""The data of a page (pysym -f html) is what other formats say.

page_data.py reads it. test_page_*.py look at the page itself.
"""
import base64
import hashlib
import json
import re
import unicodedata

import pytest

import page_data
from conftest import ROOT
from pysym_output import good

TRACES = [ROOT / "testdata" / name for name in ("demo/demo.trace", "traces/2.7-shared.trace", "traces/3.14-static.trace")]


def page_of(pysym, *arguments):
    """The page that pysym writes with these arguments, the last of which is its file."""
    good(pysym("--no-host", *arguments))
    return page_data.Page(arguments[-1])


@pytest.fixture
def page(pysym, tmp_path):
    return lambda *arguments: page_of(pysym, *arguments, "-o", tmp_path / "page.html")


def plain(name):
    """A name from a trace as names are shown: nothing in it ends a line or changes how the text around it looks."""
    return "".join("_" if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") else c
                   for c in name.strip(" ").replace(";", ":"))


def rows_of_ndjson(text):
    """A row for each sample: what a page has of it, too."""
    stacks, rows = {}, []
    for row in map(json.loads, text.splitlines()):
        if row["type"] == "stack":
            stacks[row["stack"]] = tuple((f["layer"], plain(f["function"]), plain(f["file"]), f["line"],
                                          plain(f["module"]), f["builtin"]) for f in row["frames"])
            continue
        rows.append((row["time_ns"], row["pid"], row["tid"], row["thread"], row["event"], row["value"], row["gil"],
                     row["in_interpreter"], tuple(sorted(row["labels"].items())), stacks[row["stack"]]))
    return rows


def rows_of_page(page):
    return [(s.time_ns, s.process["pid"], s.thread["tid"], s.thread["name"], s.event["name"], s.value, s.gil,
             s.in_interpreter, tuple(sorted(s.labels)),
             tuple((f["kind"], f["function"], f["file"], f["line"], f["module"], f["builtin"])
                   for f in s.frames or [page_data.NO_FRAMES])) for s in page.samples]


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.stem)
def test_samples(trace, page, pysym):
    """Sample by sample what ndjson has, with times since the start, in whole units."""
    read = page(trace)
    rows = rows_of_ndjson(good(pysym(trace, "-f", "ndjson", "--no-host")))
    found = rows_of_page(read)
    assert rows and sorted(row[1:] for row in rows) == sorted(row[1:] for row in found)
    unit = read.head["timeUnitNs"]
    first, first_found = min(row[0] for row in rows), min(row[0] for row in found)
    for row, row_found in zip(sorted(rows), sorted(found)):
        assert abs((row[0] - first) - (row_found[0] - first_found)) < 2 * unit


def test_policy(page):
    """The browser is told to run this script and style, and to load nothing."""
    read = page(TRACES[0])
    policy = read.elements.metas["Content-Security-Policy"]
    script = re.search(r"<script>(.*?)</script>", read.text, re.S)[1]
    style = re.search(r"<style>(.*?)</style>", read.text, re.S)[1]
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in (script, style)]
    assert policy == (f"default-src 'none'; script-src {hashes[0]}; style-src {hashes[1]}; base-uri 'none'; "
                      "form-action 'none'")
    for tag, attributes in read.elements.tags:
        assert not {"src", "href", "style"} & {name for name, value in attributes.items() if not (value or "").startswith("#")}
        assert not [name for name in attributes if name.startswith("on")], tag


# ---- golden ----

def test_golden(make, page):
    """What is in the page, byte for byte before it is compressed."""
    read = page(make(samples=4, stacks=2, depth=2, labels=2, gil=1, second_event=1))
    head = dict(read.head)
    assert head.pop("summary").startswith("made1.bin: 0.0 s from 2023-11-14 22:13:20 UTC on testhost\n")
    assert head.pop("verdict").startswith("made1.bin: 0.0 s from 2023-11-14 22:13:20 UTC on testhost\n")
    assert head.pop("exporter").startswith("pysym ")
    kinds = {"isTime": False, "isWaiting": False, "isWall": False, "isBlame": False, "isBytes": False, "isCounted": False,
             "isTask": False}
    assert head == {
        "format": 1, "name": "made1.bin", "sets": ["made1.bin"], "filters": "", "timeUnitNs": 500000, "sampleCount": 5,
        "events": [{"name": "cpu-clock", "unit": "ns", **kinds, "isTime": True, "period": 10000000},
                   {"name": "page-faults", "unit": "bytes", **kinds, "isBytes": True, "isCounted": True, "period": 4096}],
        "totals": [{"allSamples": 4, "allValue": 40000000, "shownSamples": 4, "shownValue": 40000000,
                    "interpreterValue": 20000000},
                   {"allSamples": 1, "allValue": 4096, "shownSamples": 1, "shownValue": 4096, "interpreterValue": 0}],
        "processes": [{"pid": 1000, "name": "python3.11", "title": "", "comm": "python3.11", "container": ""}],
        "threads": [{"process": 0, "tid": 1000, "name": "python3.11"}, {"process": 0, "tid": 1001, "name": "worker-1"}],
        "labelSets": [[], ["asyncio task", "task-0"], ["asyncio task", "task-1", "interpreter", "1"]],
        "captures": [{"name": "made1.bin", "hostname": "testhost", "kernel": "6.1.0-test", "machine": "x86_64",
                      "cpuModel": "", "cpuCount": 2, "memoryBytes": 0, "recorder": "make_trace",
                      "startRealtimeNs": "1700000000000000000", "durationNs": 40000000, "settings": [],
                      "rates": [{"event": 0, "frequencyHz": 0, "period": 10000000},
                                {"event": 1, "frequencyHz": 0, "period": 1}], "losses": []}],
        "exactTimes": [], "sources": []}
    python = ("/opt/made-up/python3.11", "", "")  # module, built-in module, wait
    kernel = ("", "[kernel.kallsyms]", "", "", 0, 0, 0, 0, 0)
    assert [tuple(frame[column] for column in page_data.FRAME_COLUMNS) for frame in read.frames] == [
        ("python", "Work.level0_0", "/srv/app/part0.py", *python, 1, 0, 1, 8, 0, *2 * ("Work.level0_0 (part0.py:1)",)),
        ("python", "Work.level1_0", "/srv/app/part1.py", *python, 11, 0, 11, 18, 0, *2 * ("Work.level1_0 (part1.py:11)",)),
        ("python", "Work.level1_1", "/srv/app/part1.py", *python, 12, 0, 11, 18, 0, "Work.level1_1 (part1.py:11)",
         "Work.level1_1 (part1.py:12)"),
        *(("kernel", name, *kernel, *2 * (name + "_[k]",))
          for name in ("entry_SYSCALL_64_after_hwframe", "do_syscall_64", "ksys_read"))]
    assert read.columns("stacks", 2) == [[0, 1, 2, 1, 1, 1], [0, 1, 2, 3, 4, 5]]
    columns = {name: page_data.numbers(read.unpack(name)) for name in read.elements.data if name.startswith("sample-")}
    assert columns == {
        "sample-stack": [2, 6, 2, 6, 3],  # the kernel served who touched memory
        "sample-thread": [0, 1, 0, 1, 0], "sample-event": [0, 0, 0, 0, 1],
        "sample-time": [40, 40, 40, 40, 99],  # 10 ms each is 20 units; the last 25 ms earlier
        "sample-labels": [1, 2, 1, 2, 1], "sample-flags": [17, 2, 17, 2, 1]}
    assert "[python3.11]" not in read.strings  # the eval frames, which are not shown


# ---- beside other formats ----

def functions_of(sample):
    """(the frames, the one whose own time it is). A wait is the time of the function that waits: of the innermost one of
    Python, else of native code, else of the kernel."""
    frames = sample.frames or [page_data.NO_FRAMES]
    if frames[-1]["wait"]:
        for kind in ("python", "native", "kernel"):
            for frame in reversed(frames):
                if frame["kind"] == kind:
                    return frames[:-1], frame
    return frames, frames[-1]


def tops_of(page, by):
    """{event: {name: (self, total)}} of the samples."""
    tops = {}
    for s in page.samples:
        rows = tops.setdefault(s.event["name"], {})
        frames, innermost = functions_of(s)
        for name in {frame[by] for frame in frames}:
            own, total = rows.get(name, (0, 0))
            rows[name] = (own + s.value * (name == innermost[by]), total + s.value)
    return tops


DEMO, FLASKR = "demo/demo.trace", "waiting/flaskr.trace"


@pytest.mark.parametrize("trace, options", [
    (DEMO, ""), (DEMO, "--show-interpreter --full-filenames"), (DEMO, "--time 2,5 --layer python,kernel"), (DEMO, "--group module"),
    (FLASKR, ""), (FLASKR, "--wall"), (FLASKR, "--event off-cpu --thread ^Main"), (FLASKR, "--focus render"),
    ("made", ""), ("made", "--hide level0 --interpreter calls"), ("made", "--time 1.5, --root-at level1"), ("made", "--wall")])
def test_sums_are_those_of_top(trace, options, make, page, pysym):
    """Self and total of each function and line, of every event and for every filter."""
    path = make(samples=300, stacks=5, waits=9, torn=7, second_event=20) if trace == "made" else ROOT / "testdata" / trace
    options = options.split()
    read = page(path, *options)
    for by, column in (("function", "shown"), ("line", "shown_line")):
        told = {}
        for event in json.loads(good(pysym(path, "-f", "top", "--json", "--top", "0", "--by", by, "--no-host", *options)))["events"]:
            unit = event["unit"]
            told[event["event"]] = {row["name"]: (row[f"self_weight_{unit}"], row[f"total_weight_{unit}"])
                                    for table in event["tables"] for row in table["rows"]}
        assert tops_of(read, column) == told


def test_wall(make, page):
    """One event, in which waits are marked by their innermost frames."""
    read = page(make(samples=100, stacks=2, depth=2, waits=5, second_event=10), "--wall")
    assert {s.event["name"] for s in read.samples} == {"wall"} and {s.event["isWall"] for s in read.samples} == {True}
    waits = {}
    for s in read.samples:
        if s.frames[-1]["wait"]:
            waits[s.frames[-1]["wait"]] = waits.get(s.frames[-1]["wait"], 0) + s.value
    assert waits == {"blocked": 15000000, "run queue": 5000000}


def test_waits(make, page):
    """Later parts of a wait say so; the exact times are those of the threads of the page."""
    read = page(make(samples=100, stacks=2, threads=2, waits=5))
    waits = [s for s in read.samples if s.event["isWaiting"]]
    assert sorted((s.continues, s.value) for s in waits) == [(False, 3000000)] * 5 + [(True, 1000000)] * 5
    assert {s.frames[-1]["wait"] for s in waits} == {"blocked", "run queue"}
    times = {(read.head["threads"][t["thread"]]["tid"], t["wait"]): (t["ns"], t["count"]) for t in read.head["exactTimes"]}
    assert times == {(1000, 0): (5000000, 0), (1000, 1): (15000000, 5), (1000, 4): (5000000, 5)}


def test_owed_waits(page, pysym):
    """Of a real recording: samples that stand for others are marked."""
    trace = ROOT / "testdata/waiting/flaskr.trace"
    read = page(trace)
    owed = sum(s.value for s in read.samples if s.owed)
    assert 0 < owed < sum(s.value for s in read.samples if s.event["isWaiting"])


def test_several_inputs(make, page):
    """Each sample says which recording it is of, and its time is since the start of that one."""
    paths = [make("one.bin", samples=4, stacks=2), make("two.bin", samples=3, stacks=2, pid=7000)]
    read = page(*paths)
    assert [capture["name"] for capture in read.head["captures"]] == ["one.bin", "two.bin"]
    assert [(s.capture["name"], s.process["pid"], s.time_ns) for s in read.samples] == [
        *(("one.bin", 1000, 10000000 * i) for i in range(1, 5)), *(("two.bin", 7000, 10000000 * i) for i in range(1, 4))]


# ---- source ----

def test_sources(make, page, tmp_path):
    """Source travels with the page if that is asked for: files of the frames that are shown, if they are found."""
    trace = make(samples=10, stacks=2, depth=2)
    code = tmp_path / "code"
    code.mkdir()
    text = "def level0_0(): '</script><!-- \N{RIGHT-TO-LEFT OVERRIDE}'\n" * 20
    (code / "part0.py").write_text(text)
    (code / "part2.py").write_text("never shown\n")
    place = ("--source", f"/srv/app={code}")
    read = page(trace, *place, "--embed-source")
    assert read.head["sources"] == [{"file": "/srv/app/part0.py", "path": str(code / "part0.py"), "match": "unknown",
                                     "text": text}]
    assert "/srv/app/part0.py" in read.strings  # by which frames name it
    assert page(trace).head["sources"] == []


# ---- parts ----

def test_split(make, pysym, tmp_path):
    """Each part is a page of its own, with nothing of the others; together they have all samples."""
    trace = make(samples=60, stacks=6, processes=2, threads=4)
    whole = page_of(pysym, trace, "-o", tmp_path / "whole.html")
    good(pysym(trace, "--no-host", "--split", "thread", "-o", tmp_path / "p.html"))
    parts = {path.name: page_data.Page(path) for path in sorted(tmp_path.glob("p.*.html"))}
    assert len(parts) == 4
    assert sorted(row for part in parts.values() for row in rows_of_page(part)) == sorted(rows_of_page(whole))
    for name, part in parts.items():
        [thread], [process] = part.head["threads"], part.head["processes"]
        assert str(thread["tid"]) in name and thread["process"] == 0
        assert part.elements.title == part.head["name"]
        assert part.head["name"].startswith(f"made1.bin: {process['name']} {process['pid']} \N{MIDDLE DOT} {thread['name']}")
        assert part.head["totals"][0]["allSamples"] is None and part.head["totals"][0]["shownSamples"] == len(part.samples)
        used = {frame["function"] for s in part.samples for frame in s.frames}
        assert used == {frame["function"] for frame in part.frames}


def test_windows(make, pysym, tmp_path):
    trace = make(samples=90, waits=2)
    good(pysym(trace, "--no-host", "--window", "250ms", "-o", tmp_path / "p.html"))
    parts = [page_data.Page(path) for path in sorted(tmp_path.glob("p.*.html"))]
    assert [part.head["name"] for part in parts] == [
        f"made1.bin, from 2023-11-14 22:13:20.{ms} UTC" for ms in ("000", "250", "500", "750")]
    assert sum(len(part.samples) for part in parts) == 94
    for i, part in enumerate(parts):
        assert all(250e6 * i <= s.time_ns < 250e6 * (i + 1) for s in part.samples)
        assert part.head["exactTimes"] == []  # those are of the whole recording


# ---- names, bytes, size ----

def test_names_are_text(make, pysym, tmp_path):
    """Whatever a file is called, its name is the page's title and nothing else."""
    name = "</title><script>alert(1)</script>&amp;\"'\N{RIGHT-TO-LEFT OVERRIDE}\n;x.bin"
    trace = tmp_path / name.replace("/", "\N{DIVISION SLASH}")
    make("plain.bin", samples=3).rename(trace)
    read = page_of(pysym, trace, "-o", tmp_path / "page.html")
    assert read.elements.title == plain(trace.name) == read.head["name"]
    assert [tag for tag, _ in read.elements.tags if tag == "script"].count("script") == len(read.elements.data) + 1


def test_data_is_no_markup(page):
    """Of a trace with hostile names nothing but digits of base64 stands between the tags of the data."""
    read = page(ROOT / "testdata/traces/3.14-static.trace")
    assert any("_" in text for text in read.strings)
    for _, text in read.elements.data.values():
        assert re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", text)
    assert "a_b.py" not in read.text


def test_same_bytes(make, pysym, tmp_path):
    trace = make(samples=3000, stacks=40, threads=7, processes=3, gil=1, labels=3, waits=10, natural=1)
    pages = []
    for i in range(2):
        good(pysym(trace, "-o", tmp_path / f"{i}.html"))
        pages.append((tmp_path / f"{i}.html").read_bytes())
    assert pages[0] == pages[1] == good(pysym(trace, "-f", "html", text=False))


@pytest.mark.unsanitized
def test_a_million_samples(make, pysym, tmp_path):
    """Under 5 MB, though threads, stacks and times are drawn; and what is kept of them grows with their number alone."""
    trace = make(samples=1000000, stacks=5000, depth=40, processes=4, threads=24, cpus=8, gil=1, natural=1)
    good(pysym(trace, "--no-host", "-o", tmp_path / "page.html"))
    assert 3e6 < (tmp_path / "page.html").stat().st_size < 5e6
