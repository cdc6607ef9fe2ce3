# SPDX-License-Identifier: Apache-2.0
"""Who holds the GIL while others wait: functions that hold it in known ways are blamed for as long as they took by their own
clocks, and one that releases it is not."""
import collections
import json

from conftest import PYTHON, ROOT, record_behind_gate
from test_waiting import Trace

HOGS = ROOT / "testdata/programs/hogs.py"


def blame_of(pysym, trace, names):
    """In ns, by function of the program."""
    stacks, out = {}, collections.Counter()
    done = pysym(trace, "--format", "ndjson", "--event", "gil-blame")
    assert done.returncode in (0, 3), done.stderr
    for row in map(json.loads, done.stdout.splitlines()):
        if row["type"] == "stack":
            stacks[row["stack"]] = {f["function"] for f in row["frames"]} & names
        elif row["type"] == "sample":
            assert row["gil"] == "held", row
            out.update({name: row["value"] for name in stacks[row["stack"]]})
            out["all"] += row["value"]
    return out


def check(pysym, folder, python, *options):
    """A call that blocks is blamed for 98 to 99 % of its time. What computes has to give the GIL away when it is asked to, and
    waits itself until it has it back; and others that want the CPUs keep the other thread from asking. So there may be
    much less, but never more."""
    path, told, _ = record_behind_gate(pysym, folder, options, python, HOGS, 0.8)
    took = json.loads(told)
    blame, exact = blame_of(pysym, path, set(took)), Trace(path).exact()
    shares = {name: round(blame[name] / took[name], 3) for name in took}
    print(python, shares)
    for name in ("blocks", "computes", "loops"):
        assert 0.2 < shares[name] < 1.25, (shares, took)
    assert shares["releases"] < 0.1, (shares, took)
    # A thread that was woken still counts as one that waits, until it has a CPU.
    waited = sum(ns for (_, kind), ns in exact.items() if kind in ("GIL", "run queue"))
    assert blame["all"] < 1.25 * waited, (blame, exact)


def test_hogs(needs_bpf, pysym, tmp_path):
    check(pysym, tmp_path, PYTHON, "--wall", "-F", "499")


def test_thinned(needs_bpf, pysym, tmp_path):
    """Waits of which no stack was taken have their blame as well."""
    check(pysym, tmp_path, PYTHON, "-e", "cpu-clock", "-F", "499", "-e", "off-cpu/period=50000000/")
