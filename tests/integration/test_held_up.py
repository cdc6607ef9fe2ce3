# SPDX-License-Identifier: Apache-2.0
"""Beside a process that keeps the lock of its memory for ever: it is named, and others are recorded."""
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time

import pytest
from conftest import PYCAP, PYTHON

HOSTILE = pathlib.Path(__file__).resolve().parents[1] / "hostile"
NOBODY = 65534
HELD_S = 30  # the holder ends by itself then: other programs of this host, such as ps, wait for it, too
WAIT_S = 20  # for what takes a second


@pytest.fixture
def holder(needs_bpf):
    """The pid of a process of another user that nobody can read."""
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        for name in ("attack.py", "hold_lock.py"):
            shutil.copy(HOSTILE / name, top)
        fuse = top / "fuse"
        os.mknod(fuse, 0o666 | stat.S_IFCHR, os.makedev(10, 229))
        fuse.chmod(0o666)
        os.chown(top, NOBODY, NOBODY)
        with subprocess.Popen(["/usr/bin/python3", "hold_lock.py", str(HELD_S), "lock", fuse], cwd=top, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True, user=NOBODY, group=NOBODY, extra_groups=[],
                              start_new_session=True) as process:
            line = process.stdout.readline()
            if line != "ready\n":
                process.kill()
                pytest.skip(line.strip())
            process.stdin.write("go\n")
            process.stdin.flush()
            time.sleep(1)
            (pid,) = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            yield pid
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.smoke(load=True)
def test_held_lock(holder, tmp_path):
    """Whoever reads the holder waits until it ends; pycap does not, in record, with a command or info."""
    named = re.compile(rf"^ +{holder}  python3 +\d+$", re.M)
    command = [PYTHON, "-c", "sum(range(10000000))"]
    for options in (["record", "-d", "1", "-o", tmp_path / "t.bin"], ["info"],
                    ["record", "-o", tmp_path / "c.bin", "--", *command]):
        done = subprocess.run([PYCAP, *options], capture_output=True, text=True, timeout=WAIT_S, check=False)
        assert done.returncode == 0, done.stderr
        if "--" not in options:
            assert named.search(done.stdout + done.stderr), done.stdout + done.stderr
        if options[0] == "record" and "-d" in options:
            assert re.search(r"^  process_held_up +\d", done.stderr, re.M), done.stderr
    assert os.path.exists(f"/proc/{holder}"), "it had to hold all the time"
