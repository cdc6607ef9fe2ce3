# SPDX-License-Identifier: Apache-2.0
"""Threads that switch as often as they can, which --wall follows.

lock: 40 threads want one interpreter's lock. places: 8 threads, each wait with another stack. threads: 8 threads that start one
after the other, and wait for its end. crowd: 100 processes, each wait of which has another stack. children: processes with
three threads that come and go. pairs: 4 processes of two threads that pass a byte to and fro. programs: interpreters that start
a thread, and end. renames: 16 threads that rename themselves between short waits. sleepers: 2,000 threads that sleep, each at a
place of its own.

usage: switches.py SECONDS KIND
"""
import ctypes
import os
import random
import sys
import threading
import time

import attack

PR_SET_NAME = 15


def in_threads(count, work):
    """Until it is time to stop."""
    threading.stack_size(256 << 10)
    for _ in range(count):
        threading.Thread(target=work, daemon=True).start()
    time.sleep(max(0, attack.stop - time.time()))


def lock():
    def spins():
        while time.time() < attack.stop:
            for _ in range(50):
                pass
    sys.setswitchinterval(1e-9)
    in_threads(40, spins)


def waits_of_places():
    """A function that waits, each time with another stack, until it is time to stop."""
    names = {}
    names["functions"] = functions = []
    names["choice"], names["sleep"] = random.choice, time.sleep
    for i in range(40):
        exec(compile(f"def f{i}(depth):\n    choice(functions)(depth - 1) if depth else sleep(1e-5)\n", "places", "exec"), names)
        functions.append(names[f"f{i}"])

    def waits():
        while time.time() < attack.stop:
            functions[0](12)
    return waits


def places():
    in_threads(8, waits_of_places())


def crowd():
    waits = waits_of_places()
    for _ in range(100):
        if not os.fork():
            waits()
            os._exit(0)
    time.sleep(max(0, attack.stop - time.time()))


def threads():
    def starts():
        while time.time() < attack.stop:
            try:
                thread = threading.Thread(target=time.sleep, args=(1e-4,))
                thread.start()
                thread.join()
            except RuntimeError:  # there are too many
                pass
    in_threads(8, starts)


def children():
    while time.time() < attack.stop:
        child = os.fork()
        if not child:
            ready, go = os.pipe()
            for _ in range(3):
                threading.Thread(target=os.read, args=(ready, 1)).start()
            time.sleep(0.001)
            os.write(go, b"aaa")
            os._exit(0)
        os.waitpid(child, 0)


def pass_to_and_fro():
    there, back = os.pipe(), os.pipe()

    def answers():
        while True:
            os.write(back[1], os.read(there[0], 1))
    threading.Thread(target=answers, daemon=True).start()
    while time.time() < attack.stop:
        os.write(there[1], b"x")
        os.read(back[0], 1)


def pairs():
    for _ in range(4):
        if not os.fork():
            pass_to_and_fro()
            os._exit(0)
    time.sleep(max(0, attack.stop - time.time()))


def programs():
    text = "import threading, time; threading.Thread(target=time.sleep, args=(0.01,)).start()"
    while time.time() < attack.stop:
        os.waitpid(os.posix_spawn(sys.executable, [sys.executable, "-c", text], {}), 0)


def renames():
    libc = ctypes.CDLL(None)

    def renames_itself():
        while time.time() < attack.stop:
            libc.prctl(PR_SET_NAME, b"%d" % random.randrange(10**9), 0, 0, 0)
            time.sleep(5e-5)
    in_threads(16, renames_itself)


def sleepers():
    names, done = {}, threading.Event()
    threading.stack_size(64 << 10)
    for i in range(2000):
        name = f"w{i}_{'n' * 300}"
        exec(compile(f"def {name}(done):\n    done.wait()\n", f"place{i}.py", "exec"), names)
        try:
            threading.Thread(target=names[name], args=(done,), daemon=True).start()
        except RuntimeError:
            break
    attack.wait_for_go()
    time.sleep(max(0, attack.stop - time.time()))


kind = sys.argv[2]
if kind != "sleepers":
    attack.wait_for_go()
{f.__name__: f for f in (lock, places, crowd, threads, children, pairs, programs, renames, sleepers)}[kind]()
os._exit(0)
