#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where a sample's time goes in BPF, and what it reads of the program's memory, stage by stage.

build/tools/pycap_stages counts that: pycap with a sampler of its own (bpf/stages.h), which make makes by that name. This
reads its counters before and after a program's work, as bpftool would. The time stamps make a sample dearer, by the line
"time stamps"; the reads are exact, and do not depend on the machine or on what else it does, so that a test can have a limit
for them.

usage: stages.py [--python PATH,...] [--rates HZ,...], bench.py --part stages
"""
import argparse
import contextlib
import ctypes
import os
import pathlib
import re
import struct
import tempfile

from recorders import Missing, PYCAP, Pycap, work_command
from recording import bpf_stats, bpf_time_ns, CHUNK_SECONDS, fail, Recorder, say, Workload

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = str(pathlib.Path(PYCAP).parent / "tools/pycap_stages")
# As in bpf/stages.h.
STAGES = ["whose tick, registers", "kernel frames", "user stack, read at once", "thread state, GIL", "Python frames", "native frames",
          "task's name, copy of the stack", "into the ring"]
COUNTS = struct.Struct("4Q")  # samples, ns, reads, bytes
SYS_BPF, MAP_LOOKUP_ELEM, MAP_GET_FD_BY_ID, OBJ_GET_INFO_BY_FD = 321, 1, 14, 15
SETTLE_SECONDS = 3


def bpf(command, form, *values):
    """bpf(2) with an attribute of these fields; raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    attribute = ctypes.create_string_buffer(struct.pack(form, *values).ljust(128, b"\0"), 128)
    result = libc.syscall(SYS_BPF, command, attribute, 128)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def map_called(pid, name):
    """A descriptor of the map of that name that a process holds, and the length of its values."""
    for link in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found = re.search(r"^map_id:\s*(\d+)", link.read_text(), re.M)
            if not found:
                continue
            fd = bpf(MAP_GET_FD_BY_ID, "I", int(found[1]))
            info = ctypes.create_string_buffer(88)
            bpf(OBJ_GET_INFO_BY_FD, "IIQ", fd, len(info), ctypes.addressof(info))
            if info.raw[24:40].rstrip(b"\0").decode() == name:
                return fd, struct.unpack_from("I", info.raw, 12)[0]
            os.close(fd)
    raise Missing(f"process {pid} has no map {name}")


class Counters:
    """Of a running pycap; closed with it."""

    def __init__(self, pid):
        self.fd, self.len_bytes = map_called(pid, ".data.stages")

    def read(self):
        key, value = ctypes.c_uint32(0), ctypes.create_string_buffer(self.len_bytes)
        bpf(MAP_LOOKUP_ELEM, "IxxxxQQ", self.fd, ctypes.addressof(key), ctypes.addressof(value))
        return [COUNTS.unpack_from(value.raw, at * COUNTS.size) for at in range(len(STAGES))]

    def close(self):
        os.close(self.fd)


def measure(python, workload_name, hz, seconds, options=()):
    """Of each stage (samples, ns, reads, bytes); and the BPF time per sample, from the kernel's count, None where it has none."""
    workload = Workload(work_command(python, HERE / "work.py", workload_name), seconds)
    recorder = None
    try:
        with tempfile.TemporaryDirectory(prefix="pycap-bench-") as directory:
            # On other CPUs there are only ticks of others.
            kind = Pycap("-C", str(max(os.sched_getaffinity(0))), *options, program=PROGRAM)
            recorder = Recorder("pycap", hz, workload, f"{directory}/stages.bin", kind)
            counters = Counters(recorder.process.pid)
            workload.order(f"run {round(SETTLE_SECONDS / CHUNK_SECONDS)} {workload.units}")
            before, bpf_before = counters.read(), bpf_time_ns(recorder.process.pid)
            workload.once()
            after, bpf_after = counters.read(), bpf_time_ns(recorder.process.pid)
            counters.close()
            recorder.stop()
            stages = [tuple(b - a for a, b in zip(*pair)) for pair in zip(before, after)]
            return stages, (bpf_after - bpf_before) / max(1, stages[-1][0]) or None
    finally:
        if recorder:
            recorder.discard()
        workload.close()


def print_stages(title, stages, bpf_ns):
    samples = max(1, stages[-1][0])
    print(f"{title}: {samples} samples\n\n| stage | ns/sample | reads/sample | bytes/sample |\n|---|--:|--:|--:|")
    for name, (_, ns, reads, read_bytes) in zip(STAGES, stages):
        print(f"| {name} | {ns / samples:.0f} | {reads / samples:.1f} | {read_bytes / samples:.0f} |")
    whole = [sum(stage[column] for stage in stages) / samples for column in (1, 2, 3)]
    print(f"| **all** | {whole[0]:.0f} | {whole[1]:.1f} | {whole[2]:.0f} |")
    if bpf_ns:
        print(f"| the kernel's count of the program's time | {bpf_ns:.0f} | | |")
    print(flush=True)


def measure_and_print(pythons, workloads, rates, seconds, options=()):
    for python in pythons:
        for workload_name in workloads:
            for hz in rates:
                try:
                    found = measure(python, workload_name, hz, seconds, options)
                except (Missing, OSError) as why:
                    say(f"stages of {workload_name}, {python} left out: {why}")
                    continue
                print_stages(f"{workload_name}, {python}, {hz} Hz", *found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--python", type=lambda s: s.split(","), default=["/usr/bin/python3"])
    parser.add_argument("--workloads", type=lambda s: s.split(","), default=["mixed"])
    parser.add_argument("--rates", type=lambda s: [int(x) for x in s.split(",")], default=[999])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--record", default="", metavar="OPTIONS", help="more options of pycap record")
    options = parser.parse_args()
    if os.geteuid() != 0:
        fail("has to run as root")
    if not os.access(PROGRAM, os.X_OK):
        fail(f"{PROGRAM} can't be run: make build/tools/pycap_stages makes it")
    with bpf_stats():
        measure_and_print(options.python, options.workloads, options.rates, options.seconds, options.record.split())


if __name__ == "__main__":
    main()
