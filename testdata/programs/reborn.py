"""Functions that live for a millisecond each, one after another at the same address. Nothing that a profiler reads of two of
them differs but their names, which are of the same length; a log says which one ran when.

usage: reborn.py SECONDS LOG [interpreters]   SECONDS: of CPU time; with "interpreters" another interpreter does the same from the middle on, in a
                                              thread of its own; exit 77 where Python has no way to make one
LOG has a line for each function: its name, when it was called and when it had returned (CLOCK_MONOTONIC, ns).
"""
import marshal
import sys
import threading
import time
import types

CODE = """
import marshal, sys, time, types

clock = getattr(time, "monotonic_ns", None)
if not clock and hasattr(time, "monotonic"):
    clock = lambda: int(time.monotonic() * 1e9)
elif not clock:
    import ctypes
    class Timespec(ctypes.Structure):
        _fields_ = [("sec", ctypes.c_long), ("nsec", ctypes.c_long)]
    libc, at = ctypes.CDLL(None), Timespec()
    def clock():
        libc.clock_gettime(1, ctypes.byref(at))
        return at.sec * 1000000000 + at.nsec

SOURCE = "def %s(end):\\n    while clock() < end:\\n        for i in range(50): i * i\\n"
pattern = None

def by_exec(name):
    scope = {"clock": clock}
    exec(compile(SOURCE % name, name + ".py", "exec"), scope)
    return scope[name]

def by_marshal(name):
    scope = {"clock": clock}
    exec(marshal.loads(marshal.dumps(compile(SOURCE % name, name + ".py", "exec"))), scope)
    return scope[name]

def by_replace(name):
    global pattern
    pattern = pattern or by_exec("x_000000")
    names = {"co_name": name, "co_filename": name + ".py"}
    if hasattr(pattern.__code__, "co_qualname"):
        names["co_qualname"] = name
    return types.FunctionType(pattern.__code__.replace(**names), {"clock": clock, "range": range})

def by_file(name):  # nothing but the file has another name
    return eval(compile("lambda end: [0 for _ in iter(lambda: clock() < end, False)]", name + ".py", "eval"), {"clock": clock})

def live(letter, seconds, log):
    ways = [by_exec, by_marshal]
    if sys.version_info >= (3, 8):
        ways.append(by_replace)
    if sys.version_info >= (3, 12):  # the number of a code object tells these apart
        ways.append(by_file)
    used = getattr(time, "thread_time", None) or time.clock  # of one thread, or of all
    end, n = used() + seconds, 0
    while used() < end:
        name = "%s_%06d" % (letter, n)
        function = ways[n // 50 % len(ways)](name)
        # The old function's memory is free, and the next one takes it.
        for _ in range(1 + n % 3):
            begun = clock()
            function(begun + 700000)
            ended = clock()
            log.write("%s %d %d\\n" % (name, begun, ended))
        function = None
        n += 1
    return n
"""

seconds, path = float(sys.argv[1]), sys.argv[2]
scope = {}
exec(CODE, scope)
log = open(path, "w")
if len(sys.argv) < 4:
    print(scope["live"]("f", seconds, log))
else:
    try:
        import _interpreters as interpreters
    except ImportError:
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            sys.exit(77)
    scope["live"]("f", seconds / 3, log)
    other = interpreters.create()
    execute = getattr(interpreters, "run_string", None) or getattr(interpreters, "exec")
    thread = threading.Thread(target=execute, args=(other, CODE + "\nwith open(%r, 'w') as log: live('g', %r, log)\n" % (
        path + ".other", seconds / 3)))
    thread.start()
    scope["live"]("h", seconds / 3, log)
    thread.join()
    interpreters.destroy(other)
    print(scope["live"]("i", seconds / 3, log))
log.close()
