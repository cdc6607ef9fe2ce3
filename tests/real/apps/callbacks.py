# SPDX-License-Identifier: Apache-2.0
"""Cython, pybind11 and ctypes, with calls back into Python, from threads of C too. usage: callbacks.py FOLDER (of ext/, built)"""
import ctypes
import sys

sys.path.insert(0, sys.argv[1])
import in_cython  # noqa: E402
import in_pybind  # noqa: E402

from clocks import by_turns, phase  # noqa: E402

library, holding = (kind(f"{sys.argv[1]}/in_c.so") for kind in (ctypes.CDLL, ctypes.PyDLL))
Called = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
counter = in_cython.Counter(30000)


def spin(numbers=3000):
    return sum(n * n % 97 for n in range(numbers))


@phase
def cython_plain():
    in_cython.plain(30000)


@phase
def cython_both():
    in_cython.both(30000)


@phase
def cython_method():
    counter.method()


@phase
def cython_property():
    return counter.total


@phase
def cython_generator():
    return sum(in_cython.generator(20))


@phase
def cython_calls_back():
    in_cython.calls_back(spin, 5)


@phase
def pybind_function():
    in_pybind.add(30000)


@phase
def pybind_calls_back():
    in_pybind.calls_back(spin, 5)


@phase
def from_thread_of_cpp():
    spin(30000)


@phase
def from_thread_of_c():
    spin(5000)


@phase
def ctypes_function():
    library.c_burn(30000)


@phase
def ctypes_holds_gil():
    holding.c_burn(30000)


by_turns([cython_plain, cython_both, cython_method, cython_property, cython_generator, cython_calls_back, pybind_function,
          pybind_calls_back, ctypes_function, ctypes_holds_gil], 0.9)
called = Called(lambda _: from_thread_of_c() or 0)
for _ in range(50):
    in_pybind.in_threads(from_thread_of_cpp, 4)
    library.c_threads(called, 4, 10)
