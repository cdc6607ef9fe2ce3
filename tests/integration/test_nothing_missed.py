# SPDX-License-Identifier: Apache-2.0
"""Every tick that the sampler saw is a sample, or counted by the name of its loss.

Of processes that are hard to follow; and the samples' weights sum up to the CPU time that the kernel says they had.
"""
import collections
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import textwrap
import time

import pytest

import accounts
from conftest import PYCAP, PYSYM, PYTHON

pytestmark = pytest.mark.usefixtures("needs_bpf")
HZ = 999

# What the programs below begin with. `done()` prints the CPU time of the whole tree, how often it was preempted, and which
# processes it had.
HEAD = """
import json, os, resource, signal, subprocess, sys, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(500))
pids = [os.getpid()]
def fork(function, *arguments):
    pid = os.fork()
    if not pid:
        try:
            function(*arguments)
        finally:
            os._exit(0)
    pids.append(pid)
    return pid
def done(**more):
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(json.dumps({"cpu": sum(u.ru_utime + u.ru_stime for u in usages), "preemptions": sum(u.ru_nivcsw for u in usages),
                      "pids": pids, **more}))
"""


@pytest.fixture
def run(pycap, pysym, tmp_path):
    """Records a program; returns what it printed, its account, and its stacks as [(pid, [frames], samples at HZ)]."""
    def record(program, *before):
        script, trace = tmp_path / "program.py", tmp_path / "t.bin"
        script.write_text(HEAD + textwrap.dedent(program))
        # A buffer so large that a busy machine does not fill it: the rate stays.
        stolen_ns = accounts.stolen_ns()
        done = pycap("record", "-F", HZ, "-m", "32M", "-o", trace, "--", *before, PYTHON, script)
        stolen_ns = accounts.stolen_ns() - stolen_ns
        assert done.returncode == 0, done.stderr
        account = accounts.read(PYSYM, trace)
        assert account.samples, done.stderr
        assert account.residue == 0, account.text()
        rows = []
        folded = pysym(trace, "--format", "folded")
        assert folded.returncode in (0, 3), folded.stderr
        scale = HZ / 1e6 if "counts are microseconds" in folded.stderr else 1
        for line in folded.stdout.splitlines():
            stack, count = line.rsplit(" ", 1)
            frames = stack.split(";")
            rows.append((int(frames[0].rsplit("-", 1)[1]), frames[1:], int(count) * scale))
        told = next((json.loads(l) for l in done.stdout.splitlines() if l.startswith("{")), None)
        if told:
            told["stolen_ns"] = stolen_ns
        return told, account, rows
    return record


def check_cpu(told, account):
    account.check_cpu(told["cpu"] * 1e9, told["stolen_ns"], told["preemptions"])


def check_seconds(told, rows, account, function, seconds, slack):
    """`seconds` are of the program's clock; how ticks may be more is told at Account.check_cpu()."""
    spent = seconds_in(rows, function)
    more = account.losses["tick_skipped"] / HZ + (told["stolen_ns"] + accounts.uncounted_ns(told["preemptions"])) / 1e9
    assert -slack - account.missing / HZ < spent - seconds < slack + more, \
        f"{spent:.3f} s in {function}, not {seconds}; {account.text()}"


def seconds_in(rows, function):
    return sum(count for _, frames, count in rows if any(f.startswith(function + " (") for f in frames)) / HZ


def test_short_lives(run):
    """Interpreters that live 50 to 500 ms: none is missed, nor is any of their time."""
    told, account, rows = run("""
        for i in range(24):
            code = f"import os, time\\nend = time.process_time() + {0.05 if i % 8 else 0.4}\\n" \\
                   "def short():\\n    while time.process_time() < end: sum(range(500))\\nshort()"
            child = subprocess.Popen([sys.executable, "-c", code])
            pids.append(child.pid)
            child.wait()
        done()
    """)
    check_cpu(told, account)
    assert {s.pid for s in account.samples} >= set(told["pids"])
    seen = {pid for pid, frames, count in rows if any(f.startswith("short (") for f in frames)}
    # One may end before pycap, kept from running, has seen its exec, or that it is Python: its samples say so. Where pycap
    # stands still for longer, so may some that follow each other.
    unseen = set(told["pids"][1:]) - seen
    bare = sum(s.pid in unseen for s in account.samples)
    stalls = sum(pid in unseen and before not in unseen for before, pid in itertools.pairwise(told["pids"]))
    assert bare <= account.early and stalls <= 3 and len(unseen) <= 12, (unseen, account.text())


