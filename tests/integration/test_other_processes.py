# SPDX-License-Identifier: Apache-2.0
"""Processes that are not recorded cost nothing.

With -p, a command or a filter pycap does not read what the other processes of the host have mapped.
"""
import pathlib
import signal
import subprocess
import time

import pytest

from conftest import PYCAP, PYTHON

STRANGER = """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
fd = os.open(sys.executable, os.O_RDONLY)
for i in range(int(sys.argv[1])):
    assert libc.mmap(None, 4096, 5, 2, fd, 0) not in (None, ctypes.c_void_p(-1).value)
print("mapped", flush=True)
signal.alarm(120)
signal.pause()
"""


@pytest.fixture
def start():
    """Starts a process that has so many mappings, besides those of its libraries, and waits; returns its pid."""
    started = []

    def run(mappings):
        process = subprocess.Popen([PYTHON, "-c", STRANGER, str(mappings)], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline()
        return process.pid
    yield run
    for process in started:
        process.kill()
        process.communicate()


def read_by(pid):
    """What a process and those that it forked have read, in bytes."""
    counts = pathlib.Path(f"/proc/{pid}/io").read_text()
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(dict(line.split(": ") for line in counts.splitlines())["rchar"]) + sum(map(read_by, children))


def bytes_read(tmp_path, *options):
    """What pycap has read, in bytes, when it has begun to record."""
    trace = tmp_path / "t.bin"
    with subprocess.Popen([PYCAP, "record", "-q", "--no-kernel", "--unwind", "none", "-o", trace, *map(str, options)],
                          stderr=subprocess.PIPE, text=True) as recorder:
        end = time.monotonic() + 60
        while not trace.exists() and recorder.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        try:
            count = read_by(recorder.pid)
        except OSError as error:
            pytest.skip(f"what a process has read is not known here: {error}")
        finally:
            recorder.send_signal(signal.SIGINT)
            _, said = recorder.communicate(timeout=60)
    # 1: none of the processes asked for ran; or the status of the command, which was told to end.
    assert recorder.returncode in (0, 1, 128 + signal.SIGTERM), said
    trace.unlink()
    return count


@pytest.mark.smoke("pid")
@pytest.mark.parametrize("scope", ["pid", "command", "filter"])
def test_strangers_are_not_read(scope, start, tmp_path, needs_bpf):
    options = {"command": ("--", "sleep", "60"), "filter": ("--comm", "nobody")}.get(scope)
    if scope == "pid":
        options = ("-p", start(0))
    before = bytes_read(tmp_path, *options)
    stranger = start(8000)
    maps = len(pathlib.Path(f"/proc/{stranger}/maps").read_text())
    assert maps > 500_000
    after = bytes_read(tmp_path, *options)
    print(f"read {before} bytes without the stranger, {after} with it; it has {maps} bytes of mappings")
    assert after - before < maps / 2
    if scope == "pid":  # asked for, it is read
        assert bytes_read(tmp_path, "-p", stranger) - before > maps / 2
