# SPDX-License-Identifier: Apache-2.0
"""Threads that compute and wait by turns, when the file GATE is there; until then warm() runs and sleeps. Prints as JSON,
by thread id, what each thread's clock and the kernel's account of it say just before its end, in ns: "wall" since it began,
"ran" and "queued" by /proc/thread-self/schedstat; and "outside", from before it was started until it had ended.

usage: thread_clocks.py SECONDS GATE
"""
import json
import os
import sys
import threading
import time

seconds = float(sys.argv[1])
told = {}
shared = threading.Lock()


def warm():
    time.sleep(0.001)
    sum(range(10000))


def compute():
    sum(range(20000))


def sleep():
    compute()
    time.sleep(0.002)


def contend():
    with shared:
        time.sleep(0.0005)
    compute()


def give_way():
    compute()
    os.sched_yield()


def run(step):
    began = time.monotonic_ns()
    while time.monotonic_ns() < began + seconds * 1e9:
        step()
    with open("/proc/thread-self/schedstat", encoding="ascii") as f:
        ran, queued, _ = map(int, f.read().split())
    told[threading.get_native_id()] = {"wall": time.monotonic_ns() - began, "ran": ran, "queued": queued, "what": step.__name__}


def main():
    while not os.path.exists(sys.argv[2]):
        warm()
    threads = [threading.Thread(target=run, args=[step]) for step in (sleep, contend, contend, compute, give_way)]
    began = {}
    for thread in threads:
        before = time.monotonic_ns()
        thread.start()
        began[thread.native_id] = before
    for thread in threads:
        thread.join()
        while os.path.exists(f"/proc/self/task/{thread.native_id}"):  # it may wait for a CPU on its way out
            time.sleep(0.001)
        told[thread.native_id]["outside"] = time.monotonic_ns() - began[thread.native_id]
    print(json.dumps(told))


main()
