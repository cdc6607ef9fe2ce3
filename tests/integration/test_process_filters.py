# SPDX-License-Identifier: Apache-2.0
"""pycap samples only processes of a command name, of a cgroup, or of a container, when it is asked to."""
import collections
import contextlib
import os
import pathlib
import re
import secrets
import shutil
import signal
import subprocess
import time

import pytest

import accounts
from conftest import PYCAP, PYSYM, PYTHON, WORKS

NATIVE = ["nice", "-n", "19", "sh", "-c", "while :; do :; done"]
BURN = "import time\nwhile time.thread_time() < 0.3: sum(range(1000))"
ENOUGH = 20  # samples, that a function is seen to be recorded
# Has another name from news() on. The files named let it go on.
RENAME = """
import ctypes, os, sys, time
def until(file):
    while not os.path.exists(file):
        sum(range(100000))
        time.sleep(0.01)
def before(): until(sys.argv[2])
def news(): until(sys.argv[3])
def after(): until("")
before()
ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0)
news()
after()
"""


def hierarchy(version):
    """Where a hierarchy of cgroups is mounted; skips the test if it is nowhere."""
    kind, with_option = {"v2": ("cgroup2", "rw"), "v1": ("cgroup", "pids")}[version]
    mounts = (line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines())
    mount = next((m[1] for m in mounts if m[2] == kind and with_option in m[3].split(",")), None)
    if not mount:
        pytest.skip(f"no hierarchy of cgroups {version} is mounted")
    return pathlib.Path(mount)


@contextlib.contextmanager
def cgroups(*paths):
    """Makes them, and removes them when nothing is in them any more."""
    made = []
    try:
        for path in paths:
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


@pytest.fixture
def tree():
    """Two cgroups, one below the other, and one beside them. To be named before `host`, which empties them."""
    top = hierarchy("v2") / f"pycap-test-{os.getpid()}"
    with cgroups(top, top / "below", top.parent / (top.name + "-beside")) as made:
        yield made


@pytest.fixture(params=["v2", "v1"])
def containers(request):
    """The cgroups of two containers with IDs that begin alike, and of one inside the first. To be named before `host`."""
    top = hierarchy(request.param) / f"pycap-test-{os.getpid()}"
    alike = secrets.token_hex(4)
    one, other = (top / f"docker-{alike}{n}{secrets.token_hex(27)}f.scope" for n in "01")
    with cgroups(top, one, other, one / f"cri-containerd-{secrets.token_hex(32)}.scope") as made:
        yield alike, made[1:]


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
        """A recorder that records, or is about to. What has begun by now is older than its recording."""
        self.recorders += 1
        trace = self.folder / f"t{self.recorders}.bin"
        process = subprocess.Popen([PYCAP, "record", "-q", "-F", "199", "-o", trace, *map(str, options)])
        self.running.append(process)
        return process, trace

    def wait_for(self, condition, *recorders):
        """Until it is true, of the traces of these."""
        end = time.monotonic() + 300
        while not condition():
            assert all(process.poll() is None for process, _ in recorders) and time.monotonic() < end, "it is not recorded"
            time.sleep(0.2)

    def wait_until_recorded(self, processes, *recorders):
        self.wait_for(lambda: all({p.pid for p in processes} <= set(self.folded(trace)) for _, trace in recorders), *recorders)

    def end(self, *recorders):
        """The stacks that each has recorded."""
        for process, _ in recorders:
            process.send_signal(signal.SIGINT)
        for process, _ in recorders:
            assert process.wait(300) == 0
        return [self.folded(trace) for _, trace in recorders]

    def folded(self, trace):
        """Stacks by pid."""
        if not accounts.is_begun(trace):
            return {}
        done = subprocess.run([PYSYM, trace, "--format", "folded"], capture_output=True, text=True, timeout=300, check=True)
        stacks = collections.defaultdict(list)
        for line in done.stdout.splitlines():
            stacks[int(re.match(r".*?-(\d+)[; ]", line)[1])].append(line)
        return stacks

    def samples(self, recorder, program, function):
        return sum(int(line.rsplit(" ", 1)[1]) for line in self.folded(recorder[1]).get(program.pid, ()) if f";{function} (" in line)


