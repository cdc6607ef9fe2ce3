# SPDX-License-Identifier: Apache-2.0
"""The soak test's load, for so many seconds: load.py SECONDS PROCESSES. Prints a line of what it did, as JSON."""
import ctypes
import glob
import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

import _ctypes

IDLER = """
import sys, time
end = time.monotonic() + float(sys.argv[1])
def tick():
    sum(range(10000))
while time.monotonic() < end:
    tick()
    time.sleep(0.25)
"""
SHORT = "import time\nend = time.process_time() + 0.03\ndef short():\n    while time.process_time() < end: sum(range(500))\nshort()"
counts = dict.fromkeys(("forks", "execs", "threads", "reloads", "dlopens"), 0)


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(300))


def forks():
    pids = []
    for _ in range(8):
        pid = os.fork()
        if not pid:
            burn(0.002)
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    counts["forks"] += len(pids)


def execs():
    children = [subprocess.Popen([sys.executable, "-S", "-c", SHORT]), subprocess.Popen(["sh", "-c", f"exec {sys.executable} -S -c pass"]),
                subprocess.Popen(["/bin/true"])]
    for child in children:
        child.wait()
    counts["execs"] += len(children)


def threads():
    started = [threading.Thread(target=burn, args=(0.0005,)) for _ in range(50)]
    for t in started:
        t.start()
    for t in started:
        t.join()
    counts["threads"] += len(started)


def reloads(folder):
    """A module whose functions have other names and lines than the last time."""
    n = counts["reloads"] % 64
    with open(os.path.join(folder, "changing.py"), "w", encoding="ascii") as f:
        f.write("\n" * (n % 50) + "".join(f"def made_{n}_{i}(n):\n    return sum(range(n))\n" for i in range(20)) +
                f"def run():\n    for i in range(30): " + "; ".join(f"made_{n}_{i}(50 * i)" for i in range(20)) + "\n")
    importlib.invalidate_caches()
    if "changing" in sys.modules:
        importlib.reload(sys.modules["changing"])
    else:
        importlib.import_module("changing")
    sys.modules["changing"].run()
    counts["reloads"] += 1


LIBRARIES = [l for name in ("libz.so.1", "libbz2.so.1.0", "liblzma.so.5", "libzstd.so.1")
             for l in glob.glob(f"/usr/lib/*/{name}") + glob.glob(f"/lib/*/{name}")]


def dlopens():
    for path in LIBRARIES:
        lib = ctypes.CDLL(path)
        _ctypes.dlclose(lib._handle)
        counts["dlopens"] += 1


def main():
    seconds, processes = float(sys.argv[1]), int(sys.argv[2])
    end = time.monotonic() + seconds
    idlers = [subprocess.Popen([sys.executable, "-S", "-c", IDLER, str(seconds)]) for _ in range(processes)]
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        sys.dont_write_bytecode = True
        while time.monotonic() < end:
            forks()
            execs()
            threads()
            reloads(folder)
            dlopens()
            time.sleep(0.05)
    for idler in idlers:
        idler.wait()
    print(json.dumps(counts))


main()
