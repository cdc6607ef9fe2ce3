# SPDX-License-Identifier: Apache-2.0
"""Threads that wait at known places, when the file GATE is there; until then warm() runs and sleeps in turns. Prints as JSON
the stacks in which the interpreter itself saw them, [function, line] from the outermost on: a list by thread function.

usage: known_waits.py SECONDS GATE
"""
import json
import os
import sys
import threading
import time

try:
    import queue
except ImportError:
    import Queue as queue

end = [0]
read_end, write_end = os.pipe()
items = queue.Queue()
lock = threading.Lock()


def warm():
    time.sleep(0.001)
    sum(range(10000))


def goes_on():
    return time.time() < end[0]


def sleeps():
    while goes_on():
        sleep_here()


def sleep_here():
    time.sleep(0.03)


def reads():
    while goes_on():
        [os.read(fd, 1) for fd in [read_end]]


def takes():
    while goes_on():
        items.get()


def wants():
    while goes_on():
        with lock:
            pass
        time.sleep(0.03)


def gives():
    """What the others wait for."""
    while goes_on():
        with lock:
            time.sleep(0.03)
        os.write(write_end, b"x")
        items.put(None)
        time.sleep(0.03)
    os.write(write_end, b"x")
    items.put(None)


def stack(frame):
    out = []
    while frame:
        out.append([frame.f_code.co_name, frame.f_lineno])
        frame = frame.f_back
    return out[::-1]


def main():
    while not os.path.exists(sys.argv[2]):
        warm()
    end[0] = time.time() + float(sys.argv[1])
    threads = {f.__name__: threading.Thread(target=f) for f in (sleeps, reads, takes, wants, gives)}
    for thread in threads.values():
        thread.start()
    seen = dict((name, set()) for name in threads)
    while any(thread.is_alive() for thread in threads.values()):
        frames = sys._current_frames()
        for name, thread in threads.items():
            if thread.ident in frames:
                seen[name].add(json.dumps(stack(frames[thread.ident])))
        time.sleep(0.001)
    print(json.dumps(dict((name, [json.loads(s) for s in stacks]) for name, stacks in seen.items())))


main()
