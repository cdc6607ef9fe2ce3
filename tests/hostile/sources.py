# SPDX-License-Identifier: Apache-2.0
"""Runs code whose objects name what the recorder should not touch, or too much, as the files that they came from.

names: ever new names, of 4,000 bytes. places: FIFOs, devices, links of procfs, links in a circle, names that are no paths,
and a path that becomes another thing all the time. silent: a file system in user space that does not answer (needs root).

usage: sources.py SECONDS names|places|silent [FIFO]
"""
import contextlib
import ctypes
import itertools
import os
import sys
import threading
import time

import attack

kind = sys.argv[2]
BURN = "def burn(end):\n    while time.time() < end:\n        for _ in range(2000):\n            pass\n"


def burn_in(file, seconds=0.02):
    """Computes in a function that says that it comes from this file."""
    names_of = {"time": time}
    exec(compile("import time\n" + BURN, "x", "exec"), names_of)
    function = names_of["burn"]
    function.__code__ = function.__code__.replace(co_filename=file)
    function(time.time() + seconds)


def names():
    attack.wait_for_go()
    parts = "/".join(["d" * 240] * 16)
    for i in itertools.count():
        if time.time() >= attack.stop:
            break
        burn_in(f"{os.getcwd()}/{i}/{parts}"[:4000], 0.001)


def swap(path, targets):
    for target in itertools.cycle(targets):
        if time.time() >= attack.stop:
            break
        with contextlib.suppress(OSError):
            os.symlink(target, path + ".new")
            os.rename(path + ".new", path)


def places():
    here = os.getcwd()
    os.symlink("circle", "circle")
    os.mkfifo("fifo")
    files = [sys.argv[3], f"{here}/fifo", "/dev/zero", "/dev/watchdog", "/proc/self/exe", "/proc/1/root/etc/shadow",
             f"/proc/{os.getpid()}/fd/0", "/proc/self/map_files/0-1", "/sys/kernel/debug/x", f"{here}/circle", "fifo", "../" * 900,
             "/" + "../" * 900 + "etc/passwd", "a\0b.py", "\udcff.py", "", "/", "x" * 300, "/" * 4000, "\x1b[31m.py",
             f"{here}/swapped", "/net/nobody/x.py"]
    attack.wait_for_go()
    threading.Thread(target=swap, args=(f"{here}/swapped", [sys.argv[3], "/dev/zero", "/proc/self/mem", here, "fifo", "none"]),
                     daemon=True).start()
    for file in itertools.cycle(files):
        if time.time() >= attack.stop:
            break
        burn_in(file)
    os._exit(0)


def silent():
    """Nobody reads what the kernel asks, so whoever looks at something there waits until this program ends."""
    libc, target = ctypes.CDLL(None, use_errno=True), os.getcwd() + "/silent"
    os.mkdir(target)
    if libc.unshare(0x20000):  # CLONE_NEWNS: nobody else finds it by chance
        attack.skip(f"no mount namespace: {os.strerror(ctypes.get_errno())}")
    libc.mount(None, b"/", None, 0x44000, None)  # MS_REC | MS_PRIVATE
    try:
        fuse = os.open("/dev/fuse", os.O_RDWR)
    except OSError as error:
        attack.skip(f"no /dev/fuse: {error.strerror}")
    options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0,allow_other"
    if libc.mount(b"silent", target.encode(), b"fuse", 0, options.encode()):
        attack.skip(f"cannot mount: {os.strerror(ctypes.get_errno())}")
    attack.wait_for_go()
    for i in itertools.count():
        if time.time() >= attack.stop:
            break
        burn_in(f"{target}/{i}.py")
    os._exit(0)


{"names": names, "places": places, "silent": silent}[kind]()
