# SPDX-License-Identifier: Apache-2.0
"""A recording begins soon and takes little memory.

At most five times what docs/benchmarks.md says; and what the kernel looks at to load the sampler, which does not depend on the
machine's load.
"""
import os
import re
import subprocess
import sys

import pytest
from conftest import PYCAP, ROOT

sys.path.insert(0, str(ROOT / "tests/bench"))
import start  # noqa: E402
from recorders import work_command  # noqa: E402
from recording import Workload  # noqa: E402

FIRST_SAMPLE_S, RESIDENT_BYTES = 5 * 0.15, 5 * 16 << 20
INSTRUCTIONS = 60000  # 45,000 to 50,000, by the kernel


@pytest.fixture(name="workload")
def fixture_workload(needs_bpf):
    del needs_bpf
    workload = Workload(work_command(sys.executable, ROOT / "tests/bench/work.py", "mixed"), 1)
    yield workload
    workload.close()


@pytest.mark.skipif("asan" in str(PYCAP), reason="ASan takes time and memory of its own")
def test_a_recording_begins_soon(workload, tmp_path):
    firsts = [start.start_once(str(PYCAP), workload, tmp_path, ["-p", str(workload.pid)])[0] for _ in range(3)]
    assert 0 < min(firsts) < FIRST_SAMPLE_S


@pytest.mark.skipif("asan" in str(PYCAP), reason="ASan takes time and memory of its own")
def test_resident_memory(workload, tmp_path):
    found = start.measure_memory(str(PYCAP), workload, tmp_path, 99)
    assert 1 << 20 < found["VmRSS"] < RESIDENT_BYTES


def test_the_verifier_looks_at_little(workload, tmp_path):
    said = subprocess.run([PYCAP, "record", "-q", "-d", "0.1", "-o", tmp_path / "trace", "-p", str(workload.pid)], check=False,
                          capture_output=True, text=True, env={**os.environ, "PYCAP_VERIFIER_STATS": "1"}).stderr
    counts = [int(count) for count in re.findall(r"^processed (\d+) insns", said, re.M)]
    assert 1000 < max(counts) < INSTRUCTIONS
