# SPDX-License-Identifier: Apache-2.0
"""Storms of things that are ordinary one at a time.

threads: 4,000 threads with names of 5,000 characters. names: a thread that renames itself all the time. exec: programs
that start and end. uids: 200 processes of 200 users, each with a stack of functions of its own. deep: stacks that are
deep, and new at every tick. native: the same of native stacks. escapes: a name with escape sequences.

usage: storm.py SECONDS threads|names|exec|uids|deep|native|escapes
"""
import ctypes
import os
import random
import sys
import threading
import time

import attack

seconds, kind = float(sys.argv[1]), sys.argv[2]
PR_SET_NAME = 15


def burn(end):
    while time.time() < end:
        for _ in range(20000):
            pass


def threads():
    threading.stack_size(65536)
    done = threading.Event()
    for i in range(4000):
        threading.Thread(target=done.wait, name=f"t{i}\x1b[31m" + "n" * 5000, daemon=True).start()
    attack.wait_for_go()
    burn(attack.stop)
    os._exit(0)


def names():
    libc, number = ctypes.CDLL(None), 0
    attack.wait_for_go()
    while time.time() < attack.stop:
        libc.prctl(PR_SET_NAME, b"n%d" % number, 0, 0, 0)
        threading.current_thread().name = f"{number}" + "\u202e" * 100
        number += 1


def execs():
    attack.wait_for_go()
    while time.time() < attack.stop:
        children = [os.posix_spawn("/bin/true", ["true"], {}) for _ in range(8)]
        for child in children:
            os.waitpid(child, 0)


def functions(number, count):
    """`count` new functions that call each other, the innermost burns."""
    text = "".join(f"def f{number}_{i}(end): f{number}_{i + 1}(end)\n" for i in range(count))
    names_of = {"burn": burn}
    exec(compile(text + f"f{number}_{count} = burn\n", f"x{number}" * 20, "exec"), names_of)
    return names_of[f"f{number}_0"]


def uids():
    if os.getuid():
        sys.exit("this one is started by root, to become others")
    attack.wait_for_go()
    for i in range(200):
        if not os.fork():
            os.setgroups([])
            os.setresgid(5000 + i, 5000 + i, 5000 + i)
            os.setresuid(5000 + i, 5000 + i, 5000 + i)
            functions(i, 100)(attack.stop)
            os._exit(0)
    time.sleep(max(0, attack.stop - time.time()))


def deep():
    sys.setrecursionlimit(10000)
    chosen = random.Random(1)

    def left(depth, end):
        return right(depth - 1, end) if depth and chosen.random() < 0.5 else left(depth - 1, end) if depth else burn(end)

    def right(depth, end):
        return left(depth - 1, end) if depth and chosen.random() < 0.5 else right(depth - 1, end) if depth else burn(end)
    attack.wait_for_go()
    while time.time() < attack.stop:
        left(3000, time.time() + 0.005)


def native():
    sys.setrecursionlimit(10000)
    chosen, until = random.Random(1), 0.0

    def call(depth):
        if not depth:
            burn(until)
        elif chosen.random() < 0.5:
            max((depth - 1,), key=call)
        else:
            sorted((depth - 1,), key=call)
    attack.wait_for_go()
    while time.time() < attack.stop:
        until = time.time() + 0.005
        call(900)


def escapes():
    ctypes.CDLL(None).prctl(PR_SET_NAME, b"\x1b]0;PWN\a\x1b[31m", 0, 0, 0)
    attack.wait_for_go()
    burn(attack.stop)


{"threads": threads, "names": names, "exec": execs, "uids": uids, "deep": deep, "native": native,
 "escapes": escapes}[kind]()
