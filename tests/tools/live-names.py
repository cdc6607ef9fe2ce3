# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Has live_reader read this very process, and compares with what the interpreter says of itself.

usage: PYTHON tests/tools/live-names.py LIVE_READER [REPORT_ONLY]
Run by hand with each CPython. Functions, classes and files have names in every kind of str; threads block
in os.read() at the bottom of them while the reader runs. Exit code 1 when a frame differs.
"""
import os
import subprocess
import sys
import threading

ready = threading.Barrier(7)
r, w = os.pipe()


def block():
    ready.wait()
    os.read(r, 1)


class Größe:
    def naïve(self):
        self.日本()

    def 日本(self):
        self.𝔘nicode()

    def 𝔘nicode(self):
        def ΑβγΔ():
            block()
        ΑβγΔ()


def generator():
    yield block()


def in_generator():
    for _ in generator():
        pass


def in_sort():
    sorted([1, 2], key=lambda x: block() if x == 2 else x)


def long_name():
    scope = {"block": block}
    exec(compile("\n" * 40000 + "def %s():\n\n\n block(\n )\n%s()" % (("ø" * 3000,) * 2), "/tmp/päth/𝔛.py", "exec"), scope)


class Init:
    def __init__(self):
        block()


def surrogate():
    exec(compile("def f():\n block()\nf()", "bad\udc80name.py", "exec"), {"block": block})


def expected():
    out = {}
    frames = sys._current_frames()
    for thread in threading.enumerate():
        frame, stack = frames[thread.ident], []
        while frame:
            code = frame.f_code
            stack.append((code.co_name, getattr(code, "co_qualname", None), code.co_filename, frame.f_lineno,
                          code.co_firstlineno, code.co_flags, len(code.co_code)))
            frame = frame.f_back
        out[thread.native_id] = stack
    return out


def printable(text):
    return "".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 else c for c in text)


def main():
    threads = [threading.Thread(target=f, daemon=True)
               for f in (lambda: Größe().naïve(), in_generator, in_sort, long_name, Init, surrogate)]
    for t in threads:
        t.start()
    ready.wait()
    import time
    time.sleep(0.3)
    reader = subprocess.Popen([sys.argv[1], str(os.getpid())], stdout=subprocess.PIPE)
    truth = expected()
    text = reader.communicate()[0].decode("utf-8")
    got, native, bad, frames = {}, None, 0, 0
    for line in text.split("\n"):
        kind, _, rest = line.partition("\t")
        if kind == "thread":
            native = int(rest.split("=")[1])
            got[native] = []
        elif kind == "frame":
            f = dict(x.split("=", 1) for x in rest.split("\t"))
            if f["started"] == "0":
                continue
            bad += f["complete"] != "1"
            got[native].append((f["name"], f["qualname"], f["file"], int(f["line"]), int(f["first"]), int(f["flags"], 16),
                                int(f["len"])))
    main_id = threading.main_thread().native_id
    for tid, stack in truth.items():
        want = [tuple(printable(x) if isinstance(x, str) else x for x in f) for f in stack]
        have = got.get(tid, [])
        if tid == main_id:  # it went on: compare its outermost frame, but for the line
            want, have = [want[-1][:3]], [have[-1][:3]] if have else []
        frames += len(want)
        if want != have:
            bad += 1
            print("differs:", *want, sep="\n  python ")
            print("", *have, sep="\n  reader ")
    print("%s: %d threads, %d frames, %d bad" % (sys.version.split()[0], len(truth), frames, bad))
    os._exit(bad != 0)


main()
