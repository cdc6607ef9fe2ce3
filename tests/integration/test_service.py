# SPDX-License-Identifier: Apache-2.0
"""pycap as a service tells the service manager its state, and guards who may read its files.

A socket stands in for systemd.
"""
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
import prometheus_text
from conftest import PYCAP, PYSYM, PYTHON, ROOT, WORKS

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


@pytest.fixture
def manager(request, tmp_path):
    listener = Manager(getattr(request, "param", None) or str(tmp_path / "notify"))
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
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        text=True))
        return started[-1]
    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stderr.close()


@pytest.fixture
def busy():
    """A Python that runs, and goes on."""
    with subprocess.Popen([PYTHON, "-c", "print(flush=True)\n" + WORKS], stdout=subprocess.PIPE) as program:
        assert program.stdout.read(1)
        yield program
        program.kill()


def wait_for(recorder, condition):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline and recorder.poll() is None
        time.sleep(0.01)


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
    end = time.process_time() + 1
    while time.process_time() < end:
        sum(range(1000))
first()
"""


@pytest.mark.live
@pytest.mark.smoke("path")
@pytest.mark.parametrize("manager", [None, f"@pycap-test-{os.getpid()}"], ids=["path", "abstract"], indirect=True)
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
    # 1 s at 999 Hz, and the interpreter's own start before that, which has no function of ours.
    assert sum(int(line.rsplit(" ", 1)[1]) for line in own if ";first (" in line) > 60, folded
    assert any(";first (" not in line for line in own), "its start is missing"


@pytest.mark.live
def test_ready_without_privilege(manager, start, busy, tmp_path):
    """The backend that reads a process says the same."""
    recorder = start(manager, "--backend", "proc", "-p", busy.pid, "-o", tmp_path / "t.bin")
    told, _ = manager.hear()
    assert told == {"READY": "1", "STATUS": "Recording; 1 Python process found at the start."}
    recorder.send_signal(signal.SIGTERM)
    assert manager.hear()[0]["STOPPING"] == "1"
    assert recorder.wait(WAIT_S) in (0, 1)  # 1: there was no time for a sample


def test_not_ready_where_start_fails(manager, start, tmp_path):
    for arguments in (["-o", tmp_path / "none" / "t.bin"], ["--backend", "proc", "-p", "1", "-o", tmp_path / "t.bin"],
                      ["-p", "4194303", "-o", tmp_path / "t.bin"], ["--group", "no-such-group", "-o", tmp_path / "t.bin"]):
        recorder = start(manager, *arguments)
        assert recorder.wait(WAIT_S) in (1, 2), arguments
        assert manager.heard_nothing(), arguments


@pytest.mark.live
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


@pytest.mark.live
def test_manager_is_not_there(busy, tmp_path):
    """That is said once, and the recording goes on."""
    done = subprocess.run([PYCAP, "record", "--backend", "proc", "-d", "1", "-p", str(busy.pid), "-o", tmp_path / "t.bin"],
                          env={**os.environ, "NOTIFY_SOCKET": str(tmp_path / "nowhere")}, capture_output=True, text=True,
                          timeout=WAIT_S, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"NOTIFY_SOCKET ({tmp_path}/nowhere): No such file") == 1
    assert accounts.read(PYSYM, tmp_path / "t.bin").samples


# ---- no socket ----

@pytest.mark.usefixtures("needs_bpf")
def test_no_socket(manager, start, tmp_path):
    """While it records, who reads others has pairs of sockets with pycap's own processes only. Nobody has a library for a network."""
    recorder = start(manager, "--rotate", "1d", "-o", tmp_path / "t-%t.bin")
    manager.hear()
    sockets = [name for name in descriptors(recorder.pid) if name.startswith("socket:")]
    writer, errands, notifier = (helper(recorder.pid, f"pycap-{name}") for name in ("writer", "errand", "notify"))
    assert sockets and writer and errands and notifier
    of_writer = [name for name in descriptors(writer) if name.startswith("socket:")]
    assert len(of_writer) == 1 and not set(of_writer) & set(sockets)
    # The other ends are in those processes: no socket is in a table of those that have a name.
    named = pathlib.Path("/proc/net/unix").read_text()
    assert all(re.search(rf"^\S+: \S+ \S+ \S+ \S+ \S+ +{re.escape(s[8:-1])} *$", named, re.M) for s in sockets + of_writer), named
    assert sorted(re.sub(r"\d+", "N", name) for name in descriptors(notifier)) == \
        ["/dev/null", "/dev/null", "/dev/null", "pipe:[N]", "socket:[N]"]
    for pid in (recorder.pid, writer, errands, notifier):
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
    wait_for(recorder, (tmp_path / "t.bin").exists)
    assert helper(recorder.pid, "pycap-writer") and not helper(recorder.pid, "pycap-notify")
    end(recorder)


