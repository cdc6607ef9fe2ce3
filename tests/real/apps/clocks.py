# SPDX-License-Identifier: Apache-2.0
"""
A program's own clocks: the CPU time that threads spend in its phases, to be compared with what samples say. A phase is a
function, known in both by its name. The figures lie in files of each process in the folder that CLOCKS names, mapped into
memory: they are complete whichever way the process ends.
"""
import functools
import mmap
import os
import struct
import threading
import time

FOLDER = os.environ.get("CLOCKS")
SLOT = struct.Struct("56sd")  # a phase's name, and its CPU time in seconds
SLOTS = 64



def reading():
    begun = time.thread_time()
    return time.thread_time() - begun


COST = min(reading() for _ in range(100))  # of a reading, which every phase's time has in it


class Clocks:
    def __init__(self):
        self.lock = threading.Lock()
        self.slots = {}
        self.memory = None

    def add(self, name, seconds):
        with self.lock:
            if self.memory is None:
                with open(f"{FOLDER}/{os.getpid()}-{id(self)}", "w+b") as file:  # a file of each interpreter
                    file.truncate(SLOT.size * SLOTS)
                    self.memory = mmap.mmap(file.fileno(), SLOT.size * SLOTS)
            slot, spent = self.slots.get(name, (len(self.slots), 0))
            self.slots[name] = slot, spent + seconds
            SLOT.pack_into(self.memory, slot * SLOT.size, name.encode(), spent + seconds)


clocks = Clocks()
os.register_at_fork(after_in_child=clocks.__init__)


def phase(function):
    """Adds up what calls of `function` take. Phases are not nested."""
    if not FOLDER:
        return function

    @functools.wraps(function)
    def timed(*args, **kwargs):
        begun = time.thread_time()
        try:
            return function(*args, **kwargs)
        finally:
            clocks.add(function.__name__, time.thread_time() - begun - COST)
    return timed


def run(function, seconds):
    """Runs a phase again and again, for so much CPU time of this thread."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        function()


def by_turns(functions, seconds, turns=1):
    for _ in range(turns):
        for function in functions:
            run(function, seconds / turns)


def read(folder):
    """{name: seconds} of all processes."""
    found = {}
    for file in os.scandir(folder):
        with open(file.path, "rb") as opened:
            for name, seconds in SLOT.iter_unpack(opened.read()):
                if name := name.rstrip(b"\0").decode():
                    found[name] = found.get(name, 0) + seconds
    return found
