# SPDX-License-Identifier: Apache-2.0
"""A line on the terminal says how far pysym has read."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

import pytest

from conftest import PYSYM

CLEAR = "\r\x1b[K"
LINE = re.compile(re.escape(CLEAR) + r"pysym: ([^\r]+)")


def read_until_closed(terminal):
    text = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the other side is closed
            return text.decode()
        text += piece


def slowly(trace, *options, columns=100, output_on_terminal=False, seconds=60.0, **environment):
    """What pysym writes to its terminal, given a trace through a pipe piece by piece until the line is there or so long
    has passed; and the output."""
    terminal, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    base = {k: v for k, v in os.environ.items() if k != "CI"}
    data = trace.read_bytes()
    with subprocess.Popen([PYSYM, "-", *options], stdin=subprocess.PIPE, stderr=child,
                          stdout=child if output_on_terminal else subprocess.PIPE,
                          env={**base, "TERM": "xterm", **environment}) as process:
        os.close(child)
        shown, at, end = "", 0, time.monotonic() + seconds
        while at < len(data) // 2 and time.monotonic() < end and not LINE.search(shown):
            process.stdin.write(data[at:at + 2000])
            process.stdin.flush()
            at += 2000
            while select.select([terminal], [], [], 0.1)[0]:
                shown += os.read(terminal, 65536).decode()
        process.stdin.write(data[at:])
        process.stdin.close()
        output = b"" if output_on_terminal else process.stdout.read()
        shown += read_until_closed(terminal)
        assert process.wait() == 0, shown
    os.close(terminal)
    return shown, output


@pytest.fixture
def trace(make):
    """Of many small blocks, so that each piece of it brings some."""
    return make(samples=40000, epoch_samples=100)


def test_line_comes_and_goes(trace, pysym):
    """After a second, with what was read until then; at the end it is gone, and the output is what it always is."""
    shown, output = slowly(trace, "-f", "folded")
    lines = LINE.findall(shown)
    assert lines, shown
    assert re.fullmatch(r"[\d,]+ samples: standard input", lines[0]), lines[0]
    assert shown.endswith(CLEAR)
    assert "pysym" not in shown[shown.rindex(CLEAR):]
    assert output.decode() == pysym(trace, "-f", "folded").stdout


def test_width_of_the_terminal(trace):
    """It never wraps: what is left over of a wrapped line could not be taken away."""
    shown, _ = slowly(trace, "-f", "folded", columns=20)
    lines = LINE.findall(shown)
    assert lines and all(len("pysym: " + line) < 20 for line in lines), lines


def test_name_is_printable(make, tmp_path):
    """The name of a file does nothing to the terminal. How much of the file was read is said in percent."""
    odd = make(samples=3000000).rename(tmp_path / "a\x1b[2Jb.bin")
    terminal, child = pty.openpty()
    base = {k: v for k, v in os.environ.items() if k != "CI"}
    # A file is read at once. So many of it take more than a second.
    with subprocess.Popen([PYSYM, *[odd] * 40, "-f", "folded"], stderr=child, stdout=subprocess.DEVNULL,
                          env={**base, "TERM": "xterm"}) as process:
        os.close(child)
        shown = ""
        while "million samples" not in shown:  # which the first line is too early for where pysym hardly runs
            shown += os.read(terminal, 65536).decode()
        process.terminate()
        shown += read_until_closed(terminal)
    os.close(terminal)
    line = next(line for line in LINE.findall(shown) if "million samples" in line)
    assert re.fullmatch(r"\d+ %, [\d.]+ million samples: a\\x1b\[2Jb\.bin \(\d+ of 40\)", line), line


@pytest.mark.parametrize("case", ["quiet", "CI", "dumb", "samples on the terminal"])
def test_no_line(make, case):
    """Where nobody looks, or where it would stand between lines of the output."""
    trace = make(samples=2000, epoch_samples=20)
    options = {"quiet": ["-q"]}.get(case, [])
    environment = {"CI": {"CI": "true"}, "dumb": {"TERM": "dumb"}}.get(case, {})
    beside = case == "samples on the terminal"
    shown, _ = slowly(trace, "-f", "perf-script" if beside else "folded", *options, output_on_terminal=beside, seconds=2.5,
                      **environment)
    assert "\x1b[K" not in shown
    assert beside or not shown


def test_no_terminal(trace):
    """Standard error that is a file or a pipe gets no line."""
    with subprocess.Popen([PYSYM, "-", "-f", "folded"], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdout=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm"}) as process:
        data = trace.read_bytes()
        process.stdin.write(data[:50000])
        process.stdin.flush()
        time.sleep(1.5)
        process.stdin.write(data[50000:])
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0
