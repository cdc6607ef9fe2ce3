# SPDX-License-Identifier: Apache-2.0
"""Long captures rotate their files, keep some, and obey limits of size and CPU."""
import fcntl
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import termios
import time

import pytest

import accounts
from conftest import PYCAP, PYSYM, PYTHON

pytestmark = pytest.mark.usefixtures("needs_bpf")
# Uses so many seconds of CPU in a function, and prints what it has used in all, at its end, and how often it was preempted.
BURN = """
import resource, sys, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(2000))
burn(float(sys.argv[1]))
print(time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw)
"""
# The same, until argv[2] files have been in the folder argv[1]: however slow the machine is, they come.
BURN_UNTIL_FILES = BURN.replace("burn(float(sys.argv[1]))", """
import os
seen, late = set(), time.monotonic() + 240
while len(seen) < int(sys.argv[2]) and time.monotonic() < late:
    burn(0.02)
    seen.update(name for name in os.listdir(sys.argv[1]) if name.endswith(".bin"))
""")


# What --max-size is exceeded by at most: losses by name, and the ticks of each CPU.
END_BYTES = 3072 + 64 * os.cpu_count()


F_SETPIPE_SZ = 1031  # fcntl has it since Python 3.10


def fill(pipe):
    """What waits in it."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4), "little")


def check_cpu(account, printed, stolen_ns):
    """Of what BURN printed, and what the host had taken away before it ran."""
    cpu_seconds, preemptions = printed.split()
    account.check_cpu(float(cpu_seconds) * 1e9, accounts.stolen_ns() - stolen_ns, int(preemptions))


def blocked(pid):
    """Signals that a thread of their own receives."""
    return int(re.search(r"SigBlk:\s*(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1], 16)


def tell(pid, number):
    """Sends a signal that a thread receives, and returns when it has."""
    os.kill(pid, number)
    deadline = time.monotonic() + 60
    while int(re.search(r"ShdPnd:\s*(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1], 16) & 1 << number - 1:
        assert time.monotonic() < deadline


def files(folder):
    """In the order in which they were written."""
    return sorted(folder.glob("t-*.bin"))


def check_series(paths, pysym):
    """Every file opens alone, and together they hold every tick once: returns the sum."""
    total, rooted = accounts.Account(), []
    for path in paths:
        done = pysym(path, "--format", "folded")
        assert done.returncode in (0, 3), done.stderr
        account = accounts.read(PYSYM, path)
        # One that is over before anything was sampled has no stacks; and of a few samples all may be torn.
        if len(account.samples) > 10:
            rooted.append("<module>" in done.stdout)
        if total.samples and account.samples:
            assert max(s.time_ns for s in total.samples) < min(s.time_ns for s in account.samples), f"{path} overlaps"
        total = total + account
    assert total.residue == 0, total.text()
    assert len({(s.time_ns, s.cpu) for s in total.samples}) == len(total.samples)
    # Files may be over while the interpreter starts, and the last may begin while it ends.
    assert any(rooted) and all(rooted[rooted.index(True):-1]), rooted
    return total


@pytest.mark.smoke
@pytest.mark.parametrize("how", ["--rotate=1", "--rotate-size=8K"])
def test_rotation(how, pycap, pysym, tmp_path):
    stolen_ns = accounts.stolen_ns()
    done = pycap("record", "-F", "1999", how, "-o", tmp_path / "t-%t.bin", "--", PYTHON, "-c", BURN_UNTIL_FILES, tmp_path, 3)
    assert done.returncode == 0, done.stderr
    paths = files(tmp_path)
    assert len(paths) >= 3, done.stderr
    total = check_series(paths, pysym)
    assert total.ends == [5] * (len(paths) - 1) + [2]
    # What is between two files would show as time that nobody had.
    check_cpu(total, done.stdout, stolen_ns)


def test_keep(pycap, pysym, tmp_path):
    done = pycap("record", "-F", "1999", "--rotate-size", "8K", "--keep", "2", "-o", tmp_path / "t-%t.bin", "--", PYTHON,
                 "-c", BURN_UNTIL_FILES, tmp_path, 3)
    assert done.returncode == 0, done.stderr
    assert "not all are kept" in done.stderr
    paths = files(tmp_path)
    assert len(paths) == 2
    assert [accounts.read(PYSYM, p).ends for p in paths] == [[5], [2]]
    done = pycap("record", "--rotate", "1", "--keep", "100", "-o", tmp_path / "u-%t.bin", "--", PYTHON, "-c",
                 BURN_UNTIL_FILES, tmp_path, 4)
    assert done.returncode == 0 and re.search(r"into \d+ files", done.stderr) and "not all are kept" not in done.stderr, done.stderr


@pytest.mark.parametrize("backend", ["bpf", "proc"])
def test_keep_counts_earlier_runs(backend, pycap, tmp_path):
    """A service that is started again does not leave its files for ever; what is not surely one of them stays."""
    text, link = tmp_path / "t-19990101T000000.000Z.bin", tmp_path / "t-19990101T000000.001Z.bin"
    text.write_text("no trace")
    link.symlink_to(tmp_path / "elsewhere.bin")
    written = []
    for _ in range(4):
        done = pycap("record", "--backend", backend, "--rotate", "1d", "--keep", "2", "-o", tmp_path / "t-%t.bin", "--",
                     PYTHON, "-c", "pass")
        assert done.returncode == 0, done.stderr
        left = files(tmp_path)
        assert left[:2] == [text, link]
        assert left[2:-1] == written[-1:]
        written.append(left[-1])
        if len(written) == 1:
            link.unlink()
            link.symlink_to(written[0])
    assert len(set(written)) == 4


def test_hangup_rotates(pysym, tmp_path):
    with subprocess.Popen([PYTHON, "-c", BURN, "60"], stdout=subprocess.DEVNULL) as target:
        try:
            with subprocess.Popen([PYCAP, "record", "-F", "499", "--rotate", "1d", "-p", str(target.pid), "-o",
                                   tmp_path / "t-%t.bin"], stderr=subprocess.PIPE, text=True) as recorder:
                for count in (1, 2, 3):
                    deadline = time.monotonic() + 60
                    while len(files(tmp_path)) < count or not any(p.stat().st_size > 2000 for p in files(tmp_path)[count - 1:]):
                        assert time.monotonic() < deadline and recorder.poll() is None, "no file came"
                        time.sleep(0.1)
                    recorder.send_signal(signal.SIGHUP if count < 3 else signal.SIGINT)
                assert recorder.wait(60) == 0, recorder.stderr.read()
        finally:
            target.kill()
    paths = files(tmp_path)
    assert len(paths) == 3
    assert check_series(paths, pysym).ends == [5, 5, 0]


@pytest.mark.alone
def test_weights_after_rate_changes(pycap, pysym, tmp_path):
    """More CPU than allowed from the first second on: the rate steps down, and weights still sum up to the CPU time."""
    trace, stolen_ns = tmp_path / "t.bin", accounts.stolen_ns()
    done = pycap("record", "-F", "4999", "--max-cpu", "0.5", "-o", trace, "--", PYTHON, "-c", BURN, "4")
    assert done.returncode == 0, done.stderr
    account = accounts.read(PYSYM, trace)
    assert account.periods >= 1 and len({s.weight for s in account.samples}) >= 2, done.stderr
    assert "The rate was lowered" in done.stderr
    assert account.residue == 0, account.text()
    check_cpu(account, done.stdout, stolen_ns)
    changes = re.search(r"the rate changed (\d+) times? \(.*--max-cpu was reached.*\): ([\d,]+) Hz at the end",
                        pysym(trace, "--format", "summary", "-v").stdout)
    at_end = re.search(r"(\d+) Hz at the end", done.stderr)
    assert int(changes[1]) == account.periods and changes[2].replace(",", "") == at_end[1], done.stderr
    # pysym's own sum is the same one.
    out = tmp_path / "out.json"
    assert pysym(trace, "--format", "speedscope", "--merge", "thread", "-o", out).returncode in (0, 3)
    profiles = json.loads(out.read_text())["profiles"]
    assert sum(sum(p["weights"]) for p in profiles) == account.weight_ns
    folded = pysym(trace, "--format", "folded")
    assert "counts are microseconds" in folded.stderr
    in_folded_us = sum(int(line.rsplit(" ", 1)[1]) for line in folded.stdout.splitlines())
    assert abs(in_folded_us - account.weight_ns / 1e3) <= 0.5
    event, = json.loads(pysym(trace, "--format", "top", "--json").stdout)["events"]
    assert (event["samples"], event["weight_ns"]) == (len(account.samples), account.weight_ns)
    script = pysym(trace, "--format", "perf-script").stdout
    assert sum(int(n) for n in re.findall(r"^\S.*: +(\d+) cpu-clock: $", script, re.M)) == account.weight_ns


def test_max_size_ends_in_order(pycap, pysym, tmp_path):
    trace = tmp_path / "t.bin"
    done = pycap("record", "-F", "4999", "--max-size", "24K", "-o", trace, "--", PYTHON, "-c", BURN, "240")
    assert "--max-size" in done.stderr, done.stderr
    account = accounts.read(PYSYM, trace)
    assert account.ends == [6] and account.residue == 0, account.text()
    assert "<module>" in pysym(trace, "--format", "folded").stdout
    assert 12 * 1024 <= trace.stat().st_size <= 24 * 1024 + END_BYTES


# Other code and other stacks all the time.
VARIED = """
import random, time
def nest(names):
    exec("def %s(n): return sum(range(50)) if n is None else n[0](n[1])" % names[0], globals())
    return globals()[names[0]], nest(names[1:]) if names[1:] else None
