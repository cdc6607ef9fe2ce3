"""Threads that libraries begin, without names: one calls Python all the time, one never does, one has given itself a name.

usage: library_threads.py LIBRARY     of library_threads.c; prints a line when they run, ends with its input
"""
import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])


@ctypes.CFUNCTYPE(None)
def called():
    sum(range(2000))


library.begin(called)
print("there")
sys.stdout.flush()
sys.stdin.read()
