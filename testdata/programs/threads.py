"""64 threads, each in a function of its own. usage: threads.py SECONDS"""
import sys
import threading
import time

END = time.time() + float(sys.argv[1])


def work(n):
    scope = {"time": time, "END": END}
    exec(compile(f"def only_in_{n}():\n    while time.time() < END: sum(range(300))\n", f"<thread {n}>", "exec"), scope)
    scope[f"only_in_{n}"]()


threads = [threading.Thread(target=work, args=(n,), name=f"worker-{n}") for n in range(64)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
