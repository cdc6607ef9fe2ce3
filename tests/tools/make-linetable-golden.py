# SPDX-License-Identifier: Apache-2.0
"""Writes line tables with what CPython itself makes of them: truth for tests/unit/test_linetable.c.

usage: PYTHON tests/tools/make-linetable-golden.py >testdata/linetable/X.Y.txt
By hand, with each CPython (2.7 and 3.x); the answers come from PyCode_Addr2Line() and, from
3.11 on, co_positions(), never from a decoder of ours. One line for each code object,

    code NAME FIRST_LINE BYTECODE_LENGTH TABLE_IN_HEX

then its bytecode in stretches of equal position ("-": none):

    at START END LINE END_LINE COLUMN END_COLUMN
"""
from __future__ import print_function

import binascii
import ctypes
import itertools
import sys
import types

BUDGET = 30000  # characters of a file

# What the library's code seldom has: gaps of hundreds of lines, lines that go back, columns past 80 and 128.
GAPS = """
def gaps(a, b):
    x = [a,
         b]
%s
    y = (a +
%s
         b)
    for i in x: y += i; y -= 1; y *= 2
    return {k: v
            for k, v in zip(x,
                            x) if k}
""" % ("\n" * 300, "\n" * 140)
WIDE = "def wide(a):\n    return [%s, a.b.c.d(a, a[0])]\n" % ", ".join("a.attribute_%d" % i for i in range(30))
TRIES = """
def tries(f):
    try:
        with f() as g, g:
            while g():
                if g: continue
                break
    except (ValueError, TypeError) as e:
        raise KeyError(
            e)
    finally:
        f(
            1
        )
    return lambda: (yield)
"""

addr2line = ctypes.pythonapi.PyCode_Addr2Line
addr2line.argtypes = [ctypes.py_object, ctypes.c_int]
addr2line.restype = ctypes.c_int


def code_objects(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            for inner in code_objects(const):
                yield inner


def sources():
    import argparse, bisect, heapq, json.decoder, textwrap
    for text in GAPS, WIDE, TRIES:
        yield text
    for module in bisect, heapq, json.decoder, textwrap, argparse:
        with open(module.__file__.replace(".pyc", ".py")) as f:
            yield f.read()


def positions(code, length):
    if hasattr(code, "co_positions"):
        for i, p in enumerate(code.co_positions()):
            if p[0] is not None and p[0] != addr2line(code, 2 * i):
                raise SystemExit("PyCode_Addr2Line and co_positions differ")
            yield 2 * i, 2 * i + 2, p
        return
    step = 2 if sys.version_info >= (3, 6) else 1
    for i in range(0, length, step):
        line = addr2line(code, i)
        line = None if line == -1 else line
        yield i, i + step, (line, line, None, None)


def entry(code):
    table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab
    name = getattr(code, "co_qualname", code.co_name).replace(" ", "_")
    out = ["code %s %d %d %s" % (name, code.co_firstlineno, len(code.co_code), binascii.hexlify(table).decode() or "-")]
    for p, group in itertools.groupby(positions(code, len(code.co_code)), key=lambda x: x[2]):
        group = list(group)
        out.append("at %d %d %s" % (group[0][0], group[-1][1], " ".join("-" if x is None else str(x) for x in p)))
    return "\n".join(out)


def main():
    left = BUDGET
    print("# made by tests/tools/make-linetable-golden.py with CPython %s" % sys.version.split()[0])
    print("python 0x%08x" % sys.hexversion)
    for text in sources():
        for code in code_objects(compile(text, "x.py", "exec", 0, True)):
            e = entry(code)
            if len(e) < left and (len(e) < 6000 or left == BUDGET):
                print(e)
                left -= len(e) + 1


main()
