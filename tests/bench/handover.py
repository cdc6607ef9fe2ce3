# SPDX-License-Identifier: Apache-2.0
"""A workload that switches between threads all the time. usage: handover.py THREADS

Two processes hand a byte to each other through pipes (THREADS 0), or so many threads of one process hand a turn to each
other by locks, and the GIL with it. All is bound to the last CPU. Between two switches as much work is done as makes
100,000 of them in a second of CPU time.

Prints "ready PID,PID", then obeys lines on stdin: "run CHUNKS HANDOVERS" does so many chunks of so many hand-overs and prints,
as JSON, each chunk's CPU seconds and switches. What the kernel and its tracers do at a switch is in the CPU time of the threads
beside it, and a neighbour's load is not.
"""
import json
import os
import sys
import threading
import time

WANTED = 100000
spin = 0  # turns of a loop between two switches


def work(turns):
    for _ in range(turns):
        pass


class Pipe:
    """The child gives back each byte that it gets; what it gets also says how much it has to work."""

    def __init__(self):
        to_child, self.out = os.pipe()
        self.back, from_child = os.pipe()
        self.child = os.fork()
        if not self.child:
            os.close(self.out)
            os.close(self.back)
            self.answer(to_child, from_child)
        os.close(to_child)
        os.close(from_child)

    @staticmethod
    def answer(source, to):
        while True:
            data = os.read(source, 8)
            if not data:
                os._exit(0)
            work(int.from_bytes(data, "little"))
            os.write(to, b"x")

    def hand_over(self, times):
        data = spin.to_bytes(8, "little")
        for _ in range(times):
            os.write(self.out, data)
            os.read(self.back, 1)
            work(spin)

    def pids(self):
        return [os.getpid(), self.child]

    def cpu(self):
        return sum(time.clock_gettime((~pid << 3) | 2) for pid in self.pids())


class Ring:
    """Threads that wait for a lock each; whose turn it is works, and gives the next one its turn."""

    def __init__(self, threads):
        threading.stack_size(1 << 18)
        self.turns = [threading.Lock() for _ in range(threads)]
        for turn in self.turns:
            turn.acquire()
        for i in range(1, threads):
            threading.Thread(target=self.answer, args=(self.turns[i], self.turns[(i + 1) % threads]), daemon=True).start()

    @staticmethod
    def answer(mine, following):
        while True:
            mine.acquire()
            work(spin)
            following.release()

    def hand_over(self, times):
        for _ in range(max(1, times // len(self.turns))):
            self.turns[1].release()
            self.turns[0].acquire()
            work(spin)

    def pids(self):
        return [os.getpid()]

    def cpu(self):
        return time.process_time()


def switches(pids):
    count = 0
    for pid in pids:
        for tid in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/status" % (pid, tid), encoding="ascii") as status:
                count += sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)
    return count


def chunk(kind, times):
    before, cpu = switches(kind.pids()), kind.cpu()
    kind.hand_over(times)
    cpu = kind.cpu() - cpu
    return cpu, switches(kind.pids()) - before


def calibrate(kind):
    """Chooses the work between switches. Its own share of the time grows with the turns of the loop."""
    global spin
    took = {}
    for spin in (0, 100):
        took[spin] = min(cpu / count for cpu, count in (chunk(kind, 4000) for _ in range(5)))
    spin = max(0, round((1 / WANTED - took[0]) / max(took[100] - took[0], 1e-9) * 100))


def main():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    kind = Ring(int(sys.argv[1])) if int(sys.argv[1]) else Pipe()
    chunk(kind, 2000)
    calibrate(kind)
    print("ready", ",".join(map(str, kind.pids())), flush=True)
    for line in sys.stdin:
        chunks, times = (int(word) for word in line.split()[1:])
        print(json.dumps([chunk(kind, times) for _ in range(chunks)]), flush=True)


main()
