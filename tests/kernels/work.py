# SPDX-License-Identifier: Apache-2.0
"""Spins at the inner end of known chains of calls, some of them through C, and tells what they are.

usage: work.py SECONDS    of CPU time: that many samples come whatever else the machine does
First sums in Python, then long reads (kernel frames), then the same sums in a forked child. Each process prints
a line of JSON: {"pid", "parent", "chains": {name of the inner function: {"frames": [[qualified name, file, line],
...], "lines": [of the inner function]}}}, frames outermost first.
"""
import json
import os
import sys
import time

chains = {}


def tell(name):
    if name in chains:
        return
    frame = sys._getframe(1)
    lines = sorted({line for _, _, line in frame.f_code.co_lines() if line})
    frames = []
    while frame:
        frames.append([frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    chains[name] = {"frames": frames[::-1], "lines": lines}


def burn(n):
    tell("burn")
    total = 0
    for i in range(n):
        total += i * i
    return total


def middle(n):
    return sorted([n, n + 1], key=lambda k: burn(k))


def outer(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        middle(20000)


def read(zeros, size):
    tell("read")
    return os.read(zeros, size)


def reads(seconds):
    zeros = os.open("/dev/zero", os.O_RDONLY)
    end = time.process_time() + seconds
    while time.process_time() < end:
        read(zeros, 8 << 20)


def say():
    text = json.dumps({"pid": os.getpid(), "parent": os.getppid(), "chains": chains})
    os.write(1, text.encode() + b"\n")


def fork(seconds):
    child = os.fork()
    if not child:
        chains.clear()
        outer(seconds)
        say()
        os._exit(0)
    os.waitpid(child, 0)


seconds = float(sys.argv[1])
outer(seconds / 2)
reads(seconds / 4)
fork(seconds / 4)
say()
