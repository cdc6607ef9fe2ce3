# SPDX-License-Identifier: Apache-2.0
"""Every released pysym reads the traces of this pycap, and counts the same.

It skips records that it does not know.
"""

import pytest

from conftest import PYSYM, PYTHON, ROOT
from releases import RELEASES, account

PROGRAMS = ROOT / "testdata/programs"
TRACES = sorted((ROOT / "testdata/traces").glob("*.trace"))


def test_there_are_releases():
    assert RELEASES


def test_new_traces(needs_bpf, released, record):
    """Of a command with several threads, with whatever pycap now writes by default and on request."""
    trace = record(PYTHON, PROGRAMS / "threads.py", "0.02",
                   options=("-F", "199", "-e", "cpu-clock", "-e", "page-faults", "-e", "context-switches", "-e", "off-cpu", "--cmdline"))
    new = account(PYSYM, trace)
    assert sum(new[0].values()) > 50 and new[2] > 100
    assert new[0].keys() - {"gil-blame"} == {"cpu-clock", "page-faults", "context-switches", "off-cpu"}, new[0]
    assert account(released, trace) == new


@pytest.mark.parametrize("trace", TRACES[:3], ids=lambda path: path.stem)
def test_old_traces(released, trace):
    assert account(released, trace) == account(PYSYM, trace)
