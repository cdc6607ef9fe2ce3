# SPDX-License-Identifier: Apache-2.0
"""Reads the data of a page (pysym -f html), as formats/emit/html/html.c describes it. It shares nothing with the page's own
script, so that each checks the other's reading."""
import base64
import collections
import html.parser
import json
import zlib

FORMAT = 1
KINDS = ("python", "native", "kernel", "mark")
GILS = ("unknown", "held", "not held")
FRAME_COLUMNS = ("kind", "function", "file", "module", "builtin", "wait", "line", "column", "function_line",
                 "function_end", "inlined", "shown", "shown_line")
FRAME_TEXTS = ("function", "file", "module", "builtin", "wait", "shown", "shown_line")
# What the page shows of a sample that has none.
NO_FRAMES = {"kind": "mark", "function": "[no frames]", "file": "", "module": "", "builtin": "", "wait": "", "line": 0,
             "shown": "[no frames]", "shown_line": "[no frames]"}
SAMPLE_COLUMNS = ("stack", "thread", "event", "time", "value", "labels", "flags", "capture")

Sample = collections.namedtuple("Sample", "time_ns process thread event value frames labels gil continues owed "
                                          "in_interpreter capture")


class Elements(html.parser.HTMLParser):
    """The elements with data, the title, and all that could run or load something."""

    def __init__(self, text):
        super().__init__()
        self.data, self.title, self.tags, self.metas = {}, "", [], {}
        self.inside = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        self.inside = (tag, attrs)
        if tag == "meta" and "http-equiv" in attrs:
            self.metas[attrs["http-equiv"]] = attrs["content"]
        if tag == "script" and attrs.get("type") == "text/plain":
            assert attrs["id"] not in self.data
            self.data[attrs["id"]] = (int(attrs["data-count"]), "")

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        tag, attrs = self.inside or ("", {})
        if tag == "title":
            self.title += data
        elif tag == "script" and attrs.get("id") in self.data:
            count, text = self.data[attrs["id"]]
            self.data[attrs["id"]] = (count, text + data)


def numbers(data):
    """The varints in bytes."""
    found, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            assert value <= 2 ** 53 + 1
            found.append(value)
            value = shift = 0
    assert not shift
    return found


def signed(number):
    return number >> 1 ^ -(number & 1)


class Page:
    def __init__(self, path):
        with open(path, encoding="utf-8", newline="") as page:
            self.text = page.read()
        self.elements = Elements(self.text)
        self.head = json.loads(self.unpack("head"))
        assert self.head["format"] == FORMAT
        self.strings = json.loads(self.unpack("strings"))
        assert self.strings[0] == "" and len(self.strings) == self.count("strings")
        self.frames = self.read_frames()
        self.stacks = self.read_stacks()
        self.samples = self.read_samples()

    def count(self, name):
        return self.elements.data[name][0]

    def unpack(self, name):
        return zlib.decompress(base64.b64decode(self.elements.data[name][1], validate=True))

    def columns(self, name, width):
        count, values = self.count(name), numbers(self.unpack(name))
        assert len(values) == width * count, name
        return [values[at * count:(at + 1) * count] for at in range(width)]

    def read_frames(self):
        """A dictionary for each frame."""
        rows = [dict(zip(FRAME_COLUMNS, row)) for row in zip(*self.columns("frames", len(FRAME_COLUMNS)))]
        for row in rows:
            row["kind"] = KINDS[row["kind"]]
            row.update((name, self.strings[row[name]]) for name in FRAME_TEXTS)
        return rows

    def read_stacks(self):
        """The frames of each stack, outermost first."""
        stacks = []
        for at, (distance, frame) in enumerate(zip(*self.columns("stacks", 2))):
            assert distance <= at
            stacks.append((*(stacks[at - distance] if distance else ()), frame))
        return stacks

    def read_samples(self):
        head, time, found = self.head, 0, []
        for name in self.elements.data:
            assert not name.startswith("sample-") or self.count(name) == head["sampleCount"]
        rows = [self.columns(f"sample-{name}", 1)[0] if f"sample-{name}" in self.elements.data else
                [0] * head["sampleCount"] for name in SAMPLE_COLUMNS]
        for stack, thread, event, delta, value, labels, flags, capture in zip(*rows):
            time += signed(delta)
            found.append(Sample(
                time * head["timeUnitNs"], head["processes"][head["threads"][thread]["process"]], head["threads"][thread],
                head["events"][event], value - 1 if value else head["events"][event]["period"],
                [self.frames[frame] for frame in self.stacks[stack - 1]] if stack else None,
                list(zip(head["labelSets"][labels][::2], head["labelSets"][labels][1::2])),
                GILS[flags & 3], bool(flags & 4), bool(flags & 8), bool(flags & 16), head["captures"][capture]))
        return found
