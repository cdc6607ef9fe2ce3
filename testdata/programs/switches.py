# SPDX-License-Identifier: Apache-2.0
"""Sleeps N times in inner(), and prints as JSON how often the kernel took it off a CPU meanwhile, as /proc/self/status has
it. outer() holds both readings and what lies between them: the truth lies between what is seen of inner() and of outer().
Before that it sleeps in warm(), until the file GATE is there.

usage: switches.py N GATE
"""
import json
import os
import sys
import time


def switches():
    with open("/proc/self/status") as status:
        return sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)


def inner(count):
    for _ in range(count):
        time.sleep(0.0005)


def outer(count):
    before = switches()
    inner(count)
    return switches() - before


def warm(gate):
    while not os.path.exists(gate):
        time.sleep(0.002)


switches()
warm(sys.argv[2])
print(json.dumps({"switches": outer(int(sys.argv[1]))}))
