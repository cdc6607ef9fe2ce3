# SPDX-License-Identifier: Apache-2.0
"""Hosts with very many processes, and workers that share their mappings, are recorded.

There may be more processes than the sampler has room for.
"""
import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from cached_rows import check, library
from conftest import PYCAP, PYTHON, ROOT

SECONDS = 300  # after which nothing comes any more

WORKERS = """
    import os, signal, sys, threading, time
    def work(number, until):
        exec(f"def worker_{number}():\\n    while time.monotonic() < until: sum(range(2000)); time.sleep(0.002)\\nworker_{number}()",
             {"time": time, "until": until})
    count = int(sys.argv[1])
    pids = []
    for number in range(count):
        pid = os.fork()
        if not pid:
            work(number, time.monotonic() + 1000)
        pids.append(pid)
    print(*pids, flush=True)
    sys.stdin.read()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
"""


class Workers:
    """Processes that were forked before the recording."""

    def __init__(self, folder, *arguments, text=WORKERS):
        program = folder / "workers.py"
        program.write_text(textwrap.dedent(text))
        self.parent = subprocess.Popen([PYTHON, program, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pids = [int(pid) for pid in self.parent.stdout.readline().split()]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.parent.communicate()


class Recording:
    """Of some processes, until it is ended."""

    def __init__(self, pysym, folder, pids, *options, **environment):
        self.pysym, self.trace = pysym, folder / "t.bin"
        self.process = subprocess.Popen([PYCAP, "record", "-o", self.trace, *options, "-p", ",".join(map(str, pids))], text=True,
                                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **environment})

    def functions(self, pattern):
        """What the trace has up to now of functions of that name."""
        text = self.pysym(self.trace, "--format", "folded", "--python-only").stdout if self.trace.exists() else ""
        return set(re.findall(pattern, text))

    def wait_for(self, known):
        end = time.monotonic() + SECONDS
        while not known():
            assert self.process.poll() is None, self.process.stderr.read()
            assert time.monotonic() < end
            time.sleep(0.3)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=SECONDS)
        assert self.process.returncode == 0, said
        return said


@pytest.mark.usefixtures("needs_bpf")
def test_more_processes_than_there_is_room_for(pysym, tmp_path):
    """Some are left out, which is counted, and sampled when others have ended. The recording goes on all the time."""
    with Workers(tmp_path, 12) as workers:
        recording = Recording(pysym, tmp_path, workers.pids, PYCAP_PROCESS_LIMIT="4")
        found = r"worker_(\d+) "
        recording.wait_for(lambda: len(recording.functions(found)) == 4)
        first = recording.functions(found)
        for number in first:
            os.kill(workers.pids[int(number)], signal.SIGKILL)
        recording.wait_for(lambda: len(recording.functions(found)) == 8)
        said = recording.end()
    assert int(re.search(r"process_untracked +(\d+)", said)[1]) >= 8, said


# Forked with the code of one library at an address, where half of them map that of another one later. Both return to the same
# address from frames of different sizes.
SHARED = """
    import ctypes, os, signal, sys, time
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    gate, files = sys.argv[1], [(os.open(path, os.O_RDONLY), int(offset)) for path, offset in zip(sys.argv[2:6:2], sys.argv[3:7:2])]
    place = libc.mmap(None, 4096, 5, 2, *files[0])
    def until(known):
        while not known(): sum(range(200))
    def before(): until(lambda: os.path.exists(gate))
    def settling(): until(lambda: os.path.exists(gate + ".settled"))
    def spin_a(): until(lambda: False)
    def spin_b(): until(lambda: False)
    def below(function):
        callback = ctypes.CFUNCTYPE(None)(function)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(place)(ctypes.cast(callback, ctypes.c_void_p))
    def work(number):
        below(before)
        if number % 2:
            assert libc.mmap(place, 4096, 5, 0x12, *files[1]) == place
        below(settling)
        below(spin_b if number % 2 else spin_a)
    pids = []
    for number in range(6):
        pid = os.fork()
        if not pid:
            work(number)
        pids.append(pid)
    print(*pids, flush=True)
    sys.stdin.read()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
"""


@pytest.mark.usefixtures("needs_bpf")
def test_a_shared_list_is_not_changed_for_others(pysym, folded, tmp_path):
    gate = tmp_path / "gate"
    with Workers(tmp_path, gate, *library(tmp_path, "a", 88, 0), *library(tmp_path, "b", 4184, 88), text=SHARED) as workers:
        recording = Recording(pysym, tmp_path, workers.pids, "-F", "999", "--check-unwind")
        recording.wait_for(lambda: recording.functions("before "))
        time.sleep(1)  # rows of the first library are kept by then
        gate.touch()

        def settled():
            """The processes in which the other library is known by now."""
            text = pysym(recording.trace, "--format", "folded", "--nolineno", "--show-interpreter").stdout
            return set(map(int, re.findall(r"^[^;]*-(\d+);_start.*;through_b.*;settling ", text, re.M)))

        recording.wait_for(lambda: settled() >= set(workers.pids[1::2]))
        (tmp_path / "gate.settled").touch()

        def samples():
            done = pysym(recording.trace, "--format", "folded", "--nolineno", "--python-only")
            unit = 2000 if "counts are microseconds" in done.stderr else 1  # the rate was halved: a sample stands for 2 ms
            return [sum(int(n) for n in re.findall(f";spin_{name} .* (\\d+)$", done.stdout, re.M)) / unit for name in "ab"]

        recording.wait_for(lambda: min(samples()) > 400)
        said = recording.end()
    check(said, 400, 20)
    for name, other in (("a", "b"), ("b", "a")):
        rows = folded(recording.trace, "--focus", f"spin_{name}", "--show-interpreter")
        total = sum(count for _, count in rows)
        right = sum(count for frames, count in rows
                    if frames[0].startswith("_start") and any(f.startswith(f"through_{name}") for f in frames) and
                    not any(f.startswith(f"through_{other}") for f in frames))
        assert total > 200 and right >= 0.99 * total, (total, right, rows)


@pytest.mark.long
@pytest.mark.usefixtures("needs_bpf")
def test_a_thousand_workers():
    """At five times what docs/large-hosts.md says."""
    done = subprocess.run([sys.executable, ROOT / "tests/bench/large.py", "--python", PYTHON, "--programs", "10", "--processes",
                           "1000", "--busy", "10"], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    first, anonymous = (float(re.search(pattern, done.stdout)[1]) for pattern in (r"after ([\d.]+) s", r"RssAnon ([\d.]+)"))
    assert first < 5 * 0.31 and anonymous < 5 * 10.5, done.stdout
    assert not re.search("process_untracked|mapping_quota|ring_full", done.stdout), done.stdout
