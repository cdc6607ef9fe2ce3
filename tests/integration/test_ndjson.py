# SPDX-License-Identifier: Apache-2.0
"""pysym -f ndjson has the time of day, and the queries of docs/formats.md work in DuckDB.

DuckDB is from PyPI; without it these tests are skipped. test_formats_agree.py has the rows.
"""
import re
import subprocess
import sys

import pytest

import profile_readers
from conftest import ROOT
from pysym_output import good

sys.path.insert(0, str(ROOT / "tests/real"))
import venvs  # noqa: E402

# Reads queries from the standard input, each up to a line with a NUL, and prints their tables as DuckDB's shell does.
DUCKDB = "import duckdb, sys\nfor query in sys.stdin.read().split('\\0'): print(duckdb.sql(query))"


def test_time_of_day(pysym):
    """The time of day is that of the summary, and each sample's is as far behind the first's as its clock says."""
    samples, _ = profile_readers.ndjson(good(pysym(ROOT / "testdata/demo/demo.trace", "-f", "ndjson", "--no-host")))
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
