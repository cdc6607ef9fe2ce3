# SPDX-License-Identifier: Apache-2.0
"""pysym -f live: keys, sizes and ends on a terminal, and streams that go on for long."""
import ctypes
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time

import pytest

from conftest import PYCAP, PYSYM
from screen import Screen, WAIT_S


@pytest.fixture
def screen(tmp_path):
    made = Screen(tmp_path)
    yield made
    made.close()


class Stream:
    """A pipe that a view reads; the trace goes into it in pieces."""

    def __init__(self, folder, data):
        self.path = folder / "pipe"
        os.mkfifo(self.path)
        self.data, self.sent = data, 0
        # The end for writing stays open until close(), whoever else has it open.
        self.fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        os.set_blocking(self.fd, False)

    def send(self, share=1.0):
        """Sends the trace up to that share of it."""
        end, deadline = int(len(self.data) * share), time.monotonic() + WAIT_S
        while self.sent < end:
            try:
                self.sent += os.write(self.fd, self.data[self.sent:min(end, self.sent + 4096)])
            except BlockingIOError:
                assert time.monotonic() < deadline, "nobody reads the pipe"
                time.sleep(0.01)

    def is_read(self):
        """Whether all that was sent was read."""
        return not struct.unpack("i", fcntl.ioctl(self.fd, termios.FIONREAD, b"\0" * 4))[0]

    def close(self):
        """Ends it."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1


@pytest.fixture
def stream(tmp_path):
    made = []

    def begin(trace):
        made.append(Stream(tmp_path, trace.read_bytes()))
        return made[-1]
    yield begin
    for one in made:
        one.close()


def begin_view(screen, stream, *options):
    """Starts the view in the shell, on standard input; its text once there is something in it."""
    screen.wait(r"^\$ *$")
    screen.type(f"stty -g >before; echo here; {PYSYM} -f live - {' '.join(options)} <'{stream.path}'; echo \"code $?\"; stty -g | cmp before - && echo same")
    screen.press("Enter")
    stream.send(0.6)
    screen.wait(r"^\d+ samples/s")
    return settle(screen, stream)


def settle(screen, stream):
    """Waits until all that was sent is on the screen; the text."""
    deadline = time.monotonic() + WAIT_S
    while not stream.is_read():
        assert time.monotonic() < deadline, "it is not read"
        time.sleep(0.05)
    text, since = screen.text(), time.monotonic()
    while time.monotonic() - since < 0.6:
        time.sleep(0.1)
        now = screen.text()
        text, since = now, since if now == text else time.monotonic()
    return text


def expect_end(screen, code=0):
    """The shell's screen is back as it was, and so is how the terminal takes keys."""
    text = screen.wait(f"code {code}\nsame\n\\$ *$")
    assert not screen.is_other_screen()
    assert "samples/s" not in text and "%self" not in text, text
    assert re.search(rf"^here\ncode {code}\nsame\n\$ *$", text.rstrip("\n"), re.M), text
    return text


def table(text):
    """The lines below the titles, but the last one of the screen."""
    lines = text.rstrip("\n").splitlines()
    at = next(i for i, line in enumerate(lines) if re.search(r"%self|%CPU|%part", line))
    return [line for line in lines[at + 1:-1] if line.strip()]


@pytest.fixture
def busy(make):
    """Some 100 s of four threads of two processes; made in blocks, so that it can come in pieces."""
    return make(samples=20000, stacks=6, depth=5, processes=2, threads=4, interval_us=10000, gil=1, labels=3, epoch_samples=2000)


