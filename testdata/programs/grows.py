# SPDX-License-Identifier: Apache-2.0
"""Grows in one way, in work(), and prints as JSON what the kernel said of its memory before and after, and how often it was taken
off a CPU. Says "ready" first; until the file GATE is there it touches a page now and then in warm(). When it has printed it waits
for the end of its input.

usage: grows.py anonymous|churn|files|fork|huge|populate MIB GATE
"""
import json
import mmap
import os
import resource
import sys
import tempfile
import time

MIB = 1 << 20
PAGE = mmap.PAGESIZE
KEPT = []


def status():
    with open("/proc/self/status") as lines:
        fields = dict(line.split(":", 1) for line in lines)
    with open("/proc/self/smaps_rollup") as lines:
        huge = next(line for line in lines if line.startswith("AnonHugePages:"))
    told = {name: int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "RssFile", "RssShmem", "VmSwap", "VmData")}
    told["huge"] = int(huge.split()[1]) * 1024
    used = resource.getrusage(resource.RUSAGE_SELF)
    told["switches"] = used.ru_nvcsw + used.ru_nivcsw
    return told


def mapping(size, advice):
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(advice)
    return memory


def warm(gate):
    memory = mapping(16 * MIB, mmap.MADV_NOHUGEPAGE)
    KEPT.append(memory)
    for offset in range(0, len(memory), PAGE):
        if os.path.exists(gate):
            return
        memory[offset] = 1
        time.sleep(0.01)
    raise SystemExit("the gate stayed closed")


def touch(memory):
    for offset in range(0, len(memory), PAGE):
        memory[offset] = 1


def anonymous(size):
    KEPT.append(mapping(size, mmap.MADV_NOHUGEPAGE))
    touch(KEPT[-1])


def churn(size):
    anonymous(size // 4)
    for _ in range(3):
        with mapping(size // 4, mmap.MADV_NOHUGEPAGE) as memory:
            touch(memory)


def huge(size):
    KEPT.append(mapping(size, mmap.MADV_HUGEPAGE))
    touch(KEPT[-1])


def populate(size):
    KEPT.append(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE))


def files(size):
    with tempfile.TemporaryFile() as file:
        for _ in range(size // MIB):
            file.write(b"x" * MIB)
        file.flush()
        memory = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    KEPT.append(memory)
    return sum(memory[offset] for offset in range(0, size, PAGE))


def work(way, size):
    way(size)


def main():
    name, size, gate = sys.argv[1], int(sys.argv[2]) * MIB, sys.argv[3]
    print("ready", flush=True)
    warm(gate)
    way = globals()["anonymous" if name == "fork" else name]
    if name == "fork":
        way(size)  # what the child will write to
        shared = KEPT[-1]
        way = lambda _: touch(shared)
        if os.fork():
            os.wait()
            sys.stdin.read()
            return
        warm(gate + ".child")
    before = status()
    work(way, size)
    print(json.dumps({"pid": os.getpid(), "before": before, "after": status()}), flush=True)
    sys.stdin.read()


main()
