# SPDX-License-Identifier: Apache-2.0
"""Functions that keep another thread waiting for the GIL, one after another: one that releases it; C calls that do not, one
that blocks and one that computes; and a loop in Python. Begins when the file GATE is there; until then warm() runs and sleeps
in turns. Prints as JSON how many ns the other thread waited because of each, by its own clock: how long its short sleeps
took, less what as many take beside the function that releases the GIL, where no other program takes the CPU; the longest of
them; and the ids of the two threads.

usage: hogs.py SECONDS GATE     SECONDS: for each function
"""
import ctypes
import json
import os
import sys
import threading
import time

now = getattr(time, "perf_counter", time.time)
holding, releasing = ctypes.PyDLL(None), ctypes.CDLL(None)
memory = ctypes.create_string_buffer(1 << 25)
seconds = float(sys.argv[1])


def warm():
    time.sleep(0.001)
    sum(range(10000))


def releases():
    releasing.usleep(20000)


def blocks():
    holding.usleep(20000)


def computes():
    for _ in range(4):
        holding.memset(memory, 1, len(memory))


def loops():
    x = 0
    for i in range(100000):
        x += i


def nap():
    began = now()
    releasing.usleep(100)
    return now() - began


def beside(function):
    """How long the naps of a thread take while another runs `function`; the ids of both."""
    naps, tids = [], []
    stop = now() + seconds

    def hog():
        tids.append(releasing.gettid())
        while now() < stop:
            function()
            releasing.usleep(1000)

    def victim():
        tids.append(releasing.gettid())
        while now() < stop:
            naps.append(nap())

    threads = [threading.Thread(target=target) for target in (hog, victim)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(naps), tids


def main():
    while not os.path.exists(sys.argv[2]):
        warm()
    usual, out = None, {}
    for function in (releases, blocks, computes, loops):
        naps, tids = beside(function)
        usual = usual or naps[len(naps) // 10]
        out[function.__name__] = {"waited_ns": int(1e9 * (sum(naps) - usual * len(naps))), "longest_ns": int(1e9 * naps[-1]),
                                  "tids": tids}
    print(json.dumps(out))


main()
