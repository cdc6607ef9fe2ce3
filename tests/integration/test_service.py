# SPDX-License-Identifier: Apache-2.0
"""pycap as a service: what a service manager hears, who may read the files. A socket stands in for systemd."""
import os
import pathlib
import re
import select
import signal
import socket
import struct
import subprocess
import time

import pytest

import accounts
from conftest import PYCAP, PYSYM, PYTHON

WAIT_S = 120


class Manager:
    """Listens as a service manager does, at a path or at an abstract name."""

    def __init__(self, name):
        self.name = name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.bind(name.replace("@", "\0", 1))
        self.socket.settimeout(WAIT_S)

    def hear(self):
        """The next message as a dictionary, and the process that sent it."""
        text, ancillary, _, _ = self.socket.recvmsg(4096, 4096)
        sender = next(struct.unpack("3i", data)[0] for _, kind, data in ancillary if kind == socket.SCM_CREDENTIALS)
        return dict(line.split("=", 1) for line in text.decode().splitlines()), sender

    def heard_nothing(self):
        return not select.select([self.socket], [], [], 0)[0]


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    listener = Manager(str(tmp_path / "notify") if request.param == "path" else f"@pycap-test-{os.getpid()}")
    yield listener
    listener.socket.close()


@pytest.fixture
def start(tmp_path):
    """Starts pycap under a manager, or without one."""
    started = []

    def run(manager, *arguments):
        environment = {key: value for key, value in os.environ.items() if key != "NOTIFY_SOCKET"}
        if manager:
            environment["NOTIFY_SOCKET"] = manager.name
        started.append(subprocess.Popen([PYCAP, "record", "-q", *map(str, arguments)], env=environment, cwd=tmp_path,
                                        stderr=subprocess.PIPE, text=True))
        return started[-1]
    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stderr.close()


def end(process):
    process.send_signal(signal.SIGTERM)
    text = process.communicate(timeout=WAIT_S)[1]
    assert process.returncode == 0, text
    return text


def name_of(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


def descriptors(pid):
    """What the process has open, by kind: "socket:", "pipe:", "anon_inode:[perf_event]", paths."""
    found = []
    for path in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(path))
        except FileNotFoundError:
            continue  # it was closed meanwhile
    return found


def helper(pid, name):
    """The child of pycap with that name."""
    for path in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            text = path.read_text()
        except OSError:
            continue
        if text.startswith(f"Name:\t{name}\n") and re.search(rf"^PPid:\t{pid}$", text, re.M):
            return int(path.parent.name)
    return None


# ---- what the service manager hears ----

FIRST = """
import sys, time
def first():
    end = time.process_time() + 0.3
    while time.process_time() < end:
        sum(range(1000))
first()
"""


@pytest.mark.usefixtures("needs_bpf")
def test_ready_when_it_records(manager, start, pysym, tmp_path):
    """A program that begins when the manager is told is in the trace from its beginning."""
    recorder = start(manager, "-F", "999", "-o", tmp_path / "t.bin")
    told, sender = manager.hear()
    assert told["READY"] == "1" and re.fullmatch(r"Recording; \d+ Python process(es)? found at the start\.", told["STATUS"])
    assert sender != recorder.pid and name_of(sender) == "pycap-notify"
    with subprocess.Popen([PYTHON, "-S", "-c", FIRST]) as program:
        assert program.wait(WAIT_S) == 0
    assert manager.heard_nothing()
    recorder.send_signal(signal.SIGTERM)
    told, again = manager.hear()
    assert told["STOPPING"] == "1" and "READY" not in told and again == sender
    assert recorder.wait(WAIT_S) == 0, recorder.stderr.read()
    assert manager.heard_nothing()
    account = accounts.read(PYSYM, tmp_path / "t.bin")
    assert account.samples
    folded = pysym(tmp_path / "t.bin", "-f", "folded").stdout
    own = [line for line in folded.splitlines() if f"-{program.pid};" in line]
    # 0.3 s at 999 Hz, and the interpreter's own start before that, which has no function of ours.
    assert sum(int(line.rsplit(" ", 1)[1]) for line in own if ";first (" in line) > 200, folded
    assert any(";first (" not in line for line in own), "its start is missing"


def test_ready_without_privilege(manager, start, tmp_path):
    """The backend that reads a process says the same."""
    with subprocess.Popen([PYTHON, "-c", "print(flush=True)\nwhile True: sum(range(1000))"], stdout=subprocess.PIPE) as program:
        try:
            program.stdout.read(1)
            recorder = start(manager, "--backend", "proc", "-p", program.pid, "-o", tmp_path / "t.bin")
            told, _ = manager.hear()
            assert told == {"READY": "1", "STATUS": "Recording; 1 Python process found at the start."}
            recorder.send_signal(signal.SIGTERM)
            assert manager.hear()[0]["STOPPING"] == "1"
            assert recorder.wait(WAIT_S) == 0
        finally:
            program.kill()


def test_not_ready_where_start_fails(manager, start, tmp_path):
    for arguments in (["-o", tmp_path / "none" / "t.bin"], ["--backend", "proc", "-p", "1", "-o", tmp_path / "t.bin"],
                      ["-p", "4194303", "-o", tmp_path / "t.bin"], ["--group", "no-such-group", "-o", tmp_path / "t.bin"]):
        recorder = start(manager, *arguments)
        assert recorder.wait(WAIT_S) in (1, 2), arguments
        assert manager.heard_nothing(), arguments


