# SPDX-License-Identifier: Apache-2.0
"""A sample reads the program's memory no more often than it may, stage by stage.

Time depends on the machine; this does not.
"""
import re
import sys

import pytest
from conftest import ROOT, interpreters, later

sys.path.insert(0, str(ROOT / "tests/bench"))
import stages  # noqa: E402

# Reads for a sample of `mixed`, at most: more than it is today, for ticks also fall into calls that have begun or ended, and
# neighbours take what is kept for a CPU. Fewer than without what saves reads.
MOST = {"user stack, read at once": 1.5, "thread state, GIL": 4, "Python frames": 34, "native frames": 1}
# From 3.12 on no code object is read while none is made: 3, and not 20.
KNOWN = {**MOST, "thread state, GIL": 7.5, "Python frames": 9}


def test_the_names_are_those_of_the_sampler():
    source = (ROOT / "bpf/stages.h").read_text()
    assert len(re.findall(r"^    STAGE_\w+,", source, re.M)) == len(stages.STAGES)


@pytest.mark.parametrize("version", [later((3, 11)), later((3, 12)), (3, 13)], ids=str)
def test_reads(needs_bpf, version, monkeypatch):
    del needs_bpf
    monkeypatch.setattr(stages, "SETTLE_SECONDS", 1)
    found = [python.path for python in interpreters() if python.version == version]
    if not found:
        pytest.skip("no such interpreter")
    most = MOST if version < (3, 12) else KNOWN
    counts, _ = stages.measure(found[0], "mixed", 999, 1)
    samples = counts[-1][0]
    assert samples > 50
    reads = {name: count[2] / samples for name, count in zip(stages.STAGES, counts)}
    assert {name: found for name, found in reads.items() if found > most.get(name, 0)} == {}
    # It counts: frames are not found without reading them.
    assert reads["Python frames"] > 1 and reads["user stack, read at once"] > 0.9
    assert all(ns > 0 for _, ns, _, _ in counts)
