# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""What Cython makes: functions of three kinds, a method, a property, a generator, and calls back into Python."""

cdef double add(int numbers):
    cdef double total = 0
    for number in range(numbers):
        total += number % 7
    return total

def plain(int numbers):
    return add(numbers)

cpdef double both(int numbers):
    return add(numbers)

def calls_back(function, int times):
    for _ in range(times):
        function()

def generator(int times):
    for _ in range(times):
        yield add(2000)

cdef class Counter:
    cdef public int numbers

    def __init__(self, numbers):
        self.numbers = numbers

    def method(self):
        return add(self.numbers)

    @property
    def total(self):
        return add(self.numbers)
