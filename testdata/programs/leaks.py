# SPDX-License-Identifier: Apache-2.0
"""Leaks in leak() and churns in other functions, and prints as JSON what the kernel says of its memory before and after
that: VmData and RssAnon, in bytes, how many bytes the leaked objects have and how many came and went, and of how many of
these it may be that they lived for a second, since the machine stood still.

Of the churn, churn_small() and churn_text() take small objects of the interpreter's arenas, and churn_large() blocks that are
mapped for themselves and unmapped again. All of it is dropped before the function returns: none of it lives for as long
as a second. With `small` the program leaks small objects, with `large` blocks that are mapped for themselves, with `both`
as many bytes of each; with `objects` it leaks small ones and has no churn_large(). The MIB are leaked evenly over at least SECONDS, in 16 or so many ROUNDS, each with churn after it.
What is leaked in a round should be more than the 1 MiB of small objects that churn has at a time: else those who
churn map the arenas in which later leaks find room. With a GATE it first runs warm(), until that file is there.

usage: leaks.py small|large|both|objects MIB SECONDS [GATE [ROUNDS]]
"""
import json
import mmap
import os
import sys
import time

LARGE = 1 << 20
kept = []
churned, lived = [0], [0]


def status(*names):
    """Lines of /proc/self/status, in bytes."""
    found = {}
    with open("/proc/self/status") as lines:
        for line in lines:
            name, _, value = line.partition(":")
            if name in names:
                found[name] = int(value.split()[0]) * 1024
    return found


def leak(kind, size):
    return leak_small(size) if kind == "small" else leak_large(size)


def leak_small(size):
    """Objects of up to 512 bytes, which the interpreter has arenas for."""
    made = 0
    while made < size:
        kept.append(b"leaked %8d" % len(kept) * 20 if sys.version_info[0] > 2 else ("leaked %8d" % len(kept)) * 20)
        made += sys.getsizeof(kept[-1])
    return made


def leak_large(size):
    made = 0
    while made < size:
        block = mmap.mmap(-1, LARGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        block.write(b"x" * LARGE)
        kept.append(block)
        made += LARGE
    return made


def churn_small():
    numbers = [float(i) for i in range(10000)]
    churned[0] += sum(sys.getsizeof(n) for n in numbers)


def churn_text():
    lines = ["line %d of many" % i for i in range(10000)]
    churned[0] += sum(sys.getsizeof(line) for line in lines)


def churn_large():
    for _ in range(4):
        block = mmap.mmap(-1, 2 * LARGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        block.write(b"x" * 2 * LARGE)
        block.close()
        churned[0] += 2 * LARGE


def churn():
    began = time.time()
    churn_small()
    churn_text()
    if sys.argv[1] != "objects":
        churn_large()
    lived[0] += int((time.time() - began) / 0.7) * 3 * LARGE  # what lives for 0.75 s is growth


def warm(gate):
    while not os.path.exists(gate):
        churn()
        time.sleep(0.02)


def work(kinds, size, seconds, rounds):
    """The bytes leaked. What is due is leaked, and no more, so that large blocks keep to the size, too."""
    made, start = dict.fromkeys(kinds, 0), time.time()
    for i in range(1, rounds + 1):
        for kind in kinds:
            due = size * i // rounds // len(kinds)
            if made[kind] < due:
                made[kind] += leak(kind, due - made[kind])
        for _ in range(8):
            churn()
        time.sleep(max(0, start + seconds * i / rounds - time.time()))
    return sum(made.values())


def main():
    kinds = {"both": ["small", "large"], "objects": ["small"]}.get(sys.argv[1], [sys.argv[1]])
    size, seconds = int(sys.argv[2]) << 20, float(sys.argv[3])
    churn()
    if len(sys.argv) > 4:
        warm(sys.argv[4])
    churned[0] = 0  # what lived long before is growth, too
    before = status("VmData", "RssAnon")
    leaked = work(kinds, size, seconds, int(sys.argv[5]) if len(sys.argv) > 5 else 16)
    after = status("VmData", "RssAnon")
    print(json.dumps({"before": before, "after": after, "leaked": leaked, "churned": churned[0], "lived": lived[0]}))
    sys.stdout.flush()
    time.sleep(1.2)  # what is given back as the program ends shall not seem to have come and gone


main()
