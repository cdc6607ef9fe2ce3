# SPDX-License-Identifier: Apache-2.0
"""In interpreters as users install them every sample is what the interpreter says of itself.

tests/released.sh fetches them. Every run has the newest of each make, make check-long all that are in the cache.
"""
import sys

import pytest

from conftest import ROOT, released

sys.path.insert(0, str(ROOT / "tests/tools"))
import matrix  # noqa: E402


@pytest.mark.usefixtures("needs_bpf")
@pytest.mark.parametrize("program", [path.stem for path in matrix.PLACES])
@pytest.mark.parametrize("path", released())
def test_released(path, program, tmp_path):
    """Deep recursion, frames in several pieces of memory, and code objects that move."""
    trace, file = tmp_path / "t.bin", ROOT / "testdata/programs" / f"{program}.py"
    told = matrix.record([path], file, 0.03, 1999, trace, "-m", "32M")
    matrix.check(trace, told, file)
