# SPDX-License-Identifier: Apache-2.0
"""Many processes, each with generated code and a long perf map, which changes every second.

usage: perf_maps.py SECONDS PROCESSES BYTES
"""
import mmap
import os
import sys
import time

import attack

processes, size = int(sys.argv[2]), int(sys.argv[3])
LINE = b"1000 10 " + b"f" * 55 + b"\n"

def child():
    name = f"/tmp/perf-{os.getpid()}.map"
    code = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    try:
        with open(name, "wb", buffering=0) as perf_map:
            perf_map.write(LINE * (size // len(LINE)))
            changed = time.time()
            while time.time() < attack.stop:
                for _ in range(20000):
                    pass
                time.sleep(0.01)
                if time.time() > changed + 1:
                    perf_map.write(LINE)
                    changed = time.time()
    finally:
        os.unlink(name)
    code.close()


attack.wait_for_go()
for _ in range(processes):
    if not os.fork():
        child()
        os._exit(0)
for _ in range(processes):
    os.wait()
