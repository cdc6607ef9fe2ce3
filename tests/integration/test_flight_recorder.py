# SPDX-License-Identifier: Apache-2.0
"""The flight recorder's file has an event and the time around it, and no other time."""
import os
import pathlib
import re
import resource
import signal
import subprocess
import time

import pytest

import accounts
import releases
from conftest import PYCAP, PYSYM, PYTHON

# So much after its time a sample may be in the file (docs/trace-format.md): one of a wait comes when its thread has a CPU again.
LATE_NS = 2 * 10**9
# Works in old(), then a little at a time in usual(), for 200 ms in event(); reports that to pycap, its parent, and goes on. With a second
# number it does so twice. It prints when each event began, ended and was reported, its CPU time of it, and how often it was preempted.
PROGRAM = """
import os, resource, signal, sys, time

def preemptions():
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw

def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(500))

def old():
    work(0.5)

def usual(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        work(0.01)
        time.sleep(0.01)

def event():
    before, cpu, began = preemptions(), time.process_time_ns(), time.monotonic_ns()
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        sum(range(500))
    ended, cpu, after = time.monotonic_ns(), time.process_time_ns() - cpu, preemptions()
    print("event", began, ended, time.monotonic_ns(), cpu, after - before, flush=True)
    os.kill(os.getppid(), signal.SIGUSR1)

old()
print("usual", flush=True)
for seconds in sys.argv[2:]:
    usual(float(seconds))
    event()
usual(float(sys.argv[1]))
"""
BEFORE, AFTER = 2, 1


def files(folder):
    return sorted(folder.glob("t-*.bin"))


def stand_by(pycap, folder, *options, program=(PYTHON, "-c", PROGRAM, "2.5", "6"), before=BEFORE):
    """Records the program. Its events, (began, ended, reported, CPU time in ns, preemptions); the files; what pycap said."""
    done = pycap("record", "--on-demand", "--before", before, "--after", AFTER, "-F", "499", "-o", folder / "t-%t.bin", *options, "--",
                 *program)
    assert done.returncode == 0, done.stderr
    events = [tuple(map(int, line.split()[1:])) for line in done.stdout.splitlines() if line.startswith("event")]
    return events, files(folder), done.stderr


def records(path, kind):
    """The fields of the records of a kind, in their order."""
    dump = subprocess.run([PYSYM, path, "--format", "dump"], capture_output=True, text=True, check=False)
    assert dump.returncode == 0, dump.stderr
    return [dict(re.findall(r"(\w+)=(-?\w+)", line)) for line in dump.stdout.splitlines() if line.split(None, 1)[:1] == [kind]]


def check_whole(path, event, said, before=BEFORE):
    """
    The file is a trace of its own: it begins early enough, ends late enough, and knows how many samples it has. A second more
    than asked for is kept before the moment at which pycap heard of the event, which on a busy machine is later than the report.
    """
    begun = int(records(path, "epoch")[0]["time_ns"])
    end, = records(path, "end")
    account = accounts.read(PYSYM, path)
    kept_s = float(re.search(rf"{re.escape(path.name)} has (\S+) s before it", said)[1])
    late_s = (begun - event[2]) / 1e9 + kept_s
    assert kept_s >= before + 0.9 and late_s < 60, (begun, event, said)
    assert begun <= event[2] - (before - max(0, late_s - 0.9)) * 10**9, (begun, event, said)
    assert int(end["time_ns"]) >= event[0] + AFTER * 10**9
    assert int(end["sample_count"]) == len(account.samples)
    assert all(begun - LATE_NS <= s.time_ns <= int(end["time_ns"]) for s in account.samples)
    return account


def functions(pysym, path, *options):
    """The names in the stacks, and of each the sum of the samples that have it."""
    sums = {}
    folded = pysym(path, "--format", "folded", "--python-only", *options).stdout
    for line in folded.splitlines():
        stack, value = line.rsplit(" ", 1)
        for name in {re.sub(r" .*", "", frame) for frame in stack.split(";")}:
            sums[name] = sums.get(name, 0) + int(value)
    return sums


