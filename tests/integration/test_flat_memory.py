# SPDX-License-Identifier: Apache-2.0
"""pysym's memory does not grow with the number of samples, whatever the format.

A day is read with what a minute takes.
"""
import os
import subprocess
import sys

import pytest

from conftest import MAKE_TRACE, PYSYM, formats

FEW, MANY = 150_000, 2_000_000
MORE_AT_MOST = 1 << 20  # bytes; of the samples of a page, packed as well as they can be, it is half

# A process of its own, so that the memory of what began it (which a child has until exec) does not count.
MEASURE = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss * 1024)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    if not os.access(MAKE_TRACE, os.X_OK):
        pytest.skip(f"{MAKE_TRACE} is not built")
    found = {}
    for samples in (FEW, MANY):
        found[samples] = tmp_path_factory.mktemp("long") / "t.bin"
        subprocess.run([MAKE_TRACE, found[samples], f"samples={samples}", "stacks=200", "depth=4", "interval_us=1000", "threads=4",
                        "natural=1", "gil=1", "epoch_samples=100000"], check=True)
    return found


@pytest.mark.skipif("asan" in PYSYM, reason="the sanitizers keep what was freed")
@pytest.mark.parametrize("format_", [name for name in formats() if name != "unwind-check"])
def test_flat(traces, tmp_path, format_):
    """The most of three looks at the short one counts: where memory lies differs from run to run."""
    def measure(samples, times):
        command = [PYSYM, traces[samples], "-f", format_, "-o", tmp_path / f"o.{format_}", "--max-output", "100G"]
        return [int(subprocess.run([sys.executable, "-S", "-c", MEASURE, *map(str, command)], check=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL).stdout) for _ in range(times)]

    few = max(measure(FEW, 3))
    many = measure(MANY, 1)[0]
    assert many < few + MORE_AT_MOST, f"{few / 1e6:.1f} MB for {FEW:,} samples, {many / 1e6:.1f} MB for {MANY:,}"
