# SPDX-License-Identifier: Apache-2.0
"""Unwind rows that are cached by address: what `pycap record --check-unwind` says of them, and libraries that mislead them."""
import os
import re
import struct
import subprocess

# Calls its argument from a frame of so many bytes. The return address is the same whatever the size. An address of code lies
# in the frame where another size would have its own return address: to be taken for it.
THROUGH = """
.text
.p2align 12
.globl through_{name}
.type through_{name}, @function
through_{name}:
    .cfi_startproc
    .byte 0x48, 0x81, 0xec
    .long {size}
    .cfi_adjust_cfa_offset {size}
1:  lea 1b(%rip), %rax
    .byte 0x48, 0x89, 0x84, 0x24
    .long {decoy}
    call *%rdi
    .byte 0x48, 0x81, 0xc4
    .long {size}
    .cfi_adjust_cfa_offset -{size}
    ret
    .cfi_endproc
.size through_{name}, . - through_{name}
.section .note.GNU-stack,"",@progbits
"""

UNWOUND = re.compile(r"([\d,]+) native stacks? (?:was|were) unwound with and without cached rows: (\d+) differed. "
                     r"([\d.]+) % of (\d+) frames had a cached row; (\d+) tables? w")


def check(said, stacks, cached):
    """Enough stacks were compared, enough of their rows cached, and none differed. Returns the tables that were taken out."""
    found, slower = UNWOUND.search(said), 2 ** said.count("from here on")  # each such step halves the rate, and what comes again
    assert found, said
    assert int(found[2]) == 0, said
    assert int(found[1].replace(",", "")) >= stacks / slower, said
    assert float(found[3]) >= cached / slower, said
    return int(found[5])


def text_offset(path, symbol):
    """Where the page of a function lies in the file."""
    data = path.read_bytes()
    address = int(subprocess.check_output(["nm", path], text=True).split(f" T {symbol}\n")[0].split()[-1], 16)
    at, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, _, offset, vaddr, _, file_size = struct.unpack_from("<IIQQQQ", data, at + i * size)
        if kind == 1 and vaddr <= address < vaddr + file_size:
            assert address % 4096 == 0
            return address - vaddr + offset
    raise AssertionError(f"{symbol} is in no segment")


def library(folder, name, size, decoy):
    source, out = folder / f"{name}.S", folder / f"lib{name}.so"
    source.write_text(THROUGH.format(name=name, size=size, decoy=decoy))
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-nostdlib", "-o", out, source], check=True)
    return out, text_offset(out, f"through_{name}")