def test_command_is_the_service(manager, start, tmp_path):
    """The command says itself when it is ready, as it would without pycap."""
    script = """
import os, socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.sendto(b"READY=1\\nSTATUS=The command is.", os.environ["NOTIFY_SOCKET"].replace("@", "\\0", 1))
"""
    recorder = start(manager, "--backend", "proc", "-o", tmp_path / "t.bin", "--", PYTHON, "-c", script)
    assert manager.hear()[0] == {"READY": "1", "STATUS": "The command is."}
    assert recorder.wait(WAIT_S) == 0
    assert manager.heard_nothing()


def test_manager_is_not_there(start, tmp_path):
    """That is said once, and the recording goes on."""
    with subprocess.Popen([PYTHON, "-c", "while True: sum(range(1000))"]) as program:
        try:
            environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "nowhere")}
            done = subprocess.run([PYCAP, "record", "--backend", "proc", "-d", "1", "-p", str(program.pid), "-o", tmp_path / "t.bin"],
                                  env=environment, capture_output=True, text=True, timeout=WAIT_S, check=False)
        finally:
            program.kill()
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"NOTIFY_SOCKET ({tmp_path}/nowhere): No such file") == 1
    assert accounts.read(PYSYM, tmp_path / "t.bin").samples


# ---- no socket ----

@pytest.mark.usefixtures("needs_bpf")
def test_no_socket(manager, start, tmp_path):
    """While it records, who reads others has one socket: a pair with the writer. Nobody has a library for a network."""
    recorder = start(manager, "--rotate", "1d", "-o", tmp_path / "t-%t.bin")
    manager.hear()
    sockets = [name for name in descriptors(recorder.pid) if name.startswith("socket:")]
    writer, notifier = helper(recorder.pid, "pycap-writer"), helper(recorder.pid, "pycap-notify")
    assert len(sockets) == 1 and writer and notifier
    of_writer = [name for name in descriptors(writer) if name.startswith("socket:")]
    assert len(of_writer) == 1 and of_writer != sockets
    # The other end of the pair is the writer's: neither is in a table of sockets that have a name.
    named = pathlib.Path("/proc/net/unix").read_text()
    assert all(re.search(rf"^\S+: \S+ \S+ \S+ \S+ \S+ +{re.escape(s[8:-1])} *$", named, re.M) for s in sockets + of_writer), named
    assert sorted(re.sub(r"\d+", "N", name) for name in descriptors(notifier)) == \
        ["/dev/null", "/dev/null", "/dev/null", "pipe:[N]", "socket:[N]"]
    for pid in (recorder.pid, writer, notifier):
        libraries = set(re.findall(r"/\S*?([^/\s]+)\.so", pathlib.Path(f"/proc/{pid}/maps").read_text()))
        assert not [name for name in libraries if re.match(r"lib(curl|ssl|gnutls|nss|resolv|systemd|dbus)", name)], libraries
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        assert "asan" in PYCAP or re.search(r"^Seccomp:\t2$", status, re.M)
        assert re.search(r"^NoNewPrivs:\t1$", status, re.M)
    assert re.search(r"^CapPrm:\t0+$", pathlib.Path(f"/proc/{notifier}/status").read_text(), re.M)
    end(recorder)


@pytest.mark.usefixtures("needs_bpf")
def test_no_helper_without_manager(start, tmp_path):
    recorder = start(None, "-o", tmp_path / "t.bin")
    deadline = time.monotonic() + WAIT_S
    while not (tmp_path / "t.bin").exists():
        assert time.monotonic() < deadline and recorder.poll() is None
        time.sleep(0.02)
    assert helper(recorder.pid, "pycap-writer") and not helper(recorder.pid, "pycap-notify")
    end(recorder)


# ---- who may read the files ----

@pytest.mark.skipif(os.geteuid() != 0, reason="to give files to a group needs root")
@pytest.mark.usefixtures("needs_bpf")
def test_group(pycap, tmp_path):
    """Every file that is written can be read by the group, and by nobody else; the group changes nothing."""
    done = pycap("record", "--rotate", "1", "--group", "54321", "--archive", tmp_path / "a.tar.zst", "-o", tmp_path / "t-%t.bin",
                 "--", PYTHON, "-c", "import time\nend = time.time() + 2.5\nwhile time.time() < end: sum(range(1000))")
    assert done.returncode == 0, done.stderr
    written = list(tmp_path.iterdir())
    assert len(written) >= 4, written
    for path in written:
        status = path.stat()
        assert (status.st_mode & 0o7777, status.st_uid, status.st_gid) == (0o640, os.geteuid(), 54321), path


def test_group_is_unknown(pycap, tmp_path):
    done = pycap("record", "--backend", "proc", "--group", "no-such-group", "-o", tmp_path / "t.bin", "--", PYTHON, "-c", "")
    assert done.returncode == 2
    assert "--group: there is no group 'no-such-group' in /etc/group" in done.stderr
    assert not list(tmp_path.iterdir())
