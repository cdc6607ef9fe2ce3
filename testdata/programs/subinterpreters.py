"""Runs Python in the main interpreter and in another one, at once in two threads. Prints the other one's id.
usage: subinterpreters.py SECONDS     exit 77 where Python has no way to make one"""
import sys
import threading
import time

try:
    import _interpreters as interpreters
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        sys.exit(77)

CODE = """
import time
def in_%s():
    end = time.thread_time() + %s
    while time.thread_time() < end: sum(range(3000))
in_%s()
"""
others = []


def run():
    # Up to 3.12 an interpreter's first thread state says that it belongs to the thread that made it.
    others.append(interpreters.create())
    execute = getattr(interpreters, "run_string", None) or getattr(interpreters, "exec")
    execute(others[0], CODE % ("other", sys.argv[1], "other"))


thread = threading.Thread(target=run, name="runner")
thread.start()
exec(CODE % ("main", sys.argv[1], "main"))
thread.join()
print(int(others[0]))
