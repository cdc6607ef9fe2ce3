#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when one name stands for two things: a function or object that two files export, or a struct, union or enum that
is defined twice, differently, once of them in a header. capture.a, symbolize.a and formats.a have to link into one program.
A tag that only one .c file knows is that file's own.

usage: check-names.py BUILDDIR      after make
"""
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("formats", "bpf", "capture", "symbolize")


def exported_twice(archives):
    """Names that more than one object file of the archives defines, each with these object files."""
    owners = collections.defaultdict(set)
    for archive in archives:
        text = subprocess.run(["nm", "-A", "-P", "-g", "--defined-only", archive], capture_output=True, text=True,
                              check=True).stdout
        for line in text.splitlines():
            found = re.match(r"(.*)\[(.*)\]: (\S+) (\S)", line)
            if not found:
                sys.exit(f"check-names.py: cannot read nm's line: {line}")
            # Sanitizers give each file some of the same names, for the linker to choose one.
            if found[4] not in "WwVvu" and not found[3].startswith("__"):
                owners[found[3]].add(f"{pathlib.Path(found[1]).stem}/{found[2]}")
    if len(owners) < 50:
        sys.exit(f"check-names.py: only {len(owners)} exported names in {', '.join(map(str, archives))}")
    return {name: sorted(places) for name, places in owners.items() if len(places) > 1}


def link_errors(archives):
    """What the linker says of all objects of the archives as one; empty when they go together."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["ld", "-r", "-o", os.path.join(folder, "all.o"), "--whole-archive", *archives],
                              capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def without_comments(text):
    """The text with comments made blank and strings empty; lines stay where they are."""
    def blank(found):
        return found[0][0] * 2 if found[0][0] in "\"'" else re.sub(r"[^\n]", " ", found[0])
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', blank, text, flags=re.S)


def without_bpf(text):
    """The text without what only the BPF target sees, between #ifdef __bpf__ and its #else or #endif."""
    def blank(found):
        return "\n" * found[0].count("\n")
    return re.sub(r"^#ifdef __bpf__\n(?:(?!#else|#endif).*\n)*", blank, text, flags=re.M)


def definitions(text):
    """Each tag that a source file defines, as (line, "struct name", its body in one form)."""
    text = without_comments(without_bpf(text))
    for found in re.finditer(r"\b(struct|union|enum)\s+(?:__attribute__\s*\(\(.*?\)\)\s*)?(\w+)\s*\{", text):
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        yield text.count("\n", 0, found.start()) + 1, f"{found[1]} {found[2]}", " ".join(text[found.end():end - 1].split())


def defined_twice():
    bodies = collections.defaultdict(dict)
    for folder in FOLDERS:
        for path in sorted((TOP / folder).rglob("*.[ch]")):
            for line, tag, body in definitions(path.read_text()):
                bodies[tag].setdefault(body, f"{path.relative_to(TOP)}:{line}")
    if len(bodies) < 50:
        sys.exit(f"check-names.py: only {len(bodies)} tags found")
    return {tag: list(places.values()) for tag, places in bodies.items()
            if len(places) > 1 and any(".h:" in place for place in places.values())}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    archives = [str(pathlib.Path(sys.argv[1]) / "obj" / f"{name}.a") for name in ("capture", "symbolize", "formats")]
    names, tags = exported_twice(archives), defined_twice()
    for name, places in sorted(names.items()):
        print(f"{name} is exported by {' and '.join(places)}", file=sys.stderr)
    for tag, places in sorted(tags.items()):
        print(f"{tag} is defined differently at {' and '.join(places)}", file=sys.stderr)
    errors = "" if names else link_errors(archives)
    if errors:
        print(f"the archives do not link together:\n{errors}", file=sys.stderr)
    return 1 if names or tags or errors else 0


if __name__ == "__main__":
    sys.exit(main())
