# SPDX-License-Identifier: Apache-2.0
"""Takes memory from the kernel in leak() and keeps it, and takes as much a hundred times in churn() and gives it back, in
threads at once and in a forked child, too. Prints as JSON by how much VmData of /proc/self/status grew, in bytes, and how many
bytes churn() had for longer than it should, because the program stood still meanwhile.

It ends without giving anything back, after a second in which it takes nothing.

With `larger` it has a block of 1 MiB when it prints "ready", and makes it MIB large after a line on standard input. With `new`
it takes a new one of MIB then. With a GATE it first runs warm(), until that file is there.

usage: takes.py MIB plain|threads|fork|larger|new [GATE]
"""
import json
import mmap
import os
import sys
import threading
import time

BLOCK = 1 << 20
FILLED = b"x" * BLOCK
SOON = 0.5  # seconds
kept = []
late = []


def data_bytes():
    with open("/proc/self/status") as lines:
        for line in lines:
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024


def block():
    return mmap.mmap(-1, BLOCK, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def leak(count):
    for _ in range(count):
        kept.append(block())
        if hasattr(mmap, "MADV_HUGEPAGE"):  # sizes of pages make no difference
            kept[-1].madvise(mmap.MADV_HUGEPAGE)
        kept[-1].write(FILLED)


def churn(count):
    for _ in range(count):
        since = time.time()
        blocks = [block(), block()]
        text = b"x" * (4 * BLOCK)
        for b in blocks:
            b.close()
        del text
        if not 0 <= time.time() - since < SOON:
            late.append(6 * BLOCK)


def both(count):
    for _ in range(count):
        leak(1)
        churn(4)
        time.sleep(0.01)


def threads(count):
    started = [threading.Thread(target=both, args=(count // 4,)) for _ in range(4)]
    for t in started:
        t.start()
    for t in started:
        t.join()


def fork(count):
    both(count // 2)
    child = os.fork()
    both(count // 2)
    if child == 0:
        time.sleep(1)
        os._exit(0)
    os.waitpid(child, 0)


def enlarge(count):
    kept[0].resize(count * BLOCK)


def add(count):
    kept.append(mmap.mmap(-1, count * BLOCK, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


def warm(gate):
    while not os.path.exists(gate):
        sum(range(20000))
        time.sleep(0.002)


def work(way, count):
    {"plain": both, "threads": threads, "fork": fork, "larger": enlarge, "new": add}[way](count)


if sys.argv[2] in ("larger", "new"):
    kept.append(block())
    print("ready")
    sys.stdout.flush()
    sys.stdin.readline()
if len(sys.argv) > 3:
    warm(sys.argv[3])
before = data_bytes()
work(sys.argv[2], int(sys.argv[1]))
after = data_bytes()
time.sleep(1)
print(json.dumps({"grown": after - before, "late": sum(late)}))
sys.stdout.flush()
os._exit(0)
