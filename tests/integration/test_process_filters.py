# SPDX-License-Identifier: Apache-2.0
"""pycap samples only processes of a command name, or of a cgroup, when it is asked to."""
import collections
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

from conftest import PYCAP, PYSYM, why_no_bpf

pytestmark = pytest.mark.live

PYTHON = "/usr/bin/python3"
SPIN = "import time\nend = time.time() + {}\nwhile time.time() < end: sum(range(1000))"
BURN = SPIN.replace("time.time", "time.thread_time")  # however busy the machine is
RENAME = """
import ctypes, sys, time
def call_me(name):
    ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: sum(range(1000))
def before(): spin(1)
def news(): spin(1)
def after(): spin(1)
before()
call_me(sys.argv[1].encode())
news()
after()
"""


@pytest.fixture(autouse=True)
def allowed():
    why = why_no_bpf()
    if why:
        pytest.skip(why)


@pytest.fixture
def tree():
    """Two cgroups, one below the other, and one beside them. To be named before `host`, which empties them."""
    mount = next((line.split()[1] for line in pathlib.Path("/proc/mounts").read_text().splitlines()
                  if line.split()[2] == "cgroup2"), None)
    if not mount:
        pytest.skip("no unified hierarchy of cgroups is mounted")
    top = pathlib.Path(mount) / f"pycap-test-{os.getpid()}"
    made = []
    try:
        for path in (top, top / "below", top.parent / (top.name + "-beside")):
            try:
                path.mkdir()
            except OSError as error:
                pytest.skip(f"no cgroup can be made: {error}")
            made.append(path)
        yield made
    finally:
        for path in reversed(made):
            for _ in range(100):
                try:
                    path.rmdir()
                    break
                except OSError:
                    time.sleep(0.05)


class Host:
    """Programs that run while pycap does, and what of them was recorded."""

    def __init__(self, folder):
        self.folder, self.running, self.recorders = folder, [], 0

    def start(self, *command, cgroup=None, wait=False):
        def enter():
            if cgroup:
                (cgroup / "cgroup.procs").write_text(str(os.getpid()))
        process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE if wait else None, text=True,
                                   preexec_fn=enter if cgroup else None)
        self.running.append(process)
        return process

    def record(self, *options):
        self.recorders += 1
        trace = self.folder / f"t{self.recorders}.bin"
        process = subprocess.Popen([PYCAP, "record", "-q", "-F", "199", "-o", trace, *map(str, options)])
        self.running.append(process)
        end = time.monotonic() + 60
        while not (trace.exists() and trace.stat().st_size):
            assert process.poll() is None and time.monotonic() < end, "pycap does not record"
            time.sleep(0.05)
        return process, trace

    def end(self, recorder):
        process, trace = recorder
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 0
        return self.folded(trace)

    def folded(self, trace):
        """Stacks by pid."""
        done = subprocess.run([PYSYM, trace, "--format", "folded"], capture_output=True, text=True, timeout=300, check=True)
        stacks = collections.defaultdict(list)
        for line in done.stdout.splitlines():
            stacks[int(re.match(r".*?-(\d+)[; ]", line)[1])].append(line)
        return stacks


@pytest.fixture
def host(tmp_path):
    host = Host(tmp_path)
    yield host
    for process in host.running:
        if process.poll() is None:
            process.kill()
        process.wait()


@pytest.fixture
def named(tmp_path):
    """An interpreter under a name that nothing else here has."""
    if os.path.dirname(os.path.realpath(PYTHON)) != "/usr/bin":
        pytest.skip(f"{PYTHON} is not Debian's: a copy of it would not run")
    path = tmp_path / "pycap-tested-python"
    shutil.copy(os.path.realpath(PYTHON), path)
    return path


COMM = "pycap-tested-python"[:15]


@pytest.mark.smoke("python")
@pytest.mark.parametrize("every", [[], ["-a"]], ids=["python", "all"])
def test_comm(every, host, named):
    """One that runs already, and one that starts later; not the others, whatever kind they are."""
    early = host.start(named, "-c", SPIN.format(1000))
    others = [host.start(PYTHON, "-c", SPIN.format(1000)), host.start("sh", "-c", "while :; do :; done")]
    recorder = host.record("--comm", f"no-such-name,{COMM}", *every)
    late = host.start(named, "-c", BURN.format(1))
    late.wait(300)
    stacks = host.end(recorder)
    assert set(stacks) == {early.pid, late.pid}
    assert all(other.poll() is None for other in others)


