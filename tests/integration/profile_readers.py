# SPDX-License-Identifier: Apache-2.0
"""Small readers of what pysym writes: perf.data with what lies beside it, pprof, the Firefox Profiler's, ndjson, folded stacks.

They follow the formats' own documents, share no code with pysym, and check what a reader may rely on: sizes, ids, offsets,
references. Tests compare what they return; other programs' readers are the judges in the tests of each format.

    PerfData(path)      events, samples in the order of the file, names of threads, mappings, lost counts, features
    pprof(path)         Pprof: sample types, samples, mappings, comments, times
    firefox(text)       Firefox: meta, binaries, tracks with rows and markers
    ndjson(path)        the rows of samples, and the frames of the stacks by number
    folded(text)        Counter: frames, outermost first -> number
"""
import collections
import gzip
import json
import pathlib
import struct

# ---- folded and ndjson ----


def folded(text):
    stacks = collections.Counter()
    for line in text.splitlines():
        stack, number = line.rsplit(" ", 1)
        stacks[tuple(stack.split(";"))] += int(number)
    return stacks


def no_member_twice(pairs):
    row = dict(pairs)
    assert len(row) == len(pairs), pairs
    return row


def ndjson(*texts):
    """The rows of one stream, or of the files of samples and of stacks. Rows of a type are alike; in a stream a stack comes first."""
    samples, stacks, shapes = [], {}, {}

    def expect_shape(kind, row):
        shape = [(name, type(value)) for name, value in row.items() if name != "time"]  # which is null where no clock is known
        assert shapes.setdefault(kind, shape) == shape

    for line in "".join(texts).splitlines():
        row = json.loads(line, object_pairs_hook=no_member_twice)
        expect_shape(row["type"], row)
        if row["type"] == "stack":
            assert row["stack"] == len(stacks) + 1 and row["frames"]
            stacks[row["stack"]] = row["frames"]
            for frame in row["frames"]:
                expect_shape("frame", frame)
        else:
            assert row["type"] == "sample" and (len(texts) > 1 or row["stack"] in stacks)
            samples.append(row)
    assert {row["stack"] for row in samples} == set(stacks)
    return samples, stacks


# ---- protobuf and pprof (profile.proto of google/pprof) ----


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            assert value < 1 << 64
            return value, at


