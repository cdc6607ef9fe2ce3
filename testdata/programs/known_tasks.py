# SPDX-License-Identifier: Apache-2.0
"""Tasks of asyncio that wait in every way there is. When all of them do, the program prints as one line of JSON what asyncio
says of them, and stops itself with SIGSTOP, so that another program can look at the same moment. On SIGCONT it ends.

It stops in a task (`task`: the other tasks wait, this one runs), in a callback of the loop (`callback`: no task runs), or in
another thread while the loop waits for events (`thread`). COUNT more tasks wait in sleeping().

Printed: {"tasks": [{"id", "name", "loop", "state", "waits_for", "tasks", "frames", "graph", "awaited_by", "by_python"}],
"futures": {ID: awaited_by}}. `id` is the address. `state` is "running", "ready", "task" or "future", `waits_for` the address
of the task or future; `tasks` are the addresses of that task, or of those that gather() waits for. `frames` are [name,
qualified name, line, offset of the instruction], outermost first. What only Python 3.14 and later know is null before:
`graph`, the lines of the frames that asyncio.graph tells of, and `awaited_by`, the tasks and futures that wait for it;
futures that are no tasks stand in "futures". `by_python`: the task is of the class in tasks.py, which the interpreter's own
list does not hold.

usage: known_tasks.py task|callback|thread [COUNT]     (Python 3.12 or later)
"""
import asyncio
import contextlib
import gc
import json
import os
import signal
import sys
import threading
import types

try:
    from asyncio import graph
except ImportError:
    graph = None

FOREVER = 1000
kept = []  # so that no task is collected
counted = {}  # task without a name of its own: the name that it would have, if asked


def start(function, *arguments, name=None):
    task = asyncio.create_task(function(*arguments), name=name or "name of " + function.__name__)
    kept.append(task)
    return task


async def sleeping():
    await asyncio.sleep(FOREVER)


# ---- coroutines ----

async def nested():
    await middle()


async def middle():
    async with contextlib.AsyncExitStack():
        await leaf()


async def leaf():
    await asyncio.sleep(FOREVER)


async def deep(depth=200):
    if depth:
        await deep(depth - 1)
    await asyncio.sleep(FOREVER)


async def by_generator():
    await generated()


@types.coroutine
def generated():
    yield from leaf()


class Awaitable:
    def __await__(self):
        yield from leaf().__await__()


async def by_object():
    await Awaitable()


class Steps:
    """Awaited without a frame of its own."""

    def __init__(self):
        self.future = asyncio.get_running_loop().create_future()
        self.inner = self.future.__await__()

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.inner)


async def by_steps():
    await Steps()


async def items():
    yield 1
    await leaf()
    yield 2


async def loops_over_items():
    async for _ in items():
        pass


@contextlib.asynccontextmanager
async def managed():
    await leaf()
    yield


async def enters_manager():
    async with managed():
        pass


# ---- tasks that wait for tasks ----

async def waits_for_task(task):
    await task


async def gathers():
    await asyncio.gather(start(sleeping, name="gathered 1"), start(nested, name="gathered 2"))


async def groups():
    async with asyncio.TaskGroup() as group:
        group.create_task(sleeping(), name="grouped 1")
        group.create_task(waits_for_task(start(leaf, name="of a group")), name="grouped 2")


async def waits_for_first():
    await asyncio.wait([start(sleeping, name="waited 1"), start(sleeping, name="waited 2")],
                       return_when=asyncio.FIRST_COMPLETED)


async def shields():
    await asyncio.shield(start(sleeping, name="shielded"))


async def with_timeout():
    await asyncio.wait_for(leaf(), FOREVER)


# ---- tasks that wait for something else ----

async def takes(queue):
    await queue.get()


async def locks(lock):
    async with lock:
        await asyncio.sleep(FOREVER)


async def awaits_future(future):
    await future


async def of_thread(event):
    await asyncio.to_thread(event.wait)


async def yields():
    while True:
        await asyncio.sleep(0)


async def ends():
    pass


class OwnTask(asyncio.Task):
    pass


def start_all(loop, done):
    lock, queue = asyncio.Lock(), asyncio.Queue()
    for function in (sleeping, nested, deep, by_generator, by_object, by_steps, loops_over_items, enters_manager, gathers, groups,
                     waits_for_first, shields, with_timeout, yields, ends):
        start(function)
    first = start(waits_for_task, start(waits_for_task, start(leaf, name="innermost"), name="between"), name="outermost")
    start(waits_for_task, first, name="\u4efb\u52a1 \U0001f40d;with:signs")
    start(waits_for_task, first, name="n" * 300)
    start(takes, queue)
    start(locks, lock, name="has the lock")
    start(locks, lock, name="wants the lock")
    start(awaits_future, loop.create_future())
    start(of_thread, done)
    kept.append(OwnTask(nested(), loop=loop, name="of an own class"))
    kept.append(asyncio.tasks._PyTask(nested(), loop=loop, name="by Python"))
    kept.append(asyncio.Task(nested(), loop=loop, eager_start=True, name="eager"))
    before = asyncio.create_task(sleeping())
    counted[asyncio.create_task(sleeping())] = "Task-%d" % (int(before.get_name()[5:]) + 1)
    kept.append(before)