end = time.process_time() + 60
while time.process_time() < end:
    made = nest(["f%d" % random.randrange(10000) for _ in range(30)])
    until = time.process_time() + 0.002
    while time.process_time() < until:
        made[0](made[1])
"""


# Makes functions for ever, and calls them.
MAKE = """
import itertools, time
end = time.thread_time() + 4
for n in itertools.count():
    text = ["def f%d_%d(): return f%d_%d()" % (n, i, n, i + 1) for i in range(20)]
    exec("\\n".join(text) + "\\ndef f%d_20(): return sum(range(2000))\\nf%d_0()" % (n, n))
    if time.thread_time() > end:
        break
"""


@pytest.mark.long
def test_max_memory(pycap, pysym, tmp_path):
    """What is kept of a program's code is forgotten in time, else the rate goes down; no sample is lost by it."""
    def record(*limit):
        return pycap("record", "-v", "-F", "4999", "-m", "1M", "--unwind-memory", "4M", *limit, "-o", tmp_path / "t.bin",
                     "--", PYTHON, "-c", MAKE)
    def most(done):
        return int(re.search(r"(\d+) KiB resident at most", done.stderr)[1]) // 1024
    refused = record("--max-memory", "1M")
    assert refused.returncode == 2 and not (tmp_path / "t.bin").exists(), refused.stderr
    free = record()
    assert free.returncode == 0, free.stderr
    limited = refused
    for _ in range(10):  # not each start takes the same
        least = int(re.search(r"allow (\d+) MiB at least", limited.stderr)[1])
        limited = record("--max-memory", f"{least}M")
        if limited.returncode != 2:
            break
    if most(free) <= least * 1.5:
        pytest.skip(f"a slow machine: {most(free)} MiB were held, and {least} MiB is the least to allow")
    assert limited.returncode == 0, limited.stderr
    lowered = re.findall(r"Hz from here on: --max-memory was reached", limited.stderr)
    account = accounts.read(PYSYM, tmp_path / "t.bin")
    assert account.residue == 0, account.text()
    epochs = re.findall(r"^epoch ", pysym(tmp_path / "t.bin", "--format", "dump").stdout, re.M)
    assert lowered or len(epochs) > 1
    # The sanitizers keep what was freed.
    assert "asan" in PYCAP or most(limited) < most(free), (limited.stderr, free.stderr)
    text = pysym(tmp_path / "t.bin", "--format", "folded").stdout
    assert re.search(r";f\d+_0[^;]*;.*;f\d+_20", text), text[-2000:]


