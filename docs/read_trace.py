#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the Python stacks of a trace of pycap: folded, a line for each stack with its weight.

usage: read_trace.py [--samples] [--columns] TRACE      (-: standard input)

  --samples   the number is the count of samples, not what they weigh
  --columns   positions have columns, where the Python version has them

A reader in one file, written from trace-format.md alone, to begin another one with; pysym shows far more. A line is

    PROGRAM-PID;outermost function (file:line);...;innermost function (file:line) WEIGHT

with the event in front where several have samples. The weight is in nanoseconds for clocks and waits, in bytes for memory,
else what the event counts. Native and kernel frames are left out. In their own brackets stand [wait: lock], what a thread
waited for; [torn] and [truncated], where frames are missing; [no frames]. What was wrong with the file is said on standard
error; what could be read is printed all the same. Exit status: 0, or 1 where the file cannot be read.

It needs Python 3.8 and the module zstandard (Debian: python3-zstandard).
"""
import array
import bisect
import collections
import signal
import struct
import sys
import unicodedata

VERSION = 1  # of the format
FILE_MAGIC, BLOCK_MAGIC = b"\x89PYCAP\r\n", b"\x89PYBLK\r\n"
FILE_HEADER, BLOCK_HEADER = struct.Struct("<8sQHHHH"), struct.Struct("<8sQBBHIQIIII")
STARTS_EPOCH, ENDS_EPOCH = 1, 2
BLOCK_LIMIT, EPOCH_LIMIT, TEXT_LIMIT, STACK_LIMIT, LIST_LIMIT = 16 << 20, 512 << 20, 64 << 10, 4096, 1 << 20

# The records: number, name and fields as in trace-format.md. A type that is not here is skipped, and so is what a record has grown
# by. A reader that trusts its ids needs but a third of these.
RECORDS = """
1 EPOCH number:U64 time_ns:U64
2 STRING id:DEF.string data:BYTES
3 CLOCK monotonic_ns:U64 realtime_ns:U64 boottime_ns:U64
4 HOST hostname:STR kernel_release:STR kernel_version:STR machine:STR boot_id:BYTES kernel_build_id:BYTES cpu_count:U32
  page_size:U32 tool:STR cpu_model:STR memory_bytes:U64
5 META key:STR value:STR
6 EVENT id:DEF.event name:STR unit:STR frequency_hz:U64 period:U64 kind:U32
7 PERIOD event:ID.event time_ns:U64 period:U64 reason:STR
8 PROCESS id:DEF.process tgid:U32 start_boottime_ns:U64 exec_generation:U64 parent_tgid:U32 comm:STR exe:STR ns_tgid:U32
  pid_namespace:U64 mount_namespace:U64 cgroup:STR python_version:U32 python_flags:U32 cmdline:STR program_kind:U32 program:STR
9 PROCESS_EXIT process:ID.process time_ns:U64
10 PROCESS_NAME process:ID.process time_ns:U64 comm:STR cmdline:STR
11 THREAD id:DEF.thread process:ID.process tid:U32 ns_tid:U32 name:STR
12 THREAD_NAME thread:ID.thread time_ns:U64 name:STR python_name:STR
13 MODULE id:DEF.module kind:U32 id_kind:U32 build_id:BYTES path:STR file_size:U64 segments:LIST.5 eval_ranges:LIST.2 flags:U32
  htlhash:BYTES
14 IMAGE module:ID.module address:U64 data:BYTES
15 MAPPING process:ID.process time_ns:U64 change:U32 address:U64 length:U64 file_offset:U64 protection:U32 map_flags:U32
  device_major:U32 device_minor:U32 inode:U64 inode_generation:U64 module:REF.module path:STR flags:U32
16 CODE id:DEF.code python_version:U32 python_flags:U32 first_line:S64 co_flags:U32 code_len_bytes:U32 name_form:U32
  name_len:U64 name:BYTES qualname_form:U32 qualname_len:U64 qualname:BYTES filename_form:U32 filename_len:U64 filename:BYTES
  line_table_form:U32 line_table_len:U64 line_table:BYTES
