# SPDX-License-Identifier: Apache-2.0
"""Line tables are decoded as each interpreter decodes its own.

build/tools/check_lines does it over a part of the interpreter's library.
"""
import pathlib
import re
import subprocess

import pytest

from conftest import PYSYM, ROOT

CHECK = pathlib.Path(PYSYM).parent / "tools/check_lines"
FILES = 100


def check(text):
    return subprocess.run([CHECK], input=text, capture_output=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def truths():
    """What each interpreter said, by its path: asked once."""
    return {}


def truth_of(python, truths):
    if python.path not in truths:
        truths[python.path] = subprocess.run([python.path, ROOT / "tests/tools/line-truth.py", str(FILES)],
                                             capture_output=True, timeout=300, check=True).stdout
    return truths[python.path]


@pytest.mark.every_python(kinds=True)
def test_library(python, truths):
    done = check(truth_of(python, truths))
    assert done.returncode == 0, done.stderr
    counts = [int(n) for n in re.findall(rb"\d+", done.stdout)]
    assert counts[0] > 1000 and counts[1] > 50_000, done.stdout


@pytest.mark.every_python(kinds=True)
def test_differences_are_found(python, truths):
    """One line, end or column another than the interpreter says."""
    text = truth_of(python, truths)
    stretches = [match for match in re.finditer(rb"^at \d+ \d+ (\d+) (\d+) (\d+|-) (\d+|-)$", text[:200_000], re.M)]
    stretch = next(m for m in stretches if python.version < (3, 11) or m[3] != b"-")
    for group in range(1, 5 if python.version >= (3, 11) else 3):
        wrong = text[:stretch.start(group)] + b"%d" % (int(stretch[group]) + 1) + text[stretch.end(group):]
        done = check(wrong)
        assert done.returncode == 1 and b"CPython says at " in done.stderr, (group, done)
