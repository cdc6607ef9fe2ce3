# SPDX-License-Identifier: Apache-2.0
"""Reads baseline files, written from docs/baseline-format.md alone: what that page leaves out, or says otherwise, fails here."""
import math
import struct
import zlib

MAGIC = bytes.fromhex("89505942 0d0a1a0a")
END, TEXTS, FUNCTIONS, CODES, NODES, LINES, RUN = range(7)


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def bytes(self, count):
        assert self.at + count <= len(self.data), "cut"
        self.at += count
        return self.data[self.at - count:self.at]

    def u8(self):
        return self.bytes(1)[0]

    def u32(self):
        return struct.unpack("<I", self.bytes(4))[0]

    def u64(self):
        return struct.unpack("<Q", self.bytes(8))[0]

    def f64(self):
        value = struct.unpack("<d", self.bytes(8))[0]
        assert math.isfinite(value) and value >= 0
        return value

    def uleb(self):
        value = shift = 0
        while True:
            byte = self.u8()
            value |= (byte & 0x7f) << shift
            shift += 7
            if not byte & 0x80:
                assert value < 1 << 64
                return value

    def list(self, read):
        return [read() for _ in range(self.uleb())]


def sections(data):
    cursor = Cursor(data)
    assert cursor.bytes(8) == MAGIC
    assert cursor.u32() >= 1 and cursor.u32() == 1
    assert cursor.u32() == zlib.crc32(data[:16])
    while True:
        start = cursor.at
        kind, length = cursor.u8(), cursor.u32()
        contents = cursor.bytes(length)
        assert zlib.crc32(data[start:cursor.at]) == cursor.u32()
        yield kind, Cursor(contents)
        if kind == END:
            break
    assert cursor.at == len(data), "something behind END"


class Baseline:
    """Texts are resolved; functions are (file, name), with the first line if that tells them apart; nodes are paths of them."""

    def __init__(self, data):
        self.runs, order = [], []
        for kind, c in sections(data):
            order.append(kind)
            if kind == TEXTS:
                self.texts = c.list(lambda: c.bytes(c.uleb()).decode())
            elif kind == FUNCTIONS:
                self.functions = c.list(lambda: self.function(c))
            elif kind == CODES:
                self.codes = c.list(lambda: (c.uleb(), c.uleb(), c.uleb(), c.u64()))
            elif kind == NODES:
                self.nodes = [()]
                for _ in range(c.uleb()):
                    parent, function = c.uleb(), c.uleb()
                    self.nodes.append(self.nodes[parent] + (self.functions[function],))
            elif kind == LINES:
                self.lines = c.list(lambda: (c.uleb(), c.uleb()))
            elif kind == RUN:
                self.runs.append(self.run(c))
            assert c.at == len(c.data)
        assert order == [TEXTS, FUNCTIONS, CODES, NODES, LINES] + [RUN] * len(self.runs) + [END]
        assert self.texts[0] == ""

    def text(self, c):
        return self.texts[c.uleb()]

    def function(self, c):
        file, name, first_line, flags = self.text(c), self.text(c), c.uleb(), c.u8()
        return (file, name, first_line) if flags & 1 else (file, name)

    def run(self, c):
        names = ("name", "kernel", "machine", "cpu", "recorder", "backend", "native", "pythons", "programs", "filters")
        run = {name: self.text(c) for name in names}
        run["cpus"], run["begin_ns"], run["duration_ns"] = c.uleb(), c.uleb(), c.uleb()
        run["has_command"], run["wall_ns"], run["work"] = c.u8(), c.uleb(), c.f64()
        run["notes"] = dict(c.list(lambda: (self.text(c), self.text(c))))
        run["events"] = {}
        for _ in range(c.uleb()):
            event = self.event(Cursor(c.bytes(c.uleb())))
            run["events"][event["name"]] = event
        return run

    def event(self, c):
        event = {"name": self.text(c), "unit": self.text(c), "flags": c.u8()}
        for field in ("frequency", "period", "samples", "ticks", "lost"):
            event[field] = c.uleb()
        event["weight"] = c.f64()
        unit = c.uleb()
        event["total"] = unit * c.uleb()
        event["nodes"] = {self.nodes[n]: v for n, v in self.cells(c, unit, True, True)}
        event["functions"] = {self.functions[n]: v for n, v in self.cells(c, unit, True, True)}
        event["codes"] = {n: v for n, v in self.cells(c, unit, True, False)}
        event["lines"] = {}
        for number, value in self.cells(c, unit, False, False):
            code, line = self.lines[number]
            key = self.functions[self.codes[code][0]] + (line,)
            event["lines"][key] = event["lines"].get(key, 0) + value[0]
        event["files"] = {self.texts[n]: v[0] for n, v in self.cells(c, unit, False, False)}
        assert c.at == len(c.data)
        return event

    @staticmethod
    def cells(c, unit, has_self, has_dispersion):
        """(number, (total, self, dispersion of the total, of the self))"""
        cells, number = [], -1
        for _ in range(c.uleb()):
            number += 1 + c.uleb()
            total = own = unit * c.uleb()
            if has_self:
                own = unit * c.uleb()
            spread = (1 + c.uleb() / 64, 1 + c.uleb() / 64) if has_dispersion else (1, 1)
            assert 0 < total <= 1 << 63 and own <= total
            cells.append((number, (total, own) + spread))
        return cells
