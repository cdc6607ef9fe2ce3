# SPDX-License-Identifier: Apache-2.0
"""Code that a program makes is shown between Python functions, but for the trampolines of -X perf."""
import re

import pytest

import accounts
from conftest import later

# Machine code that does nothing but call a Python function with its own arguments, and is called by one.
MADE = """
import ctypes, mmap, struct, time
region = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
def back():
    x = 0
    for i in range(3000):
        x += i
vectorcall = ctypes.c_ssize_t.from_address(id(type(back)) + 56).value  # tp_vectorcall_offset
call = ctypes.c_uint64.from_address(id(back) + vectorcall).value
region.write(b"\\x55\\x48\\x89\\xe5\\x48\\xb8" + struct.pack("<Q", call) + b"\\xff\\xd0\\x5d\\xc3")
FUNCTION = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
made = FUNCTION(ctypes.addressof(ctypes.c_char.from_buffer(region)))
def front():
    made(back, None, 0, None)
def loop():
    end = time.process_time() + 0.5
    while time.process_time() < end:
        front()
loop()
"""


@pytest.mark.smoke
@pytest.mark.usefixtures("needs_bpf")
@pytest.mark.parametrize("option", ["", later("-Xperf"), "-Xperf_jit"])
def test_made_code(python, record, folded, tmp_path, option):
    if python.version < (3, 8):
        pytest.skip("functions have no pointer to what calls them before 3.8")
    if option and python.version < ((3, 13) if "jit" in option else (3, 12)):
        pytest.skip(f"{option} came with a later version")
    program = tmp_path / "made.py"
    program.write_text(MADE)
    trace = record(python.path, *filter(None, [option]), program, options=("-F", "199", "-m", "32M"))
    total = shown = others = 0
    for frames, count in folded(trace):
        names = [re.sub(r" \(.*", "", frame) for frame in frames]
        if not {"loop", "front", "back"} <= set(names) or accounts.MARKS.intersection(frames):
            continue
        total += count
        front, back = names.index("front"), names.index("back")
        # Between the two it is one frame. A trampoline of -X perf stands before each function, and is none.
        shown += count * (names[front:back].count("[jit]") == 1)
        others += count * ("[jit]" in names[:front])
    assert total > 30, total
    assert accounts.is_rare(total - shown, total) and accounts.is_rare(others, total), (total, shown, others)
