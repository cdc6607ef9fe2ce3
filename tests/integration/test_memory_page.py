# SPDX-License-Identifier: Apache-2.0
"""docs/memory.md shows what pysym prints of the recording that lies beside it."""
import re
import shlex

import pytest

from conftest import ROOT

TRACE = ROOT / "testdata/memory/shop.trace"
COMMAND = re.compile(r"^\$ pysym shop\.bin (.*)\n((?:(?!\$ ).*\n)*)", re.M)
BLOCKS = re.findall(r"^```\n(.*?)^```$", (ROOT / "docs/memory.md").read_text(), re.M | re.S)
SHOWN = [shown for block in BLOCKS for shown in COMMAND.findall(block)]


def test_there_are_some():
    assert len(SHOWN) >= 3


@pytest.mark.parametrize("command, shown", SHOWN, ids=[command for command, _ in SHOWN])
def test_shown(pysym, command, shown):
    """The lines stand side by side in what is printed; "..." at either end stands for others."""
    done = pysym(TRACE, "--no-host", *shlex.split(command))
    assert done.returncode == 0, done.stderr
    lines = shown.rstrip("\n").splitlines()
    before, after = (line == "..." for line in (lines[0], lines[-1]))
    text = "\n".join(lines[before:len(lines) - after]) + "\n"
    assert ("\n" + text if before else text) in done.stdout
    assert before or done.stdout.startswith(text)
    assert after or done.stdout.endswith(text)
