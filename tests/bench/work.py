# SPDX-License-Identifier: Apache-2.0
"""Workloads of the benchmark. usage: work.py NAME

Prints "ready", then for each line "COUNT" on stdin does that many units of work and prints
the seconds they took. "warm SECONDS" reads /dev/zero for so long. One process serves all runs,
so that memory layout and caches are the same.
"""
import json
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


def read_zeros(seconds):
    buffer = bytearray(1 << 20)
    end = time.monotonic() + seconds
    with open("/dev/zero", "rb", buffering=0) as source:
        while time.monotonic() < end:
            source.readinto(buffer)


WORK = {"recursion": recursion, "json": json_round, "sort": sort_callbacks, "zlib": zlib_blocks, "threads64": threads64}


def main():
    work = WORK[sys.argv[1]]
    work(1)
    print("ready", flush=True)
    for line in sys.stdin:
        start = time.monotonic()
        if line.startswith("warm "):
            read_zeros(float(line.split()[1]))
        else:
            work(int(line))
        print(time.monotonic() - start, flush=True)


if __name__ == "__main__":
    main()
