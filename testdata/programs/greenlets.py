"""Spins in greenlets that are started at one, two and three frames' depth. usage: greenlets.py SECONDS_EACH"""
import functools
import sys
import time

import greenlet

SECONDS = float(sys.argv[1])
clock = getattr(time, "thread_time", None) or time.clock  # of one thread, the same


def call(n):
    return n + 1


def spin(depth):
    end = clock() + SECONDS
    while clock() < end:
        for i in range(1000):
            call(i)


def key(depth):
    functools.reduce(lambda a, b: spin(depth), [1, 2])


def start(depth):
    if depth > 1:
        return start(depth - 1)
    return greenlet.greenlet(key).switch(depth)


greenlet.greenlet(key).switch(0)
start(1)
start(2)
