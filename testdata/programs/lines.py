"""Burns CPU in C at call instructions whose line the interpreter has told, so that each sample has one right line.

usage: lines.py SECONDS_EACH
Every function top_* calls what it is given, once tell(), once C code that takes SECONDS_EACH: the same instruction.
Prints a JSON list as chains.py does. Runs on 2.7 and 3.6 on; what 2.7 cannot parse stands in a string.
"""
import dis
import functools
import json
import sys
import time

SECONDS = float(sys.argv[1])
clock = getattr(time, "thread_time", None) or time.clock
numbers = getattr(__builtins__, "xrange", range)
chains = []


def calibrate():
    start, count = clock(), 100000
    while clock() - start < 0.02:
        begin, count = clock(), count * 2
        sum(numbers(count))
    return int(count * SECONDS / (clock() - begin))


burn = functools.partial(sum, numbers(calibrate()))


def tell(*_):
    frame = sys._getframe(1)
    frames = []
    while frame:
        code = frame.f_code
        frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    lines = [line for _, line in dis.findlinestarts(sys._getframe(1).f_code)] + [sys._getframe(1).f_code.co_firstlineno]
    chains.append({"name": frames[0][0], "frames": frames[::-1], "lines": lines})
    return 0


def tag(*_):
    def wrap(function):
        @functools.wraps(function)
        def inner(call):
            return function(call)
        return inner
    return wrap


def top_one_line(call):
    return call()


def top_argument_lines(call):
    return call(
        1
        +
        len("ab"
            "c"),
    )


def top_callee_lines(call):
    return (
        [1,
         call][
            1]
    )(
        2
    )


def top_inside_list(call):
    return [
        1,
        2, {
            "a": 1, "b":
            call()},
        3,
    ]


@tag(
    1,
    2,
)
@tag(3)
def top_decorated(
        call,
        more=(
            1,
            2)):
    """Text of
    several lines."""
    if more:

        # a comment

        return call()


def top_loop_goes_back(call):
    total = 0
    for value in (
            1,
            call(),
    ):
        total += value
    return total


def top_condition(call):
    if (len("a") == 1
            and (call() or
                 True)):
        return 1


def top_finally(call):
    try:
        len(1)
    except TypeError:
        try:
            return 1
        finally:
            call()


def top_with(call):
    class Manager(object):
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return False

    with Manager() as manager, \
            Manager():
        call() if manager else None


def top_chained(call):
    return ("a"
            .upper()
            .join(["b",
                   str(call())])
            .lower())


# A nested function, a lambda over several lines, a class body, a default argument.
def nested(call):
    def top_nested():
        return call(

            1)
    top_nested()


def lambdas(call):
    top = (lambda:
           [1,
            call()])
    top()


def bodies(call):
    class top_body(object):
        a = 1
        b = call()


def defaults(call):
    def function(
            a=1,
            b=call()):
        pass


# Far apart, more columns than a byte, more code than a byte holds, and back again.
FAR = """def top_far(call):
    a = 1
%s    b = [1,
%s         call(
         1)]
%s    return b
""" % ("\n" * 400, "\n" * 130, "    a = a + 1\n" * 200)
WIDE = "def top_wide(call):\n    return [%s\n, call(), %s]\n" % (", ".join(["1"] * 300), "\n".join(["2,"] * 300))
LONG = "def top_long(call):\n    a = 0\n%s    call()\n" % ("    a = a + 1\n" * 300)
NEW_SYNTAX = """
async def top_coroutine(call):
    return [await top_await(
        call), 1]


async def top_await(call):
    return f"{1}" + str(
        call(1) if call else
        2)


def top_generator(call):
    yield from (
        x for x in [
            call()])


def asynchronous(call):
    try:
        top_coroutine(call).send(None)
    except StopIteration:
        pass


def generators(call):
    list(top_generator(call))
"""


def main():
    functions = [f for name, f in sorted(globals().items()) if name.startswith("top_") and name not in NOT_CALLED]
    for function in functions + OTHERS:
        for call in (tell, burn):
            function(call)


NOT_CALLED = ("top_coroutine", "top_await", "top_generator")
OTHERS = [nested, lambdas, bodies, defaults]
for name, text in (("<far>", FAR), ("<wide>", WIDE), ("<long>", LONG)):
    exec(compile(text, name, "exec"), globals())
if sys.version_info[0] > 2:
    exec(compile(NEW_SYNTAX, "<new syntax>", "exec"), globals())
    OTHERS += [asynchronous, generators]  # noqa
main()
print(json.dumps(chains))