@pytest.mark.usefixtures("needs_bpf")
@pytest.mark.smoke(load=True)
def test_event(released, pycap, pysym, tmp_path):
    """
    200 ms are in the file, with what was before and after, and nothing of long ago. Releases read the same. The archive, one for
    all files, names what they have, on a machine that has none of the binaries.
    """
    stolen_ns, archive = accounts.stolen_ns(), tmp_path / "a.tar.zst"
    (event,), (path,), said = stand_by(pycap, tmp_path, "--archive", archive)
    account = check_whole(path, event, said)
    assert account.residue == 0, account.text()
    assert account.ends == [7]
    found = functions(pysym, path)
    assert "usual" in found and "event" in found and "old" not in found, found
    period = max(s.weight for s in account.samples)
    began, ended, _, cpu_ns, preemptions = event
    during_ns = sum(s.weight for s in account.samples if began <= s.time_ns <= ended)
    # Each time that it has a CPU without a break may have a tick more or less than its length.
    slack = (5 + preemptions + account.losses["tick_skipped"]) * period + (accounts.stolen_ns() - stolen_ns)
    assert abs(during_ns - cpu_ns) <= slack, (during_ns, event, account.text())
    assert re.search(r"event \(SIGUSR1\): \S+ has \d\.\d s before it and \d\.\d s after it", said), said
    assert "SIGUSR1" in pysym(path, "-f", "summary", "-v").stdout
    assert releases.account(released, path) == releases.account(PYSYM, path)
    here = pysym(path, "-f", "folded", "--interpreter", "show").stdout
    assert here == pysym(path, "--no-host", "--archive", archive, "-f", "folded", "--interpreter", "show").stdout


@pytest.mark.usefixtures("needs_bpf")
@pytest.mark.long
def test_the_minute_before(pycap, pysym, tmp_path):
    """The same by the default of --before: the file has the minute, and no more than a part of what was kept besides."""
    (event,), (path,), said = stand_by(pycap, tmp_path, program=(PYTHON, "-c", PROGRAM, "2.5", "80"), before=60)
    account = check_whole(path, event, said, before=60)
    assert account.residue == 0, account.text()
    found = functions(pysym, path)
    assert "usual" in found and "event" in found and "old" not in found, (found, said)
    print(said)


@pytest.mark.long
@pytest.mark.usefixtures("needs_bpf")
def test_several_events(pycap, pysym, tmp_path):
    """Each has a file with all of its time before, also what is in the file of the one before; --keep removes old ones."""
    events, paths, said = stand_by(pycap, tmp_path, "--keep", "2", program=(PYTHON, "-c", PROGRAM, "2.5", "3", "4", "4"))
    assert len(events) == 3 and len(paths) == 2, said
    for path, event in zip(paths, events[1:]):
        account = check_whole(path, event, said)
        assert account.residue == 0, account.text()
        assert "event" in functions(pysym, path)
    assert "into 3 files" in said


@pytest.mark.usefixtures("needs_bpf")
def test_waits(pycap, pysym, tmp_path):
    """With waits: the times of the thread cover the whole file, in each of its parts."""
    (event,), (path,), said = stand_by(pycap, tmp_path, "--wall")
    check_whole(path, event, said)
    begun = int(records(path, "epoch")[0]["time_ns"])
    end = int(records(path, "end")[0]["time_ns"])
    known = 0
    # An account reaches to the last switch of the thread; it may run, or want to, for longer.
    longest = max(sample.weight for sample in accounts.read(PYSYM, path).samples)
    for times in records(path, "thread_time"):
        assert begun <= int(times["until_ns"]) <= end + 10**9  # up to the thread's last switch, which may be after the samples
        known += int(times["until_ns"]) - int(times["since_ns"])
    assert 0.9 * (end - begun) - longest <= known <= 1.1 * (end - begun) + longest
    assert {"usual", "event"} <= set(functions(pysym, path))


