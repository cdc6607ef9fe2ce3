"""64 threads, each in a function of its own. usage: threads.py SECONDS"""
import sys
import threading
import time

SECONDS = float(sys.argv[1])
started = []
ready = threading.Event()


def work(n):
    scope = {"time": time, "SECONDS": SECONDS}
    exec(compile("def only_in_%d():\n    end = time.time() + SECONDS\n"
                 "    while time.time() < end: sum(range(300))\n" % n, "<thread %d>" % n, "exec"), scope)
    started.append(n)
    if len(started) == 64:
        ready.set()
    ready.wait()
    scope["only_in_%d" % n]()


threads = [threading.Thread(target=work, args=(n,), name="worker-%d" % n) for n in range(64)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
