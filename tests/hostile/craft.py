# SPDX-License-Identifier: Apache-2.0
"""Writes traces by hand, as docs/trace-format.md has them: with what no recorder would write, and right checksums."""
import ctypes
import struct

xxhash, zstd = ctypes.CDLL("libxxhash.so.0"), ctypes.CDLL("libzstd.so.1")
xxhash.XXH3_64bits.restype = ctypes.c_uint64
xxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
zstd.ZSTD_compress.restype = zstd.ZSTD_compressBound.restype = ctypes.c_size_t
VERSION = 0x030b02f0
# Functions, files, processes and threads may be called so.
HOSTILE_NAMES = [b"\x1b]0;P\x07\x1b[31mX", b"a;b 99\n=cmd|'!A0", b"\"},{\"x\":\"</script><!--", b"\xff\xc0\x80\xed\xa0\x80",
                 b"\xe2\x80\xae\xe2\x80\x8b\xe2\x81\xa6\xc2\x9b31m\xe2\x80\xa8", b"%s%n", b"\r\x08\x08", b" ", b"\\", b"x" * 3000,
                 "\U000e0041\U0001f40d".encode()]


def number(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def signed(value):
    return number(value << 1 if value >= 0 else (-value << 1) - 1)


def text(data):
    return number(len(data)) + data


def record(kind, *fields):
    data = b"".join(f if isinstance(f, bytes) else number(f) for f in fields)
    return number(kind) + number(len(data)) + data


def sealed(magic, data):
    return magic + struct.pack("<Q", xxhash.XXH3_64bits(data, len(data))) + data


def file_header():
    return sealed(b"\x89PYCAP\r\n", struct.pack("<HHHH", 1, 1, 24, 0))


def block(payload, epoch, sequence=0, flags=3, samples=0):
    """flags: 1 starts its epoch, 2 ends it."""
    room = zstd.ZSTD_compressBound(ctypes.c_size_t(len(payload)))
    out = ctypes.create_string_buffer(room)
    stored_bytes = zstd.ZSTD_compress(out, ctypes.c_size_t(room), payload, ctypes.c_size_t(len(payload)), 3)
    stored = out.raw[:stored_bytes]
    return sealed(b"\x89PYBLK\r\n", struct.pack("<BBHIQIIII", 1, flags, 0, sequence, epoch, len(stored), len(payload), samples,
                                               0) + stored)


# Records by what they define. Strings 1 to 3 are "cpu-clock", "ns" and a name; event, process and thread 1.
def begin(epoch, name=b"python3"):
    return (record(1, epoch, 1) + b"".join(record(2, text(s)) for s in (b"cpu-clock", b"ns", name)) +
            record(6, 1, 2, 99, 10101010, 0) + record(8, 77, 5, 0, 1, 3, 0, 77, 0, 0, 0, VERSION, 0, 0) + record(11, 1, 77, 77, 3))


def string(data):
    return record(2, text(data))


def code(name, file_name=b"x.py", line_table=b""):
    return record(16, VERSION, 0, signed(1), 0, 10, 1, len(name), text(name), 1, len(name), text(name), 1, len(file_name),
                  text(file_name), 1, len(line_table), text(line_table))


def python_frame(code_id, offset=0):
    return record(17, code_id, signed(offset), 1)


def native_frame(module, offset):
    return record(18, module, offset, 0)


def module(path, build_id=b"", id_kind=0, file_size=0):
    return record(13, 0, id_kind, text(build_id), path, file_size, 1, 0, 0, 4096, 4096, 5, 0, 0)


def mapping(module_id, path, address=0x1000):
    return record(15, 1, 1, 0, address, 4096, 0, 5, 2, 0, 0, 1, 0, module_id, path)


def stack(parent, frames):
    return record(21, parent, len(frames), *frames)


def whole_stack(native=0, python=0):
    """A TUPLE: the ends that were reached are the complete ones."""
    return record(24, 0, native, 0, python, 0, int(bool(python)), int(bool(native)))


def samples(tuples):
    return record(26, 1, 1000, len(tuples), text(b"".join(signed(1000) + number(1) + number(t) + b"\0\0" for t in tuples)))


def calls_by_name(names):
    """A trace: processes of these names, each with functions of all of them that call each other, in files of these names."""
    parts, count = [file_header()], len(names)
    for epoch, name in enumerate(names):
        body = begin(epoch, name)
        for i, function in enumerate(names):
            body += code(function, names[i - 1]) + python_frame(i + 1)
        body += stack(0, range(1, count + 1)) + b"".join(whole_stack(python=i + 1) for i in range(count))
        parts.append(block(body + samples(range(1, count + 1)), epoch, samples=count))
    return b"".join(parts)
