# SPDX-License-Identifier: Apache-2.0
"""Machine code that numba makes as it runs, and Python that calls it, until it is ended."""
import numba


@numba.njit
def compute(numbers):
    total = 0.0
    for number in range(numbers):
        total += (number * 1.5) % 7.0
    return total


def in_python(numbers):
    return sum(number * number % 97 for number in range(numbers))


while True:
    compute(100000)
    in_python(30000)
