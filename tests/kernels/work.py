# SPDX-License-Identifier: Apache-2.0
"""Burns CPU at the end of a known chain of calls: outer, middle, the sort's key, burn."""
import sys
import time


def burn(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


def middle(n):
    return sorted([n, n + 1], key=lambda k: burn(k))


def outer(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        middle(2000)


outer(float(sys.argv[1]))
