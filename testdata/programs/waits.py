# SPDX-License-Identifier: Apache-2.0
"""Threads that wait in known ways, when the file GATE is there; until then warm() runs and sleeps in turns. Prints as JSON
how many ns each function was off the CPU, by its own clocks: the time that passed less its thread's CPU time.

usage: waits.py SCALE GATE
"""
import json
import os
import queue
import sys
import threading
import time

scale = float(sys.argv[1])
waited = {}


def warm():
    time.sleep(0.001)
    sum(range(10000))


def measured(function, count):
    """Calls it `count` times; only that is measured."""
    began, cpu = time.monotonic_ns(), time.thread_time_ns()
    for _ in range(int(count * scale)):
        function()
    waited[function.__name__] = time.monotonic_ns() - began - (time.thread_time_ns() - cpu)


def sleep_long():
    time.sleep(0.25)


def sleep_short():
    time.sleep(0.005)


def burst():
    for _ in range(10):
        time.sleep(0.0005)
    time.sleep(0.1)


read_end, write_end = os.pipe()


def read_pipe():
    os.read(read_end, 1)


def write_pipe():
    time.sleep(0.01)
    os.write(write_end, b"x")


items = queue.Queue()


def take():
    items.get()


def give():
    time.sleep(0.02)
    items.put(None)


lock = threading.Lock()


def hold_lock():
    with lock:
        time.sleep(0.03)
    time.sleep(0.002)


def want_lock():
    with lock:
        pass
    time.sleep(0.001)


def main():
    while not os.path.exists(sys.argv[2]):
        warm()
    calls = {sleep_long: 4, sleep_short: 180, burst: 8, read_pipe: 80, write_pipe: 80, take: 45, give: 45, hold_lock: 30,
             want_lock: 25}
    threads = [threading.Thread(target=measured, args=call) for call in calls.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(waited))


main()