def test_memory_is_its_own(pycap, tmp_path):
    """The most that was resident is not that of the program that started pycap."""
    ballast = b"x" * (400 << 20)
    done = pycap("record", "-v", "-o", tmp_path / "t.bin", "--", PYTHON, "-c", "pass")
    assert len(ballast) // 1024 > int(re.search(r"(\d+) KiB resident at most", done.stderr)[1]), done.stderr


@pytest.mark.parametrize("size, unwind", [("4096", "tables"), ("16K", "tables"), ("128K", "snapshot")])
def test_max_size_in_a_burst(size, unwind, pycap, pysym, tmp_path):
    """
    More in a second than the file may hold: it ends there, and what did not fit is counted. A program that has a fortieth of a CPU
    makes so much.
    """
    trace = tmp_path / "t.bin"
    done = pycap("record", "-F", "10000", "--max-size", size, "--unwind", unwind, "-d", "60", "-o", trace, "--", PYTHON, "-c",
                 VARIED)
    assert "--max-size" in done.stderr, done.stderr
    most = int(size.replace("K", "")) * (1024 if "K" in size else 1)
    assert trace.stat().st_size <= most + END_BYTES
    account = accounts.read(PYSYM, trace)
    assert account.ends == [6] and account.residue == 0, account.text()
    if size != "4096":  # that may be full before the program has had a tick
        assert account.losses["file_full"], account.text()
        assert "file_full" in pysym(trace, "--format", "summary", "-v").stdout
        assert "<module>" in pysym(trace, "--format", "folded").stdout


