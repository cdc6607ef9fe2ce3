# SPDX-License-Identifier: Apache-2.0
"""The tests of differences between runs (formats/stats/) beside the same formulas over scipy (from PyPI; skipped without it)."""
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import PYSYM, ROOT

sys.path.insert(0, str(ROOT / "tests/real"))
import venvs  # noqa: E402

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
    ("moderated 1 2 1  1 2 nan  1 1 1", "row 0, run 2: the measure nan is out of bounds"),
    ("moderated 2 1 1  1 2 3 inf  1 1 1 1", "row 1, run 1: the measure inf is out of bounds"),
    ("moderated 1 1 1  1 2  1 0", "row 0, run 1: the variance 0 is out of bounds"),
    ("moderated 1 0 2  1 2  1 1", "no runs to compare: 0 old, 2 new"),
    ("welch 1 2  1 -inf 2", "new run 0: the measure -inf is out of bounds"),
    ("welch 2 0  1 2", "there is no new run to compare"),
])
def test_what_cannot_be_tested_is_refused(text, message):
    done = figures(text)
    assert done.returncode == 1 and message in done.stderr, done
