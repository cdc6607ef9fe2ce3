# SPDX-License-Identifier: Apache-2.0
"""Threads that stand still in calls of all kinds. When all do, it prints the stack of each by the thread's id, innermost
first, as the interpreter itself knows it: function, file and line. It runs on every Python, and ends with its input.

usage: standing.py
"""
from __future__ import print_function

import json
import os
import sys
import threading
import time

try:
    from threading import get_ident
except ImportError: # Python 2
    from thread import get_ident

readable, writable = os.pipe()
known = {} # what _current_frames() calls a thread -> its id
SOURCE = """
def made_at_run_time(stop):
    if True:
        return (1,

                stop())
"""


def sleeps():
    time.sleep(100000)


def reads():
    os.read(readable, 1)


def locks():
    lock = threading.Lock()
    lock.acquire()
    with lock:
        pass


def recurses(depth=60):
    if depth:
        recurses(depth - 1)
    else:
        reads()


def generates():
    def items():
        yield 1
        for _ in range(2):
            reads()
            yield 2
    return [item
            for item in items()]


def sorts():
    return sorted([3, 2], key=lambda item:
                  reads())


class Thing(object):
    @property
    def value(self):
        return [reads() for _ in (1, 2)][0]

    def __enter__(self):
        return self.value

    def __exit__(self, *_):
        pass

    @classmethod
    def enters(cls):
        with cls():
            pass


def calls_over_lines(
        first=None):
    return dict(
        a=1,
        b=first or
        reads(),
        c=2,
    )


def executes():
    scope = {}
    exec(compile(SOURCE, "<made>", "exec"), scope)
    scope["made_at_run_time"](reads)


def fails():
    try:
        raise ValueError
    except ValueError:
        try:
            {}["none"]
        except KeyError:
            pass
        finally:
            reads()


def awaits():
    scope = {"reads": reads}
    exec(compile("async def inner():\n    reads()\n\nasync def outer():\n    await inner()\n", "<coroutine>", "exec"), scope)
    scope["outer"]().send(None)


def known_as(function):
    known[get_ident()] = int(os.readlink("/proc/thread-self").rpartition("/")[2])
    function()


def sleeping(tid):
    with open("/proc/self/task/%d/stat" % tid) as f:
        return f.read().rpartition(")")[2].split()[0] == "S"


def stacks():
    found = {}
    for ident, frame in sys._current_frames().items():
        frames = []
        while frame:
            frames.append((frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno))
            frame = frame.f_back
        if ident in known:
            found[known[ident]] = frames
    return found


def reports(count):
    before = None
    while True:
        time.sleep(0.05)
        now = stacks()
        if len(now) == count and now == before and all(sleeping(tid) for tid in now):
            break
        before = now
    print(json.dumps(now))
    sys.stdout.flush()
    reads()


def main():
    functions = [sleeps, reads, locks, recurses, generates, sorts, Thing.enters, calls_over_lines, executes, fails]
    if sys.version_info >= (3, 5):
        functions.append(awaits)
    for function in functions:
        thread = threading.Thread(target=known_as, args=(function,))
        thread.daemon = True
        thread.start()
    reporter = threading.Thread(target=reports, args=(len(functions) + 1,))
    reporter.daemon = True
    reporter.start()
    known_as(lambda: os.read(0, 1))
    os._exit(0)


main()
