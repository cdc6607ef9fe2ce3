# SPDX-License-Identifier: Apache-2.0
"""Processes that hold up whoever reads them, for ever, and go on computing. They need no privilege: in a user and mount
namespace of their own they mount a FUSE file system of their own, whose server answers no read. Started by root they have it
mounted as fusermount would for their user, outside of a user namespace: there it is asked whoever faults a page in.

"lock": a read keeps a page locked; mmap() of the same file, opened for direct I/O, waits for that page with the lock of the
process's memory in its hands. "name": the name of a function that runs lies in that file, so who reads it waits for the
server, and heeds no signal.

usage: hold_lock.py SECONDS HOW DEVICE [HOLDERS]     DEVICE: /dev/fuse, or another node of it that everybody may open
"""
import ctypes
import os
import select
import struct
import sys
import threading
import time

import attack

CLONE_NEWUSER, CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x10000000, 0x20000, 0x4000, 0x40000
PROT_READ, MAP_PRIVATE, MAP_FIXED, PAGE = 1, 2, 0x10, 4096
SIZE = 1 << 20
LOOKUP, FORGET, GETATTR, OPEN, READ, INIT, INTERRUPT, BATCH_FORGET = 1, 2, 3, 14, 15, 26, 36, 42
FOPEN_DIRECT_IO = 1
ATTACKER, AS_ROOT = 4242, not os.geteuid()
HOW, DEVICE = sys.argv[2:4]
HOLDERS = int(sys.argv[4]) if len(sys.argv) > 4 else 1
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


def own_namespaces():
    user, group = os.geteuid(), os.getegid()
    if not user:
        libc.unshare(CLONE_NEWNS)
        libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None)
        return
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS):
        attack.skip("no user namespace: " + os.strerror(ctypes.get_errno()))
    for name, text in ("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1"):
        with open(f"/proc/self/{name}", "w") as f:
            f.write(text)
    libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None)


def attributes(node):
    mode = 0o40755 if node == 1 else 0o100644
    return struct.pack("<6Q10I", node, SIZE, SIZE // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def serve(fuse):
    """Every second file that is opened is for direct I/O."""
    opened = 0
    while True:
        request = os.read(fuse, 1 << 18)
        _, call, unique, node = struct.unpack_from("<IIQQ", request)

        def answer(data=b"", error=0):
            os.write(fuse, struct.pack("<IiQ", 16 + len(data), error, unique) + data)

        if call == INIT:
            answer(struct.pack("<IIIIHHIIHHI7I", 7, 31, 0, 0, 12, 9, 65536, 1, 32, 0, 0, *[0] * 7))
        elif call == LOOKUP:
            answer(struct.pack("<4QII", 2, 1, 1000, 1000, 0, 0) + attributes(2))
        elif call == GETATTR:
            answer(struct.pack("<QII", 1000, 0, 0) + attributes(node))
        elif call == OPEN:
            opened += 1
            answer(struct.pack("<QIi", opened, 0 if opened % 2 else FOPEN_DIRECT_IO, 0))
        elif call not in (READ, INTERRUPT, FORGET, BATCH_FORGET):
            answer(error=-38)


def hold_lock(cached, direct):
    """A thread never comes back from a read, and one never from mmap()."""
    threading.Thread(target=os.pread, args=[cached, 1, 0], daemon=True).start()
    time.sleep(0.2)
    threading.Thread(target=libc.mmap, args=[None, PAGE, PROT_READ, MAP_PRIVATE, direct, 0], daemon=True).start()


def hide_name(cached):
    """Of the function that computes. Running it takes no name."""
    page = libc.mmap(None, PAGE, PROT_READ, MAP_PRIVATE, cached, 0)
    code = compute.__code__
    names = id(code.co_name), id(getattr(code, "co_qualname", code.co_name))
    words = (ctypes.c_uint64 * (sys.getsizeof(code) // 8)).from_address(id(code))
    for i, word in enumerate(words):
        if word in names:
            words[i] = page


def compute(stop):
    while time.time() < stop:
        for _ in range(2000):
            pass


def holder(ready, go):
    folder = os.path.join(os.getcwd(), f"mount{os.getpid()}")
    os.mkdir(folder)
    fuse = os.open(DEVICE, os.O_RDWR)
    user = ATTACKER if AS_ROOT else 0
    if libc.mount(b"x", folder.encode(), b"fuse", 0, f"fd={fuse},rootmode=40000,user_id={user},group_id={user}".encode()):
        os.write(ready, b"n")
        return
    if user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    if not os.fork():
        serve(fuse)
    cached = os.open(f"{folder}/file", os.O_RDONLY)
    os.close(fuse)
    os.write(ready, b"y")
    os.read(go, 1)
    stop = time.time() + float(sys.argv[1])
    if HOW == "lock":
        hold_lock(cached, os.open(f"{folder}/file", os.O_RDONLY))
    else:
        hide_name(cached)
    compute(stop)
    os.kill(0, 9)


try:
    os.close(os.open(DEVICE, os.O_RDWR))
except OSError as e:
    attack.skip(f"{DEVICE}: {e.strerror}")
own_namespaces()
(ready, tell_ready), (go, tell_go) = os.pipe(), os.pipe()
for _ in range(HOLDERS):
    if not os.fork():
        os.close(tell_go)
        holder(tell_ready, go)
        os._exit(0)
if any(os.read(ready, 1) != b"y" for _ in range(HOLDERS)):
    attack.skip("a FUSE file system cannot be mounted")
attack.wait_for_go()
os.close(tell_go)
time.sleep(float(sys.argv[1]))
