# SPDX-License-Identifier: Apache-2.0
"""Storms of system calls, for recordings of events that these calls make: four processes, each in a stack of 200 functions.

maps: a mapping that is unmapped at once. keeps: as many mappings as one process may have, then all unmapped, again and again.
pieces: one large mapping, unmapped page by page. breaks: the heap's end up and down. protects: memory that becomes
writable and is no longer so. moves: a mapping that grows and shrinks. opens: a file that does not exist. wide: a
mapping of 64 TB, of which nothing is used. children: processes that start, map and end.

usage: calls.py SECONDS maps|keeps|pieces|breaks|protects|moves|opens|wide|children
"""
import ctypes
import os
import sys
import time

import attack

PAGE, ANONYMOUS, WRITABLE, NORESERVE = 4096, 0x22, 3, 0x4000
FAILED = 2 ** 64 - 1
libc = ctypes.CDLL(None)
for name in ("mmap", "mremap", "sbrk"):
    getattr(libc, name).restype = ctypes.c_uint64
mmap, munmap, mprotect = libc.mmap, libc.munmap, libc.mprotect
number, size_of = ctypes.c_long, ctypes.c_size_t


def new(size, protection=WRITABLE, flags=ANONYMOUS):
    return mmap(None, size_of(size), protection, flags, -1, number(0))


def free(address, size):
    munmap(ctypes.c_void_p(address), size_of(size))


def maps():
    for _ in range(1000):
        free(new(PAGE), PAGE)


def keeps():
    kept = []
    while len(kept) < 60000:
        # Two neighbours of different protection are two mappings.
        address = new(PAGE, WRITABLE if len(kept) % 2 else 1)
        if address == FAILED:
            break
        kept.append(address)
    for address in kept:
        free(address, PAGE)


def pieces():
    address = new(4096 * PAGE)
    for i in range(0, 4096, 2):
        free(address + i * PAGE, PAGE)
    free(address, 4096 * PAGE)


def breaks():
    for _ in range(1000):
        libc.sbrk(number(64 * PAGE))
        libc.sbrk(number(-64 * PAGE))


def protects():
    address = new(256 * PAGE, 0)
    for i in range(2000):
        mprotect(ctypes.c_void_p(address + i % 256 * PAGE), size_of(PAGE), WRITABLE if i % 512 < 256 else 0)
    free(address, 256 * PAGE)


def moves():
    address, size = new(PAGE), PAGE
    for i in range(2000):
        wanted = PAGE * (1 + i * 37 % 500)
        address = libc.mremap(ctypes.c_void_p(address), size_of(size), size_of(wanted), 1)
        size = wanted
    free(address, size)


def opens():
    for _ in range(1000):
        libc.open(b"/does/not/exist/" + b"x" * 200, 0)


def wide():
    for _ in range(100):
        address = new(64 << 40, WRITABLE, ANONYMOUS | NORESERVE)
        if address != FAILED:
            free(address, 64 << 40)
    time.sleep(0.001)


def children():
    child = os.fork()
    if not child:
        new(1 << 20)
        os._exit(0)
    os.waitpid(child, 0)


def deep(depth, work):
    if depth:
        deep(depth - 1, work)
        return
    while time.time() < attack.stop:
        work()


def main():
    work = globals()[sys.argv[2]]
    attack.wait_for_go()
    started = []
    for _ in range(4):
        started.append(os.fork())
        if not started[-1]:
            deep(200, work)
            os._exit(0)
    for child in started:
        os.waitpid(child, 0)


main()
