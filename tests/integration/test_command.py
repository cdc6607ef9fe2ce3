# SPDX-License-Identifier: Apache-2.0
"""pycap starts a command with the signals of pycap's caller, and says how it ended."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

import accounts
from conftest import PYCAP, PYSYM, PYTHON, why_no_bpf

pytestmark = pytest.mark.live

LOOK = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
IGNORED = [signal.SIGHUP, signal.SIGPIPE, signal.SIGINT, signal.SIGCHLD, signal.SIGUSR2]
BLOCKED = [signal.SIGTERM, signal.SIGUSR1]
LIBRARYS_OWN = 1 << 31 | 1 << 32  # signals 32 and 33: nobody but the C library can set them


def set_up():
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, BLOCKED)


def look(*before, **keywords):
    done = subprocess.run([*before, *LOOK], capture_output=True, text=True, timeout=300, check=True, **keywords)
    lines = dict(line.split(":") for line in done.stdout.splitlines())
    return int(lines["SigIgn"], 16) & ~LIBRARYS_OWN, int(lines["SigBlk"], 16)


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


@pytest.mark.smoke
def test_nohup(tmp_path):
    """A hangup that is ignored, as nohup has it, ends nothing; one that is not does, in good order."""
    if why_no_bpf():
        pytest.skip(why_no_bpf())
    for ignored, end in ((True, "ended when its duration was over"), (False, "ended by a signal")):
        trace = tmp_path / f"{ignored}.bin"
        process = subprocess.Popen(
            [PYCAP, "record", "-a", "-d", "2" if ignored else "60", "-o", trace], stderr=subprocess.DEVNULL,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL))
        while not trace.exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGHUP)
        assert process.wait(300) == 0
        done = subprocess.run([PYSYM, trace, "--format", "summary", "-v"], capture_output=True, text=True, timeout=300, check=True)
        assert end in done.stdout


def number(pattern, text):
    """The one number that `pattern` finds in a summary; 0 where it says nothing of it."""
    found = re.findall(pattern, text, re.M)
    assert len(found) <= 1, text
    return int(found[0].replace(",", "")) if found else 0


def test_summary_tells_of_samples_not_recorded(tmp_path):
    """A shell is sampled until it is known to be no Python: the summary tells of those samples, which are in no file.
    What it says adds up, tick by tick, and agrees with the account that the file has for each CPU."""
    if why_no_bpf():
        pytest.skip(why_no_bpf())
    # Each image has many ticks, and its first is sampled in any case: not what it is but when it was met decides that.
    script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; exec " + PYTHON + " -c 'sum(range(20000000))'"
    done = subprocess.run([PYCAP, "record", "-v", "-F", "999", "-o", tmp_path / "t.bin", "sh", "-c", script],
                          capture_output=True, text=True, timeout=300, check=True)
    told = done.stderr
    ticks = re.search(r"^Ticks: (\d+), of which (\d+) idle, (\d+) in other processes and (\d+) sampled", told, re.M)
    assert ticks, told
    seen, idle, others, sampled = map(int, ticks.groups())
    recorded = number(r"^Recorded ([\d,]+) samples", told)
    unwanted = number(r"^Ticks: .* sampled \((\d+) of them in processes that are not recorded\)\.$", told)
    lost = sum(number(rf"^  {name} +(\d+) ", told) for name in accounts.SEEN_BUT_LOST)
    assert recorded > 0 and unwanted > 0, told
    assert seen == idle + others + sampled, told
    assert sampled == recorded + unwanted + lost, told
    account = accounts.read(PYSYM, tmp_path / "t.bin")
    in_file = account.seen, account.idle, account.unsampled, len(account.samples)
    assert (seen, idle, others + unwanted, recorded) == in_file, f"{told}\n{account.text()}"


def metas(pysym, trace):
    """The META records of a trace; of a key that comes again, the last."""
    done = pysym(trace, "--format", "dump")
    assert done.returncode in (0, 3), done.stderr
    # Ids of strings begin anew with each epoch, and a string stands before what refers to it.
    strings, found = {}, {}
    for line in done.stdout.splitlines():
        if match := re.match(r'string id=(\d+) data="([^"]*)"', line):
            strings[match[1]] = match[2]
        elif match := re.match(r"meta key=(\d+) value=(\d+)", line):
            found[strings[match[1]]] = strings[match[2]]
    return found


def of_command(pysym, trace):
    return {key: int(value) for key, value in metas(pysym, trace).items() if key.startswith("command.")}


# Its child takes 0.3 s of CPU, it takes 0.2 s itself, and sleeps for 0.5 s.
WORK = f"""
import os, subprocess, sys, time
def spin(seconds):
    while time.process_time() < seconds: pass
