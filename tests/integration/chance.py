# SPDX-License-Identifier: Apache-2.0
"""
How far samples may be from what is true without being wrong: bounds that chance passes in one of ten million comparisons, and
how many were made in a run. A run makes fewer than ten thousand, so that together they fail by chance in fewer than one run of
a thousand; a run that makes more fails.

Most bounds are Bernstein's: they hold for draws that are independent, whatever their number, and so for small samples, where
standard deviations of a normal distribution say too little. Ticks of a clock are more even than that. What is no chance, as what the
program's own clock cannot see, is added by the test, which says why.
"""
import math

PART = 1e-7
IN_A_RUN = 1e-3

compared = 0  # in this process


def _compare():
    global compared
    compared += 1


def _beyond(variance, most=1.0):
    """What the sum of independent draws with this variance, each at most so far from its mean, is seldom away from its mean."""
    _compare()
    exponent = math.log(2 / PART)
    return math.sqrt(2 * variance * exponent) + most * exponent / 3


def of_share(samples, share):
    """In samples: how far the number of those that have something may be from samples * share."""
    return _beyond(samples * share * (1 - share))


def of_count(mean):
    """How far a number of events that come independently, such as ticks that fall onto something short, may be from its mean."""
    return _beyond(mean)


def of_weights(weights, share):
    """The same as of_share() for samples of different weights, in their unit."""
    weights = list(weights)
    return _beyond(sum(w * w for w in weights) * share * (1 - share), max(weights, default=1.0))


def of_sum(weights):
    """How far the sum of samples of these weights, which come independently, may be from its mean, in their unit."""
    weights = list(weights)
    return _beyond(sum(w * w for w in weights), max(weights, default=1.0))


def is_above(number, mean):
    """Whether so many events are more than come independently where there are so many on average: by Poisson's distribution,
    which is exact where only a few are expected."""
    _compare()
    number, tail, term = math.ceil(number), 0.0, 1.0
    if number <= mean or not mean:
        return number > mean
    while term > tail * 1e-9:  # the terms fall, as they begin above the mean
        term = math.exp(number * math.log(mean) - mean - math.lgamma(number + 1))
        tail, number = tail + term, number + 1
    return tail < PART
