# SPDX-License-Identifier: Apache-2.0
"""Programs that start threads and other programs all the time: native stacks are whole in libc's odd places, too."""
import json

import pytest

THREADS = """
import os, threading, time
def work(): sum(range(2000))
end = time.time() + 30
while sum(os.times()[:4]) < 1 and time.time() < end:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
"""
CHILDREN = """
import os, subprocess, time
end = time.time() + 30
while sum(os.times()[:4]) < 1 and time.time() < end:
    subprocess.run(["/bin/true"], close_fds=%s)
"""


@pytest.mark.each_kind
@pytest.mark.parametrize("text", [THREADS, CHILDREN % True, CHILDREN % False], ids=["threads", "vfork", "posix_spawn"])
def test_whole(text, python, record, pysym):
    """In the parent, whose return address is in a register or above code without rules, and in the child, where the stack begins."""
    trace = record(python.path, "-c", text, options=("-F", "1999"))
    told = json.loads(pysym(trace, "-f", "summary", "--json").stdout)
    native = told["whole_stacks"]["native"]
    # A few are of the beginning, when tables are being made.
    assert native["part"] + 5 >= 0.99 * native["whole"] > 100, told
