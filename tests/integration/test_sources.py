# SPDX-License-Identifier: Apache-2.0
"""The sources and the documents pass their checks, tests/check-*; test_checks.py shows that these find faults."""
import subprocess
import sys

import pytest

from conftest import PYCAP, PYSYM, ROOT

pytestmark = pytest.mark.unsanitized

CHECKS = {
    "docs/trace-format.md has every record, field and loss": ["sh", "check-format-doc.sh"],
    "no C code compares versions of CPython: versions.def says what differs": ["sh", "check-versions.sh"],
    "the manual pages have every option, and none that does not exist": ["sh", "check-manual.sh", PYCAP, PYSYM],
    "the documents' links lead somewhere, and the commands they show are understood": [sys.executable, "check-docs.py", PYCAP, PYSYM],
    "bash completes the programs' options, formats and commands": ["bash", "check-completion.sh", PYCAP, PYSYM],
    "one name stands for one thing, and all libraries link together": [sys.executable, "check-names.py", "build"],
    "includes are as docs/design.md says, and go round in no circle": [sys.executable, "check-includes.py"],
    "each file has the license that LICENSE and the package say": [sys.executable, "check-licenses.py"],
    "one version: Makefile, CHANGES, package, manifests and documents": ["sh", "check-release.sh"],
    "no function has more than 60 lines, no file more than 600": [sys.executable, "check-sizes.py"],
}


@pytest.mark.parametrize("claim", CHECKS)
def test_check(claim):
    shell, script, *arguments = CHECKS[claim]
    done = subprocess.run([shell, ROOT / "tests" / script, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout
