# SPDX-License-Identifier: Apache-2.0
"""A program that makes system calls when it is told to: "run CHUNKS COUNT" makes COUNT of them in each chunk and prints the
CPU seconds of each chunk, as a list in JSON.

usage: calls.py getppid|map     map: maps a page and unmaps it
"""
import json
import mmap
import os
import sys
import time


def getppid(count):
    call = os.getppid
    for _ in range(count):
        call()


def map_and_unmap(count):
    for _ in range(count):
        mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()


work = {"getppid": getppid, "map": map_and_unmap}[sys.argv[1]]
print("ready", os.getpid(), flush=True)
for line in sys.stdin:
    chunks, count = map(int, line.split()[1:])
    times = []
    for _ in range(chunks):
        before = time.process_time()
        work(count)
        times.append(time.process_time() - before)
    print(json.dumps(times), flush=True)
