# SPDX-License-Identifier: Apache-2.0
"""What unprivileged attackers do with a user namespace and a mount namespace of their own, by way of the C library."""
import ctypes
import os

import attack

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
libc = ctypes.CDLL(None, use_errno=True)


def enter():
    """Enters namespaces of our own, as their root. Ends the program with "skip: …" where the kernel forbids that."""
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS):
        attack.skip(f"no user namespace: {os.strerror(ctypes.get_errno())}")
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as f:
            f.write(text)
    mount(None, "/", MS_REC | MS_PRIVATE)


def mount(source, target, flags, kind=None):
    """As mount(2). Ends the program with "skip: …" when it fails."""
    encode = lambda s: s.encode() if s else None
    if libc.mount(encode(source), encode(target), encode(kind), flags, None):
        attack.skip(f"cannot mount {source} at {target}: {os.strerror(ctypes.get_errno())}")


def bind(source, target):
    mount(source, target, MS_BIND)