@pytest.mark.long
@pytest.mark.usefixtures("needs_bpf")
def test_blame(pycap, pysym, tmp_path):
    """Beside a thread that wants the GIL there are samples of who keeps it waiting: the file counts these, too."""
    program = PROGRAM.replace("\nold()\n", "\nimport threading\nthreading.Thread(target=work, args=(60,), daemon=True).start()\nold()\n")
    (event,), (path,), said = stand_by(pycap, tmp_path, "--wall", program=(PYTHON, "-c", program, "2", "4"))
    check_whole(path, event, said)
    assert "event" in functions(pysym, path, "--event", "gil-blame")


@pytest.mark.usefixtures("needs_bpf")
def test_without_privilege(pycap, pysym, tmp_path):
    (event,), (path,), said = stand_by(pycap, tmp_path, "--backend", "proc")
    check_whole(path, event, said)
    found = functions(pysym, path)
    assert "usual" in found and "event" in found and "old" not in found, found


FAILS = "import sys, time\ndef last():\n    end = time.monotonic() + 1\n    while time.monotonic() < end: sum(range(500))\nlast()\nsys.exit(3)"


@pytest.mark.usefixtures("needs_bpf")
def test_a_command_that_fails(pycap, pysym, tmp_path):
    """That is an event: the file has what was before it, with how the command ended. One that ends well leaves no file."""
    done = pycap("record", "--on-demand", "-o", tmp_path / "t-%t.bin", "--", PYTHON, "-c", FAILS)
    assert done.returncode == 3, done.stderr
    path, = files(tmp_path)
    assert accounts.read(PYSYM, path).ends == [2]
    assert "last" in functions(pysym, path)
    assert "exit" in pysym(path, "-f", "summary", "-v").stdout
    done = pycap("record", "--on-demand", "-o", tmp_path / "t-%t.bin", "--", PYTHON, "-c", FAILS.replace("exit(3)", "exit(0)"))
    assert done.returncode == 0 and files(tmp_path) == [path]
    assert "there was no event" in done.stderr


@pytest.mark.usefixtures("needs_bpf")
def test_another_recording(pycap, tmp_path):
    """pkill sends the signal to all that are called pycap: what does not stand by goes on, and its command has no part in that."""
    done = pycap("record", "-q", "--backend", "proc", "-o", tmp_path / "t.bin", "--", PYTHON, "-c",
                 "import os, signal; os.kill(os.getppid(), signal.SIGUSR1); sum(range(10_000_000)); "
                 "print(signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL)")
    assert done.returncode == 0 and done.stdout.strip() == "True", (done.returncode, done.stdout, done.stderr)


def start(folder, *options):
    return subprocess.Popen([PYCAP, "record", "--on-demand", "-o", folder / "t-%t.bin", *map(str, options)], stderr=subprocess.PIPE, text=True)


def wait_for(condition, recorder):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline and recorder.poll() is None, "it did not come"
        time.sleep(0.05)


