# SPDX-License-Identifier: Apache-2.0
"""Callers that wait at one place, for different times and in no order, when the file GATE is there; until then warm() runs
and sleeps. Prints as JSON how many ns each was off the CPU, by its own clocks: the time that passed less its thread's CPU
time. The callers share their five newest Python functions, so that a recording that thins waits cannot tell them apart
by a call site.

usage: wait_callers.py SECONDS SEED GATE
"""
import json
import os
import random
import sys
import threading
import time

seconds, chosen = float(sys.argv[1]), random.Random(int(sys.argv[2]))
waited = dict.fromkeys(("steady", "often", "seldom", "varied", "in_bursts"), 0)


def warm():
    time.sleep(0.001)
    sum(range(10000))


def helper_5(time_s):
    time.sleep(time_s)


def helper_4(time_s):
    helper_5(time_s)


def helper_3(time_s):
    helper_4(time_s)


def helper_2(time_s):
    helper_3(time_s)


def helper_1(time_s):
    helper_2(time_s)


def steady():
    helper_1(0.002)


def often():
    helper_1(0.0003)


def seldom():
    helper_1(0.008)


def varied():
    helper_1(chosen.expovariate(1 / 0.002))


def in_bursts():
    for _ in range(10):
        helper_1(0.0002)
    helper_1(0.004)


def measured(function, of_thread):
    began, cpu = time.monotonic_ns(), time.thread_time_ns()
    function()
    of_thread[function.__name__] += time.monotonic_ns() - began - (time.thread_time_ns() - cpu)


def work(of_thread):
    end = time.monotonic() + seconds
    callers = [steady, steady, often, often, often, often, seldom, varied, varied, in_bursts]
    while time.monotonic() < end:
        measured(chosen.choice(callers), of_thread)


def main():
    while not os.path.exists(sys.argv[3]):
        warm()
    told = [dict(waited) for _ in range(4)]
    threads = [threading.Thread(target=work, args=[of_thread]) for of_thread in told]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({name: sum(of_thread[name] for of_thread in told) for name in waited}))


main()
