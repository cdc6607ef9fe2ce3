# -*- coding: utf-8 -*-
"""Names and line tables larger than the sampler copies. usage: large.py SECONDS"""
import sys
import time

SECONDS = float(sys.argv[1])
clock = getattr(time, "thread_time", None) or time.clock  # of one thread, the same
name = "long_" + "n" * 700
body = "".join("    x = %d + y\n" % i for i in range(10000))
source = ("def %s(y):\n%s    end = clock() + SECONDS\n"
          "    while clock() < end:\n        sum(range(300))\n" % (name, body))
scope = {"clock": clock, "SECONDS": SECONDS}
exec(compile(source, "<" + "f" * 700 + ">", "exec"), scope)


NEW_SYNTAX = u"""
class Ünïcödé:
    def 名前(self):
        def inner_𐐷():
            end = clock() + SECONDS
            while clock() < end:
                sum(range(300))
        inner_𐐷()


Ünïcödé().名前()
"""
scope[name](1)
if sys.version_info[0] > 2:  # before, names are ASCII
    exec(compile(NEW_SYNTAX, "<new syntax>", "exec"), {"clock": clock, "SECONDS": SECONDS})