# ---- who may read the files ----

# Runs until there are so many traces in the folder.
WHILE_FEWER = """
import glob, sys, time
end = time.monotonic() + 60
while time.monotonic() < end and len(glob.glob(sys.argv[2] + "/t-*.bin")) < int(sys.argv[1]): sum(range(100000))
"""

@pytest.mark.live
@pytest.mark.skipif(os.geteuid() != 0, reason="to give files to a group needs root")
@pytest.mark.usefixtures("needs_bpf")
def test_group(pycap, tmp_path):
    """Every file that is written can be read by the group, and by nobody else; the group changes nothing."""
    done = pycap("record", "--rotate", "1", "--group", "54321", "--archive", tmp_path / "a.tar.zst", "-o", tmp_path / "t-%t.bin",
                 "--", PYTHON, "-c", WHILE_FEWER, 3, tmp_path)
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


# ---- figures for Prometheus ----

def check_families(figures):
    """Every family is explained in the file itself and in the manual page, apart from those of certain options."""
    page = (ROOT / "docs/pycap.1.scd").read_text().partition("\nInto a pipe also:\n")[0]
    assert figures.types and figures.types.keys() == figures.helps.keys()
    for name in figures.types:
        assert name.startswith("pycap_") and len(figures.helps[name].split()) > 2, name
        assert f"_{name}_" in page, f"{name} is not in the manual page"
    assert set(re.findall(r"_(pycap_\w+)_", page)) == figures.types.keys()


@pytest.mark.usefixtures("needs_bpf")
def test_status(manager, start, busy, pysym, tmp_path):
    """The file is there when the manager hears of the recording, and at the end says what the traces say."""
    status = tmp_path / "pycap.prom"

    def traces():
        return sorted(tmp_path.glob("t-*.bin"))
    recorder = start(manager, "-F", "199", "--wall", "--rotate", "1d", "--status", status, "-p", busy.pid, "-o", tmp_path / "t-%t.bin")
    manager.hear()
    first = prometheus_text.read(status)
    assert first["pycap_recording", None] == 1 and first["pycap_processes", None] == 1
    assert sum(first.of("pycap_samples_total").values()) == 0 and ("pycap_last_sample_timestamp_seconds", None) not in first
    assert abs(first["pycap_start_time_seconds", None] - time.time()) < WAIT_S
    wait_for(recorder, lambda: traces()[0].stat().st_size > accounts.TRACE_HEAD_BYTES)
    recorder.send_signal(signal.SIGHUP)
    wait_for(recorder, lambda: prometheus_text.read(status) != first)  # what is read is never half a file
    middle = prometheus_text.read(status)
    end(recorder)
    last = prometheus_text.read(status)
    assert status.stat().st_mode & 0o7777 == 0o644 and not [p for p in tmp_path.iterdir() if "prom." in p.name]
    check_families(last)
    account = sum((accounts.read(PYSYM, path) for path in traces()), accounts.Account())
    samples = last.of("pycap_samples_total")
    assert set(samples) == {"cpu-clock", "off-cpu"}
    assert sum(samples.values()) == len(account.samples) > 0
    assert last["pycap_files_total", None] == len(traces()) == 2 and middle["pycap_files_total", None] == 2
    assert last["pycap_written_bytes_total", None] == sum(path.stat().st_size for path in traces())
    assert last["pycap_recording", None] == 0 and last["pycap_build_info", pysym("--version").stdout.split()[1]] == 1
    newest = last["pycap_last_sample_timestamp_seconds", None]
    assert last["pycap_start_time_seconds", None] < newest <= last["pycap_status_timestamp_seconds", None] + 0.1
    assert last["pycap_rate_hertz", "cpu-clock"] == last["pycap_asked_rate_hertz", "cpu-clock"] == 199
    assert last["pycap_rate_ratio", None] == 1
    # The peak of the last moment may be nothing.
    assert 0 < max(s["pycap_buffer_peak_bytes", None] for s in (first, middle, last)) < last["pycap_buffer_bytes", None]
    assert all(last["pycap_cpu_seconds_total", part] > 0 for part in ("reader", "writer", "sampler"))
    for one, other in ((first, middle), (middle, last)):
        for key, figure in one.items():
            if one.types[key[0]] == "counter":
                assert other[key] >= figure, f"{key} goes back"


