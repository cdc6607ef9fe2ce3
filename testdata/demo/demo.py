# SPDX-License-Identifier: Apache-2.0
"""Spends its time in four known places, by its own clock:

    parse_orders   35 %  plain Python
    score_order    20 %  Python that a C function (each, in demo_native.c) calls back
    mix_block      20 %  C, in an extension module
    read_zeros     25 %  the kernel, reading /dev/zero

usage: demo.py SECONDS     (demo_native.so on PYTHONPATH)
Prints what it measured, one line a place: name and percent.
"""
import sys
import time

import demo_native

SHARES = {"parse_orders": 35, "score_order": 20, "mix_block": 20, "read_zeros": 25}
LINES = ["%d;item-%d;%d.%02d" % (i, i * 7, i % 90, i % 100) for i in range(400)]
BLOCK = bytes(range(256)) * 1024


def parse_orders():
    orders = []
    for line in LINES:
        number, item, price = line.split(";")
        orders.append((int(number), item.upper(), float(price)))
    orders.clear()  # here, so that freeing them counts here


def score_order(order):
    total = 0
    for digit in range(200):
        total += order ^ digit
    return total


def score_orders():
    demo_native.each(score_order, 40)


def mix_block():
    demo_native.mix(BLOCK)


def read_zeros(source, buffer):
    source.readinto(buffer)


def spend(seconds, work, *arguments):
    """Repeats a piece of work until it has used its share of CPU time; returns what it used."""
    start = time.thread_time()
    while (used := time.thread_time() - start) < seconds:
        for _ in range(20):  # few readings of the clock, so that they cost next to nothing
            work(*arguments)
    return used


def main():
    seconds = float(sys.argv[1])
    used = dict.fromkeys(SHARES, 0.0)
    buffer = bytearray(1 << 20)
    with open("/dev/zero", "rb", buffering=0) as source:
        work = {"parse_orders": (parse_orders,), "score_order": (score_orders,), "mix_block": (mix_block,),
                "read_zeros": (read_zeros, source, buffer)}
        while sum(used.values()) < seconds:
            for name, share in SHARES.items():
                # What a round overran or fell short of is made good in the next one.
                owed = share / 100 * (sum(used.values()) + 0.2) - used[name]
                used[name] += spend(owed, *work[name])
    total = sum(used.values())
    for name, time_used in used.items():
        print(f"{name} {100 * time_used / total:.1f}")


main()
