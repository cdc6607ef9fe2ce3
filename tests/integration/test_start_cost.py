# SPDX-License-Identifier: Apache-2.0
"""A recording begins with little CPU time and takes little memory.

At most five times what docs/benchmarks.md says: CPU time, which a busy machine does not make five times as long; and what the
kernel looks at to load the sampler, which does not depend on the machine's load. When it begins is for an idle machine.
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

FIRST_SAMPLE_S, CPU_S, RESIDENT_BYTES = 5 * 0.15, 5 * 0.2, 5 * 16 << 20
INSTRUCTIONS = 60000  # 45,000 to 50,000, by the kernel




@pytest.fixture(name="workload")
def fixture_workload(needs_bpf):
    del needs_bpf
    workload = Workload(work_command(sys.executable, ROOT / "tests/bench/work.py", "mixed"), 1)
    yield workload
    workload.close()


@pytest.mark.unsanitized
def test_a_recording_takes_little_cpu_time(workload, tmp_path):
    """That of its start and of a second."""
    first_s, cpu_s, _ = start.start_once(str(PYCAP), workload, tmp_path, ["-p", str(workload.pid)])
    assert first_s > 0 and 0 < cpu_s < CPU_S


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.unsanitized
def test_a_recording_begins_soon(workload, tmp_path):
    firsts = [start.start_once(str(PYCAP), workload, tmp_path, ["-p", str(workload.pid)])[0] for _ in range(3)]
    assert 0 < min(firsts) < FIRST_SAMPLE_S


@pytest.mark.unsanitized
def test_resident_memory(workload, tmp_path):
    """Most is held while a recording starts."""
    found = start.measure_memory(str(PYCAP), workload, tmp_path, 99, seconds=1)
    assert 1 << 20 < found["VmRSS"] < RESIDENT_BYTES


def test_the_verifier_looks_at_little(workload, tmp_path):
    said = subprocess.run([PYCAP, "record", "-q", "-d", "0.1", "-o", tmp_path / "trace", "-p", str(workload.pid)], check=False,
                          capture_output=True, text=True, env={**os.environ, "PYCAP_VERIFIER_STATS": "1"}).stderr
    counts = [int(count) for count in re.findall(r"^processed (\d+) insns", said, re.M)]
    assert 1000 < max(counts) < INSTRUCTIONS
