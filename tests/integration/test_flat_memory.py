# SPDX-License-Identifier: Apache-2.0
"""pysym's memory does not grow with the number of samples, whatever the format.

A day is read with what a minute takes.
"""
import os
import subprocess

import pytest

import measured
from conftest import MAKE_TRACE, PYSYM, formats

FEW, MANY = 50_000, 600_000
MORE_AT_MOST = 1 << 20  # less than two bytes a sample; those of a page, packed as well as they can be, take a seventh of it


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    if not os.access(MAKE_TRACE, os.X_OK):
        pytest.skip(f"{MAKE_TRACE} is not built")
    found = {}
    for samples in (FEW, MANY):
        found[samples] = tmp_path_factory.mktemp("long") / "t.bin"
        subprocess.run([MAKE_TRACE, found[samples], f"samples={samples}", "stacks=200", "depth=4", "interval_us=1000", "threads=4",
                        "natural=1", "gil=1", "epoch_samples=25000"], check=True)
    return found


@pytest.mark.unsanitized
@pytest.mark.parametrize("format_", [name for name in formats() if name != "unwind-check"])
def test_flat(traces, tmp_path, format_):
    """The most of three looks at the short one counts: where memory lies differs from run to run."""
    def measure(samples):
        used = measured.run(PYSYM, traces[samples], "-f", format_, "-o", tmp_path / f"o.{format_}", "--max-output", "100G")
        assert used.returncode == 0, used.stderr
        return used.resident_kib * 1024

    few = max(measure(FEW) for _ in range(3))
    many = measure(MANY)
    assert many < few + MORE_AT_MOST, f"{few / 1e6:.1f} MB for {FEW:,} samples, {many / 1e6:.1f} MB for {MANY:,}"
