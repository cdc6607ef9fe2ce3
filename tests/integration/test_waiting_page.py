# SPDX-License-Identifier: Apache-2.0
"""docs/waiting.md and docs/asyncio.md show what pysym prints of testdata's recordings."""
import re
import shlex

import pytest

from conftest import ROOT

PAGES = {"waiting.md": ROOT / "testdata/waiting/flaskr.trace", "asyncio.md": ROOT / "testdata/asyncio/shop.trace"}


def shown_by(page, trace):
    """Commands and what the page shows of their output, as lists of trace, command, text."""
    command = re.compile(r"^\$ pysym (%s\.bin) (.*)\n((?:(?!\$ ).*\n)*)" % trace.stem, re.M)
    blocks = re.findall(r"^```\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.M | re.S)
    return [(trace, *shown) for block in blocks for shown in command.findall(block)]


SHOWN = [row for page, trace in PAGES.items() for row in shown_by(page, trace)]


def test_there_are_some():
    assert len(SHOWN) >= 7


@pytest.mark.parametrize("trace, name, command, shown", SHOWN, ids=[command for _, _, command, _ in SHOWN])
def test_shown(pysym, trace, name, command, shown):
    """Line by line; "..." stands for any number of lines. Names of native functions are not there without the binaries."""
    done = pysym(trace, "--no-host", *shlex.split(command.partition("|")[0]))
    assert done.returncode == 0, done.stderr
    lines = iter(done.stdout.replace(trace.name, name).splitlines())
    skips = False
    for line in shown.rstrip("\n").splitlines():
        if line.strip() == "...":
            skips = True
            continue
        found = next(lines, None)
        while skips and found is not None and found != line:
            found = next(lines, None)
        assert found == line, done.stdout
        skips = False
    assert skips or next(lines, None) is None, "there is more"
