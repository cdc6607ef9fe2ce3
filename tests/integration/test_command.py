# SPDX-License-Identifier: Apache-2.0
"""The command that pycap starts finds the signals as pycap's caller set them up."""
import signal
import subprocess

import pytest

from conftest import PYCAP, why_no_bpf

LOOK = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
IGNORED = [signal.SIGHUP, signal.SIGPIPE, signal.SIGINT, signal.SIGCHLD, signal.SIGUSR2]
BLOCKED = [signal.SIGTERM, signal.SIGUSR1]


def set_up():
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, BLOCKED)


def look(*before, **keywords):
    done = subprocess.run([*before, *LOOK], capture_output=True, text=True, timeout=60, check=True, **keywords)
    lines = dict(line.split(":") for line in done.stdout.splitlines())
    return int(lines["SigIgn"], 16), int(lines["SigBlk"], 16)


def bits(numbers):
    return sum(1 << number - 1 for number in numbers)


@pytest.mark.parametrize("backend", ["bpf", "proc"])
def test_signals(tmp_path, backend):
    if backend == "bpf" and why_no_bpf():
        pytest.skip(why_no_bpf())
    pycap = [PYCAP, "record", "-q", "--backend", backend, "-o", tmp_path / "t.bin", "--"]
    ignored, blocked = look(*pycap, preexec_fn=set_up, restore_signals=False)
    assert ignored & bits(IGNORED) == bits(IGNORED) and blocked == bits(BLOCKED)
    assert look(*pycap) == look()
