# SPDX-License-Identifier: Apache-2.0
"""The summary names the functions in which native stacks end that are not whole."""
import json
import os
import re
import subprocess
import sys

import pytest

from pysym_output import good

# Assembly as libraries of numerical kernels have it: no directive says how to unwind it.
KERNELS = r"""
asm(".globl bare_kernel\n.type bare_kernel, @function\nbare_kernel:\n push %rbx\n mov %rdi, %rbx\n"
    "1: dec %rbx\n jnz 1b\n pop %rbx\n ret\n.size bare_kernel, . - bare_kernel\n");
void bare_kernel(long);
long described(long n) { bare_kernel(n); return n; }
"""
CALLS = """
import ctypes, sys, time
described = ctypes.CDLL(sys.argv[1]).described
described.argtypes = [ctypes.c_long]
end = time.process_time() + 1
while time.process_time() < end:
    described(10_000_000)
"""


def test_golden(make, pysym):
    """The binary alone where its functions have no name; and nothing where no stack is cut."""
    trace = make(samples=100, cut=10)
    text = good(pysym(trace, "-f", "summary"))
    assert "\n             10 native stacks cut: code without call frame information, which unwinding needs, all in python3.11\n" in text
    whole = good(pysym(trace, "-f", "summary", "-v"))
    assert "    no_unwind_info                                10.00 %          10, all in python3.11\n" in whole
    data = json.loads(good(pysym(trace, "-f", "summary", "--json")))
    assert data["native_stacks_cut"] == [{"loss": "no_unwind_info", "samples": 10, "module": "/opt/made-up/python3.11",
                                          "function": "", "samples_there": 10}]
    trace = make(samples=100)
    assert " cut:" not in good(pysym(trace, "-f", "summary"))
    assert json.loads(good(pysym(trace, "-f", "summary", "--json")))["native_stacks_cut"] == []


@pytest.mark.smoke
def test_assembly(tmp_path, record, pysym):
    """A function of assembly without call frame information is named, with its library."""
    source, library = tmp_path / "kernels.c", tmp_path / "libkernels.so"
    source.write_text(KERNELS)
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-fPIC", "-shared", "-o", library, source], check=True)
    trace = record(sys.executable, "-c", CALLS, library)
    text = good(pysym(trace, "-f", "summary"))
    assert re.search(r"code without call frame information, which unwinding needs, (all|most) in bare_kernel of libkernels\.so", text), text
    rows = {row["loss"]: row for row in json.loads(good(pysym(trace, "-f", "summary", "--json")))["native_stacks_cut"]}
    row = rows["no_unwind_info"]
    assert row["module"] == str(library) and row["function"] == "bare_kernel" and 2 * row["samples_there"] > row["samples"]
