# SPDX-License-Identifier: Apache-2.0
"""Processes whose memory can hardly be read: each keeps changing the protection of so many pages that the kernel is busy with
its mappings nearly all the time, and whoever wants to read them waits. They run ever new functions, which are to be read.

usage: hold_memory.py SECONDS PROCESSES GIGABYTES     no page of these is ever written: each GB takes 2 MB of page tables
"""
import ctypes
import mmap
import os
import sys
import threading
import time

import attack

MADV_NOHUGEPAGE, MADV_POPULATE_READ = 15, 22
MAP_NORESERVE, PROT_NONE = 0x4000, 0
processes, size = int(sys.argv[2]), int(sys.argv[3]) << 30
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
for name in ("madvise", "mprotect"):
    getattr(libc, name).argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def hold(address):
    while True:
        libc.mprotect(address, size, PROT_NONE)
        libc.mprotect(address, size, mmap.PROT_READ)


def work(end):
    while time.time() < end:
        for _ in range(2000):
            pass


def make_functions():
    """All are made before, because making them takes memory, which this process waits for, too."""
    table = "co_linetable" if sys.version_info >= (3, 10) else "co_lnotab"
    zeros = bytes(20000)
    codes = [work.__code__.replace(co_name=f"work{number}", **{table: zeros}) for number in range(2000)]
    return [type(work)(code, globals()) for code in codes]


def child(tell_ready, wait_for_go):
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
    address = libc.mmap(None, size, mmap.PROT_READ, flags, -1, 0)
    failed = address in (None, ctypes.c_void_p(-1).value)
    libc.madvise(address, size, MADV_NOHUGEPAGE)
    failed = failed or libc.madvise(address, size, MADV_POPULATE_READ)
    functions = make_functions()
    os.write(tell_ready, b"n" if failed else b"y")
    os.read(wait_for_go, 1)
    stop = time.time() + float(sys.argv[1])
    threading.Thread(target=hold, args=[address], daemon=True).start()
    while time.time() < stop:
        for function in functions:
            function(min(stop, time.time() + 0.02))


(ready, tell_ready), (wait_for_go, go) = os.pipe(), os.pipe()
for _ in range(processes):
    if not os.fork():
        os.close(go)
        child(tell_ready, wait_for_go)
        os._exit(0)
if any(os.read(ready, 1) != b"y" for _ in range(processes)):
    attack.skip(f"no {size >> 30} GB of addresses, or no MADV_POPULATE_READ (Linux 5.14)")
attack.wait_for_go()
os.close(go)
for _ in range(processes):
    os.wait()
