"""Calls that come and go far faster than a stack is read, each pair of functions at the same place of the stack.

A stack that mixes two moments shows a function of one pair above one of another. usage: pairs.py SECONDS
"""
import sys
import time


def pair(name):
    """NAME_outer calls NAME_inner, and nothing else does."""
    scope = {}
    text = ("def NAME_inner(n):\n    return n + 1\n"
            "def NAME_outer(n):\n    return NAME_inner(n) + NAME_inner(n)\n")
    exec(compile(text.replace("NAME", name), "<" + name + ">", "exec"), scope)
    return scope[name + "_outer"]


pairs = [pair(name) for name in ("red", "green", "blue", "white")]
clock = getattr(time, "thread_time", None) or time.clock  # of one thread, the same
end = clock() + float(sys.argv[1])
while clock() < end:
    for n in range(200):
        for outer in pairs:
            outer(n)
