# SPDX-License-Identifier: Apache-2.0
"""Tasks of asyncio that wait at known places for known things, by their own clock. First all of them wait in warm(), until the
file GATE is there; then each one does its work for about SECONDS.

Prints as JSON, a list by the name of the task: [what, function, line, since_ns, until_ns] for each wait, by CLOCK_MONOTONIC. `what`
is "task" (it awaits a task that is not done), "future" or "event loop" (it could go on, but the loop is busy); `function` is
the innermost one that is written here, and `line` the line of its await. A wait lasts from its await until the task is run
again. "busy" are the times in which the loop was kept busy by hog(), as [since_ns, until_ns].

usage: task_waits.py SECONDS GATE     (Python 3.7 or later)
"""
import asyncio
import json
import os
import sys
import time

waits = {}
busy = []
made = {}  # by task that was not run yet: its function's code, and since when


class waiting:
    """Adds the wait in the line below to those of the task."""

    def __init__(self, what):
        caller = sys._getframe(1)
        self.what, self.function, self.line = what, caller.f_code.co_name, caller.f_lineno + 1

    def __enter__(self):
        self.since = time.monotonic_ns()
        code, since = made.pop(asyncio.current_task(), (None, None))
        if code:
            self.add("event loop", code.co_name, code.co_firstlineno, since, self.since)

    def __exit__(self, *error):
        self.add(self.what, self.function, self.line, self.since, time.monotonic_ns())

    @staticmethod
    def add(*row):
        task = asyncio.current_task()
        waits.setdefault(task.get_name() if hasattr(task, "get_name") else "", []).append(row)


async def warm(gate):
    while not os.path.exists(gate):
        await asyncio.sleep(0.01)


async def sleeps(end):
    """One wait as long as the work."""
    with waiting("future"):
        await asyncio.sleep(max(0, end - time.monotonic()))


async def sleeps_in_turns(end):
    """Waits of many lengths, from two places."""
    length = 0.001
    while time.monotonic() < end:
        await briefly(length)
        length = length * 2 if length < 0.5 else 0.001


async def briefly(length):
    with waiting("future"):
        await asyncio.sleep(length)
    with waiting("future"):
        await asyncio.sleep(length / 2)


async def takes(queue, end):
    while time.monotonic() < end:
        with waiting("future"):
            await queue.get()


async def gives(queue, end):
    while time.monotonic() < end:
        with waiting("future"):
            await asyncio.sleep(0.3)
        queue.put_nowait(None)
    queue.put_nowait(None)


async def awaits_tasks(end):
    """Waits for a task that waits for a task."""
    while time.monotonic() < end:
        task = named(awaits_one(0.7), "between")
        with waiting("task"):
            await task


async def awaits_one(length):
    task = named(briefly(length), "innermost")
    with waiting("task"):
        await task


async def gathers(end):
    while time.monotonic() < end:
        with waiting("future"):
            await asyncio.gather(briefly(0.2), briefly(0.4))


async def hog(end):
    """Keeps the loop busy for 0.4 s of each second."""
    while time.monotonic() < end:
        with waiting("future"):
            await asyncio.sleep(0.6)
        since = time.monotonic_ns()
        while time.monotonic_ns() < since + 400_000_000:
            pass
        busy.append([since, time.monotonic_ns()])


async def always_ready(end):
    """Could always go on, and waits for hog()."""
    while time.monotonic() < end:
        with waiting("event loop"):
            await asyncio.sleep(0)
        time.sleep(0.002)


def named(coroutine, name):
    task = asyncio.ensure_future(coroutine)
    made[task] = coroutine.cr_code, time.monotonic_ns()
    if hasattr(task, "set_name"):
        task.set_name(name)
    return task


async def after_warm(gate, function, *arguments):
    made.pop(asyncio.current_task())
    await warm(gate)
    await function(*arguments, time.monotonic() + float(sys.argv[1]))


async def main(gate):
    queue = asyncio.Queue()
    work = [(sleeps,), (sleeps_in_turns,), (takes, queue), (gives, queue), (awaits_tasks,), (gathers,), (hog,), (always_ready,)]
    tasks = [named(after_warm(gate, *one), one[0].__name__) for one in work]
    for task in tasks:
        await task


asyncio.run(main(sys.argv[2]))
print(json.dumps({"waits": waits, "busy": busy}))
