# SPDX-License-Identifier: Apache-2.0
"""A baseline file holds what the traces have, as its format's document says.

The document is docs/baseline-format.md; equal traces give equal bytes.
"""
import collections
import json
import struct
import zlib

import pytest

from baseline_file import Baseline
from conftest import ROOT

TRACES = [ROOT / f"testdata/traces/{name}-shared.trace" for name in ("3.12", "2.7")]
# Made by: pysym baseline testdata/traces/3.12-shared.trace testdata/traces/2.7-shared.trace -o testdata/baselines/two.pyb
GOLDEN = ROOT / "testdata/baselines/two.pyb"


def make(pysym, out, *inputs):
    done = pysym("baseline", *inputs, "-o", out)
    assert done.returncode == 0, done.stderr
    return out.read_bytes()


def sums_of(pysym, trace, qualified):
    """(total and self by function, self by line and by file, total of nodes' paths, samples) by event, of the samples themselves."""
    stacks, events = {}, {}
    for line in pysym("-f", "ndjson", "--python-only", trace).stdout.splitlines():
        row = json.loads(line)
        if row["type"] == "stack":
            stacks[row["stack"]] = [frame for frame in row["frames"] if frame["layer"] == "python"]
            continue
        event = events.setdefault(row["event"], collections.defaultdict(collections.Counter))
        frames, value = stacks[row["stack"]], row["value"]
        keys = [(frame["file"], frame["function"]) + (() if qualified else (frame["function_line"],)) for frame in frames]
        path = ()
        for key in keys:
            path = path[:path.index(key) + 1] if key in path else path + (key,)
        event["samples"]["all"] += 1
        event["self"].update({keys[-1]: value} if keys else {})
        event["lines"].update({keys[-1] + (frames[-1]["line"],): value} if keys else {})
        event["files"].update({keys[-1][0]: value} if keys else {})
        event["total"].update(dict.fromkeys(keys, value))
        event["nodes"].update({path[:i]: value for i in range(len(path) + 1)})
        event["node_self"].update({path: value})
    return events


def test_holds_what_the_traces_have(pysym, tmp_path):
    runs = Baseline(make(pysym, tmp_path / "b.pyb", *TRACES)).runs
    assert [run["name"] for run in runs] == [trace.name for trace in TRACES]
    for run, trace in zip(runs, TRACES):
        expected = sums_of(pysym, trace, qualified=run["pythons"] != "2.7")
        assert expected and {name for name, event in run["events"].items() if event["samples"]} == set(expected)
        for name, sums in expected.items():
            event = run["events"][name]
            assert event["samples"] == sums["samples"]["all"] <= event["ticks"]
            assert {key: value[0] for key, value in event["nodes"].items()} == sums["nodes"]
            assert {key: value[1] for key, value in event["nodes"].items() if value[1]} == sums["node_self"]
            assert event["total"] == sums["nodes"][()]
            functions = event["functions"]
            assert functions.keys() == sums["total"].keys()
            assert {key: value[0] for key, value in functions.items()} == sums["total"]
            assert {key: value[1] for key, value in functions.items() if value[1]} == sums["self"]
            assert event["lines"] == sums["lines"] and event["files"] == sums["files"]


def test_same_bytes(pysym, tmp_path):
    """Also of a file that was read and written again, and of its runs one by one."""
    once = make(pysym, tmp_path / "a.pyb", *TRACES)
    assert make(pysym, tmp_path / "b.pyb", tmp_path / "a.pyb") == once
    for number, trace in enumerate(TRACES):
        make(pysym, tmp_path / f"{number}.pyb", trace)
    assert make(pysym, tmp_path / "c.pyb", tmp_path / "0.pyb", tmp_path / "1.pyb") == once


def test_versions_to_come_read_this_one(pysym, tmp_path):
    """What 0.2.0 wrote stays readable. While the format has version 1, the same traces give the same file."""
    assert make(pysym, tmp_path / "a.pyb", GOLDEN) == GOLDEN.read_bytes() == make(pysym, tmp_path / "b.pyb", *TRACES)


def test_holds_no_host(pysym, tmp_path):
    """docs/privacy.md: not the host's name, which the trace has."""
    rows = pysym("-f", "ndjson", TRACES[0]).stdout.splitlines()
    host = next(row["host"] for row in map(json.loads, rows) if row["type"] == "sample")
    assert host and host not in Baseline(make(pysym, tmp_path / "a.pyb", *TRACES)).texts


@pytest.mark.parametrize("damage", ["cut", "flip", "more", "newer"])
def test_refuses_damage(pysym, tmp_path, damage):
    data = bytearray(GOLDEN.read_bytes())
    if damage == "cut":
        del data[len(data) // 2:]
    elif damage == "flip":
        data[len(data) // 2] ^= 4
    elif damage == "more":
        data += b"\0"
    else:
        data[8:16] = struct.pack("<II", 9, 9)
        data[16:20] = struct.pack("<I", zlib.crc32(data[:16]))
    (tmp_path / "bad.pyb").write_bytes(data)
    done = pysym("baseline", tmp_path / "bad.pyb", "-o", tmp_path / "out.pyb")
    assert done.returncode == 1 and not (tmp_path / "out.pyb").exists()
    reasons = {"cut": "ends too early", "flip": "damaged", "more": "behind the baseline's end", "newer": "a newer one is needed"}
    assert reasons[damage] in done.stderr, done.stderr
    assert "bad.pyb" in done.stderr and "Sanitizer" not in done.stderr
