# SPDX-License-Identifier: Apache-2.0
"""Hosts that forbid or lack something: what is missing is named, with what works all the same (docs/hosts.md).

Each is made in a mount namespace of its own, or by a filter of system calls.
"""
import ctypes
import os
import pathlib
import re
import shutil
import struct
import subprocess

import pytest

from conftest import PYCAP, PYSYM, PYTHON, WORKS, later

OWN, OTHER = "65534", "65533"
SHORT = [PYTHON, "-c", "sum(range(5 * 10**6))"]
WITHOUT_BPF = r"^  without BPF: 'pycap record COMMAND', and -p PID, record Python frames"


@pytest.fixture
def root(needs_bpf, needs_namespaces):
    if os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv")


def on_host(script, command, user=None, cwd=None, **keywords):
    """Runs a command in a mount namespace that the script has changed, as root or as a user with these capabilities."""
    if user is not None:
        names = "".join(f",+{name}" for name in user)
        command = ["setpriv", f"--reuid={OWN}", f"--regid={OWN}", "--clear-groups", f"--inh-caps=-all{names}",
                   f"--ambient-caps=-all{names}", f"--bounding-set=-all{names}", *command]
    keywords = {"text": True, "timeout": 300, "capture_output": True, **keywords}
    return subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-euc", script + '\nexec "$@"', "sh",
                           *map(str, command)], cwd=cwd, check=False, **keywords)


