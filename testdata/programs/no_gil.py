"""Threads that burn CPU in C with the GIL released, each below a function of its own. usage: no_gil.py SECONDS"""
import sys
import threading
import time
import zlib

data = bytes(bytearray(i * i // 7 & 255 for i in range(1 << 20)))
end = time.time() + float(sys.argv[1])


def work(n):
    scope = {"pack": lambda: zlib.compress(data), "time": time, "end": end}
    exec(compile("def only_in_%d():\n    while time.time() < end: pack()\n" % n, "<thread %d>" % n, "exec"), scope)
    scope["only_in_%d" % n]()


threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
