# SPDX-License-Identifier: Apache-2.0
"""Stacks unwound while recording are those of libunwind, libdwfl and pysym's tables.

Of a snapshot of the same sample.
"""
import os
import re
import subprocess

import pytest

from accounts import is_rare
from conftest import PYTHON, ROOT

MIX = ROOT / "testdata/programs/mix.py"
LABELS = {"identical": "same", "identical up to the snapshot's end": "cut",
          "identical up to what the sampler knew": "pending", "different": "different"}
WITNESSES = ("libunwind", "libdwfl", "host")


def numbers(report):
    """{verdict: {witness: samples}}, and the samples compared."""
    rows = {}
    for line in report.splitlines():
        match = re.match(r"(.*?)((?: +\d+ +[\d.]+ %){3})$", line)
        if match and match[1].strip() in LABELS:
            rows[LABELS[match[1].strip()]] = dict(zip(WITNESSES, map(int, re.findall(r" (\d+) +[\d.]+ %", match[2]))))
    compared = int(re.search(r"^with a stack and a snapshot +(\d+)", report, re.M)[1])
    assert set(rows) == set(LABELS.values()), report
    for witness in WITNESSES:
        assert sum(row[witness] for row in rows.values()) == compared, report
    return rows, compared


def beyond(report):
    """{witness: samples} that go on by frame pointer through code that a program made, where a witness has to stop."""
    found = re.findall(r"^ +(\d+) +(\d+) +(\d+)  .*: witness stops: .*, recorded by frame pointer$", report, re.M)
    return {witness: sum(int(row[i]) for row in found) for i, witness in enumerate(WITNESSES)}


def returning(report):
    """
    {witness: samples} of signals that are just returning. libdwfl has no call frame information for that: the trampoline's
    ends one byte earlier. How many they are is chance; with the others they are recognized.
    """
    found = re.findall(r"^ +0 +(\d+) +0  libc\S*: witness stops: no_unwind_info$", report, re.M)
    return {"libunwind": 0, "libdwfl": sum(map(int, found)), "host": 0}


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    """mix.py's C library."""
    out = tmp_path_factory.mktemp("mix") / "libmix.so"
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-fPIC", "-shared", "-o", out,
                    ROOT / "testdata/programs/mix_native.c"], check=True)
    return out


@pytest.mark.smoke("json", "table")
@pytest.mark.parametrize("part", ["json", "regex", "zlib", "hashes", "callbacks", "signals_c", "c_code"])
def test_agrees(python, part, native, record, pysym, monkeypatch):
    monkeypatch.setenv("MIX_NATIVE", str(native))
    trace = record(python.path, MIX, part, "0.6", options=("-F", "499", "-m", "32M", "--unwind", "both"))
    done = pysym(trace, "--format", "unwind-check", "--strict")
    rows, compared = numbers(done.stdout)
    assert done.returncode == (3 if any(rows["different"].values()) else 0), done.stderr
    assert compared > 50, done.stdout
    for witness in WITNESSES:
        # How long the sampler takes to know a process is a matter of the machine.
        known = compared - rows["pending"][witness]
        comparable = known - rows["cut"][witness]
        assert comparable > 50 and comparable > 0.8 * known, done.stdout
        explained = returning(done.stdout)[witness] if part == "signals_c" else 0
        assert is_rare(explained, comparable, 0.03), done.stdout
        assert is_rare(rows["different"][witness] - beyond(done.stdout)[witness] - explained, comparable), done.stdout
    if part == "json":
        plain = pysym(trace, "--format", "unwind-check")
        assert (plain.returncode, plain.stdout) == (0, done.stdout), plain.stderr
    # All other formats take the stack and leave the snapshot alone.
    assert "unwound from snapshots" not in pysym(trace, "--format", "summary", "-v").stdout


@pytest.mark.parametrize("unwind", ["tables", "snapshot"])
def test_nothing_to_compare(unwind, record, pysym):
    trace = record(PYTHON, "-c", "sum(range(10**7))", options=("-F", "199", "--unwind", unwind))
    done = pysym(trace, "--format", "unwind-check")
    assert done.returncode == 1
    assert "pycap record --unwind both" in done.stderr
    assert done.stdout == ""
