# SPDX-License-Identifier: Apache-2.0
"""docs/waiting.md shows what pysym prints of the recording that lies beside it."""
import re
import shlex

import pytest

from conftest import ROOT

TRACE = ROOT / "testdata/waiting/flaskr.trace"
COMMAND = re.compile(r"^\$ pysym flaskr\.bin (.*)\n((?:(?!\$ ).*\n)*)", re.M)
BLOCKS = re.findall(r"^```\n(.*?)^```$", (ROOT / "docs/waiting.md").read_text(), re.M | re.S)
SHOWN = [shown for block in BLOCKS for shown in COMMAND.findall(block)]


def test_there_are_some():
    assert len(SHOWN) >= 5


@pytest.mark.parametrize("command, shown", SHOWN, ids=[command for command, _ in SHOWN])
def test_shown(pysym, command, shown):
    """Line by line; "..." stands for any number of lines. Names of native functions are not there without the binaries."""
    done = pysym(TRACE, "--no-host", *shlex.split(command.partition("|")[0]))
    assert done.returncode == 0, done.stderr
    lines = iter(done.stdout.replace(TRACE.name, "flaskr.bin").splitlines())
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