17 PYTHON_FRAME id:DEF.frame code:REF.code offset:S64 flags:U32
18 NATIVE_FRAME id:DEF.frame module:REF.module offset:U64 flags:U32
19 KERNEL_SYMBOL id:DEF.kernel_symbol address:U64 name:STR module:STR
20 KERNEL_FRAME id:DEF.frame address:U64 symbol:REF.kernel_symbol
21 STACK first_id:DEFS.stack parent:REF.stack frames:LIST.1
22 SNAPSHOT id:DEF.snapshot process:ID.process stack_address:U64 stack_size:U64 registers:LIST.1 stack:BYTES
23 JOIN id:DEF.join kind:U32 runs:LIST.2
24 TUPLE id:DEF.tuple kernel_stack:REF.stack native_stack:REF.stack snapshot:REF.snapshot python_stack:REF.stack join:REF.join
  python_end:U32 native_end:U32
25 LABEL_SET id:DEF.label_set pairs:LIST.2
26 SAMPLES event:ID.event time_ns:U64 count:U32 data:BYTES
27 LOSS time_ns:U64 process:REF.process reason:U32 name:STR count:U64 event:REF.event
28 TICKS event:ID.event cpu:U32 time_ns:U64 count:U64 enabled_ns:U64 running_ns:U64 seen:U64 idle:U64 unsampled:U64 thinned:U64
29 END time_ns:U64 reason:U32 sample_count:U64 lost_count:U64
30 PERF_MAP module:ID.module time_ns:U64 file_size:U64 text:BYTES
31 THREAD_TIME thread:ID.thread since_ns:U64 until_ns:U64 on_cpu_ns:U64 waits:LIST.3
32 SOURCE process:ID.process file:STR time_ns:U64 state:U32 size_bytes:U64 modified_ns:S64
33 PROCESS_MEMORY process:ID.process time_ns:U64 anonymous_bytes:U64 file_bytes:U64 shared_bytes:U64 swap_bytes:U64
  data_bytes:U64 minor_faults:U64 major_faults:U64