def fields(data):
    """(number, value) of each field of a message: an integer, or the bytes of a string or message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            assert key & 7 == 2, f"wire type {key & 7}"
            length, at = varint(data, at)
            assert at + length <= len(data)
            value, at = data[at:at + length], at + length
        yield key >> 3, value


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def message(data, names, repeated=()):
    """A message as a dictionary: names by number; those that are repeated are lists. An unknown field is an error."""
    out = {names[number]: [] for number in repeated}
    for number, value in fields(data):
        if number in repeated:
            out[names[number]].append(value)
        else:
            assert names[number] not in out, f"{names[number]} twice"
            out[names[number]] = value
    return out


def packed(values):
    """A repeated number: packed, or one by one."""
    out = []
    for value in values:
        if isinstance(value, int):
            out.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            out.append(number)
    return out


PROFILE = {1: "sample_type", 2: "sample", 3: "mapping", 4: "location", 5: "function", 6: "string_table", 7: "drop_frames",
           8: "keep_frames", 9: "time_nanos", 10: "duration_nanos", 11: "period_type", 12: "period", 13: "comment",
           14: "default_sample_type", 15: "doc_url"}
VALUE_TYPE = {1: "type", 2: "unit"}
SAMPLE = {1: "location_id", 2: "value", 3: "label"}
LABEL = {1: "key", 2: "str", 3: "num", 4: "num_unit"}
MAPPING = {1: "id", 2: "memory_start", 3: "memory_limit", 4: "file_offset", 5: "filename", 6: "build_id", 7: "has_functions",
           8: "has_filenames", 9: "has_line_numbers", 10: "has_inline_frames"}
LOCATION = {1: "id", 2: "mapping_id", 3: "address", 4: "line", 5: "is_folded"}
LINE = {1: "function_id", 2: "line", 3: "column"}
FUNCTION = {1: "id", 2: "name", 3: "system_name", 4: "filename", 5: "start_line"}

# `inlined`: into the frame that follows outwards. `mapping` is a dictionary, or None.
PprofFrame = collections.namedtuple("PprofFrame", "function system_name file line column start_line address mapping inlined")
# Frames are outermost first. Labels: name -> list of texts or numbers.
PprofSample = collections.namedtuple("PprofSample", "frames values labels")
Pprof = collections.namedtuple("Pprof", "types default_type period_type period time_ns duration_ns mappings samples comments")


class PprofReader:
    def __init__(self, data):
        self.profile = message(data, PROFILE, repeated=(1, 2, 3, 4, 5, 6, 13))
        self.strings = [text.decode() for text in self.profile["string_table"]]
        assert self.strings[0] == "" and len(set(self.strings)) == len(self.strings)
        self.mappings = self.table("mapping", MAPPING)
        for mapping in self.mappings:
            mapping["filename"], mapping["build_id"] = self.text(mapping, "filename"), self.text(mapping, "build_id")
        self.functions = self.table("function", FUNCTION)
        locations = self.table("location", LOCATION, repeated=(4,))
        self.frames = [list(self.frames_of(location)) for location in locations]
        self.functions_used = {line.get("function_id", 0) for location in locations for line in location["line"]}
        assert len(self.functions_used - {0}) == len(self.functions), "functions that no line has"

    def text(self, row, name):
        return self.strings[row.get(name, 0)]

    def table(self, name, names, repeated=()):
        """The rows of a table; their ids count from 1, as some readers want."""
        rows = [message(data, names, repeated) for data in self.profile[name]]
        assert [row["id"] for row in rows] == list(range(1, len(rows) + 1)), name
        return rows

    def frames_of(self, location):
        """The frames of a location, innermost first."""
        mapping = self.mappings[location["mapping_id"] - 1] if location.get("mapping_id") else None
        lines = [message(data, LINE) for data in location["line"]]
        location["line"] = lines
        for i, line in enumerate(lines or [{}]):
            function = self.functions[line["function_id"] - 1] if line.get("function_id") else {}
            yield PprofFrame(self.text(function, "name"), self.text(function, "system_name"), self.text(function, "filename"),
                             line.get("line", 0), line.get("column", 0), function.get("start_line", 0),
                             location.get("address", 0), mapping, i + 1 < len(lines))

    def labels_of(self, sample):
        labels = collections.defaultdict(list)
        for data in sample["label"]:
            label = message(data, LABEL)
            labels[self.text(label, "key")].append(self.text(label, "str") if label.get("str") else signed(label.get("num", 0)))
        return dict(labels)

    def type_of(self, data):
        row = message(data, VALUE_TYPE)
        return self.text(row, "type"), self.text(row, "unit")

    def read(self):
        types = [self.type_of(data) for data in self.profile["sample_type"]]
        samples = []
        for data in self.profile["sample"]:
            sample = message(data, SAMPLE, repeated=(1, 2, 3))
            values = [signed(value) for value in packed(sample["value"])]
            assert len(values) == len(types)
            inwards = [frame for at in reversed(packed(sample["location_id"])) for frame in reversed(self.frames[at - 1])]
            samples.append(PprofSample(tuple(inwards), tuple(values), self.labels_of(sample)))
        p = self.profile
        return Pprof(types, self.text(p, "default_sample_type"), self.type_of(p.get("period_type", b"")), p.get("period", 0),
                     p.get("time_nanos", 0), p.get("duration_nanos", 0), self.mappings, samples,
                     [self.strings[at] for at in packed(p["comment"])])


def pprof(path):
    data = pathlib.Path(path).read_bytes()
    assert data[:2] == b"\x1f\x8b", "no gzip"
    return PprofReader(gzip.decompress(data)).read()


# ---- the Firefox Profiler (src/types/profile.ts of firefox-devtools/profiler, version 61 of its processed format) ----

# `file` and `line` are "" and 0 where the table has null, as are those of the function; `symbol`: (address, name) or None.
FirefoxFrame = collections.namedtuple("FirefoxFrame", "function file line column category inline_depth address library symbol "
                                      "is_python function_line")
# `frames`: outermost first, or None. Times in ns.
FirefoxRow = collections.namedtuple("FirefoxRow", "frames time_ns weight cpu_ns")
FirefoxMarker = collections.namedtuple("FirefoxMarker", "name start_ns end_ns category data frames")
FirefoxTrack = collections.namedtuple("FirefoxTrack", "name process pid tid is_main unit rows markers")
Firefox = collections.namedtuple("Firefox", "meta libs tracks")


def ns(milliseconds):
    return round(milliseconds * 1e6)


class FirefoxReader:
    def __init__(self, text):
        self.profile = json.loads(text)
        self.shared = self.profile["shared"]
        for name, table in self.shared.items():
            if name != "stringArray":
                self.check_table(table)
        self.strings = self.shared["stringArray"]
        assert len(set(self.strings)) == len(self.strings)
        self.frames = [self.frame(i) for i in range(self.shared["frameTable"]["length"])]
        self.stacks = []
        for parent, frame in zip(self.shared["stackTable"]["prefix"], self.shared["stackTable"]["frame"]):
            assert parent is None or 0 <= parent < len(self.stacks)
            self.stacks.append((() if parent is None else self.stacks[parent]) + (self.frames[frame],))

    @staticmethod
    def check_table(table):
        for name, column in table.items():
            assert not isinstance(column, list) or len(column) == table["length"], name

    def row(self, table, at):
        assert 0 <= at < self.shared[table]["length"]
        return {name: column[at] for name, column in self.shared[table].items() if name != "length"}

    def frame(self, at):
        frame = self.row("frameTable", at)
        function = self.row("funcTable", frame["func"])
        file = "" if function["source"] is None else self.strings[self.row("sources", function["source"])["filename"]]
        category = self.profile["meta"]["categories"][frame["category"]]
        category["subcategories"][frame["subcategory"]]  # is there
        library = symbol = None
        if function["resource"] != -1:
            resource = self.row("resourceTable", function["resource"])
            library = self.profile["libs"][resource["lib"]]["path"]
            assert resource["type"] == 1 and self.strings[resource["name"]]
        if frame["nativeSymbol"] is not None:
            row = self.row("nativeSymbols", frame["nativeSymbol"])
            assert self.profile["libs"][row["libIndex"]]["path"] and row["address"] <= frame["address"]
            symbol = row["address"], self.strings[row["name"]]
        assert frame["address"] == -1 or library
        return FirefoxFrame(self.strings[function["name"]], file, frame["line"] or 0, frame["column"] or 0,
                            (category["name"], category["subcategories"][frame["subcategory"]]), frame["inlineDepth"],
                            frame["address"], library, symbol, function["isJS"], function["lineNumber"] or 0)

    def track(self, thread):
        samples, markers = thread["samples"], thread["markers"]
        self.check_table(samples)
        self.check_table(markers)
        assert samples["time"] == sorted(samples["time"])
        unit = samples["weightType"]
        cpu = samples.get("threadCPUDelta", [0] * samples["length"])
        rows = [FirefoxRow(None if stack is None else self.stacks[stack], ns(time),
                           ns(weight) if unit == "tracing-ms" else weight, delta)
                for stack, time, weight, delta in zip(samples["stack"], samples["time"], samples["weight"], cpu)]
        schemas = {schema["name"] for schema in self.profile["meta"]["markerSchema"]}
        found = []
        for i in range(markers["length"]):
            data = {key: self.strings[value] if isinstance(value, int) else value for key, value in markers["data"][i].items()}
            assert data["type"] in schemas and markers["phase"][i] == 1
            cause = data.pop("cause", None)
            found.append(FirefoxMarker(self.strings[markers["name"][i]], ns(markers["startTime"][i]), ns(markers["endTime"][i]),
                                       self.profile["meta"]["categories"][markers["category"][i]]["name"], data,
                                       cause and self.stacks[cause["stack"]]))
        return FirefoxTrack(thread["name"], thread.get("processName"), thread["pid"], thread["tid"], thread["isMainThread"], unit,
                            rows, found)

    def read(self):
        tracks = [self.track(thread) for thread in self.profile["threads"]]
        for chosen in ("initialVisibleThreads", "initialSelectedThreads"):
            assert self.profile["meta"][chosen] and all(0 <= at < len(tracks) for at in self.profile["meta"][chosen])
        for section in self.profile["meta"]["extra"]:
            assert len({entry["label"] for entry in section["entries"]}) == len(section["entries"])
        return Firefox(self.profile["meta"], self.profile["libs"], tracks)


def firefox(text):
    return FirefoxReader(text).read()


# ---- ELF: names by address ----


class Symbols:
    """The functions of an ELF file's .symtab, by virtual address, and its segments."""

    def __init__(self, data):
        assert data[:6] == b"\x7fELF\x02\x01"
        segments, sections = struct.unpack_from("<QQ", data, 32)
        segment_size, segment_count, section_size, section_count = struct.unpack_from("<HHHH", data, 54)
        self.segments = []
        for i in range(segment_count):
            kind, flags, offset, vaddr, _, size = struct.unpack_from("<IIQQQQ", data, segments + i * segment_size)
            if kind == 1:
                self.segments.append((offset, vaddr, size, flags))
        headers = [struct.unpack_from("<IIQQQQIIQQ", data, sections + i * section_size) for i in range(section_count)]
        self.functions = []
        for header in headers:
            if header[1] != 2:  # SHT_SYMTAB
                continue
            names = headers[header[6]]
            for at in range(header[4], header[4] + header[5], 24):
                name, info, _, _, value, size = struct.unpack_from("<IBBHQQ", data, at)
                if info & 15 == 2:  # STT_FUNC
                    start = names[4] + name
                    self.functions.append((value, size, data[start:data.index(b"\0", start)].decode()))
        self.functions.sort()

    def name_at_offset(self, offset):
        """The function at an offset of the file; None: there is none."""
        for start, vaddr, size, _ in self.segments:
            if start <= offset < start + size:
                return find_range(self.functions, offset - start + vaddr)
        return None


