"""Main threads whose names lie elsewhere: the kernel calls one by a title, its key in threading's table is not its number
(gevent does both), and another one's process was forked by a thread (multiprocessing's Pool).

usage: main_threads.py COUNT     of pieces of work for each of the three threads
"""
import os
import sys
import threading


def in_main():
    for _ in range(int(sys.argv[1])):
        sum(range(3000))


def in_thread():
    for _ in range(int(sys.argv[1])):
        sum(range(3000))


def in_child():
    for _ in range(int(sys.argv[1])):
        sum(range(3000))


def forks():
    pid = os.fork()
    if not pid:
        in_child()
        os._exit(0)
    in_thread()
    os.waitpid(pid, 0)


with open("/proc/self/comm", "w") as comm:
    comm.write("[title: app]")
main, active = threading.current_thread(), threading._active
for key in [key for key in active if active[key] is main]:
    active[id(main)] = active.pop(key)
thread = threading.Thread(target=forks, name="forker")
thread.start()
in_main()
thread.join()
