# SPDX-License-Identifier: Apache-2.0
"""pysym push sends all of a trace that grows meanwhile, and nothing twice.

The push waits for its store, which is that of profile_store.py.
"""
import os
import re
import subprocess
import time

from conftest import MAKE_TRACE, PYSYM
from profile_store import Hold, ProfileStore, stacks

WINDOW_NS = 15_000_000_000


def reader_of(pid, states="S"):
    """The process that reads a trace for this push, if there is one and it waits, or is in another of these states."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                comm, rest = file.read().split("(", 1)[1].rsplit(")", 1)
            if comm == "pysym-trace" and os.getsid(int(entry)) == pid and rest.split()[0] in states:
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


def cut_trace(path, samples, **settings):
    """A trace whose end is missing, and whose recorder seems to be dead. Returns the end, and what all samples weigh."""
    subprocess.run([MAKE_TRACE, path, f"samples={samples}", *(f"{name}={value}" for name, value in settings.items())], check=True)
    data = path.read_bytes()
    path.write_bytes(data[:-2000])
    os.utime(path, (time.time() - 300,) * 2)
    return data[-2000:], samples * 10_000_000


def push_command(store, trace, tmp_path):
    return [PYSYM, "push", "--parca", store.url, "--state", tmp_path / "state", trace]


def check_nothing_is_left(push):
    """The same command again has nothing to send."""
    done = subprocess.run(push.args, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and "sent again" not in done.stderr, done.stderr


def by_window(store):
    """The newest profile of each series and window: one that is sent again is another of its window."""
    return {(p.series, p.profile.time_ns // WINDOW_NS): p for p in store.profiles}


def told_again(said):
    """How many profiles it says to have sent twice."""
    return sum(map(int, re.findall("^sent again: (\\d+) profile", said, re.M)))


def test_trace_ends_while_it_is_read(tmp_path):
    """On a slow machine it may hold up the store's answer for so long that a profile is sent again, which is told."""
    trace = tmp_path / "a.bin"
    end, whole = cut_trace(trace, 250_000, processes=200, threads=400, natural=1, stacks=3000)
    with ProfileStore("parca") as store:
        held = store.fault(Hold(), times=16)
        with subprocess.Popen(push_command(store, trace, tmp_path), start_new_session=True, stderr=subprocess.PIPE, text=True) as push:
            # Its reader comes to no end: nobody takes what it has read, until the store answers.
            wait_until(lambda: held.done == 16 and waits(push.pid))
            with trace.open("ab") as file:
                file.write(end)
            held.act.release()
            said = push.communicate(timeout=120)[1]
        assert push.returncode == 0 and " of 1 trace to " in said, said
        newest = by_window(store)
        assert len(store.profiles) - len(newest) <= told_again(said), said
        assert sum(stacks(newest.values(), "cpu").values()) == whole, said
        count = len(store.profiles)
        check_nothing_is_left(push)
        assert len(store.profiles) == count
        store.nonsense.clear()  # a window of one sample has no duration


def test_trace_ends_after_it_was_read(tmp_path):
    """What was read is on its way, and the store takes its time: what comes meanwhile is sent, too. That the end was missing is told."""
    trace = tmp_path / "a.bin"
    end, whole = cut_trace(trace, 20_000, natural=1, stacks=300)
    with ProfileStore("parca") as store:
        held = store.fault(Hold())
        with subprocess.Popen(push_command(store, trace, tmp_path), start_new_session=True, stderr=subprocess.PIPE, text=True) as push:
            wait_until(lambda: held.done and not reader_of(push.pid, "RSDZ"))
            with trace.open("ab") as file:
                file.write(end)
            held.act.release()
            said = push.communicate(timeout=120)[1]
        assert push.returncode == 3 and " of 1 trace to " in said and "the file ends inside a block" in said, said
        assert told_again(said) == 1, said
        newest = by_window(store)
        assert len(newest) == len(store.profiles) - 1
        assert sum(stacks(newest.values(), "cpu").values()) == whole
        check_nothing_is_left(push)