@pytest.mark.long
def test_fork_storm(run):
    """Forks without exec, a few milliseconds each: sampled from their first tick on, with Python stacks."""
    told, account, rows = run("""
        def work():
            burn(0.004)
        for i in range(60):
            for pid in [fork(work) for _ in range(8)]:
                os.waitpid(pid, 0)
        done()
    """)
    check_cpu(told, account)
    # 480 processes with four ticks each on average: that many have none with a chance of e^-4 at the very most.
    assert len({s.pid for s in account.samples} & set(told["pids"])) >= 0.9 * len(told["pids"])
    assert seconds_in(rows, "work") >= 0.9 * 480 * 0.004 - 0.05 - account.missing / HZ, account.text()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(run, method):
    told, account, rows = run(f"""
        import multiprocessing
        def work(n):
            burn(0.02)
            return os.getpid()
        if __name__ == "__main__":
            context = multiprocessing.get_context("{method}")
            with context.Pool(3) as pool:
                workers = set(pool.map(work, range(60), chunksize=1))
                pool.close()
                pool.join()
            pids.extend(workers)
            done()
    """)
    if method != "forkserver":  # whose children are not the program's
        check_cpu(told, account)
    assert {s.pid for s in account.samples} >= set(told["pids"][1:])
    assert seconds_in(rows, "work") >= 0.9 * 60 * 0.02 - account.missing / HZ, account.text()


@pytest.mark.smoke
def test_exec_chain(run):
    """One process: Python, then Python, then a shell, then Python. Each image is told from the one before."""
    told, account, rows = run("""
        stage = int(sys.argv[1]) if len(sys.argv) > 1 else 1
        exec(f"def stage{stage}():\\n    burn(0.3)\\nstage{stage}()")
        if stage == 2:
            os.execv("/bin/sh", ["sh", "-c", f"i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; "
                                             f"exec {sys.executable} {sys.argv[0]} 3"])
        elif stage == 1:
            os.execv(sys.executable, [sys.executable, sys.argv[0], "2"])
        done()
    """)
    assert len({s.pid for s in account.samples}) == 1
    for stage in (1, 2, 3):
        check_seconds(told, rows, account, f"stage{stage}", 0.3, 0.06)
    # The shell's ticks are none of Python's.
    assert account.unsampled > 0
    assert account.weight_ns < told["cpu"] * 1e9
    assert not [f for _, frames, _ in rows for f in frames if "dash" in f]


PID_REUSE = """
    def first_life():
        burn(0.1)
    def second_life():
        burn(0.1)
    pid = fork(first_life)
    os.waitpid(pid, 0)
    again = 0
    for attempt in range(300):
        with open("/proc/sys/kernel/ns_last_pid", "w") as f:
            f.write(str(pid - 1))
        again = os.fork()
        if not again:
            if os.getpid() == pid:
                second_life()
            os._exit(0)
        os.waitpid(again, 0)
        if again == pid:
            break
    done(pid=pid, again=again)
"""


def check_pid_reuse(told, account, rows):
    if told["pid"] != told["again"]:
        pytest.skip("the pid was not to be had again")
    check_cpu(told, account)
    check_seconds(told, rows, account, "first_life", 0.1, 0.04)
    check_seconds(told, rows, account, "second_life", 0.1, 0.04)


def test_pid_reuse(run, needs_namespaces):
    """Two programs, one after the other, with the same pid: told apart by when they began."""
    check_pid_reuse(*run(PID_REUSE, "unshare", "--pid", "--fork", "--mount-proc"))


