# SPDX-License-Identifier: Apache-2.0
"""The tests of differences between runs (formats/stats/) equal the same formulas over scipy.

scipy is from PyPI; without it these are skipped. And on made-up runs whose truth is known. Draws begin with a fixed seed, so
nothing here is left to chance.
"""
import collections
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import PYSYM, ROOT

sys.path.insert(0, str(ROOT / "tests/real"))
import venvs  # noqa: E402

pytestmark = pytest.mark.unsanitized

TESTS, COMPARE = (pathlib.Path(PYSYM).parent / "tools" / name for name in ("simulate_tests", "simulate_compare"))
FIGURES = pathlib.Path(PYSYM).parent / "tools/stats_figures"


def figures(text):
    return subprocess.run([FIGURES], input=text, capture_output=True, text=True, timeout=60, check=False)


def test_all_figures_equal_those_of_scipy():
    try:
        python = venvs.venv("scipy") / "bin/python"
    except venvs.Missing as error:
        pytest.skip(f"scipy: {error}")
    done = subprocess.run([python, ROOT / "tests/tools/stats_reference.py", FIGURES], capture_output=True, text=True, timeout=300,
                          check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert int(re.match(r"(\d+) figures", done.stdout)[1]) > 80000


@pytest.mark.parametrize("text, message", [
    ("moderated 1 2 1 1  1 2 nan  1 1 1", "row 0, run 2: the measure nan is out of bounds"),
    ("moderated 2 1 1 1  1 2 3 inf  1 1 1 1", "row 1, run 1: the measure inf is out of bounds"),
    ("moderated 1 1 1 1  1 2  1 0", "row 0, run 1: the variance 0 is out of bounds"),
    ("moderated 1 0 2 1  1 2  1 1", "no runs to compare: 0 old, 2 new"),
    ("welch 1 2  1 -inf 2", "new run 0: the measure -inf is out of bounds"),
    ("welch 2 0  1 2", "there is no new run to compare"),
])
def test_what_cannot_be_tested_is_refused(text, message):
    done = figures(text)
    assert done.returncode == 1 and message in done.stderr, done


def simulate(program, draws, *parts):
    """The lines of each part, as numbers by name."""
    done = subprocess.run([program, str(draws), "1", *parts], capture_output=True, text=True, timeout=6000, check=False)
    assert done.returncode == 0, done.stderr
    lines = collections.defaultdict(list)
    for line in done.stdout.splitlines():
        part, *words = line.split()
        lines[part].append({name: float(value) for name, value in (word.split("=") for word in words)})
    return lines


def check_tests(draws, draws_of_totals):
    lines = simulate(TESTS, draws, "rows", "found")
    assert len(lines["rows"]) == 25
    for line in lines["rows"]:
        assert 3 <= line["row"] <= 6.5, line
        assert line["any"] <= (15 if line["new"] == 1 else 12), line
    wanted, = [line for line in lines["found"]
               if (line["cv"], line["runs"], line["share"], line["change"]) == (1, 10, 25, 10)]
    assert wanted["first"] >= 95, wanted
    lines = simulate(TESTS, draws_of_totals, "total", "looks", "needed")
    limits = [line for line in lines["total"] + lines["looks"] if line["change"] == 2]
    assert len(limits) == 15
    for line in limits:
        # At the limit of the rule each answer is false.
        most = 7 if line in lines["total"] else 5
        assert line["fails"] <= most and line["passes"] <= most, line
    # Surely slower: a change of 5 % with 5 runs of CV 1 %.
    assert [line["fails"] > 95 for line in lines["total"] if (line["cv"], line["runs"], line["change"]) == (1, 5, 5)] == [True]
    assert len(lines["needed"]) == 8
    for line in lines["needed"]:
        assert 78 <= line["found"] <= 92, line


@pytest.mark.long
def test_answers_are_as_often_wrong_as_they_say():
    check_tests(200, 2000)


@pytest.mark.long
def test_answers_are_as_often_wrong_as_they_say_in_many_draws():
    """The figures of docs/accuracy.md."""
    check_tests(20000, 100000)


def mean(lines, name):
    return sum(line[name] for line in lines) / len(lines)


@pytest.mark.long
def test_comparisons_are_as_often_wrong_as_they_say():
    """Few draws: the settings are judged together."""
    lines = simulate(COMPARE, 20, "rows", "power", "limits")
    for new in (3, 5, 10, 1):
        chosen = [line for line in lines["rows"] if line["new"] == new]
        assert len(chosen) == 6
        assert 3 <= mean(chosen, "row") <= 6.5, chosen
        assert mean(chosen, "any") <= (15 if new == 1 else 12), chosen
    found, = lines["found"]
    assert found["first"] >= 95, found
    assert len(lines["total"]) == len(lines["function"]) == 3
    assert mean(lines["total"] + lines["function"], "fails") <= 7, lines
    looks, = lines["looks"]
    assert looks["fails"] <= 5 and looks["passes"] <= 5, looks


@pytest.mark.long
def test_comparisons_are_as_often_wrong_as_they_say_in_many_draws():
    """The figures of docs/accuracy.md."""
    lines = simulate(COMPARE, 2000, "rows", "power", "function", "total")
    assert len(lines["rows"]) == 24
    for line in lines["rows"]:
        assert 3 <= line["row"] <= 6.5, line
        assert line["any"] <= (15 if line["new"] == 1 else 12), line
    found, = lines["found"]
    assert found["first"] >= 95, found
    for line in lines["total"] + lines["function"]:
        limit = 2 if line in lines["total"] else 5
        assert line["change"] > limit or line["fails"] <= 7, line
    for line in simulate(COMPARE, 400, "looks")["looks"]:
        assert line["change"] > 2 or line["fails"] <= 5, line
