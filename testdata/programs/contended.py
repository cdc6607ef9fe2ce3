"""Threads that want the GIL, and at times a lock or to sleep. usage: contended.py SECONDS [FILE|own]
FILE: it ends sooner, as soon as that is there
own: an interpreter with a GIL of its own has such threads, too; exit 77 where Python has no way to make one"""
import sys
import threading

CODE = """
import os
import threading
import time

lock = threading.Lock()
end, file = time.time() + %s, %r


def goes_on():
    return time.time() < end and not (file and os.path.exists(file))


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


def interpreter_with_its_own():
    """A function that runs code in a new one; None: no way to make one."""
    if sys.version_info < (3, 12):
        return None
    try:
        import _interpreters as interpreters
        return lambda code: getattr(interpreters, "exec")(interpreters.create(), code)
    except ImportError:
        import _xxsubinterpreters as interpreters
        return lambda code: interpreters.run_string(interpreters.create(isolated=True), code)


others = []
if sys.argv[2:] == ["own"]:
    run = interpreter_with_its_own()
    if not run:
        sys.exit(77)
    others.append(threading.Thread(target=run, args=(CODE % (sys.argv[1], ""),)))
for other in others:
    other.start()
exec(CODE % (sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""))
for other in others:
    other.join()