def other_loop(until, ready):
    """A loop in a thread. With `until` it is left when its tasks wait, and the thread ends."""
    async def main():
        start(nested, name="of another thread" if until is None else "of an ended thread")
        await asyncio.sleep(0.01)
        ready.set()
        if until is None:
            await asyncio.sleep(FOREVER)
    loop = asyncio.new_event_loop()
    kept.append(loop)
    loop.run_until_complete(main())


# ---- what asyncio says ----

def frames_of(coroutine):
    """Outermost first."""
    found = []
    while coroutine is not None:
        frame, inner = None, None
        for prefix, its_inner in (("cr", "cr_await"), ("gi", "gi_yieldfrom"), ("ag", "ag_await")):
            if hasattr(coroutine, its_inner):
                frame, inner = getattr(coroutine, prefix + "_frame"), getattr(coroutine, its_inner)
        if frame is not None:
            code = frame.f_code
            found.append([code.co_name, code.co_qualname, frame.f_lineno, frame.f_lasti])
        elif type(coroutine).__name__ in ("async_generator_asend", "async_generator_athrow", "coroutine_wrapper"):
            # What these stand for is not an attribute of theirs.
            inner = next(o for o in gc.get_referents(coroutine) if hasattr(o, "ag_await") or hasattr(o, "cr_await"))
        coroutine = inner
    return found


def awaiters(future, futures):
    """Addresses, or None; futures that are no tasks are added to `futures`."""
    if not hasattr(future, "_asyncio_awaited_by"):
        return None
    found = list(future._asyncio_awaited_by or [])
    for one in found:
        if not is_task(one) and id(one) not in futures:
            futures[id(one)] = []
            futures[id(one)] = awaiters(one, futures)
    return [id(one) for one in found]


def is_task(future):
    return isinstance(future, (asyncio.Task, asyncio.tasks._PyTask))


def describe(task, running, futures):
    waiter = task._fut_waiter
    tasks = [one for one in [waiter, *getattr(waiter, "_children", [])] if is_task(one)]
    is_running = task is running
    return {"id": id(task), "name": counted.get(task) or task.get_name(), "loop": id(task.get_loop()),
            "state": "running" if is_running else "ready" if waiter is None else "task" if tasks else "future",
            "waits_for": id(waiter) if waiter is not None else 0, "tasks": [id(one) for one in tasks],
            "frames": [] if is_running else frames_of(task.get_coro()),
            "graph": [f.frame.f_lineno for f in graph.capture_call_graph(task).call_stack][::-1]
            if graph and not is_running else None,
            "awaited_by": awaiters(task, futures), "by_python": isinstance(task, asyncio.tasks._PyTask)}


def tell_and_stop(loops, running):
    futures = {}
    tasks = [describe(task, running, futures) for loop in loops for task in asyncio.all_tasks(loop)]
    print(json.dumps({"tasks": tasks, "futures": futures}), flush=True)
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)  # this thread stops before it goes on
    os._exit(0)


async def main(where, count):
    loop, done = asyncio.get_running_loop(), threading.Event()
    for until in (None, True):
        ready = threading.Event()
        thread = threading.Thread(target=other_loop, args=(until, ready), daemon=True)
        thread.start()
        await asyncio.to_thread(thread.join if until else ready.wait)
    start_all(loop, done)
    for i in range(count):
        start(sleeping, name="sleeper %d" % i)
    for _ in range(10):
        await asyncio.sleep(0.01)
    loops = [loop] + [one for one in kept if isinstance(one, asyncio.AbstractEventLoop)]
    for task in kept:
        if asyncio.isfuture(task) and task.get_name() == "name of yields" and where == "thread":
            task.cancel()  # the loop would not wait while a task is ready
    if where == "task":
        start(sleeping, name="not started")
        tell_and_stop(loops, asyncio.current_task())
    elif where == "callback":
        loop.call_soon(tell_and_stop, loops, None)
    else:
        threading.Timer(0.2, tell_and_stop, (loops, None)).start()
    await asyncio.sleep(FOREVER)


asyncio.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0))