if len(sys.argv) > 2:
    spin(.3)
else:
    subprocess.run([{PYTHON!r}, __file__, "", "child"], check=True)
    spin(.2)
    time.sleep(.5)
    print(time.process_time() + sum(os.times()[2:4]))
    sys.stdout.flush()
    exec(sys.argv[1])
"""


@pytest.mark.parametrize("backend", ["bpf", "proc"])
@pytest.mark.parametrize("end, key, value, code", [
    ("sys.exit(7)", "command.exit_status", 7, 7), ("os.kill(os.getpid(), 9)", "command.signal", 9, 128 + 9)])
def test_what_came_of_the_command(tmp_path, pysym, backend, end, key, value, code):
    """How it ended, how long it took, and its CPU time with that of the child it waited for."""
    if backend == "bpf" and why_no_bpf():
        pytest.skip(why_no_bpf())
    program, trace = tmp_path / "work.py", tmp_path / "t.bin"
    program.write_text(WORK)
    begin = time.monotonic()
    done = subprocess.run([PYCAP, "record", "-q", "--backend", backend, "-o", trace, "--", PYTHON, program, end],
                          capture_output=True, text=True, timeout=300)
    whole_ns = (time.monotonic() - begin) * 1e9
    assert done.returncode == code, done.stderr
    found = of_command(pysym, trace)
    assert found.keys() == {key, "command.wall_ns", "command.cpu_ns"} and found[key] == value, found
    assert .5e9 < found["command.wall_ns"] < whole_ns, found
    # What it knew of its CPU time just before its end (os.times() counts in hundredths of a second) is not more.
    told_ns = float(done.stdout) * 1e9
    assert told_ns - 2e7 <= found["command.cpu_ns"] <= 2 * found["command.wall_ns"], (found, told_ns)
    summary = pysym(trace, "--format", "summary", "-v").stdout
    how = f"exit status {value}" if key == "command.exit_status" else f"ended by signal {value}"
    assert re.search(rf"^  command       {how}, \d+\.\d+ s, \d+\.\d+ s of CPU$", summary, re.M), summary


def test_nothing_came_of_the_command(tmp_path, pysym):
    """Where the capture ends before the command does, or has none, the trace says nothing of it."""
    if why_no_bpf():
        pytest.skip(why_no_bpf())
    cut, other = tmp_path / "cut.bin", tmp_path / "other.bin"
    subprocess.run([PYCAP, "record", "-q", "-d", "0.5", "-o", cut, "--", "sleep", "60"], timeout=300, check=False)
    subprocess.run([PYCAP, "record", "-q", "-a", "-d", "0.5", "-o", other], timeout=300, check=True)
    for trace in (cut, other):
        assert metas(pysym, trace)["backend"] == "bpf"
        assert not of_command(pysym, trace)


def test_last_file_tells_of_the_command(tmp_path, pysym):
    if why_no_bpf():
        pytest.skip(why_no_bpf())
    subprocess.run([PYCAP, "record", "-q", "--rotate", "1s", "-o", tmp_path / "t-%t.bin", "--", PYTHON, "-c",
                    "import glob, sys\nwhile len(glob.glob(sys.argv[1] + '/t-*')) < 2: sum(range(10000))", tmp_path], timeout=300, check=True)
    traces = sorted(tmp_path.glob("t-*.bin"))
    assert len(traces) >= 2
    for trace in traces:
        assert bool(of_command(pysym, trace)) == (trace == traces[-1]), trace


def test_deep_path(tmp_path, pysym):
    """
    An interpreter whose path is longer than 255 bytes: the module has the whole path, cut nowhere. The recording's end says
    that it lay in a temporary folder, and how little it worked.
    """
    if why_no_bpf():
        pytest.skip(why_no_bpf())
    folder = tmp_path.joinpath(*["d" * 60] * 5)
    folder.mkdir(parents=True)
    python = folder / "python"
    shutil.copy(PYTHON, python)
    program = "import time\nend = time.thread_time() + .3\nwhile time.thread_time() < end: pass\ntime.sleep(1)"
    said = subprocess.run([PYCAP, "record", "-o", tmp_path / "t.bin", "--", python, "-c", program], capture_output=True,
                          env={**os.environ, "PYTHONHOME": "/usr"}, text=True, timeout=300, check=True).stderr
    share = re.search(r"^It used a CPU for (\d+) % of the time\. Threads that wait are not sampled; --wall records them, too\.$", said, re.M)
    assert (share and 1 <= int(share[1]) <= 50) or "\nThe rate was lowered" in said, said
    if str(tmp_path).startswith(("/tmp/", "/var/tmp/", "/dev/shm/")):
        assert "\n1 binary is in containers or temporary folders, or gone: record with --archive FILE to keep the names of its " \
               "functions.\n" in said, said
    done = pysym(tmp_path / "t.bin", "--format", "dump")
    assert done.returncode == 0, done.stderr
    # The dump shows a long string's beginning, and how much more there is.
    shown = re.findall(r'^string .* data="([^"]*)"\+(\d+)$', done.stdout, re.M)
    lengths = {len(start) + int(more) for start, more in shown if str(python).startswith(start)}
    assert lengths == {len(str(python))}, shown


@pytest.mark.parametrize("before, options, own", [([], [], -20), (["nice", "-n", "5"], [], 5), ([], ["--nice", "3"], 3),
                                                  ([], ["--backend", "proc"], 0), (["nice", "-n", "5"], ["--nice", "-1"], -1)])
def test_nice(before, options, own, tmp_path):
    """pycap goes first unless it was told otherwise; a command does not."""
    if os.geteuid() or os.getpriority(os.PRIO_PROCESS, 0):
        pytest.skip("needs root, and an ordinary nice value")
    if why_no_bpf() and "--backend" not in options:
        pytest.skip(why_no_bpf())
    script = "import os; print(os.getpriority(os.PRIO_PROCESS, os.getppid()), os.getpriority(os.PRIO_PROCESS, 0))"
    done = subprocess.run([*before, PYCAP, "record", "-q", *options, "-o", tmp_path / "t.bin", "--", PYTHON, "-c", script],
                          capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.split() == [str(own), before[-1] if before else "0"]


def test_realtime(needs_bpf, tmp_path):
    """pycap is a real-time program with all its processes; a command is not."""
    script = """if True:
        import os
        def policies(pid):
            yield os.sched_getscheduler(pid)
            for child in open(f"/proc/{pid}/task/{pid}/children").read().split():
                if int(child) != os.getpid():
                    yield from policies(int(child))
        print(set(policies(os.getppid())), os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0))"""
    done = subprocess.run([PYCAP, "record", "-q", "--realtime", "2", "-o", tmp_path / "t.bin", "--", PYTHON, "-c", script],
                          capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.split() == [f"{{{os.SCHED_FIFO}}}", str(os.SCHED_OTHER), str(os.getpriority(os.PRIO_PROCESS, 0))]


@pytest.mark.parametrize("new_session, options, nice", [(True, [], -20), (False, [], 0), (True, ["--nice", "3"], 0)])
def test_nice_value_of_its_session(new_session, options, nice, needs_bpf, tmp_path):
    """Where the kernel divides CPUs among sessions; one that others are in stays as it is."""
    if os.geteuid() or os.getpriority(os.PRIO_PROCESS, 0) or not pathlib.Path("/proc/self/autogroup").exists():
        pytest.skip("needs root, an ordinary nice value, and a kernel that knows such sessions")
    # In either case a session that is none of ours.
    before = [] if new_session else ["sh", "-c", '"$@"; exit $?', "sh"]
    with subprocess.Popen([*before, PYCAP, "record", *options, "-o", tmp_path / "t.bin", "-d", "60"], stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as recorder:
        try:
            deadline = time.monotonic() + 60
            while not accounts.is_begun(tmp_path / "t.bin"):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            said = pathlib.Path(f"/proc/{recorder.pid}/autogroup").read_text()
        finally:
            os.killpg(recorder.pid, signal.SIGINT)
    assert said.split()[-1] == str(nice), said


def test_nice_is_refused(tmp_path):
    """Without the privilege an explicit value is an error; without one recording goes on, which test_privileges looks at."""
    if os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv")
    done = subprocess.run(["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice", PYCAP, "record", "--nice", "-5", "-o",
                           tmp_path / "t.bin", "--", "true"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1 and "CAP_SYS_NICE" in done.stderr, done.stderr
    assert not (tmp_path / "t.bin").exists()
