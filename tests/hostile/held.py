# SPDX-License-Identifier: Apache-2.0
"""Processes that hold up whoever reads them, for ever, and are there before pycap.

What must hold: every command of pycap that reads processes begins as soon as without them, within 2 s, and ends by one
SIGINT or SIGTERM within 1 s, also in its beginning; whoever is left out is named and counted.
"""
import contextlib
import fcntl
import os
import pathlib
import pty
import select
import signal
import stat
import struct
import subprocess
import termios
import time

import beside

BEGIN_WITHIN_S, END_WITHIN_S, GIVE_UP_S = 2, 1, 10
TRIES = 2  # a busy machine may once give pycap no CPU for a second
BUSY = "import sys, time\nopen(sys.argv[1], 'w').close()\nwhile time.time() < float(sys.argv[2]):\n    for _ in range(1000): pass\n"


class Command:
    """A run of pycap: `began_s` after it was started it had begun, or never (None)."""

    def __init__(self, scene, begun, *command):
        """`begun` says whether it has begun, by what it has written so far."""
        self.scene, self.text = scene, ""
        self.terminal, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        for path in scene.trace, scene.top / "marker":
            path.unlink(missing_ok=True)
        self.started = time.monotonic()
        self.process = subprocess.Popen([str(c) for c in command], stdin=child, stdout=child, stderr=child, start_new_session=True,
                                        env={**os.environ, "TERM": "xterm"}, preexec_fn=lambda: fcntl.ioctl(1, termios.TIOCSCTTY, 0))
        os.close(child)
        self.begun = begun

    def read(self):
        while select.select([self.terminal], [], [], 0.01)[0]:
            try:
                self.text += os.read(self.terminal, 65536).decode(errors="replace")
            except OSError:  # Linux's way to say that the other side is closed
                time.sleep(0.01)
                return

    def wait_to_begin(self):
        while time.monotonic() < self.started + GIVE_UP_S:
            self.read()
            if self.begun(self):
                return time.monotonic() - self.started
        return None

    def wait_to_end(self, from_s):
        while time.monotonic() < from_s + GIVE_UP_S:
            self.read()
            if self.process.poll() is not None:
                return time.monotonic() - from_s
        return None

    def end_by(self, number):
        told = time.monotonic()
        self.process.send_signal(number)
        return self.wait_to_end(told)

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        if self.wait_to_end(time.monotonic()) is None:
            self.text += "\nnot even SIGKILL has ended it"
        os.close(self.terminal)


def has_file(command):
    return command.scene.trace.exists()


def has_marker(command):
    return (command.scene.top / "marker").exists()


def has_ended(command):
    return command.process.poll() is not None


def has_screen(command):
    return "total" in command.text and "%self" in command.text.replace("\x1b", "")


def commands(pycap, scene, other):
    """Name, when it has begun, command, and whether it goes on until it is told to end."""
    record, far = [pycap, "record", "-q", "-o", scene.trace], time.time() + 100
    yield "record", has_file, record, True
    yield "record --comm", has_file, [*record, "--comm", "python3*"], True
    yield "record -p OTHER", has_file, [*record, "-p", other], True
    yield "record COMMAND", has_marker, [*record, "--", beside.PYTHON, "-c", BUSY, scene.top / "marker", far], True
    yield "top", has_screen, [pycap, "top"], True
    yield "info", has_ended, [pycap, "info"], False
    yield "dump -p OTHER", has_ended, [pycap, "dump", "-p", other], False


def begins(scene, begun, command, least=GIVE_UP_S):
    """The time that it took to begin, the best of some tries, or None; and what it wrote."""
    best, text = None, ""
    for _ in range(TRIES):
        run = Command(scene, begun, *command)
        took = run.wait_to_begin()
        run.close()
        if took is not None and (best is None or took < best):
            best, text = took, run.text
        if best is not None and best < least:
            break
    return best, text


def ends(scene, begun, command, number, at_once):
    """How long it takes to end once it is told to, the best of some tries, or None."""
    best = None
    for _ in range(TRIES):
        run = Command(scene, begun, *command)
        time.sleep(0.15 if at_once else 0)
        took = None if not at_once and run.wait_to_begin() is None else run.end_by(number)
        run.close()
        if took is not None and (best is None or took < best):
            best = took
        if best is not None and best < END_WITHIN_S:
            break
    return best


@contextlib.contextmanager
def holders(scene, how, as_root):
    """Two processes that hold up who reads them; None, or why they cannot."""
    fuse = scene.top / "fuse"
    with contextlib.suppress(FileExistsError):
        os.mknod(fuse, 0o666 | stat.S_IFCHR, os.makedev(10, 229))
    fuse.chmod(0o666)
    attacker = beside.Attacker(beside.Attack(how, f"hold_lock.py {how} {fuse} 2", as_root=as_root), scene, pathlib.Path())
    try:
        why = attacker.why_not()
        if not why:
            attacker.go()
            time.sleep(0.7)
        yield why
    finally:
        attacker.close()


def faults_of(scene, how, base, name, begun, command, goes_on):
    took, text = begins(scene, begun, command, base + BEGIN_WITHIN_S)
    if took is None or took > base + BEGIN_WITHIN_S:
        yield f"{name} beside '{how}': began after {took} s, without after {base:.1f} s: {ascii(text[-300:])}"
    if name == "info" and how == "lock" and "held up who read them" not in text:
        yield f"info beside '{how}' names nobody: {ascii(text[-300:])}"
    for number in (signal.SIGINT, signal.SIGTERM) if goes_on else ():
        for at_once in (True, False):
            took = ends(scene, begun, command, number, at_once)
            if took is None or took > END_WITHIN_S:
                yield f"{name} beside '{how}': ended {took} s after {number.name}{' in its beginning' if at_once else ''}"


def check_with(pycap, scene, how, as_root):
    """Others on this machine meet the holders, too: they are there for the moments of one command after the other."""
    with subprocess.Popen([beside.PYTHON, "-c", BUSY, scene.top / "other", str(time.time() + 200)]) as other:
        for name, begun, command, goes_on in commands(pycap, scene, other.pid):
            base = begins(scene, begun, command)[0]
            if base is None:
                yield f"{name}: does not begin here"
                continue
            with holders(scene, how, as_root) as why:
                if why:
                    print(f"          skipped: {how}: {why}")
                    break
                yield from faults_of(scene, how, base, name, begun, command, goes_on)
        other.kill()


def lock(pycap, pysym, scene):
    del pysym
    yield from check_with(pycap, scene, "lock", as_root=False)


def name(pycap, pysym, scene):
    del pysym
    yield from check_with(pycap, scene, "name", as_root=True)


CHECKS = [
    ("processes that keep the lock of their memory for ever", lock),
    ("processes whose memory is a file that is never delivered", name),
]
