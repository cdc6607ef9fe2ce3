# SPDX-License-Identifier: Apache-2.0
"""Reads pprof profiles: gzip and Protocol Buffers by hand, so that it shares nothing with the writer."""
import collections
import gzip

# `types`: (name, unit) of the values. `samples`: Sample. `raw`: numbers of fields of the whole.
Profile = collections.namedtuple("Profile", "types samples mappings period_type default raw comments")
# `frames`: innermost first. `labels`: key -> text or number.
Sample = collections.namedtuple("Sample", "frames values labels")
# `inlined`: into the next one; `name` is None if the location has no line.
Frame = collections.namedtuple("Frame", "name file line column start_line mapping address inlined")
Mapping = collections.namedtuple("Mapping", "start limit offset file build_id has")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value - (1 << 64 if value >> 63 else 0), at


def fields(data):
    """Number -> values, in order; those of packed fields are still bytes."""
    out, at = collections.defaultdict(list), 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        assert key & 7 in (0, 2), key
        if key & 7:
            assert at + value <= len(data)
            value, at = data[at:at + value], at + value
        out[key >> 3].append(value)
    return out


def packed(data):
    out, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        out.append(value)
    return out


def one(message, number):
    values = message.get(number, [0])
    assert len(values) == 1
    return values[0]


def table(messages):
    """Entries by id; ids count 1, 2, 3."""
    rows = {one(m, 1): m for m in map(fields, messages)}
    assert list(rows) == list(range(1, len(messages) + 1))
    return rows


def parse(data):
    """The profile in the bytes of a file."""
    assert data[:10] == b"\x1f\x8b\x08" + bytes(6) + b"\x03"  # no name, no time
    top = fields(gzip.decompress(data))
    strings = [s.decode() for s in top[6]]
    assert strings[0] == "" and len(set(strings)) == len(strings)
    assert not any(c < " " or c == "\x7f" for s in strings for c in s)

    def text(message, number):
        return strings[one(message, number)]

    functions = {i: (text(f, 2), text(f, 4), one(f, 5)) for i, f in table(top[5]).items()}
    mappings = {i: Mapping(one(m, 2), one(m, 3), one(m, 4), text(m, 5), text(m, 6), tuple(one(m, k) for k in range(7, 11)))
                for i, m in table(top[3]).items()}
    locations = {}
    for i, location in table(top[4]).items():
        mapping, address = mappings[one(location, 2)], one(location, 3)
        lines = [fields(line) for line in location[4]]
        locations[i] = [Frame(*functions[one(line, 1)][:2], one(line, 2), one(line, 3), functions[one(line, 1)][2], mapping,
                              address, n + 1 < len(lines)) for n, line in enumerate(lines)]
        locations[i] = locations[i] or [Frame(None, "", 0, 0, 0, mapping, address, False)]
    types = [(text(t, 1), text(t, 2)) for t in map(fields, top[1])]
    samples = []
    for sample in map(fields, top[2]):
        values = packed(one(sample, 2))
        assert len(values) == len(types) and any(values)
        labels = {text(x, 1): text(x, 2) or one(x, 3) for x in map(fields, sample[3])}
        samples.append(Sample([f for i in packed(one(sample, 1)) for f in locations[i]], values, labels))
    period = fields(top[11][0])
    return Profile(types, samples, list(mappings.values()), (text(period, 1), text(period, 2)), strings[one(top, 14)], top,
                   [strings[i] for i in top[13]])
