# SPDX-License-Identifier: Apache-2.0
"""Functions that hold the GIL while another thread wants it, one after another: C calls that do not release it, one that blocks
and one that computes; a loop in Python; and one that releases it. Begins when the file GATE is there; until then warm() runs
and sleeps in turns. Prints as JSON how many ns each took, which is how long the other thread could not run.

usage: hogs.py SECONDS GATE
"""
import ctypes
import json
import os
import sys
import threading
import time

seconds = float(sys.argv[1])
holding, releasing = ctypes.PyDLL(None), ctypes.CDLL(None)
memory = ctypes.create_string_buffer(1 << 26)
took = dict.fromkeys(("blocks", "computes", "loops", "releases"), 0)
stop = 0.0


def warm():
    time.sleep(0.001)
    sum(range(10000))


def blocks():
    holding.usleep(20000)


def computes():
    for _ in range(4):
        holding.memset(memory, 1, len(memory))


def loops():
    x = 0
    for i in range(100000):
        x += i


def releases():
    releasing.usleep(20000)


def victim():
    """Wants the GIL again as soon as it has given it away."""
    while time.monotonic() < stop:
        time.sleep(0)


def main():
    global stop
    while not os.path.exists(sys.argv[2]):
        warm()
    for function in (blocks, computes, loops, releases):
        stop = time.monotonic() + seconds
        thread = threading.Thread(target=victim)
        thread.start()
        while time.monotonic() < stop:
            began = time.monotonic_ns()
            function()
            took[function.__name__] += time.monotonic_ns() - began
            time.sleep(0.002)
        thread.join()
    print(json.dumps(took))


main()