def cpu_seconds(pid):
    user, system = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def takes_events(pid):
    """Whether it is as far as to read SIGUSR1, not to be ended by it."""
    blocked = re.search(r"^SigBlk:\s*(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1]
    return int(blocked, 16) >> signal.SIGUSR1 - 1 & 1


@pytest.mark.usefixtures("needs_bpf")
def test_end_by_signal(tmp_path):
    """SIGTERM ends the file that is being written in good order, and leaves none where pycap stands by."""
    with subprocess.Popen([PYTHON, "-c", PROGRAM, "600"], stdout=subprocess.DEVNULL) as target:
        try:
            with start(tmp_path, "-p", target.pid, "--status", tmp_path / "figures") as recorder:
                wait_for((tmp_path / "figures").exists, recorder)
                time.sleep(1)
                recorder.send_signal(signal.SIGTERM)
                assert recorder.wait(60) == 0 and not files(tmp_path)
                assert "there was no event" in recorder.stderr.read()
            (tmp_path / "figures").unlink()
            with start(tmp_path, "-p", target.pid, "--status", tmp_path / "figures", "--after", "1h") as recorder:
                wait_for((tmp_path / "figures").exists, recorder)
                time.sleep(1)
                recorder.send_signal(signal.SIGUSR1)
                wait_for(lambda: files(tmp_path) and files(tmp_path)[0].stat().st_size > 1000, recorder)
                figures = (tmp_path / "figures").read_text()
                assert 'pycap_events_total{by="signal"} ' in figures and "pycap_kept_seconds " in figures, figures
                recorder.send_signal(signal.SIGTERM)
                assert recorder.wait(60) == 0
        finally:
            target.kill()
    path, = files(tmp_path)
    account = accounts.read(PYSYM, path)
    assert account.ends == [0] and account.residue == 0 and account.samples, account.text()


@pytest.mark.usefixtures("needs_bpf")
def test_a_process_that_ends(tmp_path, pysym):
    """The end of a process that pycap did not start is an event: whoever waits for an incident wants to know what was before."""
    with subprocess.Popen([PYTHON, "-c", PROGRAM, "600"], stdout=subprocess.PIPE, text=True) as target:
        with start(tmp_path, "-p", target.pid, "--status", tmp_path / "figures") as recorder:
            wait_for((tmp_path / "figures").exists, recorder)
            assert target.stdout.readline() == "usual\n"
            enough = cpu_seconds(target.pid) + 0.5
            wait_for(lambda: cpu_seconds(target.pid) >= enough, recorder)  # 50 samples
            target.kill()
            target.wait()
            said = recorder.communicate(timeout=60)[1]
            assert recorder.returncode == 0 and "event (the process has ended): " in said, said
    path, = files(tmp_path)
    account = accounts.read(PYSYM, path)
    assert account.ends == [3] and account.residue == 0, account.text()
    assert "usual" in functions(pysym, path)


@pytest.mark.usefixtures("needs_bpf")
def test_a_file_that_cannot_be_written(tmp_path):
    """Nothing ends: pycap says why, and the next event has its file."""
    folder = tmp_path / "here"
    folder.mkdir()
    with subprocess.Popen([PYTHON, "-c", PROGRAM, "600"], stdout=subprocess.DEVNULL) as target:
        try:
            limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
            with subprocess.Popen([PYCAP, "record", "--on-demand", "--after", "1", "-o", folder / "t-%t.bin", "-p", str(target.pid)],
                                  stderr=subprocess.PIPE, text=True, preexec_fn=limit) as recorder:
                wait_for(lambda: takes_events(recorder.pid), recorder)
                for count in (1, 2):
                    recorder.send_signal(signal.SIGUSR1)
                    wait_for(lambda: len(files(folder)) == count, recorder)
                    said = recorder.stderr.readline()
                    assert "event (SIGUSR1)" in said and "File too large" in said and "next event" in said, said
                recorder.send_signal(signal.SIGINT)
                assert recorder.wait(60) == 0, recorder.stderr.read()
        finally:
            target.kill()
    assert all(p.stat().st_size <= 1000 for p in files(folder))


def test_usage(pycap, tmp_path):
    for words, says in ((["--before", "5"], "--on-demand"), (["--on-demand", "--rotate", "5"], "exclude"),
                        (["--on-demand", "-o", tmp_path / "t.bin"], "%t"), (["--on-demand", "-o", "trace.bin"], "%t"),
                        (["--on-demand", "-o", "-"], "standard output")):
        done = pycap("record", *words, "--", "true")
        assert done.returncode == 2 and says in done.stderr, done.stderr
    assert os.listdir(tmp_path) == []
    done = pycap("record", "--on-demand", "-o", tmp_path / "no/t-%t.bin", "--", "true")
    assert done.returncode == 1 and "cannot be written there" in done.stderr, done.stderr