@pytest.mark.sanitized
def test_keys(screen, stream, busy):
    """Sort, thread, search, freeze, resize, quit; and nothing is left on the screen."""
    pipe = stream(busy)
    text = begin_view(screen, pipe)
    assert screen.is_other_screen()
    assert re.search(r"^\d+ samples/s   \d+\.\d\d CPUs   lost 0   GIL held >= \d+ %$", text, re.M), text
    assert "%self*" in text and "CPUs" in text

    def column(number):
        """That of the table of functions, as numbers."""
        at = slice(7 * number, 7 * number + 7) if number < 2 else slice(14 + 10 * (number - 2), 24 + 10 * (number - 2))
        return [float(line[at].strip() or 0) for line in table(screen.text())]

    for key, title, number in (("2", r"%total\*", 1), ("3", r"self s\*", 2), ("4", r"total s\*", 3), ("1", r"%self\*", 0)):
        screen.press(key)
        screen.wait(title)
        values = column(number)
        assert len(values) > 4 and values == sorted(values, reverse=True), screen.text()

    screen.press("t")
    text = screen.wait("thread, process")
    rows = table(text)
    assert len(rows) == 4, text
    screen.press("Down", "Enter")
    text = screen.wait("^thread ")
    chosen = re.search(r"^thread (\S+) (\d+) of (\S+) (\d+), running", text, re.M)
    assert f"{chosen[1]} {chosen[2]}, {chosen[3]} {chosen[4]}" in rows[1], (text, rows)
    screen.press("a")
    screen.wait("^all threads")
    screen.press("p")
    assert len(table(screen.wait("process$"))) == 2
    screen.press("f", "l")
    screen.wait("s line")
    screen.press("l", "/")
    name = re.search(r"\d\.\d\d (\w+)", table(screen.wait("s function"))[0])[1]
    screen.type(name[:-1])
    screen.press("Enter")
    screen.wait(f'with "{name[:-1]}"')
    assert all(name[:-1].lower() in line.lower() for line in table(screen.text())), screen.text()
    screen.press("Escape")
    screen.wait('with "', gone=True)

    screen.press("Space")
    frozen = screen.wait("FROZEN")
    pipe.send(0.8)
    time.sleep(1)
    assert screen.text() == frozen
    screen.press("Space")
    screen.wait("FROZEN", gone=True)
    pipe.send(0.9)
    screen.wait(re.escape(table(frozen)[0]), gone=True)  # its time went on

    for columns, rows in ((40, 10), (20, 5), (200, 50), (80, 24)):
        screen.resize(columns, rows)
        if columns >= 40:
            # All of the new screen is used.
            screen.wait(rf"\A(.*\n){{{rows - 1}}}q end")
        else:
            screen.wait("%self")
    screen.press("?")
    screen.wait("sort by that column")
    screen.press("x")
    screen.wait("sort by that column", gone=True)
    screen.press("q")
    expect_end(screen)


def test_ends_in_the_thread_that_reads(screen, stream, busy):
    """A signal of a crash that its own thread blocked would end the process with the screen as it is."""
    pipe = stream(busy)
    begin_view(screen, pipe)
    pid = viewer(pipe)
    other = next(int(tid) for tid in os.listdir(f"/proc/{pid}/task") if int(tid) != pid)
    tgkill = 234
    assert ctypes.CDLL(None).syscall(tgkill, pid, other, int(signal.SIGSEGV)) == 0
    screen.wait(r"^code \d+\nsame")
    assert not screen.is_other_screen()
    assert "samples/s" not in screen.text()


@pytest.mark.parametrize("way", ["q", "C-c", "TERM", "HUP", "QUIT", "ABRT", "SEGV", "end"])
def test_ends(screen, stream, busy, way):
    """However it ends, the screen is as it was."""
    pipe = stream(busy)
    begin_view(screen, pipe)
    if way == "end":
        pipe.send()
        pipe.close()
        text = screen.wait("the recording ended when its duration was over")
        assert re.search(r"^\d+ samples/s", text, re.M), text  # the last interval stays
        screen.press("q")
        expect_end(screen)
    elif way in ("q", "C-c"):
        screen.press(way)
        expect_end(screen)
    else:
        pid = viewer(pipe)
        number = getattr(signal, f"SIG{way}")
        os.kill(pid, number)
        crash = way in ("ABRT", "SEGV")
        if not crash:
            expect_end(screen)
            return
        screen.wait(r"^code \d+\nsame")
        assert not screen.is_other_screen()
        assert "samples/s" not in screen.text()


