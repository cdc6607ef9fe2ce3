"""Imported by programs that tell where they spin: spin(NAME, SECONDS[, WORK]) runs in a function spin_NAME of its own.

Writes a line of JSON for each spinner, {"name", "frames": [[name, file, line], ...]}, outermost first. 2.7 and 3.6 on.
"""
import os
import sys
import time

clock = getattr(time, "thread_time", None) or time.clock


def tell():
    # json is no module for every interpreter that is made inside another
    frame, frames = sys._getframe(1), []
    while frame:
        code = frame.f_code
        frames.append('["%s", "%s", %d]' % (getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno))
        frame = frame.f_back
    os.write(1, ('{"frames": [%s]}\n' % ", ".join(frames[::-1])).encode())


def spin(name, seconds, work="for i in range(1000): i * i", **names):
    scope = {"tell": tell, "clock": clock, "seconds": seconds}
    scope.update(names)
    exec(compile("def spin_%s():\n    tell()\n    end = clock() + seconds\n    while clock() < end:\n"
                 "        %s\n" % (name, work), "<spin %s>" % name, "exec"), scope)
    scope["spin_" + name]()
