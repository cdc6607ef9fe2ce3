# SPDX-License-Identifier: Apache-2.0
"""Functions whose line tables are long, all in one stack: each sample of it defines more code than a trace may hold.

One table of SIZE bytes serves all functions, so this takes only some MB of memory.

usage: codebomb.py SECONDS FUNCTIONS SIZE zero|random|changing     changing: new functions for each stack
"""
import os
import sys
import time

import attack

functions, size, contents = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
TABLE = "co_linetable" if sys.version_info >= (3, 10) else "co_lnotab"


def call_next(chain, at, end):
    if at < len(chain):
        return chain[at](chain, at + 1, end)
    while time.time() < end:
        for _ in range(20000):
            pass
    return None


def make_chain(number):
    table = bytes(size) if contents == "zero" else os.urandom(size)
    codes = (call_next.__code__.replace(co_name=f"f{number}_{i}", **{TABLE: table}) for i in range(functions))
    return [type(call_next)(code, globals(), code.co_name) for code in codes]


sys.setrecursionlimit(100000)
attack.wait_for_go()
number = 0
while time.time() < attack.stop:
    chain = make_chain(number)
    chain[0](chain, 1, min(attack.stop, time.time() + 0.02) if contents == "changing" else attack.stop)
    number += 1
