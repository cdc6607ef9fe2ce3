# SPDX-License-Identifier: Apache-2.0
"""Threads and processes that come and go: threads of 3 and 20 ms one after the other, many at once, and forks of threads."""
import os
import threading
import time

from clocks import phase


def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(n * n % 97 for n in range(300))


@phase
def very_short():
    spin(0.003)


@phase
def short():
    spin(0.02)


@phase
def one_of_many():
    spin(0.025)


@phase
def in_child():
    spin(0.02)


@phase
def in_grandchild():
    spin(0.02)


@phase
def in_main():
    spin(0.02)


def in_threads(function, count, at_once=1):
    for _ in range(count // at_once):
        threads = [threading.Thread(target=function) for _ in range(at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def forked(function, *then):
    child = os.fork()
    if not child:
        function()
        if then:
            forked(*then)
        os._exit(0)
    os.waitpid(child, 0)


in_threads(very_short, 400)
in_threads(short, 60)
in_threads(one_of_many, 60, 60)
for _ in range(50):
    in_main()
    in_threads(lambda: forked(in_child, in_grandchild), 1)
