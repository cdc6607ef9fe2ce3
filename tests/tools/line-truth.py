# SPDX-License-Identifier: Apache-2.0
"""Prints the line tables of a CPython's library with what that CPython itself makes of them, for build/tools/check_lines.

usage: PYTHON tests/tools/line-truth.py [FILES]
With FILES so many source files at most, spread over the library. The form is that of make-linetable-golden.py. The
answers come from dis.findlinestarts(), in 3.10 from co_lines(), from 3.11 on from co_positions().
"""
from __future__ import print_function

import binascii
import dis
import itertools
import os
import sys
import types
import warnings


def code_objects(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            for inner in code_objects(const):
                yield inner


def stretches(code):
    length = len(code.co_code)
    if hasattr(code, "co_positions"):
        at = 0
        for position, group in itertools.groupby(code.co_positions()):
            end = at + 2 * len(list(group))
            yield at, end, position
            at = end
    elif hasattr(code, "co_lines"):
        for start, end, line in code.co_lines():
            yield start, end, (line, line, None, None)
    else:
        starts = [start for start in dis.findlinestarts(code) if start[0] < length]
        for (start, line), end in zip(starts, [start for start, _ in starts[1:]] + [length]):
            yield start, end, (line, line, None, None)


def entry(code):
    table = code.co_linetable if hasattr(code, "co_lines") else code.co_lnotab
    name = "%s:%s" % (code.co_filename, code.co_name)
    name = name.encode("ascii", "replace").decode() if str is not bytes else name
    out = ["code %s %d %d %s" % ("_".join(name.split())[-200:], code.co_firstlineno, len(code.co_code),
                                 binascii.hexlify(table).decode() or "-")]
    covered = 0
    for start, end, position in stretches(code):
        if start != covered:
            raise SystemExit("%s: nothing is said of %d" % (name, covered))
        covered = end
        if end > start:
            out.append("at %d %d %s" % (start, end, " ".join("-" if x is None else str(x) for x in position)))
    if covered != len(code.co_code):
        raise SystemExit("%s: nothing is said of %d" % (name, covered))
    return "\n".join(out)


def sources():
    library = os.path.dirname(os.path.abspath(os.__file__))
    for folder, folders, files in os.walk(library):
        folders[:] = sorted(f for f in folders if f not in ("site-packages", "dist-packages"))
        for name in sorted(files):
            if name.endswith(".py"):
                yield os.path.join(folder, name)


def main():
    warnings.simplefilter("ignore")
    paths = list(sources())
    if len(sys.argv) > 1:
        paths = paths[::max(1, -(-len(paths) // int(sys.argv[1])))]
    print("python 0x%08x" % sys.hexversion)
    left = []
    for path in paths:
        with open(path, "rb") as f:
            text = f.read()
        try:
            code = compile(text, path, "exec", 0, True)
        except (SyntaxError, ValueError, TypeError, MemoryError, RuntimeError):  # the library's tests have such files
            left.append(path)
            continue
        for inner in code_objects(code):
            print(entry(inner))
    print("# %d files, %d of them no code" % (len(paths), len(left)))


main()
