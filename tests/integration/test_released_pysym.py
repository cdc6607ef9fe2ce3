# SPDX-License-Identifier: Apache-2.0
"""Every released pysym reads the traces of this pycap, and counts the same; this one reads those of every release.

A pysym skips records that it does not know.
"""
import json

import pytest

from conftest import PYSYM, PYTHON, ROOT
from releases import RELEASES, account

PROGRAMS = ROOT / "testdata/programs"
TRACES = sorted((ROOT / "testdata/traces").glob("*.trace"))


def test_there_are_releases():
    assert RELEASES


def test_new_traces(needs_bpf, released, record):
    """Of a command with several threads, with whatever pycap now writes by default and on request."""
    trace = record(PYTHON, PROGRAMS / "threads.py", "0.02",
                   options=("-F", "199", "-e", "cpu-clock", "-e", "page-faults", "-e", "context-switches", "-e", "off-cpu", "--cmdline"))
    new = account(PYSYM, trace)
    assert sum(new[0].values()) > 50 and new[2] > 100
    assert new[0].keys() - {"gil-blame"} == {"cpu-clock", "page-faults", "context-switches", "off-cpu"}, new[0]
    assert account(released, trace) == new


@pytest.mark.parametrize("trace", TRACES[:3], ids=lambda path: path.stem)
def test_old_traces(released, trace):
    assert account(released, trace) == account(PYSYM, trace)


# Those of 0.1.0 are testdata/traces, which have expected outputs beside them (test_golden.py).
@pytest.mark.parametrize("trace", sorted((ROOT / "testdata/releases").glob("*.trace")), ids=lambda path: path.stem)
def test_traces_of_releases(trace):
    """What the release itself made of its trace (testdata/releases/record.sh)."""
    assert json.loads(json.dumps(account(PYSYM, trace))) == json.loads(trace.with_suffix(".json").read_text())


def test_this_release_has_one():
    version = next(line.split()[-1] for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("VERSION := "))
    assert (ROOT / f"testdata/releases/{version}.trace").exists()
