# SPDX-License-Identifier: Apache-2.0
"""Touches N pages of fresh memory for the first time, all of them in touch(), and prints as JSON what the kernel says of
it: how many pages of that mapping are resident, before and after, how much the whole process has grown, and how often it was
taken off a CPU meanwhile. With a GATE it first touches a page now and then in warm(), until that file is there.

usage: faults.py N [GATE]
"""
import ctypes
import json
import mmap
import os
import resource
import sys
import time

PAGE = mmap.PAGESIZE


def resident(start):
    """Pages of the mapping that begins at `start`, as the kernel finds them in the page tables."""
    with open("/proc/self/smaps") as smaps:
        found = False
        for line in smaps:
            if "-" in line.split()[0]:
                found = int(line.split("-")[0], 16) == start
            elif found and line.startswith("Rss:"):
                return int(line.split()[1]) * 1024 // PAGE
    return 0


def process_resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1])


def address_of(memory):
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def switches():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_nvcsw + used.ru_nivcsw


def touch(memory, data):
    memory.write(data)


def warm(gate):
    while not os.path.exists(gate):
        mmap.mmap(-1, PAGE).write(b"x")
        time.sleep(0.002)


def main():
    if len(sys.argv) > 2:
        warm(sys.argv[2])
    count = int(sys.argv[1])
    data = b"x" * (count * PAGE)
    memory = mmap.mmap(-1, count * PAGE)
    memory.madvise(mmap.MADV_NOHUGEPAGE)  # a fault is one page; and its neighbours stay mappings of their own
    start = address_of(memory)
    told = {"page": PAGE, "before": resident(start), "process_before": process_resident()}
    before = switches()
    touch(memory, data)
    told["switches"] = switches() - before
    told["process_after"] = process_resident()
    told["after"] = resident(start)
    print(json.dumps(told))


main()
