# -*- coding: utf-8 -*-
"""What the traces here hold: a handful of stacks, each with something that a version or a format can get wrong.

usage: program.py SECONDS_EACH
Each function at an inner end calls tell() and C code that takes SECONDS_EACH by the same instruction. Prints a JSON
list of {"name", "frames": [[name, file, line], ...], "lines"} as testdata/programs/lines.py does. 2.7 and 3.6 on.
"""
import sys
import time

SECONDS = float(sys.argv[1])
numbers = range if sys.version_info[0] > 2 else xrange  # noqa
clock = getattr(time, "thread_time", None) or time.clock
chains = []


def calibrate():
    count, took = 100000, 0
    while took < 0.01:
        begin, count = clock(), count * 2
        sum(numbers(count))
        took = clock() - begin
    return int(count * SECONDS / took)


COUNT = calibrate()


def tell(*_):
    frame = sys._getframe(1)
    frames = []
    while frame:
        code = frame.f_code
        # Without a line it is the function's first one, as pysym has it.
        frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno or code.co_firstlineno])
        frame = frame.f_back
    chains.append({"name": frames[0][0], "frames": frames[::-1], "lines": [frames[0][2]]})
    return 0


def json(value):
    """An import of json would be most of the trace."""
    if isinstance(value, dict):
        return "{" + ", ".join(json(key) + ": " + json(value[key]) for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(json, value)) + "]"
    if isinstance(value, int):
        return str(value)
    text = value.decode("utf-8") if isinstance(value, bytes) else value
    return '"' + "".join(c if " " <= c < "\x7f" and c not in '"\\' else escaped(ord(c)) for c in text) + '"'


def escaped(n):
    return "\\u%04x" % n if n < 0x10000 else "\\u%04x\\u%04x" % (0xD7C0 + (n >> 10), 0xDC00 + (n & 0x3FF))


def decorate(*_):
    def wrap(function):
        def inner(call):
            return function(call)
        return inner
    return wrap


@decorate(
    1,
)
@decorate(2)
def decorated(
        call,
        more=(1,
              2)):
    """Two
    lines."""
    return call(RANGE)


def multi_line(call):
    return [
        1,
        call(
            RANGE,
            0
            +
            0),
        2,
    ]


def comprehension(call):
    return [
        call(RANGE)
        for _ in (1,)]


def generator(call):
    yield 1
    yield call(RANGE)


def outer_generator(call):
    for value in generator(call):
        yield value


def run_generator(call):
    return list(outer_generator(call))


class Klass(object):
    @classmethod
    def make(cls, call):
        return cls().method(call)

    def method(self, call):
        return self.size(call)

    @property
    def size(self):
        return lambda call: call(RANGE)


class Made(object):
    def __init__(self, call):
        self.value = call(RANGE)


def make(call):
    return Made(call)


def nested(call):
    def inner():
        def innermost():
            return call(RANGE)
        return innermost()
    return inner()


def through_c(call):
    def key(_):
        return call(RANGE)
    return sorted([1], key=key)


def recurse(call, depth=12):
    if depth:
        return recurse(call, depth - 1)
    return call(RANGE)


# Names that no source can have, as some programs make them.
def renamed(name, filename):
    function = lambda call: call(RANGE)  # noqa
    code = function.__code__
    if sys.version_info[0] == 2:
        name, filename = name.encode("utf-8"), filename.encode("utf-8")
    if hasattr(code, "replace"):
        names = {"co_name": name, "co_filename": filename}
        if hasattr(code, "co_qualname"):
            names["co_qualname"] = "Äußeres.<locals>." + name
        code = code.replace(**names)
    else:
        keyword_only = () if sys.version_info[0] == 2 else (code.co_kwonlyargcount,)
        code = type(code)(*((code.co_argcount,) + keyword_only + (
            code.co_nlocals, code.co_stacksize, code.co_flags, code.co_code, code.co_consts, code.co_names, code.co_varnames,
            filename, name, code.co_firstlineno, code.co_lnotab, code.co_freevars, code.co_cellvars)))
    return type(function)(code, globals())


RENAMED = [
    renamed(u"naïve", u"/opt/app/größe.py"),
    renamed(u"名前", u"/opt/app/名 前.py"),
    renamed(u"𐐷_x", u"<𐐷>"),
    renamed(u"long_" + u"n" * 300, u"/opt/app/" + u"d" * 300 + u"/f.py"),
    renamed(u"semi;colon", u"/opt/app/a;b.py"),
    renamed(u"with space", u"/opt/app/a b.py"),
    renamed(u"new\nline", u"/opt/app/a\nb.py"),
]


def without_line(call):
    return call(RANGE)


if sys.version_info >= (3, 10):
    # All of its instructions without a line.
    units = len(without_line.__code__.co_code) // 2
    if sys.version_info >= (3, 11):
        table = b"\xff" * (units // 8) + (bytes([0xF8 + units % 8 - 1]) if units % 8 else b"")
    else:
        table = bytes([2 * units, 0x80])
    without_line.__code__ = without_line.__code__.replace(co_linetable=table)
    RENAMED.append(without_line)

NEW_SYNTAX = """
def delegating(call):
    yield from (
        call(RANGE) for _ in (1,))


def run_delegating(call):
    list(delegating(call))


async def awaited(call):
    return call(RANGE)


async def coroutine(call):
    return await \\
        awaited(call)


def run_coroutine(call):
    try:
        coroutine(call).send(None)
    except StopIteration:
        pass
"""
RANGE = numbers(COUNT)
FUNCTIONS = [decorated, multi_line, comprehension, run_generator, Klass.make, make, nested, through_c, recurse] + RENAMED
if sys.version_info[0] > 2:
    exec(compile(NEW_SYNTAX, "<new syntax>", "exec"), globals())
    FUNCTIONS += [run_delegating, run_coroutine]  # noqa


def main():
    for function in FUNCTIONS:
        for call in (tell, sum):
            function(call)


main()
print("[" + ",\n ".join(map(json, chains)) + "]")
