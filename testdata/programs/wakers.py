# SPDX-License-Identifier: Apache-2.0
"""Waits that are ended by somebody who is known: a thread of this process by a queue, a child process by a pipe, a process
that is none of ours by a FIFO, a timer. Prints an empty line each time that it is about to read from the FIFO, and then, as JSON,
the pids and the tids of its threads. Who writes waits for the reader, so that one that is late finds no more than one byte.

usage: wakers.py ROUNDS FIFO
"""
import ctypes
import json
import os
import queue
import sys
import threading
import time

rounds = int(sys.argv[1])
ids = {"pid": os.getpid()}
asked, answered = queue.SimpleQueue(), queue.SimpleQueue()
read_end, write_end = os.pipe()
ready_end, tell_end = os.pipe()


def set_name(name):
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)  # PR_SET_NAME
    ids[name] = threading.get_native_id()


def reads_pipe():
    for _ in range(rounds):
        os.write(tell_end, b"x")
        os.read(read_end, 1)


def reads_fifo():
    with open(sys.argv[2], "rb", buffering=0) as fifo:
        for _ in range(rounds):
            os.write(1, b"\n")
            fifo.read(1)


def serves():
    for _ in range(rounds):
        asked.get()
        answered.put(1)


def asks():
    for _ in range(rounds):
        time.sleep(0.002)
        asked.put(1)
        answered.get()


def in_thread(name, function):
    def run():
        set_name(name)
        function()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


child = os.fork()
if not child:
    set_name("child")
    for _ in range(rounds):
        os.read(ready_end, 1)
        time.sleep(0.003)
        os.write(write_end, b"x")
    os._exit(0)
ids["child"] = child
os.close(write_end)
threads = [in_thread(*row) for row in (("reads pipe", reads_pipe), ("reads fifo", reads_fifo), ("serves", serves), ("asks", asks))]
for thread in threads:
    thread.join()
os.waitpid(child, 0)
print(json.dumps(ids))
