# SPDX-License-Identifier: Apache-2.0
"""Samples of processes that end, as the kernel frees their memory: there are no stacks to read, so none is cut."""
import json

PROGRAM = """
import os
for _ in range(20):
    child = os.fork()
    if not child:
        memory = bytearray(b"x") * (100 << 20)
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_memory_is_gone(python, record, pysym):
    trace = record(python.path, "-c", PROGRAM, options=("-F", "999"))
    told = json.loads(pysym(trace, "-f", "summary", "--json").stdout)
    losses = {row["loss"]: row["count"] for row in told["losses"]}
    assert losses.get("thread_state_fault", 0) <= 1, losses
    freeing = [line for line in pysym(trace, "-f", "folded", "--merge", "all").stdout.splitlines() if "exit_mmap" in line]
    assert len(freeing) > 3 and not [line for line in freeing if "[torn]" in line], freeing
    for kind in ("python", "native"):
        share = told["whole_stacks"][kind]
        assert share["part"] >= 0.99 * share["whole"] > 100, told
