# SPDX-License-Identifier: Apache-2.0
"""Traces of every version and flavour, recorded by testdata/traces/record.sh, read without interpreters or privilege."""
import re
import sys

import pytest

from conftest import ROOT, supported_versions

sys.path.insert(0, str(ROOT / "tests/tools"))
import matrix  # noqa: E402

TRACES = sorted((ROOT / "testdata/traces").glob("*.trace"))
NEVER_RUN = {(3, 3), (3, 4), (3, 5)}


def test_every_version_has_one():
    have = {tuple(map(int, path.name.split("-")[0].split("."))) for path in TRACES}
    assert set(supported_versions()) - have == NEVER_RUN


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.stem)
def test_golden(trace, pysym):
    done = pysym(trace, "--format", "folded", "--python-only", "--columns", "--full-filenames")
    assert done.returncode == 0, done.stderr
    assert done.stdout == trace.with_suffix(".folded").read_text()


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.stem)
def test_as_told(trace):
    """Every sample beside what the interpreter said of itself when the trace was recorded."""
    result = matrix.compare(trace, trace.with_suffix(".told").read_text(), "/opt/app/program.py")
    assert not result.wrong and not result.missing and not result.marked, result
    assert result.lines_equal >= 150
    # The joins are made of addresses that are in the trace: they need no binaries.
    assert result.shares[0] == 100 and result.shares[2] >= (95 if "musl" in trace.name else 99), result.shares


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.stem)
def test_no_place_of_its_making(trace, pysym):
    """A trace says nothing about where it was recorded."""
    paths = re.findall(r'[ ="](/[^ "\n]+)', pysym(trace, "--format", "dump").stdout)
    assert len(paths) > 10
    assert not [path for path in paths if not re.match("/(opt|usr|lib)/", path)]