@pytest.fixture
def works(root):
    """Starts a program that works, as a user; returns its pid."""
    started = []

    def start(user):
        started.append(subprocess.Popen(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", PYTHON, "-c", WORKS]))
        return started[-1].pid
    yield start
    for process in started:
        process.kill()
        process.wait()


def test_hidepid(place, works):
    """A process that /proc hides is there; it is said why it is not seen. One's own is recorded."""
    script, user = "mount -t proc -o hidepid=2 proc /proc", ["bpf", "perfmon"]
    own, other = works(OWN), works(OTHER)
    done = on_host(script, [PYCAP, "record", "-d", "1", "-o", place / "a.bin", "-p", other], user)
    assert done.returncode == 1
    assert re.search(rf"^pycap: process {other} is hidden from pycap: .*hidepid=.*CAP_SYS_PTRACE", done.stderr, re.M), done.stderr
    assert re.search(r"^pycap: with /proc mounted with hidepid=", done.stderr, re.M)
    done = on_host(script, [PYCAP, "record", "-d", "1", "-o", place / "b.bin", "-p", own], user)
    assert done.returncode == 0, done.stderr
    info = on_host(script, [PYCAP, "info"], user).stdout
    assert re.search(r"^ +with /proc mounted with hidepid=", info, re.M)
    assert re.search(rf"^ *{own}  ", info, re.M) and not re.search(rf"^ *{other}  ", info, re.M)
    # Who has CAP_SYS_PTRACE sees them all.
    info = on_host(script, [PYCAP, "info"], [*user, "sys_ptrace"]).stdout
    assert "hidepid" not in info and re.search(rf"^ *{other}  ", info, re.M)


def test_no_tracefs(place, root):
    """Tracepoints and memory-growth need it, and nothing else does. Root mounts it apart."""
    script = """mount -t tmpfs -o ro none /sys/kernel/tracing
    [ ! -d /sys/kernel/debug ] || mount -t tmpfs -o ro none /sys/kernel/debug"""
    user = ["bpf", "perfmon", "dac_read_search"]
    for event, who in (("memory-growth", "event memory-growth needs tracepoints"), ("sched:sched_switch", "event sched:sched_switch: ")):
        done = on_host(script, [PYCAP, "record", "-e", event, "-o", place / "a.bin", *SHORT], user)
        assert done.returncode == 1
        assert re.search(rf"^pycap: {who}.*tracefs.* is not mounted.*mount -t tracefs.*All events but", done.stderr, re.M), done.stderr
    done = on_host(script, [PYCAP, "record", "--wall", "-o", place / "b.bin", *SHORT], user)
    assert done.returncode == 0 and "tracefs" not in done.stderr, done.stderr
    info = on_host(script, [PYCAP, "info"], user).stdout
    assert re.search(r"^events .*memory-growth \(not without tracepoints\)$", info, re.M)
    assert re.search(r"^tracepoints +no: tracefs.*mount -t tracefs", info, re.M)
    info = on_host(script, [PYCAP, "info"]).stdout
    assert re.search(r"^tracepoints +[1-9]", info, re.M)


def test_no_cgroups(place, root):
    """--cgroup alone needs them."""
    script = "umount -R /sys/fs/cgroup"
    if not os.path.ismount("/sys/fs/cgroup"):
        script = ""
    done = on_host(script, [PYCAP, "record", "--cgroup", "/a", "-d", "1", "-o", place / "a.bin"])
    assert done.returncode == 1
    assert "pycap: --cgroup cannot be used: no cgroups are mounted" in done.stderr and "--comm" in done.stderr
    done = on_host(script, [PYCAP, "record", "-o", place / "b.bin", *SHORT])
    assert done.returncode == 0, done.stderr
    assert re.search(r"^cgroups +none is mounted", on_host(script, [PYCAP, "info"]).stdout, re.M)


def test_cgroups_version_1(place, works):
    """Without a unified hierarchy --cgroup goes by systemd's, and the trace has the names that are in it."""
    if ":name=systemd:" not in pathlib.Path("/proc/self/cgroup").read_text():
        pytest.skip("the kernel has no hierarchy name=systemd")
    name, pid = f"pycap-test-{os.getpid()}", works(OWN)
    script = f"""umount -R /sys/fs/cgroup
    mount -t cgroup -o none,name=systemd none /sys/fs/cgroup
    mkdir /sys/fs/cgroup/{name}
    echo {pid} >/sys/fs/cgroup/{name}/cgroup.procs"""
    try:
        done = on_host(script, [PYCAP, "record", "--cgroup", f"/sys/fs/cgroup/{name}", "-d", "1", "-o", place / "a.bin"])
        assert done.returncode == 0 and "samples of 1 process" in done.stderr, done.stderr
        dump = subprocess.run([PYSYM, place / "a.bin", "-f", "dump"], capture_output=True, text=True, check=True).stdout
        assert f"/{name}" in dump
        script = "umount -R /sys/fs/cgroup\nmount -t cgroup -o none,name=systemd none /sys/fs/cgroup"
        info = on_host(script, [PYCAP, "info"]).stdout
        assert re.search(r"^cgroups +version 1 only: --cgroup goes by /sys/fs/cgroup$", info, re.M)
    finally:
        on_host(f"{script}\necho {pid} >/sys/fs/cgroup/cgroup.procs || true\nrmdir /sys/fs/cgroup/{name} || true", ["true"])


READ_ONLY = """mount --bind / /
for place in $(cut -d' ' -f2 /proc/mounts | grep -vE '^/(proc|sys)(/|$)'); do mount -o remount,ro,bind "$place" 2>/dev/null || :; done"""


def test_read_only(place, works):
    """It is said where a trace can go; a pipe, a dump and a command do without a place to write."""
    pid, environment = works(OWN), {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    done = on_host(READ_ONLY, [PYCAP, "record", "-d", "1", "-p", pid], cwd=place)
    assert done.returncode == 1
    assert re.search(r"^pycap: trace\.bin: cannot be opened for writing: Read-only.*; -o FILE .*-o - ", done.stderr, re.M), done.stderr
    done = on_host(READ_ONLY, [PYCAP, "record", "-o", "-", *SHORT], cwd=place, env=environment, text=False)
    assert done.returncode == 0, done.stderr
    assert b"pycap: /tmp: no file for notes of the command (PYCAP_NOTE) can be made there; it is recorded without" in done.stderr
    assert len(done.stdout) > 1000
    done = on_host(READ_ONLY, [PYCAP, "dump", "-p", pid], cwd=place, env=environment)
    assert done.returncode == 0 and f"Process {pid}" in done.stdout, done.stderr


def test_no_tmp(place, works):
    """What pysym would write to temporary files is kept in memory: a pipe, an archive."""
    subprocess.run([PYCAP, "record", "-q", "-d", "1", "-o", place / "a.bin", "--archive", place / "a.tar.zst", "-p", str(works(OWN))],
                   check=True, timeout=300)
    shutil.copy(PYSYM, place / "pysym")
    script = f"mount --bind {place} /mnt\nmount -t tmpfs -o ro none /tmp\ncd /mnt"
    environment = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    options = ["--no-host", "--archive", "a.tar.zst", "-f", "folded"]
    expected = subprocess.run([PYSYM, "a.bin", *options], capture_output=True, text=True, cwd=place, check=True).stdout
    for source, name in ((None, "a.bin"), (open(place / "a.bin", "rb"), "-")):
        done = on_host(script, ["/mnt/pysym", name, *options], env=environment, stdin=source)
        assert done.returncode == 0 and done.stdout == expected and expected, done.stderr
        if source:
            source.close()
    # A folder that somebody chose is not passed over.
    done = on_host(script, ["/mnt/pysym", "a.bin", *options], env={**environment, "TMPDIR": "/tmp"})
    assert done.returncode == 1 and "pysym: /tmp: cannot create a temporary file here (TMPDIR" in done.stderr


def test_no_btf(place, root):
    script = "mount --bind /dev/null /sys/kernel/btf/vmlinux"
    done = on_host(script, [PYCAP, "record", "-d", "1", "-o", place / "a.bin"])
    assert done.returncode == 1
    assert re.search(r"^pycap: /sys/kernel/btf/vmlinux, .* is missing, empty or unreadable", done.stderr, re.M), done.stderr
    assert re.search(WITHOUT_BPF, done.stderr, re.M)
    done = on_host(script, [PYCAP, "record", "-o", place / "b.bin", *SHORT])
    assert done.returncode == 0 and "pycap: only Python frames are recorded (--backend proc): /sys/kernel/btf" in done.stderr
    info = on_host(script, [PYCAP, "info"]).stdout
    assert re.search(r"^type info \(BTF\) no$", info, re.M) and re.search(WITHOUT_BPF, info, re.M)


CALLS = {"bpf": 321, "perf_event_open": 298}  # of x86-64


def refuse(call, error):
    """Has a system call of this process fail, and of those that it starts, as a container's seccomp profile does."""
    def instruction(code, true, false, k):
        return struct.pack("<HBBI", code, true, false, k)
    program = b"".join([instruction(0x20, 0, 0, 0),                        # A = the number of the call
                        instruction(0x15, 0, 1, CALLS[call]),              # is it this one?
                        instruction(0x06, 0, 0, 0x00050000 | error),       # SECCOMP_RET_ERRNO
                        instruction(0x06, 0, 0, 0x7FFF0000)])              # SECCOMP_RET_ALLOW
    code = ctypes.create_string_buffer(program, len(program))
    filters = struct.pack("<HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(22, 2, ctypes.create_string_buffer(filters, len(filters)), 0, 0):  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        raise OSError(ctypes.get_errno(), "seccomp")


@pytest.mark.parametrize("call, error, said", [
    ("perf_event_open", 1, r"perf events may not be opened, though pycap has CAP_PERFMON \(Operation not permitted\): a seccomp filter"),
    later("perf_event_open", 38, "this kernel has no perf events, or a seccomp filter"),
    ("bpf", 1, r"BPF programs may not be loaded, though pycap has CAP_BPF \(Operation not permitted\): a seccomp filter")],
    ids=["perf", "perf-unknown", "bpf"])
def test_seccomp(place, root, call, error, said):
    """A filter of system calls that refuses what the capabilities allow."""
    if os.uname().machine != "x86_64":
        pytest.skip("numbers of system calls are those of x86-64")

    def run(*command):
        return subprocess.run([PYCAP, *map(str, command)], capture_output=True, text=True, timeout=300, check=False,
                              preexec_fn=lambda: refuse(call, error))
    done = run("record", "-d", "1", "-o", place / "a.bin")
    assert done.returncode == 1
    assert re.search(f"^pycap: {said}", done.stderr, re.M) and re.search(WITHOUT_BPF, done.stderr, re.M), done.stderr
    done = run("record", "-o", place / "b.bin", *SHORT)
    assert done.returncode == 0 and re.search(rf"^pycap: only Python frames are recorded \(--backend proc\): {said}", done.stderr, re.M)
    info = run("info").stdout
    assert re.search(rf"^sampling +no: {said}", info, re.M) and re.search(r"^system calls +filtered \(seccomp\)", info, re.M)