34 THREAD_STATE thread:ID.thread time_ns:U64 state:U32 since_ns:U64
"""
TYPES = {}  # number -> (name, [(field, type, argument)])
for row in RECORDS.replace("\n  ", " ").split("\n")[1:-1]:
    number, name, *fields = row.split()
    TYPES[int(number)] = name, [(f[0], *(f[1].split(".") + [None])[:2]) for f in (field.split(":") for field in fields)]
PROGRAM_FILE, PROGRAM_SCRIPT, PROGRAM_MODULE, PROGRAM_COMMAND = 2, 3, 4, 5
VALUE, LABELS, PAYLOADS = 1, 2, 0xFF03  # flags of samples: bits 0, 1 and 8 to 15 carry a payload
LINE_UNKNOWN = 4
NOTES_SHOWN = 20
COMPLETE, TOO_DEEP, CHANGED, NEVER_TAKEN = 1, 10, 44, (6, 13, 40, 88)  # of loss reasons; the last: no stack to be had


class Damage(Exception):
    """The rest of the epoch cannot be read."""


class Failure(Exception):
    """The file cannot be read."""


# ---- XXH3-64 with seed 0 (https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md), of at least 4 bytes ----

M64, M32 = (1 << 64) - 1, (1 << 32) - 1
P32_1, P32_2, P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P64_1, P64_2, P64_3, P64_4, P64_5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
                                     0x27D4EB2F165667C5)
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")


def u64(data, at):
    return int.from_bytes(data[at:at + 8], "little")


def fold(a, b):
    product = a * b
    return (product ^ product >> 64) & M64


def avalanche(h):
    h = (h ^ h >> 37) * 0x165667919E3779F9 & M64
    return h ^ h >> 32


def mix(data, at, secret_at):
    return fold(u64(data, at) ^ u64(SECRET, secret_at), u64(data, at + 8) ^ u64(SECRET, secret_at + 8))


def xxh3_short(data, n):
    if n <= 8:
        both = int.from_bytes(data[-4:], "little") | int.from_bytes(data[:4], "little") << 32
        h = both ^ u64(SECRET, 8) ^ u64(SECRET, 16)
        h ^= (h << 49 | h >> 15) & M64 ^ (h << 24 | h >> 40) & M64
        h = h * 0x9FB21C651E98DF25 & M64
        h = (h ^ (h >> 35) + n) * 0x9FB21C651E98DF25 & M64
        return h ^ h >> 28
    if n <= 16:
        low = u64(data, 0) ^ u64(SECRET, 24) ^ u64(SECRET, 32)
        high = u64(data, n - 8) ^ u64(SECRET, 40) ^ u64(SECRET, 48)
        return avalanche(n + int.from_bytes(low.to_bytes(8, "little"), "big") + high + fold(low, high) & M64)
    h = n * P64_1
    if n <= 128:
        for i in range((n - 1) // 32 + 1):
            h += mix(data, 16 * i, 32 * i) + mix(data, n - 16 * (i + 1), 32 * i + 16)
        return avalanche(h & M64)
    h = avalanche(h + sum(mix(data, 16 * i, 16 * i) for i in range(8)) & M64)
    h += sum(mix(data, 16 * i, 16 * i - 125) for i in range(8, n // 16))
    return avalanche(h + mix(data, n - 16, 119) & M64)


KEYS = [struct.unpack_from("<8Q", SECRET, 8 * i) for i in range(17)]
LAST_KEYS = struct.unpack_from("<8Q", SECRET, 121)


def xxh3(data):
    n = len(data)
    if n <= 240:
        return xxh3_short(data, n)
    acc = [P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1]
    stripes = (n - 1) // 64
    for i in range(stripes + 1):
        keys = KEYS[i % 16] if i < stripes else LAST_KEYS
        lanes = struct.unpack_from("<8Q", data, 64 * i if i < stripes else n - 64)
        for k in range(8):
            keyed = lanes[k] ^ keys[k]
            acc[k] += (keyed & M32) * (keyed >> 32) + lanes[k ^ 1]
        if i % 16 == 15 and i < stripes:
            acc = [((a & M64) ^ (a & M64) >> 47 ^ key) * P32_1 & M64 for a, key in zip(acc, KEYS[16])]
    h = n * P64_1
    for i in range(4):
        h += fold(acc[2 * i] & M64 ^ u64(SECRET, 11 + 16 * i), acc[2 * i + 1] & M64 ^ u64(SECRET, 19 + 16 * i))
    return avalanche(h & M64)


# ---- the file: blocks, and what is damaged ----

class Budget:
    """What a file may cost, about in bytes of memory: a few of its bytes can unpack to gigabytes."""

    def __init__(self):
        self.left, self.of_epoch = 512 << 20, 0

    def read(self, count):
        self.left += 256 * count

    def take(self, amount, of_epoch=False):
        self.left -= amount
        self.of_epoch += amount if of_epoch else 0
        if self.left < 0:
            raise Failure("it unpacks to more than a file of its size should: stopped")

    def end_epoch(self):
        self.left, self.of_epoch = self.left + self.of_epoch, 0


class Blocks:
    """Goes through a file from its beginning to its end, and hands the payload of each good block to `records`."""

    def __init__(self, stream, budget):
        self.stream, self.budget = stream, budget
        self.window, self.offset, self.eof = bytearray(), 0, False
        self.extent = 0  # bytes of the window after which to go on; 0: at the next that may begin a block
        self.seeking, self.searched_to = None, 0  # (offset, reason) of the damage that is being skipped
        self.any_epoch, self.in_epoch, self.epoch, self.sequence, self.epoch_bytes = False, False, 0, 0, 0
        self.notes = []

    def fill(self, count):
        while len(self.window) < count and not self.eof:
            read = self.stream.read(1 << 18)
            self.eof = not read
            self.window += read
            self.budget.read(len(read))
        return len(self.window) >= count

    def note(self, reason):
        self.seeking = self.seeking or (self.offset, reason)

    def found(self):
        """Something good begins here: says what was skipped before it."""
        if self.seeking:
            at, reason = self.seeking
            self.notes.append(f"{reason}; skipped {self.offset - at} bytes at offset {at}")
            self.seeking = None

    def file_header(self):
        if not self.fill(FILE_HEADER.size):
            raise Damage("the file header is damaged")
        _, checksum, version, least, length, reserved = FILE_HEADER.unpack_from(self.window)
        if not FILE_HEADER.size <= length <= 4096 or not self.fill(length) or xxh3(self.window[16:length]) != checksum:
            raise Damage("the file header is damaged")
        if least > VERSION:
            raise Failure(f"it needs a reader of format version {least}; this one reads {VERSION}")
        if reserved or not 1 <= least <= version:
            raise Failure("its header breaks the rules of the format")
        self.found()
        self.any_epoch, self.in_epoch, self.extent = False, False, length

    def block(self, records):
        if not self.window.startswith(BLOCK_MAGIC):
            raise Damage("no block begins here")
        if not self.fill(BLOCK_HEADER.size):
            raise Damage("the file ends inside a block")
        (_, checksum, codec, flags, reserved_1, sequence, epoch, stored, raw, _,
         reserved_2) = BLOCK_HEADER.unpack_from(self.window)
        if stored > BLOCK_LIMIT:
            raise Damage("a block is longer than blocks may be")
        end = BLOCK_HEADER.size + stored
        if not self.fill(end):
            raise Damage("the file ends inside a block")
        if xxh3(self.window[16:end]) != checksum:
            if self.offset < self.searched_to:  # inside of another such block: not searched again
                self.extent = end
            else:
                self.searched_to = self.offset + end
            raise Damage("a block's checksum is wrong")
        self.extent = end
        if reserved_1 or reserved_2 or flags > 3 or codec > 1 or raw > BLOCK_LIMIT or (codec == 0 and raw != stored):
            raise Damage("a block's header breaks the rules of the format")
        starts = flags & STARTS_EPOCH
        self.check_order(starts, epoch, sequence)
        self.epoch_bytes = raw if starts else self.epoch_bytes + raw
        if self.epoch_bytes > EPOCH_LIMIT:
            raise Damage("an epoch is longer than epochs may be")
        self.budget.take(raw)
        payload = bytes(self.window[BLOCK_HEADER.size:end])
        payload = unpack(payload, raw) if codec else payload
        if starts:
            self.found()
        self.any_epoch, self.in_epoch, self.epoch, self.sequence = True, not flags & ENDS_EPOCH, epoch, sequence + 1
        records.block(payload, starts, epoch)

    def check_order(self, starts, epoch, sequence):
        if not starts and not (self.in_epoch and (epoch, sequence) == (self.epoch, self.sequence)):
            raise Damage(f"a block before block {sequence} of epoch {epoch} is missing")
        if starts and self.in_epoch:
            self.note(f"the last blocks of epoch {self.epoch} are missing")
        elif starts and self.any_epoch and epoch > self.epoch + 1:
            self.note(f"epochs between {self.epoch} and {epoch} are missing")

    def read(self, records):
        while self.fill(1):
            self.extent = 0
            self.fill(8)
            try:
                if self.window.startswith(FILE_MAGIC):
                    self.file_header()
                else:
                    self.block(records)
            except Damage as damage:
                self.note(str(damage))
                self.in_epoch = False
            if not self.extent:
                at = self.window.find(BLOCK_MAGIC[:1], 1)
                self.extent = at if at > 0 else len(self.window)
            del self.window[:self.extent]
            self.offset += self.extent
        self.found()


def unpack(stored, raw_len):
    try:
        import zstandard
    except ImportError:
        raise Failure("it is compressed, and Python's module zstandard is missing: apt install python3-zstandard, or "
                      "pip install zstandard") from None
    try:
        reader = zstandard.ZstdDecompressor(max_window_size=2 * BLOCK_LIMIT).stream_reader(stored)
        raw = reader.read(raw_len + 1)
    except zstandard.ZstdError:
        raw = b""
    if len(raw) != raw_len:
        raise Damage("a block cannot be unpacked")
    return raw


# ---- records ----

def varint(data, at, end):
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >> 64:
                break
            return value, at
        shift += 7
        if shift > 63:
            break
    raise Damage("a number is cut off, or too large")


def signed(value):
    return -(value >> 1) - 1 if value & 1 else value >> 1


class Records:
    """Decodes records, checks their ids, and calls the method on_NAME of `target` with the fields."""

    def __init__(self, target, budget):
        self.target, self.budget = target, budget
        self.ids = collections.Counter()
        self.unknown = 0

    def block(self, data, starts, number):
        at, end, due = 0, len(data), bool(starts)
        if starts:
            self.ids.clear()
        while at < end:
            kind, at = varint(data, at, end)
            length, at = varint(data, at, end)
            if length > end - at:
                raise Damage("a record reaches over the end of its block")
            if due != (kind == 1):
                raise Damage("an epoch does not begin with its record" if due else "an epoch begins inside another")
            due = False
            if kind in TYPES:
                name, fields = self.decode(kind, data, at, at + length)
                if kind == 1 and fields["number"] != number:
                    raise Damage("an epoch's record and its block disagree about its number")
                handle = getattr(self.target, "on_" + name.lower(), None)
                if handle:
                    handle(fields)
            else:
                self.unknown += 1
            at += length

    def check(self, kind, value, least=0):
        if not least <= value <= self.ids[kind]:
            raise Damage(f"{kind} {value} is not defined")

    def decode(self, number, data, at, end):
        name, types = TYPES[number]
        fields, defined = {}, None
        for field, kind, argument in types:
            if kind in ("DEF", "DEFS"):
                defined = argument
                fields[field] = self.ids[argument] + 1
                continue
            value, at = varint(data, at, end) if at < end else (0, at)
            if kind == "BYTES":
                if value > end - at:
                    raise Damage(f"{name}.{field} reaches over the end of its record")
                value, at = data[at:at + value], at + value
            elif kind == "LIST":
                if value > (end - at) // int(argument) or value > LIST_LIMIT // int(argument):
                    raise Damage(f"{name}.{field} is too long")
                rows, value = value * int(argument), array.array("Q")
                for _ in range(rows):
                    item, at = varint(data, at, end)
                    value.append(item)
            elif kind in ("REF", "ID", "STR"):
                self.check(argument or "string", value, kind == "ID")
            elif kind == "U32" and value > M32:
                raise Damage(f"{name}.{field} is too large")
            fields[field] = signed(value) if kind == "S64" else value
        if name in ("STACK", "LABEL_SET"):
            for value in fields["frames" if name == "STACK" else "pairs"]:
                self.check("frame" if name == "STACK" else "string", value, name == "STACK")
        if defined:
            count = len(fields["frames"]) if name == "STACK" else 1
            self.budget.take(40 * count if name == "STACK" else 500, of_epoch=True)
            self.ids[defined] += count
        return name, fields

    def samples(self, fields):
        """Each sample of SAMPLES: time, thread, tuple, value or None, label set. Damage: none of them counts."""
        data, time, at = fields["data"], fields["time_ns"], 0
        end, threads, tuples, label_sets = len(data), self.ids["thread"], self.ids["tuple"], self.ids["label_set"]
        for _ in range(fields["count"]):
            difference, at = varint(data, at, end)
            time = time + signed(difference) & M64
            thread, at = varint(data, at, end)
            tuple_id, at = varint(data, at, end)
            cpu, at = varint(data, at, end)
            flags, at = varint(data, at, end)
            value, label_set = None, 0
            for bit in (1 << i for i in (0, 1, *range(8, 16))) if flags & PAYLOADS else ():
                if flags & bit:
                    payload, at = varint(data, at, end)
                    value = payload if bit == VALUE else value
                    label_set = payload if bit == LABELS else label_set
            if not 1 <= thread <= threads or tuple_id > tuples or label_set > label_sets or cpu > M32 or flags > M32:
                raise Damage("a sample refers to what is not defined")
            yield time, thread, tuple_id, value, label_set
        if at < end:
            raise Damage("bytes stand behind the last sample")


# ---- Python code: names and lines ----

def py_text(form, full_len, data):
    """A str as the recorder read it: its bytes, and how they are to be read."""
    data = data[:TEXT_LIMIT]
    if form == 8:
        text, size = data.decode("utf-8", "surrogateescape"), 1
    elif form in (1, 2, 4):
        size = form
        codes = struct.unpack(f"<{len(data) // size}{'_BH_I'[size]}", data[:len(data) // size * size])
        text = "".join(chr(c) if c <= 0x10FFFF else "\ufffd" for c in codes)
    else:
        return "?"
    return text + ("…" if len(data) // size < full_len else "")


def lnotab(table, line, is_signed):
    """Up to 3.9: (end offset, line, column, whether the table says so) of each step, and the line behind the last."""
    steps, at = [], 0
    for i in range(0, len(table) - 1, 2):
        at += table[i]
        steps.append((at, line, None, True))
        line += table[i + 1] - (256 if is_signed and table[i + 1] > 127 else 0)
    return steps, line


def ranges(table, line):
    """3.10."""
    steps, at = [], 0
    for i in range(0, len(table) - 1, 2):
        at += table[i]
        has_line = table[i + 1] != 128
        line += table[i + 1] - (256 if table[i + 1] > 127 else 0) if has_line else 0
        steps.append((at, line, None, has_line))
    return steps, line


def location_varint(table, at):
    value = shift = 0
    while shift < 36:
        byte = table[at]
        at += 1
        value |= (byte & 63) << shift
        shift += 6
        if not byte & 64:
            break
    return value, at


def locations(table, line):
    """3.11 and later."""
    steps, at, offset = [], 0, 0
    try:
        while at < len(table):
            head = table[at]
            code = head >> 3 & 15
            at += 1
            if not head & 128:
                break
            next_line, column = line, None
            if code <= 9:
                column = code << 3 | table[at] >> 4 & 7
                at += 1
            elif code <= 12:
                next_line += code - 10
                column = table[at]
                at += 2
            elif code <= 14:
                change, at = location_varint(table, at)
                next_line += -(change >> 1) if change & 1 else change >> 1
            if code == 14:
                _, at = location_varint(table, at)
                column, at = location_varint(table, at)
                end_column, at = location_varint(table, at)
                column = column - 1 if column and end_column else None
            if at > len(table):
                break
            line, offset = next_line, offset + 2 * ((head & 7) + 1)
            steps.append((offset, line, column, code != 15))
    except IndexError:  # the table was cut
        pass
    return steps, line


class Code:
    """A code object: its name and file, and the position of an instruction."""

    def __init__(self, f, budget):
        self.name = (py_text(f["qualname_form"], f["qualname_len"], f["qualname"]) if f["qualname_form"] else
                     py_text(f["name_form"], f["name_len"], f["name"]))
        self.file = py_text(f["filename_form"], f["filename_len"], f["filename"]) if f["filename_form"] else ""
        self.first, self.version = f["first_line"], f["python_version"] >> 16
        self.table = f["line_table"] if f["line_table_form"] == 1 else None
        self.whole = self.table is not None and len(self.table) >= f["line_table_len"]
        self.steps = None
        self.budget = budget
        budget.take(len(self.table or b"") + 4 * len(self.name + self.file), of_epoch=True)

    def decode(self):
        table = self.table or b""
        self.budget.take(100 * len(table), of_epoch=True)
        if self.version >= 0x30B:
            self.steps, self.last = locations(table, self.first)
        elif self.version == 0x30A:
            self.steps, self.last = ranges(table, self.first)
        else:
            self.steps, self.last = lnotab(table, self.first, self.version >= 0x306)
        self.ends = [step[0] for step in self.steps]

    def position(self, offset, flags):
        """(line, column), None where it is not known."""
        known = self.version == 0x207 or 0x303 <= self.version <= 0x30F
        if not known or flags & LINE_UNKNOWN or (offset == -1 and self.version >= 0x30B):  # so wrote 0.1
            return None, None
        if offset < 0:
            return self.first, None
        if self.steps is None:
            self.decode()
        at = bisect.bisect_right(self.ends, offset)
        behind = 0, self.last, None, self.version < 0x30A and self.whole
        _, line, column, sure = self.steps[at] if at < len(self.steps) else behind
        if not sure and not self.whole:
            return None, None
        return line, column if sure else None


# ---- from records to stacks ----

def clean(text):
    """What a line of output may hold of a name."""
    text = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else ":" if c == ";" else
                   "_" if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") else c for c in text)
    return text.strip(" ")


def word(name):
    """One that begins a line: no comment, nor JSON."""
    name = clean(name) or "unknown"
    return "_" + name[1:] if name[0] in "#{[" else name


class Profile:
    """Adds up samples by event, process and stack, over all epochs and traces of the file."""

    def __init__(self, options, budget):
        self.columns, self.counts_samples, self.budget = "--columns" in options, "--samples" in options, budget
        self.records = Records(self, budget)
        self.texts, self.nodes = {}, {}  # text -> number; (node, text's number) -> node
        self.spelled, self.parents = [], [(0, 0)]
        self.totals = {}  # (event, process, node) -> [number]
        self.names = {}   # process -> its newest name
        self.ended, self.host, self.page_size = False, b"", 0
        self.on_epoch(None)

    def on_epoch(self, _):
        self.strings, self.events, self.processes, self.threads = [b""], [None], [None], [None]
        self.codes, self.frames, self.tuples, self.waits = [None], [None], [(0, 0)], [None]
        self.stacks, self.depths = [array.array("L", [0]), array.array("L", [0])], array.array("L", [0])
        self.frame_texts, self.stack_nodes, self.found = {}, {}, {}
        self.budget.end_epoch()

    def string(self, number):
        return self.strings[number].decode("utf-8", "surrogateescape")

    def on_string(self, f):
        self.strings.append(f["data"][:TEXT_LIMIT])
        self.budget.take(len(f["data"]), of_epoch=True)

    def on_host(self, f):
        self.host, self.page_size = f["boot_id"], f["page_size"]

    def on_end(self, _):
        self.ended = True

    def on_event(self, f):
        unit = self.string(f["unit"])
        self.events.append({"name": self.string(f["name"]), "bytes": self.page_size or 1 if unit == "faults" else 1,
                            "periods": [(0, f["period"])]})

    def on_period(self, f):
        bisect.insort(self.events[f["event"]]["periods"], (f["time_ns"], f["period"]))
        self.budget.take(200, of_epoch=True)

    def on_process(self, f):
        kind, program = f["program_kind"], self.string(f["program"])
        named = kind == PROGRAM_COMMAND or (program and kind in (PROGRAM_FILE, PROGRAM_SCRIPT, PROGRAM_MODULE))
        if named:
            name = ("-m " if kind == PROGRAM_MODULE else "") + (program or "-c")
        else:
            name = self.string(f["comm"])
        key = self.host, f["tgid"], f["start_boottime_ns"], f["exec_generation"]
        self.processes.append((key, named))
        self.names[key] = name

    def on_process_name(self, f):
        key, named = self.processes[f["process"]]
        if not named:
            self.names[key] = self.string(f["comm"])

    def on_thread(self, f):
        self.threads.append(f["process"])

    def on_code(self, f):
        self.codes.append(Code(f, self.budget))

    def on_python_frame(self, f):
        self.frames.append((f["code"], f["offset"], f["flags"]))

    def on_native_frame(self, _):
        self.frames.append(None)

    on_kernel_frame = on_native_frame

    def on_stack(self, f):
        parents, frames = self.stacks
        parent = f["parent"]
        for frame in f["frames"]:
            parents.append(parent)
            frames.append(frame)
            self.depths.append(self.depths[parent] + 1)
            parent = len(parents) - 1

    def on_tuple(self, f):
        self.tuples.append((f["python_stack"], f["python_end"]))

    def on_label_set(self, f):
        labels = {self.string(key): self.string(value) for key, value in zip(f["pairs"][::2], f["pairs"][1::2])}
        self.waits.append(labels.get("wait"))

    def on_samples(self, f):
        event, sums = self.events[f["event"]], collections.Counter()
        for time, thread, tuple_id, value, label_set in self.records.samples(f):
            if self.counts_samples:
                value = 1
            elif value is None:
                at = bisect.bisect_right(event["periods"], (time, M64)) - 1
                value = event["periods"][max(at, 0)][1]
            sums[self.threads[thread], tuple_id, label_set] += value
        for (process, tuple_id, label_set), value in sums.items():
            key = f["event"], process, tuple_id, label_set
            total = self.found.get(key)
            if total is None:
                whose = event["name"], self.processes[process][0], self.node_of(tuple_id, self.waits[label_set])
                self.budget.take(500)
                total = self.found[key] = self.totals.setdefault(whose, [0])
            total[0] += value if self.counts_samples else value * event["bytes"]

    # ---- stacks as text ----

    def text(self, text):
        number = self.texts.setdefault(text, len(self.texts))
        if number == len(self.spelled):
            self.spelled.append(text)
            self.budget.take(200 + 4 * len(text))
        return number

    def step(self, node, text):
        found = self.nodes.setdefault((node, text), len(self.parents))
        if found == len(self.parents):
            self.parents.append((node, text))
            self.budget.take(250)
        return found

    def frame_text(self, frame):
        number = self.frame_texts.get(frame)
        if number is None:
            code, offset, flags = self.frames[frame]
            text = "?"
            if code:
                code = self.codes[code]
                line, column = code.position(offset, flags)
                where = code.file and f" ({clean(code.file)}{f':{line}' if line and 0 < line <= M32 >> 1 else ''}"
                where += f":{column + 1}" if where and line and column is not None and self.columns else ""
                text = (clean(code.name) or "[unknown]") + where + (")" if where else "")
            number = self.frame_texts[frame] = self.text(text)
        return number

    def stack_node(self, root, stack):
        """The node of a stack's innermost frame, below `root`. A stack that is too deep lacks its outer frames."""
        parents, frames = self.stacks
        path = []
        while stack and (root, stack) not in self.stack_nodes and len(path) < STACK_LIMIT:
            path.append(stack)
            stack = parents[stack]
        node = self.stack_nodes.get((root, stack), root)
        self.budget.take(100 * len(path), of_epoch=True)
        for at in reversed(path):
            if self.frames[frames[at]]:
                node = self.step(node, self.frame_text(frames[at]))
            if self.depths[at] <= STACK_LIMIT:
                self.stack_nodes[root, at] = node
        return node

    def node_of(self, tuple_id, wait):
        """The innermost node of a tuple's Python stack, with what stands for missing frames."""
        stack, end = self.tuples[tuple_id]
        end = TOO_DEEP if self.depths[stack] > STACK_LIMIT else end
        node = self.stack_node(0, stack)
        if end > COMPLETE and (node or end not in NEVER_TAKEN):
            mark = self.text("[truncated]" if end == TOO_DEEP else "[torn]")
            node = self.step(node, mark) if end == CHANGED else self.stack_node(self.step(0, mark), stack)
        if wait is not None:
            node = self.step(node, self.text(f"[wait: {clean(wait)}]"))
        return node or self.step(0, self.text("[no frames]"))

    def lines(self):
        """The lines, as bytes in the order of their bytes."""
        several = len({event for event, _, _ in self.totals}) > 1
        sums = collections.Counter()
        for (event, process, node), (number,) in self.totals.items():
            names, length = [], 0
            while node:
                node, text = self.parents[node]
                names.append(self.spelled[text])
                length += len(names[-1])
            self.budget.take(length + 300)
            names.append(f"{word(self.names[process])}-{process[1]}")
            if several:
                names.append(word(event).replace(" ", "_"))
            sums[";".join(reversed(names)).encode()] += number
        return sorted(line + b" %d" % number for line, number in sums.items())


