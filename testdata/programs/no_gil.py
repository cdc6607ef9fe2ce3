"""Threads that burn CPU in C with the GIL released, each below a function of its own. usage: no_gil.py SECONDS_EACH"""
import sys
import threading
import time
import zlib

data = bytes(bytearray(i * i // 7 & 255 for i in range(1 << 20)))
clock = getattr(time, "thread_time", None) or time.clock  # of one thread, or of all
SECONDS = float(sys.argv[1])


def work(n):
    scope = {"pack": lambda: zlib.compress(data), "clock": clock, "SECONDS": SECONDS}
    exec(compile("def only_in_%d():\n    end = clock() + SECONDS\n"
                 "    while clock() < end: pack()\n" % n, "<thread %d>" % n, "exec"), scope)
    scope["only_in_%d" % n]()


threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
