# SPDX-License-Identifier: Apache-2.0
"""A terminal of 80 by 24, by tmux: its text, and keys that are pressed."""
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

WAIT_S = 60  # for something to appear; it does at once


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
