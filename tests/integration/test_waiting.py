# SPDX-License-Identifier: Apache-2.0
"""The waits recorded of a program are those of its own clocks and of the kernel's switches.

Nothing is lost, and waits that last are in the trace while they do.
"""
import collections
import json
import subprocess
import time

import pytest

from accounts import is_begun
from conftest import PYCAP, PYTHON, ROOT, record_behind_gate
from wait_trace import CONTINUES, TICK_SKIPPED, Trace, check_functions, clock_error, waits_of

PROGRAMS = ROOT / "testdata/programs"


@pytest.fixture(params=["one ring", "a ring for each CPU"])
def rings(request, monkeypatch):
    """Large hosts have several rings: a wait begins in one, and ends in another."""
    monkeypatch.setenv("PYCAP_RING_CPUS", "1" if "each" in request.param else "")


def record_waits(pysym, tmp_path, scale, *options, known_by=()):
    """What waits.py says of itself, and the trace."""
    trace, told, _ = record_behind_gate(pysym, tmp_path, options, PYTHON, PROGRAMS / "waits.py", scale, known_by=known_by)
    return json.loads(told), trace


def sums_of_threads(by_kind):
    out = collections.Counter()
    for (thread, _), ns in by_kind.items():
        out[thread] += ns
    return out


@pytest.mark.smoke(load=True)
def test_every_wait(needs_bpf, rings, pysym, tmp_path):
    """With a stack for each wait: all time is there, at its function, to the ns by thread and kind."""
    truth, path = record_waits(pysym, tmp_path, 1, "-e", "off-cpu/period=1/")
    trace = Trace(path)
    trace.check_sums()
    assert not trace.ticks["thinned"]
    if not any(event == "off-cpu" for _, event in trace.losses):
        written, exact = trace.written(), trace.exact()
        # A wait that lasts is written in pieces, of which one may be written before it is known that the thread was woken
        # meanwhile, and waits for a CPU: that much of its time is the wait's there.
        in_pieces = {s.thread for s in trace.samples if s.flags & CONTINUES and s.labels["wait"] != "run queue"}
        for thread, kind in written | exact:
            if thread not in in_pieces:
                assert written[thread, kind] == exact[thread, kind], (thread, kind, written, exact)
            elif kind != "run queue":
                assert written[thread, kind] >= exact[thread, kind], (thread, kind, written, exact)
        assert sums_of_threads(written) == sums_of_threads(exact)
    check_functions(pysym, path, truth)
    calls = collections.Counter()
    for s in trace.samples:
        calls[s.labels["wait"], s.labels.get("system call")] += s.value
    assert calls["lock", "futex"] > 1e9 and calls["blocked", "clock_nanosleep"] > 1e9 and calls["blocked", "read"] > 5e8, calls


def test_thinned(needs_bpf, rings, pysym, tmp_path):
    """Fewer stacks, and the same sums: what a place owes at the end is written with the last stack from there."""
    truth, path = record_waits(pysym, tmp_path, 1, "-e", "off-cpu/period=20000000/")
    trace = Trace(path)
    trace.check_sums()
    assert trace.ticks["thinned"] > 300
    check_functions(pysym, path, truth)
    # The rest is a loss, in periods.
    unwritten = sum(trace.exact().values()) - sum(trace.written().values())
    assert unwritten // 20e6 == trace.losses[61, None], unwritten


CALLERS = """
import json, time
waited = {"long": 0, "short": 0}
def wait(seconds): time.sleep(seconds)
def long(): wait(0.009)
def short(): wait(0.001)
def measured(function):
    began, cpu = time.monotonic_ns(), time.thread_time_ns()
    function()
    waited[function.__name__] += time.monotonic_ns() - began - (time.thread_time_ns() - cpu)
for _ in range(300):
    measured(long)
    measured(short)
print(json.dumps(waited))
"""


def test_callers_of_one_place(needs_bpf, pysym, pycap, tmp_path):
    """Two callers wait at the same line by turns. The one that comes after the long wait must not get its time: with some
    150 stacks a share of nine tenths has a standard error of 4 %, and five of these are allowed."""
    done = pycap("record", "-o", tmp_path / "t.bin", "-e", "off-cpu/period=20000000/", "--", PYTHON, "-c", CALLERS)
    assert done.returncode == 0, done.stderr
    trace, truth = Trace(tmp_path / "t.bin"), json.loads(done.stdout)
    trace.check_sums()
    found = waits_of(pysym, tmp_path / "t.bin", truth)
    assert trace.ticks["thinned"] > 200, trace.ticks
    assert found["long"] / sum(found.values()) == pytest.approx(truth["long"] / sum(truth.values()), rel=0.2), (found, truth)


def test_a_wait_that_lasts(needs_bpf, tmp_path):
    """It is in the trace while it lasts, in parts, and counts as one; what is open at the end is there as well."""
    trace = tmp_path / "t.bin"
    with subprocess.Popen([PYCAP, "record", "-o", trace, "-e", "off-cpu", "--", PYTHON, "-c", "import time; time.sleep(1000)"],
                          stderr=subprocess.PIPE, text=True) as recorder:
        while recorder.poll() is None:
            time.sleep(0.1)
            if is_begun(trace) and sum(s.labels.get("system call") == "clock_nanosleep" for s in Trace(trace).samples) >= 2:
                break
        recorder.terminate()
        _, err = recorder.communicate(timeout=300)
    result = Trace(trace)
    result.check_sums()
    parts = [s for s in result.samples if s.labels.get("system call") == "clock_nanosleep"]
    assert len(parts) >= 3, err
    assert [bool(s.flags & CONTINUES) for s in parts] == [False] + [True] * (len(parts) - 1)
    assert all(after.time_ns - before.time_ns == after.value for before, after in zip(parts, parts[1:]))
    assert result.exact()[parts[0].thread, "blocked"] == result.written()[parts[0].thread, "blocked"]
    assert parts[-1].time_ns == max(until for _, _, until, _, _ in result.times)


