"""Builds a known chain of frames, tells what it is, and waits at its inner end.

Prints one line a frame, innermost first: qualified name, tab, line. The recorder
(tests/tools/record_space.c) then records the memory that the frame walk reads.
"""
import functools
import os
import sys


def wait(fd):
    frame = sys._getframe()
    lines = []
    while frame:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        lines.append(f"{name}\t{frame.f_lineno}")
        frame = frame.f_back
    lines[0] = f"wait\t{sys._getframe().f_lineno + 2}"  # where it will be when it waits
    print("\n".join(lines), "END", sep="\n", flush=True)
    os.read(fd, 1)


def generator(fd):
    yield 1
    yield wait(fd)


def outer_generator(fd):
    yield from generator(fd)


class Klass:
    def __init__(self, fd):
        self.values = [x for x in outer_generator(fd)]

    def method(self, fd):
        return (lambda: Klass.static(fd))()

    @staticmethod
    def static(fd):
        return sorted([2, 1], key=lambda x: Klass(fd))

    def __lt__(self, other):
        return False


def naïve_日本_𐐷(fd, depth):
    if depth:
        return naïve_日本_𐐷(fd, depth - 1)
    return functools.reduce(lambda a, b: Klass.method(None, fd), [1, 2])


class Base:
    def __getattr__(self, name):
        return naïve_日本_𐐷(0, 12)


def main():
    return Base().anything


main()
