# SPDX-License-Identifier: Apache-2.0
"""Makes system calls whose number and sizes it knows, in THREADS threads at once, when the file GATE is there; until then it
runs warm(), which makes none of them. Prints as JSON, by function, how many calls it made, how many bytes they wrote, and
how many the largest.

In each thread opens() opens N files, writes_small() and writes_large() write N times to /dev/null, forks() forks N / 50 times,
and spins() runs for a little longer than the others together.

usage: hits.py N THREADS GATE
"""
import json
import os
import sys
import threading
import time

null = os.open("/dev/null", os.O_WRONLY)
told = {}
lock = threading.Lock()


def tell(function, calls, size=0, largest=0):
    with lock:
        row = told.setdefault(function, {"calls": 0, "bytes": 0, "largest": 0})
        row["calls"] += calls
        row["bytes"] += size
        row["largest"] = max(row["largest"], largest)


def opens(count):
    for _ in range(count):
        os.close(os.open("/dev/null", os.O_RDONLY))
    tell("opens", count)


def writes_small(count):
    size = 0
    for i in range(count):
        size += os.write(null, b"x" * (i % 100))
    tell("writes_small", count, size, 99)


def writes_large(count):
    size = 0
    for i in range(count):
        size += os.write(null, b"x" * (10000 + i))
    tell("writes_large", count, size, 10000 + count - 1)


def forks(count):
    for _ in range(count):
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
    tell("forks", count)


def spins(seconds):
    end = time.time() + seconds
    while time.time() < end:
        for _ in range(1000):
            pass


def work(count):
    start = time.time()
    opens(count)
    writes_small(count)
    writes_large(count)
    forks(count // 50)
    spins(0.3 + time.time() - start)


def warm(gate):
    while not os.path.exists(gate):
        for _ in range(1000):
            pass
        time.sleep(0.001)


def main():
    warm(sys.argv[3])
    threads = [threading.Thread(target=work, args=(int(sys.argv[1]),)) for _ in range(int(sys.argv[2]))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(told))


main()
