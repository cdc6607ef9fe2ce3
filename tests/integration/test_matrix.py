# SPDX-License-Identifier: Apache-2.0
"""The part of tests/matrix.sh for the interpreters at hand: every sample beside what the interpreter says of itself."""
import sys

import pytest

from conftest import ROOT, why_no_bpf

sys.path.insert(0, str(ROOT / "tests/tools"))
import matrix  # noqa: E402


@pytest.mark.parametrize("program", matrix.PROGRAMS, ids=lambda path: path.stem)
def test_matrix(python, program, tmp_path):
    why = why_no_bpf()
    if why:
        pytest.skip(why)
    trace = tmp_path / "t.bin"
    told = matrix.record([python.path], program, 0.03, 1999, trace)
    result = matrix.compare(trace, told, program, *(["--sysroot", python.root] if python.root else []))
    assert not result.wrong, f"{len(result.wrong)} wrong, the first: {result.wrong[0]}"
    assert not result.missing, f"never sampled: {result.missing}"
    assert matrix.all_good([result]), result


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
