#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads Prometheus's text format 0.0.4, strictly: what its own parser forgives is an error here, too.

usage: prometheus_text.py FILE      prints the figures as JSON; exit 1 if the file breaks a rule
"""
import json
import re
import sys

NAME = r"[a-zA-Z_][a-zA-Z0-9_]*"
SAMPLE = re.compile(rf'({NAME})(?:\{{({NAME})="((?:[^"\\\n]|\\["\\n])*)"\}})? (\S+)')
FIGURE = re.compile(r"[-+]?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|Inf)|NaN")


def unescape(text):
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text)


class Figures(dict):
    """(name, value of its label or None) -> figure; `types` and `helps` by name, `labels`: the label's name by family."""

    def __init__(self):
        super().__init__()
        self.types, self.helps, self.labels = {}, {}, {}

    def of(self, name):
        """The figures of a family by the values of its label."""
        return {label: figure for (family, label), figure in self.items() if family == name}


def parse(data):
    """The figures of a file's bytes; ValueError names the line that breaks a rule."""
    figures, family = Figures(), None
    if data and not data.endswith(b"\n"):
        raise ValueError("the last line does not end")
    for number, line in enumerate(data.decode("utf-8").split("\n")[:-1], 1):
        try:
            if line.startswith("# HELP "):
                family, text = line[7:].split(" ", 1)
                if not re.fullmatch(NAME, family) or family in figures.helps:
                    raise ValueError("a bad name, or one for the second time")
                figures.helps[family] = unescape(text)
            elif line.startswith("# TYPE "):
                name, kind = line[7:].split(" ")
                if name != family or name in figures.types or kind not in ("counter", "gauge"):
                    raise ValueError("a type without its help, or an unknown one")
                if name.endswith("_total") != (kind == "counter"):
                    raise ValueError("counters end with _total, and nothing else does")
                figures.types[name] = kind
            else:
                take(figures, family, line)
        except ValueError as err:
            raise ValueError(f"line {number}: {line!r}: {err}") from None
    return figures


def take(figures, family, line):
    found = SAMPLE.fullmatch(line)
    if not found or not FIGURE.fullmatch(found[4]):
        raise ValueError("not a figure")
    name, label, value = found[1], found[2], found[3]
    if name != family or name not in figures.types:
        raise ValueError("not behind the type of its family")
    if figures.labels.setdefault(name, label) != label:
        raise ValueError("another label than the figure before it")
    key = name, None if value is None else unescape(value)
    if key in figures:
        raise ValueError("for the second time")
    figures[key] = float(found[4])
    if figures.types[name] == "counter" and not figures[key] >= 0:
        raise ValueError("a counter below 0")


def read(path):
    with open(path, "rb") as file:
        return parse(file.read())


def main():
    try:
        figures = read(sys.argv[1])
    except (OSError, ValueError) as err:
        sys.exit(f"{sys.argv[1]}: {err}")
    print(json.dumps([[name, label, figure] for (name, label), figure in figures.items()]))


if __name__ == "__main__":
    main()
