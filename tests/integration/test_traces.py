# SPDX-License-Identifier: Apache-2.0
"""Traces of every version and flavour of CPython are read without interpreters or privilege.

testdata/traces/record.sh recorded them.
"""
import collections
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


@pytest.mark.sanitized
@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.stem)
def test_golden(trace, pysym):
    done = pysym(trace, "--format", "folded", "--python-only", "--interpreter", "calls", "--columns", "--full-filenames")
    assert done.returncode == 0, done.stderr
    assert done.stdout == trace.with_suffix(".folded").read_text()


# One for each way in which an interpreter lies in its process and keeps its activations.
VIEWS = ("2.7-shared", "3.8-shared", "3.11-static", "3.12-shared", "3.13-musl", "3.14-static")


@pytest.mark.parametrize("name", VIEWS)
def test_default_view(name, pysym):
    """What a reader sees who gives no option and has no binaries."""
    trace = ROOT / f"testdata/traces/{name}.trace"
    done = pysym(trace, "--format", "folded", "--no-host")
    assert done.returncode == 0, done.stderr
    assert done.stdout == trace.with_suffix(".view").read_text()


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.stem)
def test_interpreter_is_hidden(trace, pysym):
    """All views have the same samples and Python frames; only the two others have frames of the interpreter."""
    own = re.compile(r"\[(lib)?python[^;]*\]$")
    seen = {}
    for view in ("hide", "calls", "show"):
        done = pysym(trace, "--format", "folded", "--no-host", "--interpreter", view)
        assert done.returncode == 0, done.stderr
        rows = [line.rsplit(" ", 1) for line in done.stdout.splitlines()]
        python = collections.Counter()
        for stack, count in rows:
            python[tuple(f for f in stack.split(";")[1:] if re.search(r":\d+\)$", f))] += int(count)
        seen[view] = python, sum(any(own.match(f) for f in stack.split(";")) for stack, _ in rows)
        if view == "hide":  # nothing stands before a thread's first Python frame
            late = [stack for stack, _ in rows if "<module>" in stack and stack.split(";")[1].startswith("[")]
            assert not late, late[0]
    assert seen["hide"][0] == seen["calls"][0] == seen["show"][0]
    assert seen["hide"][1] == 0 < seen["calls"][1] <= seen["show"][1]


def samples_of(done):
    """The frames of each sample of perf-script, innermost first, without marks: lists of (text, binary)."""
    assert done.returncode == 0, done.stderr
    return [[line.split(None, 1)[1].rsplit(" (", 1) for line in block.splitlines()[1:] if not line.endswith(" ([unknown])")]
            for block in done.stdout.split("\n\n") if block]


@pytest.mark.parametrize("name", VIEWS)
def test_hidden_frames(name, pysym):
    """Sample by sample: what the default view shows is in true order, and what it leaves out is the interpreter's."""
    trace = ROOT / f"testdata/traces/{name}.trace"
    own = re.compile(r"/((lib)?python[^/]*|(libc|libpthread|ld)[-.][^/]*)\)$")
    default, everything = (samples_of(pysym(trace, "-f", "perf-script", "--no-host", "--interpreter", view))
                           for view in ("hide", "show"))
    assert len(default) == len(everything) > 100
    gone = collections.Counter()
    for kept, frames in zip(default, everything):
        left = iter(kept)
        expected = next(left, None)
        for text, binary in frames:
            if [text, binary] == expected:
                expected = next(left, None)
            else:
                assert not text.startswith("py::") and own.search(binary), (text, binary)
                gone[binary] += 1
        assert expected is None, (expected, frames)
    assert sum(gone.values()) > len(default)


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
