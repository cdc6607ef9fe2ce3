# SPDX-License-Identifier: Apache-2.0
"""Subinterpreters of one process: in threads, beside one that runs the main interpreter, and one in the main thread itself."""
import sys
import threading

import _xxsubinterpreters as interpreters

from clocks import phase, run

CODE = """
import sys
sys.path[:] = {path}
from clocks import phase, run

@phase
def {name}():
    sum(n * n % 97 for n in range(20000))

run({name}, 1.2)
"""


@phase
def in_main():
    sum(n * n % 97 for n in range(20000))


def inside(name):
    interpreters.run_string(interpreters.create(), CODE.format(path=sys.path, name=name))


threads = [threading.Thread(target=inside, args=(f"in_thread_{n}",)) for n in range(3)]
for thread in threads:
    thread.start()
run(in_main, 1.2)
inside("in_main_thread")
for thread in threads:
    thread.join()
