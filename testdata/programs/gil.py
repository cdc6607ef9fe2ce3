"""CPU time with the GIL and without it, in Python and in C: two threads at once. Prints the seconds that each function
took, by its thread's clock. usage: gil.py SECONDS     exit 77 where there is no GIL"""
import ctypes
import json
import sys
import threading
import zlib

if not getattr(sys, "_is_gil_enabled", lambda: True)():
    sys.exit(77)
SECONDS = float(sys.argv[1])
data = bytes(bytearray(i * i // 7 & 255 for i in range(1 << 19))) * 64
piece = data[:1 << 20]
libc = ctypes.CDLL(None)
released, held = ctypes.CDLL("libz.so.1").crc32, ctypes.PyDLL("libz.so.1").crc32
for crc in (released, held):
    crc.argtypes = [ctypes.c_ulong, ctypes.c_char_p, ctypes.c_uint]
spent = {}


class Timespec(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]


def clock():
    now = Timespec()
    libc.clock_gettime(3, ctypes.byref(now))  # CLOCK_THREAD_CPUTIME_ID
    return now.s + now.ns / 1e9


def in_python():
    for i in range(300000):
        pass


def in_pydll():
    held(0, data, len(data))


def in_cdll():
    released(0, data, len(data))


def in_zlib():
    zlib.compress(piece, 9)


def work(*functions):
    for function in functions:
        start = clock()
        while clock() - start < SECONDS:
            function()
        spent[function.__name__] = clock() - start


threads = [threading.Thread(target=work, args=(in_python, in_pydll)), threading.Thread(target=work, args=(in_zlib, in_cdll))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps(spent))
