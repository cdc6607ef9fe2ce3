# SPDX-License-Identifier: Apache-2.0
"""Workloads of the benchmark. usage: work.py NAME

Prints "ready", then obeys lines on stdin. "run CHUNKS UNITS" does that many chunks of that many units of work and
prints, as JSON, when it began and ended (CLOCK_MONOTONIC) and each chunk's wall and CPU seconds. "until UNITS" does chunks
of that many until the next line, and prints then. "warm SECONDS" reads /dev/zero for so long. One process serves all runs, so
that memory layout and caches are the same.

It runs on Python 3.6 and later, with the standard library only.
"""
import functools
import json
import select
import sys
import threading
import time
import zlib


def burn(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


def recurse(depth):
    return burn(2000) if depth == 0 else recurse(depth - 1)


def recursion(count):
    for _ in range(count):
        recurse(20)


DOCUMENT = {"rows": [{"id": i, "name": "row %d" % i, "tags": ["a", "b", "c"], "value": i / 7} for i in range(200)]}


def json_round(count):
    for _ in range(count):
        json.loads(json.dumps(DOCUMENT, default=str, indent=1))


def sort_key(item):
    return (item * 7919) % 1009


def sort_callbacks(count):
    for _ in range(count):
        sorted(range(2000), key=sort_key)


BLOCK = b"".join(b"%d;" % (i * i) for i in range(20000))


def zlib_blocks(count):
    for _ in range(count):
        zlib.compress(BLOCK, 6)


def threads64(count):
    def run():
        for _ in range(count):
            recurse(5)
    threads = [threading.Thread(target=run) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# Python and C in turns: 20 Python frames, and 40 native ones with Debian's 3.11. Other versions have some more or less.
def step(ways):
    return ways[0](ways[1:]) if ways else leaf()


def leaf():
    return leaf_burn()


def leaf_burn():
    return burn(2000)


def plainly(ways):
    return step(ways)


def by_sorted(ways):
    return sorted((ways,), key=step)


def by_min(ways):
    return min((ways,), key=step)


def by_map(ways):
    return list(map(step, (ways,)))


def by_reduce(ways):
    return functools.reduce(reduced, (ways, ways))


def reduced(ways, _):
    return step(ways)


WAYS = (by_sorted, by_map, plainly, by_reduce, by_min, by_map)


def mixed(count):
    for _ in range(count):
        step(WAYS)


# Two towers of calls in quick alternation: a stack read while it changes shows floors of both.
def left(floor):
    return left(floor - 1) if floor else burn(10)


def right(floor):
    return right(floor - 1) if floor else burn(10)


def towers(count):
    for _ in range(count):
        for _ in range(50):
            left(19)
            right(19)


def read_zeros(seconds):
    buffer = bytearray(1 << 20)
    end = time.monotonic() + seconds
    with open("/dev/zero", "rb", buffering=0) as source:
        while time.monotonic() < end:
            source.readinto(buffer)


WORK = {"recursion": recursion, "json": json_round, "sort": sort_callbacks, "zlib": zlib_blocks,
        "threads64": threads64, "mixed": mixed, "towers": towers}


def timed(work, units):
    wall, cpu = time.perf_counter(), time.process_time()
    work(units)
    return time.perf_counter() - wall, time.process_time() - cpu


def main():
    work = WORK[sys.argv[1]]
    work(1)
    print("ready", flush=True)
    for line in sys.stdin:
        words = line.split()
        chunks, start = [], time.monotonic()
        if words[0] == "warm":
            read_zeros(float(words[1]))
        elif words[0] == "until":
            while not select.select([sys.stdin], [], [], 0)[0]:
                chunks.append(timed(work, int(words[1])))
            sys.stdin.readline()
        else:
            chunks = [timed(work, int(words[2])) for _ in range(int(words[1]))]
        print(json.dumps({"start": start, "end": time.monotonic(), "chunks": chunks}), flush=True)


if __name__ == "__main__":
    main()
