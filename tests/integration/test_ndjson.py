# SPDX-License-Identifier: Apache-2.0
"""pysym -f ndjson writes two tables, and the queries of docs/formats.md work in DuckDB.

DuckDB is from PyPI; without it these tests are skipped.
"""
import collections
import json
import re
import subprocess
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests/real"))
import venvs  # noqa: E402

TRACES = [ROOT / "testdata" / name for name in ("demo/demo.trace", "traces/2.7-shared.trace", "traces/3.14-static.trace")]
# Reads queries from the standard input, each up to a line with a NUL, and prints their tables as DuckDB's shell does.
DUCKDB = "import duckdb, sys\nfor query in sys.stdin.read().split('\\0'): print(duckdb.sql(query))"


def rows_of(text):
    """(samples, stacks by number) of one stream. A row has all members of its type, once; a stack comes before its samples."""
    samples, stacks = [], {}
    members = {}
    for line in text.splitlines():
        pairs = json.loads(line, object_pairs_hook=list)
        row = json.loads(line)
        assert len(pairs) == len(row)
        shape = [(key, bool if isinstance(row[key], bool) else type(row[key])) for key, _ in pairs]
        assert members.setdefault(row["type"], shape) == shape
        if row["type"] == "stack":
            assert row["stack"] == len(stacks) + 1 and row["frames"]
            stacks[row["stack"]] = row["frames"]
            for frame in row["frames"]:
                assert members.setdefault("frame", list(frame)) == list(frame)
        else:
            assert row["type"] == "sample" and row["stack"] in stacks
            samples.append(row)
    return samples, stacks


def run_good(pysym, *arguments):
    done = pysym(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.stem)
def test_rows(trace, pysym):
    """Sample by sample: time, CPU, thread and frames are those of perf-script, the weight that of folded."""
    samples, stacks = rows_of(run_good(pysym, trace, "-f", "ndjson", "--no-host"))
    script = []
    for block in run_good(pysym, trace, "-f", "perf-script", "--no-host").split("\n\n"):
        if block:
            head, *frames = block.splitlines()
            pid, tid, cpu, seconds, event = re.search(r" (\d+)/(\d+) +\[(\d+)\] +([\d.]+): +\d+ (\S+): *$", head).groups()
            script.append((int(pid), int(tid), int(cpu), seconds, event, [int(line.split()[0], 16) for line in frames]))
    assert script == [(s["pid"], s["tid"], s["cpu"], "%d.%06d" % divmod(s["time_ns"] // 1000, 10**6), s["event"],
                       [int(f["address"] or "0", 16) for f in reversed(stacks[s["stack"]])]) for s in samples]
    totals = json.loads(run_good(pysym, trace, "-f", "top", "--json", "--no-host"))["events"]
    weights, interpreter = collections.Counter(), collections.Counter()
    for s in samples:
        weights[s["event"]] += s["value"]
        interpreter[s["event"]] += s["value"] * s["in_interpreter"]
    assert {e["event"]: (e["weight_ns"], e["interpreter_weight_ns"]) for e in totals} == {
        name: (weights[name], interpreter[name]) for name in weights}


def test_time_of_day(pysym):
    """The time of day is that of the summary, and each sample's is as far behind the first's as its clock says."""
    samples, _ = rows_of(run_good(pysym, ROOT / "testdata/demo/demo.trace", "-f", "ndjson", "--no-host"))
    assert samples[0]["time"].startswith("2026-11-21T05:09:19.") and samples[0]["capture"] == "demo.trace"
    assert {s["host"] for s in samples} == {"vm"}
    for sample in samples:
        text = re.fullmatch(r"2026-11-21T05:09:(\d\d\.\d{6})Z", sample["time"])[1]
        since_ns = sample["time_ns"] - samples[0]["time_ns"]
        assert abs((float(text) - float(samples[0]["time"][17:-1])) * 1e9 - since_ns) < 2000


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S)


def test_queries(pysym, tmp_path):
    """What docs/formats.md says that the queries print, they print."""
    try:
        python = venvs.venv("duckdb") / "bin/python"
    except venvs.Missing as error:
        pytest.skip(f"DuckDB: {error}")
    page = (ROOT / "docs/formats.md").read_text()
    command, = re.findall(r"^pysym (testdata/demo/demo.trace .*)$", page, re.M)
    done = pysym(*command.replace("t.ndjson", str(tmp_path / "t.ndjson")).split(), cwd=ROOT)
    assert done.returncode == 0, done.stderr
    queries = blocks(page, "sql")
    assert len(queries) == 3
    done = subprocess.run([python, "-c", DUCKDB], input="\0".join(queries), cwd=tmp_path, capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    shown = [text for text in re.findall(r"```sql\n.*?```\n\n```\n(.*?)```", page, re.S)]
    assert [table.rstrip() for table in re.split(r"\n\n(?=┌)", done.stdout.rstrip())] == [text.rstrip() for text in shown]