@pytest.mark.alone
def test_pid_reuse_on_the_host(run):
    """The same in the host's own pid namespace, which is the one that the trace tells of."""
    told, account, rows = run(PID_REUSE)
    check_pid_reuse(told, account, rows)
    lives = {s.start_ns for s in account.samples if s.pid == told["pid"]}
    assert len(lives) == 2, lives


@pytest.mark.long
def test_threads_by_the_thousand(run):
    told, account, rows = run("""
        import threading
        def work():
            end = time.thread_time() + 0.001
            while time.thread_time() < end:
                sum(range(200))
        for _ in range(10):
            threads = [threading.Thread(target=work) for _ in range(200)]
            for t in threads: t.start()
            for t in threads: t.join()
        done()
    """)
    check_cpu(told, account)
    assert seconds_in(rows, "work") >= 0.8 * 2000 * 0.001 - account.missing / HZ, account.text()


def library(name):
    found = sorted(pathlib.Path("/usr/lib/x86_64-linux-gnu").glob(name)) + sorted(pathlib.Path("/lib/x86_64-linux-gnu").glob(name))
    return str(found[0]) if found else None


def test_libraries_that_come_and_go(run):
    """dlopen and dlclose in a loop: different libraries at the same addresses are told apart."""
    xz, other = library("liblzma.so.5"), library("libbz2.so.1.0")
    if not xz or not other:
        pytest.skip("liblzma and libbz2 are wanted")
    told, account, rows = run(f"""
        import ctypes, _ctypes
        data = os.urandom(1 << 16)
        def with_xz(lib):
            for _ in range(200): lib.lzma_crc32(data, ctypes.c_size_t(len(data)), 0)
        def with_bz2(lib):
            out, size = ctypes.create_string_buffer(1 << 18), ctypes.c_uint(1 << 18)
            lib.BZ2_bzBuffToBuffCompress(out, ctypes.byref(size), data, len(data), 1, 0, 0)
        places = []
        for _ in range(60):
            for path, use in (({xz!r}, with_xz), ({other!r}, with_bz2)):
                lib = ctypes.CDLL(path)
                for line in open("/proc/self/maps"):
                    if os.path.realpath(path) in line and " r-xp " in line:
                        places.append((path, *(int(x, 16) for x in line.split()[0].split("-"))))
                use(lib)
                _ctypes.dlclose(lib._handle)
        done(shared=sum(a[0] != b[0] and a[1] < b[2] and b[1] < a[2] for a in places for b in places))
    """)
    check_cpu(told, account)
    assert told["shared"] > 0, "no address had code of both libraries"
    seen = collections.Counter()
    for _, frames, count in rows:
        native = [f for f in frames if not f.endswith("_[k]")]
        for function, its, wrong in (("with_xz (", ("lzma_", "[liblzma"), ("BZ2", "[libbz2")),
                                     ("with_bz2 (", ("BZ2", "[libbz2"), ("lzma_", "[liblzma"))):
            if any(f.startswith(function) for f in native):
                at = next(i for i, f in enumerate(native) if f.startswith(function))
                seen[function, "right"] += count * any(f.startswith(its) for f in native[at + 1:])
                seen[function, "wrong"] += count * any(f.startswith(wrong) for f in native[at + 1:])
    for function in ("with_xz (", "with_bz2 ("):
        assert seen[function, "wrong"] == 0, seen
        assert seen[function, "right"] > 20, seen


def test_binary_replaced_while_it_runs(run, tmp_path):
    told, account, rows = run(f"""
        import shutil
        if len(sys.argv) > 1:
            burn(0.2)
            print("ready", flush=True)
            sys.stdin.readline()
            def after():
                burn(0.3)
            after()
            sys.exit()
        copy = {str(tmp_path / "python-of-its-own")!r}
        shutil.copy(os.path.realpath(sys.executable), copy)
        child = subprocess.Popen([copy, sys.argv[0], "child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        pids.append(child.pid)
        child.stdout.readline()
        with open(copy + ".new", "w") as f:
            f.write("no program")
        os.replace(copy + ".new", copy)
        child.communicate(b"\\n")
        done()
    """)
    check_cpu(told, account)
    check_seconds(told, rows, account, "after", 0.3, 0.08)