@pytest.fixture
def host(needs_bpf, tmp_path):
    host = Host(tmp_path)
    yield host
    for process in host.running:
        if process.poll() is None:
            process.kill()
        process.wait()


@pytest.fixture
def named(tmp_path):
    """An interpreter under a name that nothing else on this host has."""
    if os.path.dirname(os.path.realpath(PYTHON)) != "/usr/bin":
        pytest.skip(f"{PYTHON} is not Debian's: a copy of it would not run")
    path = tmp_path / f"{COMM}-of-a-name-that-is-long"
    shutil.copy(os.path.realpath(PYTHON), path)
    return path


COMM = f"pycap-tests-{os.getpid()}"[-15:]  # a process's name has no more


@pytest.mark.smoke
def test_comm(host, named):
    """One that runs already, and one that starts later; not the others, whatever kind they are, though all is recorded of the host."""
    early = host.start(named, "-c", WORKS)
    others = [host.start(PYTHON, "-c", WORKS), host.start(*NATIVE)]
    recorders = [host.record("--comm", f"no-such-name,{COMM}", *every) for every in ([], ["-a"])]
    host.wait_until_recorded([early], *recorders)
    late = host.start(named, "-c", WORKS)
    host.wait_until_recorded([late], *recorders)
    assert all(other.poll() is None for other in others)
    for stacks in host.end(*recorders):
        assert set(stacks) == {early.pid, late.pid}


@pytest.mark.long
def test_renamed(host, tmp_path):
    """The name counts that a process has: it comes and goes with it."""
    gates = tmp_path / "renamed", tmp_path / "noticed"
    program = host.start(PYTHON, "-c", RENAME, COMM, *gates)
    by_old, by_new = host.record("--comm", "python3"), host.record("--comm", COMM)
    host.wait_for(lambda: host.samples(by_old, program, "before") > ENOUGH, by_old, by_new)
    gates[0].touch()
    host.wait_for(lambda: host.samples(by_new, program, "news") > 0, by_new)
    # Who sees this one, which starts later, has seen that the other has a new name.
    mark = host.start(PYTHON, "-c", WORKS)
    host.wait_until_recorded([mark], by_old)
    gates[1].touch()
    host.wait_for(lambda: host.samples(by_new, program, "after") > ENOUGH, by_new)
    host.end(by_old, by_new)
    assert not host.samples(by_old, program, "after")
    assert not host.samples(by_new, program, "before")


def test_with_command(pycap, host, named, tmp_path):
    """Of a command's processes those of the name."""
    trace = tmp_path / "t.bin"
    script = f"{PYTHON} -c '{BURN}'\n{named} -c '{BURN}'\nexit 7"
    done = pycap("record", "-F", "199", "-o", trace, "--comm", COMM, "--", "sh", "-c", script)
    assert done.returncode == 7, done.stderr
    stacks = host.folded(trace)
    assert len(stacks) == 1
    assert all(line.startswith(COMM) for lines in stacks.values() for line in lines)


