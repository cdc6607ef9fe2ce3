"""Spins for a while at the inner end of known chains of frames, and prints each chain.

usage: chains.py SECONDS_EACH [CALLS]      CALLS: of the deepest recursion, 900 unless told
Prints a JSON list of {"name", "frames": [[qualified name, file, line], ...]}, frames
outermost first, the spinning function last. Spinners are told apart by their names.
Runs on 2.7 and 3.6 on; what 2.7 cannot parse stands in a string.
"""
import functools
import json
import re
import sys
import time

SECONDS = float(sys.argv[1])
DEEPEST = int(sys.argv[2]) if len(sys.argv) > 2 else 900
clock = getattr(time, "thread_time", None) or time.clock  # of one thread, the same
chains = []
sys.setrecursionlimit(3000)


def spinner(name):
    """A function of its own name, so that samples can be told apart."""
    scope = {"clock": clock, "tell": tell, "SECONDS": SECONDS}
    source = """def spin_{0}(*_):
    tell('{0}')
    end = clock() + SECONDS
    while clock() < end:
        for i in range(2000): i * i
    return 1
""".format(name)
    exec(compile(source, "<spin %s>" % name, "exec"), scope)
    return scope["spin_" + name]


def tell(name):
    frame = sys._getframe(1)
    frames = []
    while frame:
        code = frame.f_code
        frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    chains.append({"name": name, "frames": frames[::-1]})


def recurse(depth, leaf):
    if depth == 0:
        return leaf()
    return recurse(depth - 1, leaf)


def generator(leaf):
    yield 1
    yield leaf()


class Shape(object):
    def __init__(self, leaf):
        self.leaf = leaf

    def area(self):
        return self.leaf()

    @property
    def size(self):
        return self.area()

    @classmethod
    def make(cls, leaf):
        return cls(leaf).size

    @staticmethod
    def still(leaf):
        return leaf()

    def __lt__(self, other):
        return bool(self.leaf()) and False

    class Inner(object):
        def deep(self, leaf):
            return (lambda: leaf())()


class Built(object):
    def __init__(self, leaf):
        self.value = leaf()


def decorate(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)
    return wrapper


@decorate
def decorated(leaf):
    return leaf()


NEW_SYNTAX = """
def delegating(leaf):
    yield from generator(leaf)


async def coroutine(leaf):
    return leaf()


async def awaiting(leaf):
    return await coroutine(leaf)
"""
if sys.version_info[0] > 2:
    exec(compile(NEW_SYNTAX, "<new syntax>", "exec"), globals())


def drive(coro):
    try:
        coro.send(None)
    except StopIteration:
        pass


def multi_line(leaf):
    return [
        1,
        leaf(
        ),
        2,
    ]


def main():
    recurse(200, spinner("recurse200"))
    recurse(DEEPEST, spinner("recurse_deepest"))
    list(generator(spinner("generator")))
    [leaf() for leaf in [spinner("comprehension")]]
    {leaf() for leaf in [spinner("setcomp")]}
    list(leaf() for leaf in [spinner("genexpr")])
    Shape.make(spinner("methods"))
    Shape.still(spinner("static"))
    Shape.Inner().deep(spinner("inner"))
    Built(spinner("constructor"))
    sorted([1], key=spinner("sorted"))
    sorted([Shape(spinner("lessthan")), Shape(lambda: 0)])
    functools.reduce(spinner("reduce"), [1, 2])
    functools.partial(spinner("partial"), 1)()
    list(map(spinner("map"), [1]))
    re.sub("a", lambda match: str(spinner("resub")(match)), "a")
    max([1], key=lambda value: sorted([1], key=spinner("nested")))
    decorated(spinner("decorated"))
    if sys.version_info[0] > 2:
        list(delegating(spinner("generators")))
        drive(awaiting(spinner("coroutine")))
    multi_line(spinner("multiline"))
    (lambda leaf: leaf())(spinner("lambda"))


main()
print(json.dumps(chains))