# A thread waits until it can read a byte, and executes another program, which does the same, so many times.
EXECUTES = """
import os, sys, threading, time
left = int(sys.argv[2])
def execute():
    print(threading.get_native_id(), flush=True)
    os.read(0, 1)
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[1], sys.argv[1], str(left - 1)])
if left:
    threading.Thread(target=execute).start()
    time.sleep(1000)
"""


def test_a_thread_that_executes(needs_bpf, tmp_path):
    """A thread that executes another program takes the first one's id: what it did before is told by its own."""
    path, tids = tmp_path / "t.bin", []

    def waited(tid):
        """What is in the trace by now of a wait that lasts."""
        trace = Trace(path) if is_begun(path) else None
        return sum(s.value for s in trace.samples if trace.tids[s.thread] == tid) if trace else 0

    with subprocess.Popen([PYCAP, "record", "-o", path, "-e", "off-cpu", "--", PYTHON, "-c", EXECUTES, EXECUTES, "2"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
        for _ in range(2):
            tids.append(int(recorder.stdout.readline()))
            deadline = time.monotonic() + 300
            while recorder.poll() is None and time.monotonic() < deadline and waited(tids[-1]) < 0.2e9:
                time.sleep(0.1)
            recorder.stdin.write("x")
            recorder.stdin.flush()
        _, said = recorder.communicate(timeout=300)
    assert recorder.returncode == 0, said
    trace = Trace(path)
    trace.check_sums(executes=True)
    accounts, main = trace.accounts(), trace.tids[1]
    assert set(accounts) == {main, *tids} and len(tids) == 2, (tids, accounts)
    assert all(accounts[tid]["off"] > 0.2e9 for tid in tids), (tids, accounts)


def test_several_files(needs_bpf, pycap, tmp_path):
    """Each file has an account of its own, and together they have all of it."""
    work = "import glob, sys, time\nwhile len(glob.glob(sys.argv[1] + '/*.bin')) < 3: time.sleep(0.01)\ntime.sleep(0.3)"
    done = pycap("record", "-o", tmp_path / "%t.bin", "--rotate", "1", "-e", "off-cpu/period=1/", "--", PYTHON, "-c", work, tmp_path)
    assert done.returncode == 0, done.stderr
    files = [Trace(path) for path in sorted(tmp_path.glob("*.bin"))]
    assert len(files) > 2
    for trace in files:
        assert all(since + on_cpu + sum(ns for _, ns, _ in rows) == until for _, since, until, on_cpu, rows in trace.times)
    main = [row for trace in files for row in trace.times]
    assert all(before[2] == after[1] for before, after in zip(main, main[1:])) and len({row[0] for row in main}) == 1, main
    if not any(event == "off-cpu" for trace in files for _, event in trace.losses):
        assert sum(sum(t.written().values()) for t in files) == sum(sum(t.exact().values()) for t in files)


def test_events_side_by_side(needs_bpf, tmp_path):
    """The clock and page faults interrupt programs, also the one that follows switches: all is there, or counted."""
    trace = tmp_path / "t.bin"
    subprocess.run([PYCAP, "record", "-q", "-o", trace, "-e", "cpu-clock/period=100000/,page-faults/period=1/,cs/period=1/",
                    "-e", "off-cpu/period=1/", "--", PYTHON, "-c", "import time\nfor _ in range(300): time.sleep(.001); x = bytes(1 << 20)"],
                   timeout=300, check=True)
    Trace(trace).check_sums()


def test_beside_the_clock(needs_bpf, pysym, tmp_path):
    """--wall: where the program runs and where it waits, in one trace."""
    truth, path = record_waits(pysym, tmp_path, 0.3, "--wall", "-F", "199", known_by=("--event", "cpu-clock"))
    Trace(path).check_sums()
    assert sum(waits_of(pysym, path, truth).values()) > 0.5 * sum(truth.values())
    clock = pysym(path, "--format", "folded", "--event", "cpu-clock").stdout
    assert "warm" in clock and "schedule_[k]" in pysym(path, "--format", "folded", "--event", "off-cpu").stdout


@pytest.mark.long
def test_accounts(needs_bpf, rings, pysym, tmp_path):
    """The times of each thread add up to how long it was there, to 0.1 %: the test allows 0.5 %. What it ran and waited for a
    CPU is what the kernel's own account says, but for some us at each switch, of which a busy machine has many. The ticks of
    the clock are as many as that time has, but for chance."""
    path, told, _ = record_behind_gate(pysym, tmp_path, ["--wall", "-F", "499"], PYTHON, PROGRAMS / "thread_clocks.py", 2)
    trace = Trace(path)
    trace.check_sums()
    accounts, ticks = trace.accounts(), {trace.tids[thread]: n for thread, n in trace.clock.items()}
    for tid, truth in json.loads(told).items():
        account = accounts[int(tid)]
        assert clock_error(account, truth, "wall") < 0.005, (truth, account)
        assert clock_error(account, truth, "ran", "queued") < 0.05, (truth, account)
        expected = account["ran"] * 499 / 1e9
        skipped = trace.losses[TICK_SKIPPED, "cpu-clock"] + trace.losses[TICK_SKIPPED, None]
        assert ticks.get(int(tid), 0) == pytest.approx(expected, abs=5 * expected ** 0.5 + 5 + skipped), truth
