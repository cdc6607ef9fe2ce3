"""Threads that want the GIL, and at times a lock or to sleep, when the file GATE is there; until then warm() runs and sleeps
in turns. usage: contended.py SECONDS HOW GATE
SECONDS: of CPU time
HOW: main: threads of the main interpreter
     own: an interpreter with a GIL of its own has such threads, too (3.12 and later)
     a file: as main, but it ends sooner, as soon as that is there"""
import os
import sys
import threading
import time

CODE = """
import os
import threading
import time

lock = threading.Lock()
clock = getattr(time, "process_time", None) or time.clock
end, file = clock() + %s, %r


def goes_on():
    return clock() < end and not (file and os.path.exists(file))


def spin():
    while goes_on():
        sum(range(1000))


def locked():
    while goes_on():
        with lock:
            sum(range(1000))


def polite():
    while goes_on():
        time.sleep(0.001)


threads = [threading.Thread(target=f) for f in (spin, locked, locked, polite)]
for thread in threads:
    thread.start()
spin()
for thread in threads:
    thread.join()
"""


def warm():
    time.sleep(0.001)
    sum(range(10000))


def run_in_another(code):
    """In a new interpreter with a GIL of its own."""
    try:
        import _interpreters as interpreters
        getattr(interpreters, "exec")(interpreters.create(), code)
    except ImportError:
        import _xxsubinterpreters as interpreters
        interpreters.run_string(interpreters.create(isolated=True), code)


seconds, how, gate = sys.argv[1:]
while not os.path.exists(gate):
    warm()
other = threading.Thread(target=run_in_another, args=(CODE % (seconds, ""),))
if how == "own":
    other.start()
exec(CODE % (seconds, how if how not in ("main", "own") else ""))
if how == "own":
    other.join()
