# SPDX-License-Identifier: Apache-2.0
"""The JIT of CPython 3.14 and 3.15 does not break stacks, and its code is shown as what it is."""
import os
import re
import subprocess

import pytest

import accounts

JIT = """
import sys, time

def inner(n):
    x = 0
    for i in range(n):
        x += i & 3
        x ^= i
    return x

def leaving(n):
    x = 0
    for i in range(n):
        if i & 1: x -= 1
    return x

def middle(n):
    for i in range(25):
        inner(n)
        leaving(n)

def outer():
    end = time.thread_time() + 1
    while time.thread_time() < end:
        middle(2000)

def is_active():
    for i in range(100000):
        if sys._jit.is_active():
            return True

outer()
print(sys._jit.is_enabled(), is_active())
"""


@pytest.mark.smoke
@pytest.mark.every_python
@pytest.mark.usefixtures("needs_bpf")
def test_jit(python, pycap, folded, tmp_path):
    program, trace = tmp_path / "jit.py", tmp_path / "t.bin"
    environment = {**os.environ, "PYTHON_JIT": "1"}
    program.write_text(JIT)
    has = subprocess.run([python.path, "-c", "import sys; print(sys._jit.is_enabled())"], env=environment,
                         capture_output=True, text=True, check=False)
    if has.stdout != "True\n":
        pytest.skip("built without the JIT")
    done = pycap("record", "-q", "-F", "499", "-m", "32M", "-o", trace, "--", python.path, program, env=environment)
    assert (done.returncode, done.stdout) == (0, "True True\n"), done
    jitted = spinning = marked = 0
    for frames, count in folded(trace):
        if accounts.MARKS.intersection(frames) and any(re.match(r"(inner|leaving) \(jit.py:", frame) for frame in frames):
            marked += count
            continue
        names = [frame.split(" (jit.py")[0] for frame in frames]
        own = [name for name, frame in zip(names, frames) if " (jit.py:" in frame]
        assert not any("perf-" in frame for frame in frames), frames
        if {"inner", "leaving"}.intersection(own):
            assert own[:-1] == ["<module>", "outer", "middle"], frames
            # Calls between Python functions have nothing of the interpreter's between them.
            assert names[names.index("<module>"):][:4] == own, frames
            # What leaves its trace at every second turn is in the JIT's code as it happens.
            spinning += count * (own[-1] == "inner")
            jitted += count * (own[-1] == "inner" and "[jit]" in frames)
    assert spinning > 50 and jitted > 0.05 * spinning, (spinning, jitted)
    assert accounts.is_rare(marked, spinning), (marked, spinning)