@pytest.mark.parametrize("signals", [1, 2])
def test_reader_that_stalls(signals, tmp_path):
    """At the end pycap waits for its reader. A signal ends that in a few seconds, and what was lost is told; another one at once."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reading, F_SETPIPE_SZ, 4096)  # what a second brings does not fit
    with subprocess.Popen([PYTHON, "-c", VARIED], stdout=subprocess.DEVNULL) as target:
        try:
            with subprocess.Popen([PYCAP, "record", "-F", "2000", "--unwind", "snapshot", "-p", str(target.pid), "-o", fifo],
                                  stderr=subprocess.PIPE, text=True) as recorder, \
                 open(reading, "rb", buffering=0) as source:
                deadline = time.monotonic() + 120
                while not fill(source):
                    assert time.monotonic() < deadline and recorder.poll() is None
                    time.sleep(0.05)
                os.set_blocking(reading, True)
                if signals == 2:
                    first = time.monotonic()
                    tell(recorder.pid, signal.SIGTERM)
                    time.sleep(0.6)  # the second one is meant
                    recorder.send_signal(signal.SIGTERM)
                    waited = time.monotonic() - first  # the wait may be over where the machine stood still
                    assert recorder.wait(60) == -signal.SIGTERM or waited > 2.5, (waited, recorder.stderr.read())
                    return
                # Two at once, as from timeout(1), are one. They come together also where the machine stands still.
                recorder.send_signal(signal.SIGSTOP)
                recorder.send_signal(signal.SIGTERM)
                recorder.send_signal(signal.SIGINT)
                recorder.send_signal(signal.SIGCONT)
                assert recorder.wait(60) == 1, recorder.stderr.read()
                err = recorder.stderr.read()
                assert re.search(r"fifo: its reader took nothing for 3 s .* is lost", err), err
                # What did go out is a trace.
                trace = tmp_path / "t.bin"
                trace.write_bytes(source.read())
                assert accounts.read(PYSYM, trace).ends in ([None], [0])  # the rest, if it is read very soon
        finally:
            target.kill()


def test_signal_while_no_reader_comes(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen([PYCAP, "record", "-o", fifo], stderr=subprocess.PIPE, text=True) as recorder:
        # Until it receives signals.
        deadline = time.monotonic() + 60
        while not blocked(recorder.pid) & 1 << signal.SIGTERM - 1:
            assert recorder.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        recorder.send_signal(signal.SIGTERM)
        assert recorder.wait(60) == 1
        assert "fifo" in recorder.stderr.read()


def test_file_limit(pycap, tmp_path):
    """ulimit -f is an error like a full disk, not a signal; the command has the signal as it was."""
    trace = tmp_path / "t.bin"
    done = pycap("record", "-F", "4999", "-o", trace, "--", PYTHON, "-c", VARIED.replace("+ 60", "+ 2"),
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))
    assert done.returncode == 1 and "t.bin" in done.stderr and "File too large" in done.stderr, done.stderr
    done = pycap("record", "-q", "-o", trace, "--", "grep", "SigIgn", "/proc/self/status")
    assert not int(done.stdout.split()[1], 16) & 1 << signal.SIGXFSZ - 1, done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system needs root")
@pytest.mark.parametrize("options", ["nr_inodes=4", "size=48k"])
def test_disk_full_at_a_rotation(options, pycap, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", small], check=True)
    try:
        done = pycap("record", "-F", "999", "--rotate-size", "8K", "-o", small / "t-%t.bin", "--", PYTHON, "-c", BURN, "240")
        assert done.returncode == 1
        assert "t-" in done.stderr and "space" in done.stderr, done.stderr
        paths = files(small)
        assert len(paths) >= 2
        accounts_of = [accounts.read(PYSYM, p) for p in paths if p.stat().st_size]
        assert accounts_of[0].ends == [5] and accounts_of[0].samples
        assert sum(len(a.samples) for a in accounts_of) > len(accounts_of[0].samples)
    finally:
        subprocess.run(["umount", small], check=True)


# Says when it is about to burn; with a depth, below so many calls, each through C.
DEEP = """
import sys, time
sys.setrecursionlimit(10000)
end = time.monotonic() + float(sys.argv[1])
def burn():
    while time.monotonic() < end:
        sum(range(2000))
