"""Threads that follow each other, each with a name and a function of the same number. The next one has the pthread handle of the
one before, as soon as that has ended.

usage: short_threads.py COUNT
"""
import sys
import threading
import time

for number in range(int(sys.argv[1])):
    scope = {"time": time}
    exec("def only_in_%d():\n    end = time.time() + 0.03\n    while time.time() < end: sum(range(2000))\n" % number, scope)
    thread = threading.Thread(target=scope["only_in_%d" % number], name="N%d" % number)
    thread.start()
    thread.join()
