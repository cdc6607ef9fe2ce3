# SPDX-License-Identifier: Apache-2.0
"""pysym diff seldom finds a difference between runs of an unchanged program.

Runs are drawn from testdata/compare/, which are of real programs, and compared as pysym diff compares them. Draws begin with a
fixed seed, so nothing here is left to chance. docs/accuracy.md has the figures.
"""
import concurrent.futures
import pathlib
import re
import subprocess

import pytest

from conftest import PYSYM, ROOT

pytestmark = pytest.mark.unsanitized

DRAWS = pathlib.Path(PYSYM).parent / "tools/compare_draws"
BASELINES = [ROOT / "testdata/compare" / name for name in ("web.pyb", "pytest.pyb")]
SIZES = {"3x3": 12, "5x5": 12, "10x10": 12, "10x1": 15}  # comparisons with any finding, in percent at most


def draw(*words):
    return subprocess.run([DRAWS, *map(str, words)], capture_output=True, text=True, timeout=600, check=False)


def figures(line):
    """
    Of "any=3.2 (1.9 to 5.5) all: rows=250.0 low=5.1 (4.8 to 5.4) node: rows=...": any, and of each kind the share of rows with
    p < 5 % and its standard deviation.
    """
    found = float(re.search(r" any=([\d.]+)", line)[1])
    kinds = re.findall(r" (\w+): rows=[\d.]+ low=([\d.]+) \([\d.]+ to ([\d.]+)\)", line)
    return found, {kind: (float(low), (float(end) - float(low)) / 1.96) for kind, low, end in kinds}


def check(draws, deviations):
    """`deviations`: how far from its bounds a figure may be, in standard deviations of so many draws."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        results = list(pool.map(lambda path: draw("-d", draws, path), BASELINES))
    for path, done in zip(BASELINES, results):
        assert done.returncode == 0, done.stderr
        lines = {line.split()[0]: line for line in done.stdout.splitlines()}
        assert set(lines) == set(SIZES)
        for size, most in SIZES.items():
            found, kinds = figures(lines[size])
            assert found <= most + deviations * (most * (100 - most) / draws) ** 0.5, (path.name, lines[size])
            assert len(kinds) > 5
            for kind, (low, deviation) in kinds.items():
                # A kind of few rows, such as the own time of calls, is less sure than all rows together.
                least, largest = (3, 6.5) if kind == "all" else (2.5, 10)
                assert least - deviations * deviation <= low <= largest + deviations * deviation, (path.name, kind, lines[size])


@pytest.mark.long
def test_unchanged_programs_are_seldom_called_changed():
    """
    Three deviations: were the truth at a bound, one figure in 700 would be beyond it; it is not, and the draws are always the
    same. That still catches one comparison in four with a finding, or 9 % of all rows with p < 5 %.
    """
    check(60, 3)


@pytest.mark.long
def test_unchanged_programs_are_seldom_called_changed_in_many_draws():
    """The figures of docs/accuracy.md."""
    check(400, 0)


def test_the_same_seed_draws_the_same():
    one, other, third = (draw("-d", 5, "-s", seed, "-n", "4x4", BASELINES[0]) for seed in (7, 7, 8))
    assert one.returncode == 0 and one.stdout == other.stdout and one.stdout != third.stdout


@pytest.mark.parametrize("words, message", [
    (["-n", "30x30", BASELINES[0]], "too few runs to draw from"),
    (["-n", "1x1", BASELINES[0]], "nothing can be concluded"),
    ([ROOT / "README.md"], "README.md"),
    ([], "usage"),
])
def test_what_cannot_be_drawn_is_refused(words, message):
    done = draw(*words)
    assert done.returncode == 1 and message in done.stderr, done
