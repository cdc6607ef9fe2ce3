"""64 threads, each in a function of its own. usage: threads.py SECONDS"""
import sys
import threading
import time

SECONDS = float(sys.argv[1])
ready = threading.Barrier(64)


def work(n):
    scope = {"time": time, "SECONDS": SECONDS}
    exec(compile(f"def only_in_{n}():\n    end = time.time() + SECONDS\n"
                 f"    while time.time() < end: sum(range(300))\n", f"<thread {n}>", "exec"), scope)
    ready.wait()
    scope[f"only_in_{n}"]()


threads = [threading.Thread(target=work, args=(n,), name=f"worker-{n}") for n in range(64)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
