"""64 threads at once, each for some time of its own clock in a function of its own. usage: threads.py SECONDS_EACH"""
import resource
import sys
import threading
import time

SECONDS = float(sys.argv[1])
started = []
# 1: RUSAGE_THREAD
clock = getattr(time, "thread_time", None) or (lambda: sum(resource.getrusage(1)[:2]))
ready = threading.Event()


def work(n):
    scope = {"clock": clock, "SECONDS": SECONDS}
    exec(compile("def only_in_%d():\n    end = clock() + SECONDS\n"
                 "    while clock() < end: sum(range(300))\n" % n, "<thread %d>" % n, "exec"), scope)
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
