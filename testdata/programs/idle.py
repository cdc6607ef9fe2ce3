# SPDX-License-Identifier: Apache-2.0
"""Threads that wait and never run: the workers of an idle pool, time.sleep(), a lock, a read. When all of them sleep it
prints the stack of each, by the thread's id, innermost first, as the interpreter itself knows it; and ends with its input.

usage: idle.py WORKERS
"""
import concurrent.futures
import json
import os
import sys
import threading
import time
import traceback


def sleeps():
    time.sleep(100000)


def locks(lock):
    lock.acquire()


def reads(fd):
    os.read(fd, 1)


def state(tid):
    with open(f"/proc/self/task/{tid}/stat") as f:
        return f.read().rpartition(")")[2].split()[0]


def main():
    workers, lock, (readable, _) = int(sys.argv[1]), threading.Lock(), os.pipe()
    lock.acquire()
    pool, barrier = concurrent.futures.ThreadPoolExecutor(workers), threading.Barrier(workers + 1)
    for _ in range(workers):
        pool.submit(barrier.wait)
    barrier.wait()
    for function, arguments in (sleeps, ()), (locks, (lock,)), (reads, (readable,)):
        threading.Thread(target=function, args=arguments, daemon=True).start()
    while True:
        time.sleep(0.1)
        ids = {t.ident: t.native_id for t in threading.enumerate() if t is not threading.current_thread()}
        stacks = {ids[i]: [f.f_code.co_name for f, _ in traceback.walk_stack(top)]
                  for i, top in sys._current_frames().items() if i in ids}
        if all(state(tid) == "S" for tid in stacks) and {"sleeps", "locks", "reads"} <= {n for s in stacks.values() for n in s}:
            break
    print(json.dumps(stacks), flush=True)
    sys.stdin.read()
    os._exit(0)


main()
