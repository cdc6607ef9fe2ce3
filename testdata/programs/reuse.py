"""Functions that come and go, so that their code objects get the same addresses again.

Name, file and first line of function N all say N: a sample in which they disagree
shows another function's name. usage: reuse.py SECONDS
"""
import sys
import time

clock = getattr(time, "thread_time", None) or time.clock  # of one thread, the same
end = clock() + float(sys.argv[1])
n = 0
while clock() < end:
    n += 1
    lines = "\n" * (n % 50000)
    scope = {}
    exec(compile("%sdef f_%d():\n    for i in range(30): i * i\n" % (lines, n), "<file %d>" % n, "exec"), scope)
    for _ in range(20):
        scope["f_%d" % n]()
print(n)
