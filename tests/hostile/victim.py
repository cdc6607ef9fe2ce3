# SPDX-License-Identifier: Apache-2.0
"""The program that attackers try to hide: it opens files in opens(), grows in grows(), and sleeps in rests(); then it works in
a known chain of functions. It says how much that was.

usage: victim.py REST_S WORK_S UNTIL_S     these may be a line of standard input, with "-" in their place. Rests, does so, and
                                           works for so long by its own clock, but not beyond that time of CLOCK_MONOTONIC. Prints
                                           as JSON {"opened": how many files, "grown_bytes": of VmData, "rested_ns": in rests(),
                                           "cpu_s": CPU time of the work, "worked_s": how long that took}
"""
import json
import mmap
import os
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


def opens(count):
    for _ in range(count):
        os.close(os.open("/dev/null", os.O_RDONLY))


def grows(count):
    return [mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for _ in range(count)]


def rests(count):
    began = time.monotonic_ns()
    for _ in range(count):
        time.sleep(0.005)
    return time.monotonic_ns() - began


def data_bytes():
    with open("/proc/self/status", encoding="utf-8") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:"))


rest_s, work_s, until_s = map(float, sys.stdin.readline().split() if sys.argv[1] == "-" else sys.argv[1:])
time.sleep(rest_s)
told = {"opened": 500}
opens(told["opened"])
before = data_bytes()
kept = grows(64)
told["grown_bytes"] = data_bytes() - before
told["rested_ns"] = rests(50)
began, before = time.monotonic(), time.thread_time()
outer(min(began + work_s, until_s))
told["cpu_s"], told["worked_s"] = time.thread_time() - before, time.monotonic() - began
print(json.dumps(told), flush=True)
