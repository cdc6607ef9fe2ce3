# SPDX-License-Identifier: Apache-2.0
"""What pysym wrote: whether it ended well, and what folded stacks add up to."""
from conftest import formats

# Those that every trace has something for, and that are written to standard output; test_unwind_check.py and
# test_perf_files.py have the others.
FORMATS = [name for name in formats() if name not in ("unwind-check", "perf-data")]


def good(done, status=0):
    """The output of a command that ended so."""
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done.stdout


def total_of_folded(text):
    return sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines())