def find_range(ranges, at):
    """The name of the last of sorted (start, length, name) that begins at or before `at`, if it reaches so far."""
    low, high = 0, len(ranges)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if ranges[middle][0] <= at else (low, middle)
    if low and at < ranges[low - 1][0] + ranges[low - 1][1]:
        return ranges[low - 1][2]
    return None


# ---- perf.data (tools/perf/Documentation/perf.data-file-format.txt, and linux/perf_event.h) ----

KERNEL_CONTEXT, USER_CONTEXT = (1 << 64) - 128, (1 << 64) - 512
IP, TID, TIME, CALLCHAIN, CPU, PERIOD, IDENTIFIER, CGROUP = 1, 2, 4, 0x20, 0x80, 0x100, 0x10000, 0x200000
MMAP, COMM, EXIT, FORK, SAMPLE_RECORD, MMAP2, LOST_SAMPLES, CGROUP_RECORD, FINISHED_ROUND = 1, 3, 4, 7, 9, 10, 13, 19, 68
HAS_BUILD_ID, COMM_EXEC = 0x4000, 0x2000
FEATURES = {2: "build_id", 3: "hostname", 4: "osrelease", 5: "version", 6: "arch", 7: "nrcpus", 8: "cpudesc", 10: "total_mem",
            11: "cmdline", 12: "event_desc", 21: "sample_time", 23: "clockid", 29: "clock_data"}

