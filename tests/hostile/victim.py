# SPDX-License-Identifier: Apache-2.0
"""The program that attackers try to hide: it works in a known chain of functions and says how much CPU time that took.

usage: victim.py REST_S WORK_S     rests, works for so long by its own clock, and prints the CPU time of the work
"""
import sys
import time


def inner(end):
    while time.monotonic() < end:
        for _ in range(20000):
            pass


def middle(end):
    inner(end)


def outer(end):
    middle(end)


time.sleep(float(sys.argv[1]))
before = time.thread_time()
outer(time.monotonic() + float(sys.argv[2]))
print(time.thread_time() - before, flush=True)
