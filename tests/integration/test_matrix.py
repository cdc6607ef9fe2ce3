# SPDX-License-Identifier: Apache-2.0
"""Every sample of the interpreters at hand is what the interpreter says of itself.

This is the part of tests/matrix.sh that takes little time.
"""
import sys

import pytest

from conftest import ROOT, later

sys.path.insert(0, str(ROOT / "tests/tools"))
import matrix  # noqa: E402


@pytest.mark.each_kind
@pytest.mark.usefixtures("needs_bpf")
@pytest.mark.parametrize("program", [*(pytest.param(path, id=path.stem) for path in matrix.PROGRAMS),
                                     *(later(path, id=path.stem) for path in matrix.PLACES)])
def test_matrix(python, program, tmp_path):
    trace = tmp_path / "t.bin"
    # A buffer that does not fill where pycap does not run for a while, also in the deepest recursion.
    told = matrix.record([python.path], program, 0.03, 1999, trace, "-m", "32M")
    matrix.check(trace, told, program, *(["--sysroot", python.root] if python.root else []))


CHAINS = {("leaf", "p.py"): [("<module>", "p.py", 9), ("main", "p.py", 5), ("leaf", "p.py", 2)]}
LINES = {("leaf", "p.py"): [1, 2, 3]}


@pytest.mark.parametrize("verdict, got", [
    ("equal", [("<module>", "p.py", 9), ("main", "p.py", 5), ("leaf", "p.py", 2)]),
    ("passing", [("<module>", "p.py", 9), ("main", "p.py", 5), ("leaf", "p.py", 3)]),
    ("line", [("<module>", "p.py", 9), ("main", "p.py", 5), ("leaf", "p.py", 4)]),
    ("line", [("<module>", "p.py", 9), ("main", "p.py", 6), ("leaf", "p.py", 2)]),
    ("wrong", [("<module>", "p.py", 9), ("leaf", "p.py", 2)]),
    ("wrong", [("<module>", "p.py", 9), ("main", "q.py", 5), ("leaf", "p.py", 2)]),
    ("wrong", [("main", "p.py", 5), ("other", "q.py", 1)]),
    ("wrong", [("<module>", "p.py", 9), ("leaf", "p.py", 2), ("other", "q.py", 1)]),
    ("elsewhere", [("<module>", "p.py", 9), ("main", "p.py", 5), ("other", "q.py", 1)]),
])
def test_what_the_matrix_finds(verdict, got):
    """The comparison itself: a frame too few, another file, another line are found."""
    assert matrix.judge_stack(got, CHAINS, LINES, "p.py") == verdict


@pytest.mark.parametrize("number, samples, good", [(9, 792, True), (10, 792, False), (11, 1000, False), (156, 100_000, True),
                                                   (157, 100_000, False)])
def test_what_the_matrix_lets_pass(number, samples, good):
    """A few of a small recording are chance; the same share of a long one is not."""
    result = matrix.Result(samples, samples, samples, samples, 0, 0, 0, [], [], [])
    assert matrix.all_good([result._replace(passing=number)], of_few=True) == good
    assert matrix.all_good([result._replace(marked=number)], of_few=True) == good
    for of_few in (False, True):
        assert not matrix.all_good([result._replace(wrong=[("wrong", [], None)])], of_few)
        assert not matrix.all_good([result._replace(missing=["leaf"])], of_few)


@pytest.mark.parametrize("passing, marked, good", [(0, 0, True), (101, 0, True), (102, 0, False), (0, 100, True), (0, 101, False)])
def test_what_the_matrix_by_hand_lets_pass(passing, marked, good):
    """One in a thousand, and no more."""
    result = matrix.Result(100_000, 100_000, 100_000, 100_000, passing, marked, 0, [], [], [])
    assert matrix.all_good([result]) == good