def viewer(pipe):
    """The process that reads the pipe."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/fd/0") == str(pipe.path) and "-f\0live" in open(f"/proc/{pid}/cmdline", encoding="utf-8").read():
                return int(pid)
        except OSError:
            continue
    raise AssertionError("nobody reads the pipe")


def test_stopped_and_continued(screen, stream, busy):
    pipe = stream(busy)
    begin_view(screen, pipe)
    screen.press("C-z")
    screen.wait("Stopped")
    assert not screen.is_other_screen() and "samples/s" not in screen.text()
    screen.type("fg; echo \"again $?\"")
    screen.press("Enter")
    screen.wait("^all threads, running")
    screen.press("q")
    screen.wait("^again 0")
    assert not screen.is_other_screen()


def test_breaks_off(screen, stream, busy):
    """A connection that is lost is no error of the view: it stays, and says so."""
    pipe = stream(busy)
    begin_view(screen, pipe)
    pipe.close()
    screen.wait("the trace breaks off here")
    screen.press("q")
    expect_end(screen)


def test_first_view(screen, stream, busy):
    text = begin_view(screen, stream(busy), "--sort", "total", "--by", "line", "-t", "--pid", "1100")
    screen.press("f")
    text = screen.wait("s line")
    assert "%total*" in text
    screen.press("p")
    assert [line.split()[-1] for line in table(screen.wait("process$"))] == ["1100"]
    screen.press("q")
    expect_end(screen)


@pytest.mark.parametrize("what, says", [("nothing", "is empty"), ("text", "is not a pycap trace"),
                                        ("cut", "nothing of it could be read")])
def test_no_trace(screen, busy, tmp_path, what, says):
    """What is no trace is an ordinary message: the screen is not taken."""
    (tmp_path / "t").write_bytes({"nothing": b"", "text": b"hello\n" * 100, "cut": busy.read_bytes()[:200]}[what])
    screen.wait(r"^\$ *$")
    screen.type(f"echo here; {PYSYM} -f live - <t; echo \"code $?\"")
    screen.press("Enter")
    text = screen.wait("^code ")
    assert re.search(rf"^here\npysym: .*{says}", text, re.M) and "code 1" in text, text


def test_refuses(make, pysym, tmp_path):
    """Without a terminal, and with what it cannot do."""
    trace = make(samples=10)
    done = pysym(trace, "-f", "live")
    assert done.returncode == 2 and "standard output is not one" in done.stderr and not done.stdout
    for options, says in ((["-o", tmp_path / "x"], "takes no -o"), (["--strict"], "takes no --strict"), ([trace], "no second one"),
                          (["--around", "f"], "takes no --around"), (["--json"], "--json is for"), (["--wall"], "--wall is for")):
        done = pysym(trace, "-f", "live", *options)
        assert done.returncode == 2 and says in done.stderr, (options, done.stderr)
    # A terminal that is not the one that controls the process gives no keys.
    master, slave = pty.openpty()
    with subprocess.Popen([PYSYM, "-f", "live", trace], stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as process:
        _, err = process.communicate(timeout=WAIT_S)
    os.close(master)
    os.close(slave)
    assert process.returncode == 2 and "takes keys from the terminal" in err


@pytest.mark.parametrize("kind", ["nonsense", "dumb"])
def test_unknown_terminal(screen, busy, kind):
    screen.wait(r"^\$ *$")
    screen.type(f"TERM={kind} {PYSYM} -f live {busy}; echo \"code $?\"")
    screen.press("Enter")
    text = screen.wait("^code ")
    assert f"TERM is '{kind}'" in text.replace("\n", "") and "code 2" in text, text


def peak_kib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return int(re.search(r"^VmHWM:\s+(\d+)", f.read(), re.M)[1])


@pytest.mark.long
@pytest.mark.unsanitized
def test_memory_is_flat(screen, stream, make, tmp_path):
    """
    A stream of ever new functions: what was resolved is forgotten, long before the limit, which would end the view. Each
    part has functions of its own, as all begin at other lines. The rows are as many as there may be after some 38 parts.
    """
    parts = [make(samples=2000, stacks=1500, depth=30, moved=1000 * i, epoch_samples=2000).read_bytes() for i in range(80)]
    whole = tmp_path / "stream"
    whole.write_bytes(b"".join(parts))
    pipe = stream(whole)
    screen.wait(r"^\$ *$")
    screen.type(f"{PYSYM} -f live - --max-memory 24M <'{pipe.path}'; echo \"code $?\"")
    screen.press("Enter")
    pipe.send(0.2)
    screen.wait(r"^\d+ samples/s")
    pid = viewer(pipe)
    pipe.send(0.7)
    settle(screen, pipe)
    before = peak_kib(pid)
    pipe.send()
    text = settle(screen, pipe)
    assert not re.search("need more memory|work than", text), text
    assert peak_kib(pid) < 1.2 * before, (before, peak_kib(pid))
    screen.press("q")
    screen.wait("code 0")


# Threads and functions whose names would clear the screen, set a title and print a line of their own.
EVIL = """
import ctypes, threading, time
evil = "\\x1b[2J\\x1b[H\\x1b]0;owned\\x07OWNED\\r\\n"

def spin():
    end = time.monotonic() + 60
    while time.monotonic() < end:
        sum(range(1000))

def named(code, name):
    return code.replace(co_name=name, co_qualname=name) if hasattr(code, "co_qualname") else code.replace(co_name=name)

spin.__code__ = named(spin.__code__, evil)
def run():
    ctypes.CDLL(None).prctl(15, b"\\x1b[2JOWNED")
    spin()
threading.Thread(target=run, name=evil, daemon=True).start()
spin()
"""


@pytest.mark.usefixtures("needs_bpf")
def test_a_program_of_evil_names(screen, tmp_path):
    """A recording while it runs: functions, threads and processes, and nothing that its names could do to the screen."""
    (tmp_path / "evil.py").write_text(EVIL)
    screen.wait(r"^\$ *$")
    screen.type(f"printf '\\033]2;mine\\033\\\\'; {PYCAP} record -o - --wall -- /usr/bin/python3 evil.py 2>log | {PYSYM} -f live -; echo \"code $?\"")
    screen.press("Enter")
    screen.wait(r"^ +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ _\[2J_\[H_\]0:owned_OWNED__ \(evil.py:\d+\)$")
    title = screen.tmux("display-message", "-p", "-t", "t", "#{pane_title}").strip()
    assert title == "mine"
    for key, shows in (("t", "thread, process"), ("p", "process$"), ("w", "waited s")):
        screen.press(key)
        text = screen.wait(shows)
        assert not re.search("^OWNED", text, re.M) and "%CPU" in text, text
    screen.press("q")
    screen.wait("^code 0")
    assert not screen.is_other_screen()
