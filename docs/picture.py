#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws folded stacks as a flame graph: an SVG without scripts.

Every frame is a bar, as wide as its share of the samples. What it called hangs below it, in alphabetical order. Colours tell
Python, native and kernel frames apart. The same stacks give the same bytes. docs/tour/picture.sh makes the README's.

usage: pysym trace.bin -f folded | picture.py --title TITLE [--width PIXELS] [--depth ROWS] >picture.svg
"""
import argparse
import re
import sys
import zlib
from xml.sax.saxutils import escape

ROW, MARGIN, HEAD, FOOT = 18, 10, 62, 10  # pixels
LETTER = 6.65                             # width of a letter of 11 pixels' monospace
NARROWEST = 2                             # bars below are left out
# Fill and its darkest shade, as red, green and blue; text on all of them is black.
LAYERS = {"Python": ((129, 178, 230), (98, 150, 214)), "native": ((250, 205, 120), (242, 178, 80)),
          "kernel": ((214, 158, 186), (196, 130, 164))}
LABELS = {"Python": "Python", "native": "native: extension modules, libraries", "kernel": "kernel"}


class Node:
    """A frame below its callers: its samples, and what it called."""

    def __init__(self):
        self.count, self.calls = 0, {}


def layer_of(frame):
    """Both Python and native frames read "function (file:line)" where the line is known: the file's name tells them apart."""
    if frame.endswith("_[k]"):
        return "kernel"
    place = re.search(r" \(([^()]+?)(:\d+)+\)$", frame)
    return "native" if not place or re.search(r"\.(c|h|cc|hh|cpp|hpp|cxx|tcc|S|rs|pyx|pxd|y|f|f90)$", place[1]) else "Python"


def read_folded(lines):
    """The stacks as a tree. A line is "frame;frame;... count", outermost frame first."""
    root = Node()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        stack, _, count = line.rstrip("\n").rpartition(" ")
        if not stack or not count.isdigit():
            sys.exit(f"picture.py: line {number} is no folded stack: {line.rstrip()!r}")
        root.count += int(count)
        node = root
        for frame in stack.split(";"):
            node = node.calls.setdefault(frame, Node())
            node.count += int(count)
    if not root.count:
        sys.exit("picture.py: no samples")
    return root


def bars(root, scale, depth):
    """(row, left, width, frame, count) of every bar that is wide enough; scale is pixels for a sample."""
    found = []

    def place(node, row, left):
        for frame, call in sorted(node.calls.items()):
            if call.count * scale >= NARROWEST and row < depth:
                found.append((row, left, call.count * scale, frame, call.count))
                place(call, row + 1, left)
            left += call.count * scale
    place(root, 0, 0.0)
    return found


def colour(frame):
    """Of the frame's layer, a shade that follows from its name, so that neighbours differ."""
    light, dark = LAYERS[layer_of(frame)]
    shade = zlib.crc32(frame.encode()) % 256 / 255
    return "#" + "".join(f"{round(a + (b - a) * shade):02x}" for a, b in zip(light, dark))


def number(pixels):
    return f"{pixels:.1f}".removesuffix(".0")


def draw(root, title, width, depth):
    drawn = bars(root, (width - 2 * MARGIN) / root.count, depth)
    height = HEAD + ROW * (1 + max(row for row, *_ in drawn)) + FOOT
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
           'font-family="ui-monospace,Menlo,Consolas,monospace" font-size="11">',
           f'<rect width="{width}" height="{height}" rx="6" fill="#fcfcfa" stroke="#d0d0c8"/>',
           f'<text x="{MARGIN}" y="24" font-size="15" font-weight="bold" fill="#222">{escape(title)}</text>']
    left = float(MARGIN)
    for layer, (light, _) in LAYERS.items():
        out.append(f'<rect x="{number(left)}" y="35" width="12" height="12" fill="#{bytes(light).hex()}"/>'
                   f'<text x="{number(left + 17)}" y="45" fill="#222">{LABELS[layer]}</text>')
        left += 17 + (len(LABELS[layer]) + 3) * LETTER
    for row, left, wide, frame, count in drawn:
        x, y = MARGIN + left, HEAD + row * ROW
        letters = int((wide - 5) / LETTER)
        shown = frame if len(frame) <= letters else frame[:letters - 1] + "…" if letters > 3 else ""
        text = f'<text x="{number(x + 3)}" y="{y + 12}">{escape(shown)}</text>' if shown else ""
        out.append(f'<g><title>{escape(frame)}, {100 * count / root.count:.1f} %</title>'
                   f'<rect x="{number(x)}" y="{y}" width="{number(max(wide - 0.6, 0.6))}" height="{ROW - 1}" '
                   f'fill="{colour(frame)}"/>{text}</g>')
    return "\n".join((*out, "</svg>", ""))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].strip())
    parser.add_argument("--title", required=True)
    parser.add_argument("--width", type=int, default=1000)
    parser.add_argument("--depth", type=int, default=60)
    options = parser.parse_args()
    sys.stdout.write(draw(read_folded(sys.stdin), options.title, options.width, options.depth))


if __name__ == "__main__":
    main()