PerfEvent = collections.namedtuple("PerfEvent", "name type config sample_type")
# `event` is its name, chain: [(is_kernel, address)], innermost first. `cgroup` is a path or None.
PerfSample = collections.namedtuple("PerfSample", "event pid tid time_ns cpu period chain cgroup")
# Where an address lies: the path of the binary, the offset in it, and the symbol if the files beside say one.
PerfPlace = collections.namedtuple("PerfPlace", "path offset build_id symbol")


class PerfData:
    """What a file says, with `beside`: the folder that has perf's cache of build IDs in `debug`; None: there is none."""

    def __init__(self, path, beside=None):
        self.data = pathlib.Path(path).read_bytes()
        self.beside = pathlib.Path(beside) if beside else None
        self.events, self.by_id = [], {}
        self.samples, self.comms, self.mappings = [], {}, collections.defaultdict(list)
        self.lost, self.cgroups, self.symbols = collections.Counter(), {}, {}
        self.kernel_names = None
        self.read_header()
        self.build_ids = self.read_build_ids()
        self.read_records()

    def unpack(self, form, at):
        return struct.unpack_from("<" + form, self.data, at)

    def read_header(self):
        assert self.data[:8] == b"PERFILE2"
        size, attr_size = self.unpack("QQ", 8)
        assert size == 104 and attr_size == 144
        attrs_at, attrs_len, self.data_at, self.data_len = self.unpack("QQQQ", 24)
        bits = int.from_bytes(self.data[72:104], "little")
        self.features, at = {}, self.data_at + self.data_len
        for bit in range(256):
            if bits >> bit & 1:
                start, length = self.unpack("QQ", at)
                assert start + length <= len(self.data)
                self.features[FEATURES[bit]] = self.data[start:start + length]
                at += 16
        names = self.event_names()
        for i, attr_at in enumerate(range(attrs_at, attrs_at + attrs_len, attr_size)):
            kind, attr_len, config, _, sample_type = self.unpack("IIQQQ", attr_at)
            assert attr_len == attr_size - 16
            self.events.append(PerfEvent(names[i], kind, config, sample_type))
            ids_at, ids_len = self.unpack("QQ", attr_at + attr_len)
            for (number,) in struct.iter_unpack("<Q", self.data[ids_at:ids_at + ids_len]):
                assert number not in self.by_id
                self.by_id[number] = i

    def event_names(self):
        data, names = self.features["event_desc"], []
        count, attr_size = struct.unpack_from("<II", data, 0)
        at = 8
        for _ in range(count):
            ids, length = struct.unpack_from("<II", data, at + attr_size)
            at += attr_size + 8
            names.append(data[at:at + length].split(b"\0")[0].decode())
            at += length + 8 * ids
        assert at == len(data)
        return names

    def read_records(self):
        at, end = self.data_at, self.data_at + self.data_len
        while at < end:
            kind, misc, size = self.unpack("IHH", at)
            assert size >= 8 and size % 8 == 0 and at + size <= end, (kind, size)
            self.read_record(kind, misc, at + 8, at + size)
            at += size
        assert at == end

    def read_record(self, kind, misc, at, end):
        if kind == SAMPLE_RECORD:
            self.read_sample(misc, at, end)
        elif kind in (MMAP, MMAP2):
            self.read_mapping(kind, misc, at)
        elif kind == COMM:
            pid, tid = self.unpack("II", at)
            self.comms[pid, tid] = self.string(at + 8, end)
        elif kind == CGROUP_RECORD:
            self.cgroups[self.unpack("Q", at)[0]] = self.string(at + 8, end)
        elif kind == LOST_SAMPLES:
            self.lost[self.event_of(self.unpack("Q", end - 8)[0])] += self.unpack("Q", at)[0]
        else:
            assert kind in (FINISHED_ROUND, EXIT, FORK), kind

    def string(self, at, end):
        return self.data[at:self.data.index(b"\0", at, end)].decode()

    def event_of(self, number):
        return self.events[self.by_id[number]].name

    def read_sample(self, misc, at, end):
        number, ip, pid, tid, time_ns, cpu, _, period, count = self.unpack("QQIIQIIQQ", at)
        event = self.events[self.by_id[number]]
        assert event.sample_type & ~CGROUP == IP | TID | TIME | CALLCHAIN | CPU | PERIOD | IDENTIFIER
        at += 56
        entries = self.unpack(f"{count}Q", at)
        at += 8 * count
        cgroup = None
        if event.sample_type & CGROUP:
            cgroup = self.cgroups.get(self.unpack("Q", at)[0])
            at += 8
        assert at == end
        chain, is_kernel = [], None
        for entry in entries:
            if entry in (KERNEL_CONTEXT, USER_CONTEXT):
                is_kernel = entry == KERNEL_CONTEXT
            else:
                assert is_kernel is not None
                chain.append((is_kernel, entry))
        if chain:
            assert ip == chain[0][1] and misc & 7 == (1 if chain[0][0] else 2)
        self.samples.append(PerfSample(event.name, pid, tid, time_ns, cpu, period, chain, cgroup))

    def read_mapping(self, kind, misc, at):
        pid, _, start, length, offset = self.unpack("IIQQQ", at)
        build_id, name_at = b"", at + 32
        if kind == MMAP2:
            if misc & HAS_BUILD_ID:
                build_id = self.data[at + 36:at + 36 + self.data[at + 32]]
            name_at += 32
        path = self.string(name_at, len(self.data))
        if misc & 7 == 1:
            pid = None
        self.mappings[pid].append((start, length, offset, path, build_id))

    def read_build_ids(self):
        """(path, is_kernel) -> build ID, of the feature."""
        data, at, out = self.features.get("build_id", b""), 0, {}
        while at < len(data):
            _, misc, size = struct.unpack_from("<IHH", data, at)
            out[data[at + 36:at + size].split(b"\0")[0].decode(), misc & 7 == 1] = data[at + 12:at + 12 + data[at + 32]]
            at += size
        assert at == len(data)
        return out

    def place(self, sample, is_kernel, address):
        """The PerfPlace of an entry of a call chain; the newest mapping counts. None: no mapping has it."""
        for start, length, offset, path, build_id in reversed(self.mappings[None if is_kernel else sample.pid]):
            if start <= address < start + length:
                path = path.removesuffix("_text") if is_kernel else path
                build_id = build_id or self.build_ids.get((path, is_kernel), b"")
                if is_kernel:
                    return PerfPlace(path, address, build_id, self.kernel_name(address, build_id))
                return PerfPlace(path, address - start + offset, build_id, self.symbol(address - start + offset, build_id))
        return None

    def cached(self, build_id, name):
        """A file of the cache of build IDs, in perf's layout, or None."""
        if not self.beside or not build_id:
            return None
        text = build_id.hex()
        path = self.beside / "debug/.build-id" / text[:2] / text[2:] / name
        return path if path.exists() else None

    def symbol(self, offset, build_id):
        if build_id not in self.symbols:
            path = self.cached(build_id, "elf")
            self.symbols[build_id] = Symbols(path.read_bytes()) if path else None
        symbols = self.symbols[build_id]
        return symbols and symbols.name_at_offset(offset)

    def kernel_name(self, address, build_id):
        if self.kernel_names is None:
            path = self.cached(build_id, "kallsyms")
            rows = [line.split(" ", 2) for line in path.read_text().splitlines()] if path else []
            starts = [int(start, 16) for start, _, _ in rows]
            assert starts == sorted(starts)
            ends = starts[1:] + [1 << 64]
            self.kernel_names = [(start, end - start, row[2]) for start, end, row in zip(starts, ends, rows)]
        return find_range(self.kernel_names, address)
