# SPDX-License-Identifier: Apache-2.0
"""Programs that are run for what they use."""
import os
import pathlib
import subprocess
from typing import NamedTuple

from conftest import PYSYM

MEASURE = pathlib.Path(PYSYM).parent / "tools/measure"


class Used(NamedTuple):
    returncode: int
    stderr: str
    cpu_s: float
    resident_kib: int


def run(program, *args, stdout=subprocess.DEVNULL):
    """By build/tools/measure, since a child of the test runner would seem to be as large as the runner is."""
    reader, writer = os.pipe()
    with os.fdopen(reader) as told:
        try:
            done = subprocess.run([MEASURE, str(writer), program, *map(str, args)], stdout=stdout, stderr=subprocess.PIPE,
                                  text=True, pass_fds=[writer], check=False)
        finally:
            os.close(writer)
        assert done.returncode == 0, done.stderr
        status, cpu_us, resident_kib = map(int, told.read().split())
    return Used(os.waitstatus_to_exitcode(status), done.stderr, cpu_us / 1e6, resident_kib)
