"""Names and line tables larger than the sampler copies. usage: large.py SECONDS"""
import sys
import time

SECONDS = float(sys.argv[1])
name = "long_" + "n" * 700
body = "".join(f"    x = {i} + y\n" for i in range(10000))
source = (f"def {name}(y):\n{body}    end = time.thread_time() + SECONDS\n"
          f"    while time.thread_time() < end:\n        sum(range(300))\n")
scope = {"time": time, "SECONDS": SECONDS}
exec(compile(source, "<" + "f" * 700 + ">", "exec"), scope)


class Ünïcödé:
    def 名前(self):
        def inner_𐐷():
            end = time.thread_time() + SECONDS
            while time.thread_time() < end:
                sum(range(300))
        inner_𐐷()


scope[name](1)
Ünïcödé().名前()
