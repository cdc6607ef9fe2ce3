# -*- coding: utf-8 -*-
"""The same as chain.py, for 2.7: no qualified names, names are bytes."""
from __future__ import print_function
import functools
import os
import sys


def wait(fd):
    frame = sys._getframe()
    lines = []
    while frame:
        lines.append("%s\t%d" % (frame.f_code.co_name, frame.f_lineno))
        frame = frame.f_back
    lines[0] = "wait\t%d" % (sys._getframe().f_lineno + 3)  # where it will be when it waits
    print("\n".join(lines), "END", sep="\n")
    sys.stdout.flush()
    os.read(fd, 1)


def generator(fd):
    yield 1
    yield wait(fd)


def outer_generator(fd):
    for value in generator(fd):
        yield value


class Klass:
    def __init__(self, fd):
        self.values = [x for x in outer_generator(fd)]

    def method(self, fd):
        return (lambda: Klass.static(fd))()

    @staticmethod
    def static(fd):
        return sorted([2, 1], key=lambda x: Klass(fd))


def recurse(fd, depth):
    if depth:
        return recurse(fd, depth - 1)
    return functools.reduce(lambda a, b: named(fd), [1, 2])


# A name that no source can have, as some programs make them.
code = compile("def f(fd): return go(fd)", "<made>", "exec").co_consts[0]
name = u"na\u00efve_\u65e5\u672c_\U00010437".encode("utf-8")
code = type(code)(code.co_argcount, code.co_nlocals, code.co_stacksize, code.co_flags, code.co_code, code.co_consts,
                  code.co_names, code.co_varnames, code.co_filename, name, code.co_firstlineno, code.co_lnotab)
named = type(wait)(code, {"go": lambda fd: Klass.static(fd)})


class Base:
    def __getattr__(self, name):
        return recurse(0, 12)


def main():
    return Base().anything


main()
