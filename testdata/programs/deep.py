"""Spins at the inner end of deep recursions: in Python alone, through C, through methods, and on the way back.

usage: deep.py SECONDS_EACH
Writes a line of JSON for each, see told.py. 2.7 and 3.6 on.
"""
import functools
import sys

from told import spin

SECONDS = float(sys.argv[1])
sys.setrecursionlimit(8000)


def plain(depth, leaf):
    if depth:
        plain(depth - 1, leaf)
    else:
        leaf()


def through_c(depth, leaf):
    if depth:
        functools.partial(sorted, [1], key=lambda _: through_c(depth - 1, leaf))()
    else:
        leaf()


class Node(object):
    def __init__(self, depth):
        self.inner = Node(depth - 1) if depth else None

    def visit(self, leaf):
        if self.inner:
            return [child.visit(leaf) for child in [self.inner]]
        return leaf()


def there_and_back(depth):
    """Spins at every 150th call on its way back."""
    if depth:
        there_and_back(depth - 1)
    if depth % 150 == 0:
        spin("back%d" % depth, SECONDS)


plain(1900, lambda: spin("plain", SECONDS))
through_c(60, lambda: spin("through_c", SECONDS))
Node(300).visit(lambda: spin("methods", SECONDS))
there_and_back(900)
