"""Spins where the frames of a thread lie in several pieces of memory: from 3.11 on they are put into chunks of 16 KiB or, where
one frame is larger, more. Frames of many variables fill chunks, each call begins one or just fits, and generators have their
frames elsewhere.

usage: split.py SECONDS_EACH
Writes a line of JSON for each place, see told.py. 2.7 and 3.6 on.
"""
import sys

from told import spin

SECONDS = float(sys.argv[1])
sys.setrecursionlimit(3000)


def with_variables(count):
    """A function of so many variables that calls the first of `calls` with the others."""
    scope = {}
    text = "def call%d(calls):\n    if calls:\n        return calls[0](calls[1:])\n    %s = 0\n" % (
        count, " = ".join("v%d" % i for i in range(count)))
    exec(compile(text, "<%d variables>" % count, "exec"), scope)
    return scope["call%d" % count]


SIZES = (1, 100, 1000, 1900, 2000, 2100, 5000)
CALLS = {count: with_variables(count) for count in SIZES}


def narrow(calls):
    return calls[0](calls[1:])


def resumed(calls):
    yield calls[0](calls[1:])


def generator(calls):
    return list(resumed(calls))


def chain(name, calls):
    calls = calls + [lambda rest: spin(name, SECONDS)]
    calls[0](calls[1:])


for count in SIZES:
    chain("each%d" % count, [CALLS[count]] * 12)
# Ends before, at and behind the end of a chunk, which is left and entered again.
for depth in (1, 40, 80, 120, 160):
    chain("narrow%d" % depth, [narrow] * depth)
chain("mixed", [narrow, CALLS[1000], generator, CALLS[5000], CALLS[1], generator, narrow] * 8)
