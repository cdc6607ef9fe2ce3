"""Spins below functions of a module that is written anew and loaded again: its code objects move, and lie where others lay.

usage: reload.py SECONDS_EACH
Writes a line of JSON for each time, see told.py. 2.7 and 3.6 on.
"""
import importlib
import os
import shutil
import sys
import tempfile

from told import spin

SECONDS = float(sys.argv[1])
again = getattr(importlib, "reload", None) or reload  # noqa: F821 (2.7)
sys.dont_write_bytecode = True

# Another name and another line each time, as long as the one before.
SOURCE = """{lines}
class Work_{n}(object):
    def run_{n}(self, leaf):
        return helper_{n}(leaf)

def helper_{n}(leaf):
    return [leaf() for _ in [0]]

def enter(leaf):
    return Work_{n}().run_{n}(leaf)

def resumed_{n}(leaf):
    yield
    yield leaf()
"""


def write(folder, n):
    with open(os.path.join(folder, "loaded.py"), "w") as file:
        file.write(SOURCE.format(n=n, lines="\n" * (n % 7)))


def main(folder):
    sys.path.insert(0, folder)
    write(folder, 100)
    import loaded
    for n in range(101, 113):
        # Begun in the old code, and ended when the new one has come.
        old = getattr(loaded, "resumed_%d" % (n - 1))(lambda: spin("old_%d" % n, SECONDS))
        next(old)
        write(folder, n)
        if n % 3 == 0:
            del sys.modules["loaded"]
            import loaded
        else:
            again(loaded)
        loaded.enter(lambda: spin("new_%d" % n, SECONDS))
        next(old)
        for name in [name for name in vars(loaded) if name.endswith(str(n - 1))]:
            delattr(loaded, name)


folder = tempfile.mkdtemp()
try:
    main(folder)
finally:
    shutil.rmtree(folder)