def test_cgroup(tree, host):
    """Those in the cgroup and below it, children too; by the path of the folder, or by that in the hierarchy."""
    top, below, beside = tree
    inside = [host.start(PYTHON, "-c", WORKS, cgroup=group) for group in (top, below)]
    native = host.start(*NATIVE, cgroup=below)
    others = [host.start(PYTHON, "-c", WORKS, cgroup=beside), host.start(PYTHON, "-c", WORKS)]
    by_path = f"/no/such/one,/{top.name}/{below.name}"
    expected = [(host.record("--cgroup", path, *every), [*pythons, *([native] if every else [])])
                for path, pythons in ((top, inside), (by_path, inside[1:])) for every in ([], ["-a"])]
    for recorder, processes in expected:
        host.wait_until_recorded(processes, recorder)
    late = host.start(PYTHON, "-c", WORKS, cgroup=below)
    recorders = [recorder for recorder, _ in expected]
    host.wait_until_recorded([late], *recorders)
    assert all(other.poll() is None for other in others)
    for stacks, (_, processes) in zip(host.end(*recorders), expected):
        assert set(stacks) == {late.pid, *(p.pid for p in processes)}


@pytest.mark.long
def test_moved(tree, host):
    """A move between cgroups is noticed after a while, both ways at once."""
    top, _, beside = tree
    comes, later = host.start(PYTHON, "-c", WORKS), host.start(PYTHON, "-c", WORKS)
    goes = host.start(PYTHON, "-c", WORKS, cgroup=top)
    recorder = host.record("--cgroup", top)
    host.wait_until_recorded([goes], recorder)
    (beside / "cgroup.procs").write_text(str(goes.pid))
    # Each look at all processes takes its time. One that begins when this move is noticed sees that the other has gone, and has
    # ended when a process that starts later is known.
    for process in (comes, later):
        (top / "cgroup.procs").write_text(str(process.pid))
        host.wait_until_recorded([process], recorder)
    mark = host.start(PYTHON, "-c", WORKS, cgroup=top)
    host.wait_until_recorded([mark], recorder)
    stacks, = host.end(recorder)
    assert set(stacks) == {comes.pid, later.pid, goes.pid, mark.pid}
    done = subprocess.run([PYSYM, recorder[1], "--format", "perf-script"], capture_output=True, text=True, timeout=300, check=True)
    order = [int(n) for n in re.findall(r"^\S+ +(\d+)/\d+ ", done.stdout, re.M)]
    behind = order[order.index(mark.pid):]
    assert comes.pid in behind and goes.pid not in behind


def test_container(containers, host, pycap):
    """Those in the container and in one inside it, also one that starts later; by the beginning of its ID, which only it has."""
    alike, (one, other, inner) = containers
    inside = [host.start(PYTHON, "-c", WORKS, cgroup=group) for group in (one, inner)]
    others = [host.start(PYTHON, "-c", WORKS, cgroup=other), host.start(PYTHON, "-c", WORKS)]
    recorder = host.record("--container", f"{alike}0")
    host.wait_until_recorded(inside, recorder)
    late = host.start(PYTHON, "-c", WORKS, cgroup=one)
    host.wait_until_recorded([late], recorder)
    assert all(other.poll() is None for other in others)
    stacks, = host.end(recorder)
    assert set(stacks) == {late.pid, *(p.pid for p in inside)}
    said = subprocess.run([PYSYM, recorder[1], "-f", "summary"], capture_output=True, text=True, timeout=300, check=True).stdout
    assert f" in the container {alike}0" in said, said
    done = pycap("record", "-o", host.folder / "t.bin", "--container", alike)
    assert done.returncode == 2 and not (host.folder / "t.bin").exists()
    assert re.search(rf"2 containers begin with '{alike}': {alike}\w+, {alike}\w+; give more", done.stderr), done.stderr
    done = pycap("record", "-o", host.folder / "t.bin", "--container", "gunicorn")
    assert done.returncode == 1 and not (host.folder / "t.bin").exists()
    assert re.search(rf"in a container 'gunicorn': .*; those here: .*{alike}0", done.stderr), done.stderr


def test_wrong(pycap, tmp_path):
    for options, words in ((["--comm", "a,,b"], "command names"), (["--cgroup", "app.service"], "cgroup paths")):
        done = pycap("record", "-o", tmp_path / "t.bin", *options)
        assert done.returncode == 2
        assert words in done.stderr
        assert not (tmp_path / "t.bin").exists()