@pytest.mark.live
def test_status_is_rewritten(start, busy, tmp_path):
    """Without anything that happens, too; and by the backend without privilege."""
    status = tmp_path / "pycap.prom"
    recorder = start(None, "--backend", "proc", "--status", status, "-p", busy.pid, "-o", tmp_path / "t.bin")
    wait_for(recorder, lambda: status.exists() and sum(prometheus_text.read(status).of("pycap_samples_total").values()))
    assert prometheus_text.read(status)["pycap_recording", None] == 1
    end(recorder)
    figures = prometheus_text.read(status)
    assert not figures.of("pycap_buffer_bytes") and "sampler" not in figures.of("pycap_cpu_seconds_total")
    assert sum(figures.of("pycap_samples_total").values()) == len(accounts.read(PYSYM, tmp_path / "t.bin").samples)


@pytest.mark.live
def test_losses_are_those_of_the_trace(pycap, tmp_path):
    """What one process may not have is in the file by limit, and as the loss that the trace names."""
    script = tmp_path / "many.py"
    script.write_text("import time\nn = 0\nwhile time.process_time() < 1.5:\n    n += 1\n"
                      "    code = {}\n    exec('def f' + 'x' * 30000 + str(n) + '():\\n    for i in range(200000): pass', code)\n"
                      "    [f() for name, f in code.items() if name[0] == 'f']\n")
    done = pycap("record", "--backend", "proc", "--status", tmp_path / "pycap.prom", "-v", "-o", tmp_path / "t.bin",
                 "--", PYTHON, script)
    assert done.returncode == 0, done.stderr
    figures = prometheus_text.read(tmp_path / "pycap.prom")
    told = dict(re.findall(r"^  (\w+) +(\d+)  \w", done.stderr, re.M))
    assert {name: count for name, count in figures.of("pycap_losses_total").items() if count} == \
        {name: int(count) for name, count in told.items()}
    assert figures["pycap_cuts_total", "name_bytes"] == figures["pycap_losses_total", "code_quota"] > 0


@pytest.mark.live
def test_status_cannot_be_written(pycap, tmp_path):
    """That is told once; the recording is not disturbed."""
    (tmp_path / "figures").mkdir()
    done = pycap("record", "--backend", "proc", "--rotate", "1", "--status", tmp_path / "figures", "-o", tmp_path / "t-%t.bin", "--",
                 PYTHON, "-c", WHILE_FEWER, 2, tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^pycap: --status: .*figures", done.stderr, re.M)) == 1
    traces = list(tmp_path.glob("t-*.bin"))
    assert len(traces) >= 2 and sum(len(accounts.read(PYSYM, path).samples) for path in traces) > 0
    assert not list((tmp_path / "figures").iterdir())


@pytest.mark.parametrize("arguments", [["--status", "-"], ["--status", "t.bin"], ["--status", "a.tar", "--archive", "a.tar"]], ids=" ".join)
def test_status_is_a_file_of_its_own(arguments, pycap, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = pycap("record", "--backend", "proc", "-o", "t.bin", *arguments, "--", PYTHON, "-c", "")
    assert done.returncode == 2 and "--status" in done.stderr
    assert not list(tmp_path.iterdir())
