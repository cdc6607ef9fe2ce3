"""Threads that run while another one collects garbage over and over, for which a free-threaded build stops them all.
usage: collects.py SECONDS"""
import gc
import sys
import threading
import time

end = time.time() + float(sys.argv[1])


def spin():
    while time.time() < end:
        sum(range(1000))


def collect():
    while time.time() < end:
        gc.collect()


threads = [threading.Thread(target=spin) for i in range(3)]
for thread in threads:
    thread.start()
collect()
for thread in threads:
    thread.join()
