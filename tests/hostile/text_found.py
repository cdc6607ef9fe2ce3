# SPDX-License-Identifier: Apache-2.0
"""Looks into traces and messages for what must not be there."""
import ctypes
import struct
import unicodedata

BLOCK = b"\x89PYBLK\r\n"
# Characters that change what a terminal shows of others: they turn the direction, or are not seen.
TURNING = {*range(0x200b, 0x2010), *range(0x2028, 0x202f), *range(0x2060, 0x2070), 0x61c, 0xfeff}


def blocks(path):
    """The payload of each block of a trace, unpacked."""
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    with open(path, "rb") as f:
        head = f.read(24)
        f.seek(struct.unpack_from("<H", head, 20)[0] if len(head) == 24 else 0)
        while True:
            head = f.read(48)
            if len(head) < 48 or not head.startswith(BLOCK):
                return
            codec, stored, raw = struct.unpack_from("<B15xII", head, 16)
            data = f.read(stored)
            if codec == 1:
                out = ctypes.create_string_buffer(raw or 1)
                zstd.ZSTD_decompress(out, ctypes.c_size_t(raw), data, ctypes.c_size_t(len(data)))
                data = out.raw[:raw]
            yield data


def contains(path, word):
    return any(word in payload for payload in blocks(path))


def unprintable(data):
    """Characters of a message that a terminal would obey, as a text; "" if there are none."""
    text = data.decode(errors="surrogateescape")
    found = {c for c in text if c != "\n" and (unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or ord(c) in TURNING)}
    return " ".join(sorted(f"U+{ord(c):04X}" for c in found))
