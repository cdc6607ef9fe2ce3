"""Threads that run while another one collects garbage over and over, for which a free-threaded build stops them all; when the
file GATE is there, until then warm() runs and sleeps in turns. usage: collects.py SECONDS GATE"""
import gc
import os
import sys
import threading
import time


def warm():
    time.sleep(0.001)
    sum(range(10000))


def spin():
    while not done:
        sum(range(1000))


def collect():
    for _ in range(int(sys.argv[1])):
        gc.collect()


while not os.path.exists(sys.argv[2]):
    warm()
done = False
threads = [threading.Thread(target=spin) for i in range(3)]
for thread in threads:
    thread.start()
collect()
done = True
for thread in threads:
    thread.join()
