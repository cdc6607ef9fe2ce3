# SPDX-License-Identifier: Apache-2.0
"""The stacks of waiting threads are those that the interpreter itself sees, on every version.

With their lines.
"""
import collections
import json
import subprocess

import pytest

from conftest import PYSYM, ROOT, record_behind_gate, why_no_bpf

PROGRAM = ROOT / "testdata/programs/known_waits.py"
LONG_NS = 10e6  # so long the program has surely looked at the thread meanwhile


def waits_of(trace, names, *options):
    """By thread function: Counter of [(function, line), ...] of long waits that are none for the GIL or a CPU."""
    done = subprocess.run([PYSYM, "-f", "ndjson", "--event", "off-cpu", *options, trace], capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 3), done.stderr
    stacks, out = {}, collections.defaultdict(collections.Counter)
    for row in map(json.loads, done.stdout.splitlines()):
        if row["type"] == "stack":
            stacks[row["stack"]] = tuple((f["function"].rpartition(".")[2], f["line"]) for f in row["frames"] if f["layer"] == "python")
        elif row["type"] == "sample" and row["value"] >= LONG_NS and row["labels"]["wait"] in ("blocked", "lock"):
            for name in names & {function for function, _ in stacks[row["stack"]]}:
                out[name][stacks[row["stack"]]] += 1
    return out


@pytest.mark.long
@pytest.mark.every_python
def test_stacks_and_lines(python, pysym, tmp_path):
    if why_no_bpf():
        pytest.skip(why_no_bpf())
    trace, told, _ = record_behind_gate(pysym, tmp_path, ["-e", "off-cpu/period=1/"], python.path, PROGRAM, 2)
    truth = {name: {tuple(map(tuple, stack)) for stack in stacks} for name, stacks in json.loads(told).items()}
    found = waits_of(trace, truth.keys(), *(["--sysroot", python.root] if python.root else []))
    right = {name: sum(n for stack, n in found[name].items() if stack in truth[name]) for name in truth}
    print(python.version, {name: (right[name], sum(found[name].values())) for name in sorted(truth)})
    for name in truth:
        assert right[name] == sum(found[name].values()) and right[name] >= 5, (name, found[name], truth[name])
