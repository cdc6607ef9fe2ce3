# -*- coding: utf-8 -*-
"""Functions and files with names that are hard on text formats. usage: names.py SECONDS [GATE]

Each spins for SECONDS of CPU. Prints each [function, file, line of the function] before, in JSON. With GATE they
begin when that file is there; until then warm() runs.
"""
import json
import os
import sys
import time
import types

SECONDS = float(sys.argv[1])
clock = getattr(time, "thread_time", None) or time.clock  # of one thread, the same
NAMES = [
    u"semi;colon; twice",
    u"two words and a number 42",
    u"line\nbreak\r\nand one more\u2028end",
    u"tab\tstop",
    u"paren (a.py:3) -> b",
    u"long_" + u"n" * 295,
    u"Größe_ÿ",
    u"名前_Ω",
    u"astral_\U00010437_\U0001F40D",
]


def spin():
    end = clock() + SECONDS
    while clock() < end:
        sum(range(300))


def renamed(code, name, path):
    if hasattr(code, "replace"):
        changes = {"co_name": name, "co_filename": path}
        if hasattr(code, "co_qualname"):
            changes["co_qualname"] = name
        return code.replace(**changes)
    arguments = [code.co_argcount] + ([code.co_kwonlyargcount] if sys.version_info[0] > 2 else [])
    return types.CodeType(*(arguments + [
        code.co_nlocals, code.co_stacksize, code.co_flags, code.co_code, code.co_consts, code.co_names,
        code.co_varnames, path, name, code.co_firstlineno, code.co_lnotab, code.co_freevars, code.co_cellvars]))


def warm():
    spin()


warm()
while len(sys.argv) > 2 and not os.path.exists(sys.argv[2]):
    warm()
    time.sleep(0.1)
for n, text in enumerate(NAMES):
    path = u"/no %s.py" % text
    if sys.version_info[0] > 2:
        code = renamed(spin.__code__, text, path)
    else:
        code = renamed(spin.__code__, text.encode("utf-8"), path.encode("utf-8"))
    print(json.dumps([text, path, code.co_firstlineno]))
    sys.stdout.flush()
    types.FunctionType(code, globals())()