def call(depth):
    max((depth - 1,), key=call) if depth else burn()
    return 0
print("ready", flush=True)
call(int(sys.argv[2]))
"""


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_large_samples_lose_first(pysym, tmp_path):
    """While the buffer fills, samples that are large are cut, and nobody loses any."""
    programs = [subprocess.Popen([PYTHON, "-c", DEEP, "600", depth], stdout=subprocess.PIPE) for depth in ("900", "1")]
    trace = tmp_path / "t.bin"
    try:
        for program in programs:
            assert program.stdout.readline()
        deep, shallow = (program.pid for program in programs)
        # Each sample of the deep one takes 90 KB.
        with subprocess.Popen([PYCAP, "record", "-m", "4M", "-p", f"{deep},{shallow}", "-o", trace],
                              stderr=subprocess.PIPE, text=True) as recorder:
            while recorder.poll() is None and not (trace.exists() and trace.stat().st_size > accounts.TRACE_HEAD_BYTES):
                time.sleep(0.01)  # until samples were written
            recorder.send_signal(signal.SIGSTOP)
            enough, deadline = cpu_seconds(deep) + 0.5, time.monotonic() + 240
            while cpu_seconds(deep) < enough:  # 50 samples, of which 23 fill half of it
                assert time.monotonic() < deadline
                time.sleep(0.02)
            recorder.send_signal(signal.SIGCONT)
            time.sleep(0.5)
            recorder.send_signal(signal.SIGINT)
            messages = recorder.communicate(timeout=60)[1]
        assert recorder.returncode == 0, messages
    finally:
        for program in programs:
            program.kill()
            program.communicate()
    account = accounts.read(PYSYM, trace)
    assert not account.losses["ring_full"], account.text()
    assert account.losses["ring_quota"], account.text()
    assert account.residue == 0, account.text()
    assert re.search(rf"\b{deep}\b.*ring_quota", messages) and not re.search(rf"\b{shallow}\b.*ring_quota", messages), messages
    stacks = pysym(trace, "-f", "folded", "--pid", str(shallow)).stdout.splitlines()
    assert stacks and all("<module>" in line or "not_yet" in line for line in stacks), stacks
