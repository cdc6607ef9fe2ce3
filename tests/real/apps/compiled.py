# SPDX-License-Identifier: Apache-2.0
"""Functions that numba compiles: nested, recursive, parallel, and one that calls Python."""
from numba import njit, objmode, prange

from clocks import by_turns, phase


@njit
def inner(numbers):
    total = 0.0
    for number in range(numbers):
        total += (number * 1.5) % 7.0
    return total


@njit
def outer(numbers):
    return inner(numbers) + inner(numbers // 2)


@njit
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@njit(parallel=True)
def parallel(numbers):
    total = 0.0
    for number in prange(numbers):
        total += number % 7
    return total


def back(numbers):
    return float(sum(n * n % 97 for n in range(numbers)))


@njit
def calls_python(times):
    total = 0.0
    for _ in range(times):
        with objmode(one="f8"):
            one = back(3000)
        total += one
    return total


@phase
def nested():
    outer(20000)


@phase
def recursive():
    fibonacci(22)


@phase
def in_parallel():
    parallel(300000)


@phase
def by_objmode():
    calls_python(5)


@phase
def in_python():
    back(20000)


# What compiles them is no time of a phase.
outer(1), fibonacci(1), parallel(1), calls_python(1)
by_turns([nested, recursive, in_parallel, by_objmode, in_python], 2)
