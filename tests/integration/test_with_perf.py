# SPDX-License-Identifier: Apache-2.0
"""perf and pycap record at the same time, and neither changes what the other gets."""
import os
import re
import shutil
import subprocess

import pytest

from conftest import PYTHON

pytestmark = pytest.mark.usefixtures("needs_bpf")
BURN = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: sum(range(1000))"
MAPPING = re.compile(r"PERF_RECORD_MMAP2 .*\[0x\w+\(0x\w+\) @ \w+ (.*)\]: r-xp (/.*)")


def test_mappings_of_a_command(pycap, tmp_path):
    """What perf is told of mappings: device and inode, as it asked, not a build ID, which it would take for these."""
    perf = shutil.which("perf")
    if not perf:
        pytest.skip("perf is not installed")
    data = tmp_path / "perf.data"
    command = [perf, "record", "-q", "-e", "cpu-clock", "-o", data, "--", PYTHON, "-c", BURN]
    if subprocess.run(command, capture_output=True, timeout=120, check=False).returncode:
        pytest.skip("perf cannot record here")
    data.unlink()
    done = pycap("record", "-o", tmp_path / "t.bin", "--", *command)
    assert done.returncode == 0, done.stderr
    text = subprocess.run([perf, "script", "-i", data, "--show-mmap-events"], capture_output=True, text=True, timeout=120,
                          check=True).stdout
    told = {m[2]: m[1] for m in MAPPING.finditer(text)}
    path = os.path.realpath(PYTHON)
    assert path in told, text[:2000]
    assert f" {os.stat(path).st_ino} " in f" {told[path]} ", told
