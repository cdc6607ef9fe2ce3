# SPDX-License-Identifier: Apache-2.0
"""Terminals: what a program writes to one, and one of 80 by 24, by tmux, with its text and keys that are pressed."""
import fcntl
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import termios
import time

import pytest

WAIT_S = 60  # for something to appear; it does at once


def on_terminal(columns, *command, **environment):
    """What a program writes to a terminal of so many columns."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    base = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "LC_ALL", "LC_CTYPE")}
    with subprocess.Popen([str(c) for c in command], stdout=child, stderr=subprocess.PIPE,
                          env={**base, "TERM": "xterm", "LANG": "C.UTF-8", **environment}) as process:
        os.close(child)
        out = b""
        while True:
            try:
                piece = os.read(parent, 65536)
            except OSError:  # Linux's way to say that the other side is closed
                break
            out += piece
        assert process.wait() == 0, process.stderr.read()
    os.close(parent)
    return out.decode().replace("\r\n", "\n")


class Screen:
    """A shell on a terminal of a tmux server of its own."""

    def __init__(self, folder, columns=80, rows=24):
        if not shutil.which("tmux"):
            pytest.skip("no tmux, whose terminal this needs")
        self.socket = str(folder / "tmux")
        env = {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", "ENV": ""}
        for name in ("TMUX", "TMUX_PANE", "NO_COLOR"):
            env.pop(name, None)
        # A suite whose signals are ignored starts a shell that does not know Ctrl-C.
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), "-s", "t", "-c", str(folder), "exec sh", env=env)
        self.tmux("set-option", "-g", "status", "off")
        self.tmux("set-option", "-g", "window-size", "manual")
        self.resize(columns, rows)
        self.type("PS1='$ '; clear")
        self.press("Enter")
        self.wait(r"\A\$ *$")

    def tmux(self, *words, **more):
        done = subprocess.run(["tmux", "-S", self.socket, *words], capture_output=True, text=True, timeout=60, check=False,
                              preexec_fn=lambda: [signal.signal(s, signal.SIG_DFL) for s in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)],
                              **more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, timeout=60, check=False)

    def resize(self, columns, rows):
        self.tmux("resize-window", "-t", "t", "-x", str(columns), "-y", str(rows))

    def text(self):
        """What is on the screen, without blank ends of lines."""
        return self.tmux("capture-pane", "-p", "-t", "t")

    def type(self, text):
        self.tmux("send-keys", "-t", "t", "-l", text)

    def press(self, *keys):
        self.tmux("send-keys", "-t", "t", *keys)

    def is_other_screen(self):
        """Is it the screen that programs take, and not the shell's?"""
        return self.tmux("display-message", "-p", "-t", "t", "#{alternate_on}").strip() == "1"

    def wait(self, pattern, gone=False):
        """Waits until the regular expression is found on the screen, or is not any more; the text. It is there twice, as one
        look may see a screen of which only a part has been drawn."""
        deadline, before = time.monotonic() + WAIT_S, None
        while (text := self.text()) != before or bool(re.search(pattern, text, re.M)) == gone:
            assert time.monotonic() < deadline, f"{pattern!r}:\n{text}"
            before = text
            time.sleep(0.05)
        return text