def read(stream, options):
    """Reads a whole trace. Returns its lines, and what is to be said about it."""
    budget = Budget()
    blocks, profile = Blocks(stream, budget), Profile(options, budget)
    if not blocks.fill(8) or not blocks.window.startswith(FILE_MAGIC):
        raise Failure("it is not a trace of pycap")
    notes = blocks.notes
    try:
        blocks.read(profile.records)
        if not profile.ended:
            notes.append("it has no end: the recorder was killed or could not write")
    except Failure as failure:
        if not profile.totals:
            raise
        notes.append(str(failure))
    if profile.records.unknown:
        notes.append(f"{profile.records.unknown} records of a newer pycap were left out")
    return profile.lines(), notes


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    options = [given for given in sys.argv[1:] if given.startswith("--")]
    paths = [given for given in sys.argv[1:] if given not in options]
    if len(paths) != 1 or set(options) - {"--samples", "--columns"}:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        if paths[0] == "-":
            lines, notes = read(sys.stdin.buffer, options)
        else:
            with open(paths[0], "rb") as stream:
                lines, notes = read(stream, options)
        for note in notes[:NOTES_SHOWN] + [f"and {len(notes) - NOTES_SHOWN} more"] * (len(notes) > NOTES_SHOWN):
            print(f"read_trace.py: {paths[0]}: {note}", file=sys.stderr)
        sys.stdout.buffer.writelines(line + b"\n" for line in lines)
        sys.stdout.buffer.flush()
    except (Failure, OSError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or str(error) or "out of memory"
        print(f"read_trace.py: {paths[0]}: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
