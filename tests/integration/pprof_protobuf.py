# SPDX-License-Identifier: Apache-2.0
"""A decoder of pprof profiles that shares nothing with the encoder: Google's protobuf library reads them.

The messages are those of profile.proto of github.com/google/pprof (b9395ee, 2026-07-09); Debian's package is
python3-protobuf.
"""
import collections
import functools
import gzip
import os

import pytest

# Message: its fields as (name, number, type); "*" after a type: repeated.
MESSAGES = {
    "ValueType": [("type", 1, "int64"), ("unit", 2, "int64")],
    "Label": [("key", 1, "int64"), ("str", 2, "int64"), ("num", 3, "int64"), ("num_unit", 4, "int64")],
    "Sample": [("location_id", 1, "uint64*"), ("value", 2, "int64*"), ("label", 3, "Label*")],
    "Mapping": [("id", 1, "uint64"), ("memory_start", 2, "uint64"), ("memory_limit", 3, "uint64"), ("file_offset", 4, "uint64"),
                ("filename", 5, "int64"), ("build_id", 6, "int64"), ("has_functions", 7, "bool"), ("has_filenames", 8, "bool"),
                ("has_line_numbers", 9, "bool"), ("has_inline_frames", 10, "bool")],
    "Line": [("function_id", 1, "uint64"), ("line", 2, "int64"), ("column", 3, "int64")],
    "Location": [("id", 1, "uint64"), ("mapping_id", 2, "uint64"), ("address", 3, "uint64"), ("line", 4, "Line*"),
                 ("is_folded", 5, "bool")],
    "Function": [("id", 1, "uint64"), ("name", 2, "int64"), ("system_name", 3, "int64"), ("filename", 4, "int64"),
                 ("start_line", 5, "int64")],
    "Profile": [("sample_type", 1, "ValueType*"), ("sample", 2, "Sample*"), ("mapping", 3, "Mapping*"),
                ("location", 4, "Location*"), ("function", 5, "Function*"), ("string_table", 6, "string*"),
                ("drop_frames", 7, "int64"), ("keep_frames", 8, "int64"), ("time_nanos", 9, "int64"),
                ("duration_nanos", 10, "int64"), ("period_type", 11, "ValueType"), ("period", 12, "int64"),
                ("comment", 13, "int64*"), ("default_sample_type", 14, "int64"), ("doc_url", 15, "int64")],
}  # fmt: skip

# `file` is "" and numbers are 0 where they are unknown. A frame without a function (`unnamed`) has the binary's name, as
# pprof shows it.
Frame = collections.namedtuple("Frame", "name file start line column mapping inlined unnamed", defaults=[False, False])
# Frames of a sample begin with the innermost.
Sample = collections.namedtuple("Sample", "values labels frames")


@functools.lru_cache(maxsize=None)
def message(name):
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        pytest.skip("no python3-protobuf")
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="profiles", syntax="proto3")
    kind = descriptor_pb2.FieldDescriptorProto
    for each, fields in MESSAGES.items():
        described = file.message_type.add(name=each)
        for field, number, text in fields:
            added = described.field.add(name=field, number=number)
            added.label = kind.LABEL_REPEATED if text.endswith("*") else kind.LABEL_OPTIONAL
            text = text.rstrip("*")
            if text in MESSAGES:
                added.type, added.type_name = kind.TYPE_MESSAGE, f".profiles.{text}"
            else:
                added.type = getattr(kind, f"TYPE_{text.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindMessageTypeByName(f"profiles.{name}")
    # The first is that of newer versions of the library.
    get = getattr(message_factory, "GetMessageClass", None) or message_factory.MessageFactory(pool).GetPrototype
    return get(found)


class Profile:
    """A profile whose references are resolved. What the format demands of tables is asserted."""

    def __init__(self, content):
        self.raw = message("Profile")()
        self.raw.ParseFromString(gzip.decompress(content))
        length = self.raw.ByteSize()
        self.raw.DiscardUnknownFields()
        assert self.raw.ByteSize() == length
        text = self.text = self.raw.string_table
        assert text[0] == "" and len(set(text)) == len(text)
        for table in (self.raw.mapping, self.raw.location, self.raw.function):
            assert [entry.id for entry in table] == list(range(1, len(table) + 1))
        self.types = [(text[t.type], text[t.unit]) for t in self.raw.sample_type]
        self.default_type = text[self.raw.default_sample_type]
        self.period = (text[self.raw.period_type.type], text[self.raw.period_type.unit], self.raw.period)
        self.comments = [text[i] for i in self.raw.comment]
        self.places = [self.frames_of(location) for location in self.raw.location]
        self.samples = [Sample(tuple(s.value), self.labels_of(s), tuple(f for i in s.location_id for f in self.places[i - 1]))
                        for s in self.raw.sample]
        assert all(len(s.values) == len(self.types) for s in self.samples)

    def frames_of(self, location):
        text = self.text
        mapping = text[self.raw.mapping[location.mapping_id - 1].filename]
        if not location.line:
            return [Frame(f"[{os.path.basename(mapping)}]", "", 0, 0, 0, mapping, unnamed=True)]
        frames = []
        for line in location.line:
            f = self.raw.function[line.function_id - 1]
            frames.append(Frame(text[f.name], text[f.filename], f.start_line, line.line, line.column, mapping, inlined=True))
        frames[-1] = frames[-1]._replace(inlined=False)
        return frames

    def labels_of(self, sample):
        labels = {self.text[l.key]: self.text[l.str] if l.str else l.num for l in sample.label}
        assert len(labels) == len(sample.label)
        return labels

    def sums(self, key, samples=None):
        """key(frame) -> [self, total] for each of the sample types; None of a key: left out."""
        found = collections.defaultdict(lambda: [[0, 0] for _ in self.types])
        for sample in self.samples if samples is None else samples:
            keys = [key(frame) for frame in sample.frames]
            for i, value in enumerate(sample.values):
                found[keys[0]][i][0] += value
                for each in set(keys):
                    found[each][i][1] += value
        return dict(found)

    def totals(self, samples=None):
        return [sum(values) for values in zip(*(s.values for s in (self.samples if samples is None else samples)))]