def test_renamed(host):
    """The name counts that a process has: it comes and goes with it."""
    for own, option in ((COMM, ["--comm", COMM]), ("elsewhere", ["--comm", "python3"])):
        process, trace = host.record(*option)
        program = host.start(PYTHON, "-c", RENAME, own)
        program.wait(300)
        lines = host.end((process, trace))[program.pid]
        frames = collections.Counter()
        for line in lines:
            for name in ("before", "after"):
                frames[name] += int(line.rsplit(" ", 1)[1]) if f";{name} (" in line else 0
        wanted, other = ("after", "before") if own == COMM else ("before", "after")
        assert frames[wanted] > 20
        assert not frames[other], frames


def test_with_command(pycap, host, named, tmp_path):
    """Of a command's processes those of the name."""
    trace = tmp_path / "t.bin"
    script = f"{PYTHON} -c '{BURN.format(1)}'\n{named} -c '{BURN.format(1)}'\nexit 7"
    done = pycap("record", "-F", "199", "-o", trace, "--comm", COMM, "--", "sh", "-c", script)
    assert done.returncode == 7, done.stderr
    stacks = host.folded(trace)
    assert len(stacks) == 1
    assert all(line.startswith(COMM) for lines in stacks.values() for line in lines)


@pytest.mark.parametrize("every", [[], ["-a"]], ids=["python", "all"])
def test_cgroup(every, tree, host):
    """Those in the cgroup and below it, children too; by the path of the folder, or by that in the hierarchy."""
    top, below, beside = tree
    inside = [host.start(PYTHON, "-c", SPIN.format(1000), cgroup=top), host.start(PYTHON, "-c", SPIN.format(1000), cgroup=below)]
    host.start(PYTHON, "-c", SPIN.format(1000), cgroup=beside)
    host.start(PYTHON, "-c", SPIN.format(1000))
    native = host.start("sh", "-c", "while :; do :; done", cgroup=below)
    by_folder = host.record("--cgroup", top, *every)
    by_path = host.record("--cgroup", f"/no/such/one,/{top.name}/{below.name}", *every)
    late = host.start(PYTHON, "-c", BURN.format(1), cgroup=below)
    late.wait(300)
    natives = {native.pid} if every else set()
    assert set(host.end(by_folder)) == {*(p.pid for p in inside), late.pid} | natives
    assert set(host.end(by_path)) == {inside[1].pid, late.pid} | natives


def test_moved(tree, host):
    """A move between cgroups is noticed after a while, both ways at once."""
    top, _, beside = tree
    comes = host.start(PYTHON, "-c", SPIN.format(1000))
    goes = host.start(PYTHON, "-c", SPIN.format(1000), cgroup=top)
    process, trace = host.record("--cgroup", top)

    def wait_for(pid):
        end = time.monotonic() + 120
        while pid not in host.folded(trace):
            assert process.poll() is None and time.monotonic() < end, "it is not recorded"
            time.sleep(0.5)
    wait_for(goes.pid)
    # In this order: who sees the second move has seen the first.
    (beside / "cgroup.procs").write_text(str(goes.pid))
    (top / "cgroup.procs").write_text(str(comes.pid))
    wait_for(comes.pid)
    mark = host.start(PYTHON, "-c", BURN.format(1), cgroup=top)
    mark.wait(300)
    stacks = host.end((process, trace))
    assert set(stacks) == {comes.pid, goes.pid, mark.pid}
    done = subprocess.run([PYSYM, trace, "--format", "perf-script"], capture_output=True, text=True, timeout=300, check=True)
    order = [int(n) for n in re.findall(r"^\S+ +(\d+)/\d+ ", done.stdout, re.M)]
    behind = order[order.index(mark.pid):]
    assert comes.pid in behind and goes.pid not in behind


def test_wrong(pycap, tmp_path):
    for options, words in ((["--comm", "a,,b"], "command names"), (["--cgroup", "app.service"], "cgroup paths")):
        done = pycap("record", "-o", tmp_path / "t.bin", *options)
        assert done.returncode == 2
        assert words in done.stderr
        assert not (tmp_path / "t.bin").exists()
