# coding: utf-8
"""Threads with names of all kinds, one of them renamed on the way. Prints {function: name}.

usage: thread_names.py SECONDS [GATE]     with GATE until that file is there
"""
import json
import os
import sys
import threading
import time

try:
    from concurrent.futures import ThreadPoolExecutor
except ImportError:
    ThreadPoolExecutor = None
if sys.version_info < (3, 6):
    ThreadPoolExecutor = None  # without a name of one's own

go, end = threading.Event(), []
names = {"main": "MainThread", "ascii": "worker-1", "renamed": "after"}
if sys.version_info[0] > 2:
    names.update(latin=u"wörker", wide=u"线程 2", astral=u"\U0001f40d", long="long" * 75)
else:
    names.update(latin="wörker")


def is_over():
    return os.path.exists(sys.argv[2]) if len(sys.argv) > 2 else time.time() >= end[0]


def spin(function):
    go.wait()
    scope = {"is_over": is_over}
    exec(compile("def only_in_%s():\n    while not is_over(): sum(range(3000))\n" % function, "<names>", "exec"), scope)
    scope["only_in_" + function]()


threads = {f: threading.Thread(target=spin, args=(f,), name=n) for f, n in names.items() if f != "main"}
for thread in threads.values():
    thread.start()
if ThreadPoolExecutor:
    pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="pool")
    pool.submit(spin, "pool")
    names["pool"] = "pool_0"
threads["renamed"].name = "before"
print(json.dumps(names))
sys.stdout.flush()
end.append(time.time() + float(sys.argv[1]))
go.set()
time.sleep(0.3)
threads["renamed"].name = "after"
spin("main")
