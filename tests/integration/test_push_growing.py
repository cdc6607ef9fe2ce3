# SPDX-License-Identifier: Apache-2.0
"""`pysym push` and a trace that grows while the push waits for its store: nothing is sent twice, and nothing left out. The store
is that of profile_store.py."""
import os
import subprocess
import time

from conftest import MAKE_TRACE, PYSYM
from profile_store import Hold, ProfileStore, stacks


def reader_of(pid):
    """The process that reads a trace for this push, if there is one and it waits."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                comm, rest = file.read().split("(", 1)[1].rsplit(")", 1)
            if comm == "pysym-trace" and os.getsid(int(entry)) == pid and rest.split()[0] == "S":
                return int(entry)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return None


def wait_until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def waits(pid):
    """Has it been waiting for a while?"""
    for _ in range(5):
        if not reader_of(pid):
            return False
        time.sleep(0.02)
    return True


def test_trace_ends_while_it_is_read(tmp_path):
    trace, state = tmp_path / "a.bin", tmp_path / "state"
    subprocess.run([MAKE_TRACE, trace, "samples=400000", "processes=200", "threads=400", "natural=1", "stacks=3000"], check=True)
    data, whole = trace.read_bytes(), 400_000 * 10_000_000
    trace.write_bytes(data[:-2000])
    os.utime(trace, (time.time() - 300,) * 2)  # so its recorder seems to be dead
    with ProfileStore("parca") as store:
        command = [PYSYM, "push", "--parca", store.url, "--state", state, trace]
        held = store.fault(Hold(), times=16)
        with subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True) as push:
            # Its reader comes to no end: nobody takes what it has read, until the store answers.
            wait_until(lambda: held.done == 16 and waits(push.pid))
            with trace.open("ab") as file:
                file.write(data[-2000:])
            held.act.release()
            assert push.wait(120) == 0, push.stderr.read()
        assert sum(stacks(store.profiles, "cpu").values()) == whole
        again = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert again.returncode == 0 and "sent again" not in again.stderr, again.stderr
        assert sum(stacks(store.profiles, "cpu").values()) == whole
        store.nonsense.clear()  # a window of one sample has no duration