def test_other_namespaces(run, needs_namespaces):
    """A process whose own /proc, pid and mounts are others than pycap's."""
    told, account, rows = run("""
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/tmp"], check=False)
        def inside():
            burn(0.3)
        inside()
        done(pid=os.getpid())
    """, "unshare", "--pid", "--mount", "--fork", "--mount-proc")
    assert told["pid"] == 1
    check_cpu(told, account)
    check_seconds(told, rows, account, "inside", 0.3, 0.08)


@pytest.mark.alone
def test_processes_that_vanish(pycap, tmp_path):
    """Host-wide, while processes come and go faster than /proc can be read."""
    trace = tmp_path / "t.bin"
    storm = ["sh", "-c", "while :; do /bin/true; /bin/true & /usr/bin/python3 -S -c pass & wait; done"]
    with subprocess.Popen(storm, start_new_session=True) as shell:
        try:
            for options in ((), ("-a",)):
                done = pycap("record", "-F", HZ, "-d", "2", "-o", trace, *options)
                assert done.returncode == 0, done.stderr
                account = accounts.read(PYSYM, trace)
                assert account.samples and account.residue == 0, account.text()
                assert len({s.pid for s in account.samples}) > 10
        finally:
            os.killpg(shell.pid, 9)


@pytest.mark.alone
def test_lost_news(pysym, tmp_path):
    """The kernel drops events of processes, since pycap is stopped and takes none: /proc tells later what they would have."""
    trace, stopped, begun, gate = (tmp_path / name for name in ("t.bin", "stopped", "begun", "gate"))
    program = tmp_path / "program.py"
    program.write_text(HEAD + textwrap.dedent("""
        import ctypes
        libc = ctypes.CDLL(None)
        stopped, begun, gate = sys.argv[1:]
        def used(pid):
            return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[12])
        def storm(cpu):
            os.sched_setaffinity(0, [cpu])
            while True:
                libc.prctl(15, b"name", 0, 0, 0)  # PR_SET_NAME: an event of its own each time
        storms = [fork(storm, cpu) for cpu in os.sched_getaffinity(0)]
        while not os.path.exists(stopped):
            time.sleep(0.1)
        enough = {pid: used(pid) + 50 for pid in storms}  # half a second in the kernel: more than the buffer holds
        while any(used(pid) < least for pid, least in enough.items()):
            time.sleep(0.1)
        child = subprocess.Popen([sys.executable, "-c", "import os, sys\\ndef hidden():\\n    open(sys.argv[1], 'w').close()\\n"
                                  "    while not os.path.exists(sys.argv[2]): sum(range(500))\\nhidden()", begun, gate])
        while not os.path.exists(begun):
            time.sleep(0.1)
        for pid in storms:
            os.kill(pid, signal.SIGKILL)
        child.wait()
        done(child=child.pid)
    """))

    def hidden():
        return [l for l in pysym(trace, "--format", "folded").stdout.splitlines() if "hidden (" in l] if accounts.is_begun(trace) else []

    deadline = time.monotonic() + 300
    with subprocess.Popen([PYCAP, "record", "-F", "999", "-o", trace, "--", PYTHON, program, stopped, begun, gate],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:

        def wait_for(condition):
            while recorder.poll() is None and time.monotonic() < deadline and not condition():
                time.sleep(0.1)

        wait_for(lambda: accounts.is_begun(trace))
        recorder.send_signal(signal.SIGSTOP)
        stopped.touch()
        wait_for(begun.exists)
        recorder.send_signal(signal.SIGCONT)
        wait_for(hidden)
        gate.touch()
        printed, said = recorder.communicate(timeout=300)
    assert recorder.returncode == 0, said
    account = accounts.read(PYSYM, trace)
    assert account.residue == 0, account.text()
    told = json.loads(re.search(r"^\{.*", printed, re.M)[0])
    assert account.losses["sideband_lost"]
    stacks = hidden()
    assert stacks, "the process was never known"
    assert all(f"-{told['child']};" in l for l in stacks)
