# SPDX-License-Identifier: Apache-2.0
"""Of real programs, as people run them, every process is found and stacks are whole.

Python and native. tests/real/programs.py has the programs.
"""
import collections
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

import accounts
from conftest import PYCAP, PYSYM, ROOT

sys.path.insert(0, str(ROOT / "tests/real"))
import programs  # noqa: E402
import venvs  # noqa: E402

pytestmark = [pytest.mark.usefixtures("needs_bpf"), pytest.mark.unsanitized]

HZ = 499
# Of these samples 98 % must be whole: where a chance spoils four of a hundred thousand, it does not spoil thirteen of these.
ENOUGH_S = 1.3


@contextlib.contextmanager
def program(name):
    try:
        with programs.running(name) as process:
            yield process
    except venvs.Missing as error:
        pytest.skip(str(error))


def attach(trace, pid, busy, *options):
    """Records a process and its children until `busy` have worked enough, each for its part of the time."""
    recorder = subprocess.Popen([PYCAP, "record", "-q", "-F", str(HZ), "-o", trace, *options, "-p", str(pid)],
                                stderr=subprocess.PIPE, text=True)
    try:
        programs.wait_until(lambda: trace.exists() and trace.stat().st_size > 600, recorder, "records of samples")
        begun = {each: programs.cpu_seconds(each) for each in busy}
        programs.wait_until(lambda: all(programs.cpu_seconds(each) - since >= ENOUGH_S / len(busy)
                                        for each, since in begun.items()), recorder, "work of every process")
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait(120) == 0, recorder.stderr.read()
    finally:
        recorder.kill()
        recorder.wait()


def check_whole(trace):
    """Python and native stacks are whole; top shows no row of the interpreter's own. A busy host may skip ticks, and keep
    pycap from seeing at once that a process has begun another program, whose samples have no Python frames until then."""
    account = accounts.read(PYSYM, trace)
    least = 98 - 100 * account.losses["stale_config"] / len(account.samples)
    done = subprocess.run([PYSYM, trace, "-f", "summary", "-v", f"--strict=python:{least:.2f},native:98,lost:off"],
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    top = subprocess.run([PYSYM, trace, "-f", "top", "--json"], capture_output=True, text=True, timeout=300, check=True).stdout
    rows = [row["name"] for row in json.loads(top)["events"][0]["tables"][0]["rows"]]
    assert rows, top
    assert not [row for row in rows if re.search(r"\[(lib)?python|_PyEval_|PyObject_", row)], rows
    return rows


def processes(trace):
    """{(name, pid): samples}."""
    text = subprocess.run([PYSYM, trace, "-f", "folded", "--merge", "process"], capture_output=True, text=True, timeout=300,
                          check=True).stdout
    found = collections.Counter()
    for line in text.splitlines():
        name, _, pid = line.partition(";")[0].rpartition("-")
        found[name, int(pid)] += int(line.rpartition(" ")[2])
    return found


def test_prefork_server(tmp_path):
    """By its master, which has no work itself: all workers that run already."""
    trace = tmp_path / "t.bin"
    with program("gunicorn-debian") as master:
        workers = programs.family(master.pid)[1:]
        assert len(workers) == 4
        attach(trace, master.pid, workers)
    found = processes(trace)
    assert {("gunicorn", pid) for pid in workers} <= set(found), (workers, found)
    check_whole(trace)


@pytest.mark.long
def test_greenlets(tmp_path):
    """Native stacks end where a greenlet begins. Above it is what other greenlets have on the stack by now."""
    trace = tmp_path / "t.bin"
    with program("gevent-debian") as server:
        attach(trace, server.pid, [server.pid], "--unwind", "both")
    check_whole(trace)
    # libunwind and libdwfl stop there, too.
    text = subprocess.run([PYSYM, trace, "-f", "unwind-check"], capture_output=True, text=True, timeout=300, check=True).stdout
    reached = re.search(r"^witness: reached .*", text, re.M)[0]
    assert all(float(share) > 95 for share in re.findall(r"([\d.]+)%", reached)) and reached.count("%") == 3, text
    assert "_greenlet" not in text.partition("where they differ")[2], text
    done = subprocess.run([PYSYM, trace, "-f", "folded", "--interpreter", "show", "--layer", "native", "--merge", "all"],
                          capture_output=True, text=True, timeout=300, check=True)
    begun = [line.split(";") for line in done.stdout.splitlines() if "inner_bootstrap" in line]
    assert begun
    outside = [frames for frames in begun if "inner_bootstrap" not in next(f for f in frames if f != "?" and f[0] != "[")]
    assert not outside, outside[:3]


SUITE = """
import pytest

def spin(until):
    import time
    while time.process_time() < until:
        sum(n * n % 97 for n in range(1000))

@pytest.mark.parametrize("number", range(8))
def test_something(number):
    import time
    spin(time.process_time() + 0.25)
"""


@pytest.mark.long
def test_suite_in_workers(pycap, tmp_path):
    """pytest-xdist: both workers, though each is begun by a thread of the first process."""
    try:
        folder = venvs.venv("suite-debian")
    except venvs.Missing as error:
        pytest.skip(str(error))
    (tmp_path / "test_it.py").write_text(SUITE)
    trace = tmp_path / "t.bin"
    done = pycap("record", "-q", "-F", HZ, "-o", trace, "--", folder / "bin/pytest", "-q", "-p", "no:cacheprovider", "-n", "2",
                 tmp_path / "test_it.py")
    assert done.returncode == 0 and "8 passed" in done.stdout, done.stdout + done.stderr
    workers = [name for (name, _), count in processes(trace).items() if name == "execnet" and count > HZ * 0.25]
    assert len(workers) == 2, processes(trace)
    rows = check_whole(trace)
    assert any(row.startswith("spin") for row in rows), rows


SERVE = """
import os

def serve():
    while True:
        handle()

def handle():
    return sorted(str(n) for n in range(2000))

for _ in range(2):
    if not os.fork():
        break
serve()
"""

# Its own root, mounts and process numbers, as in a container; `app.py` is at a path that nothing outside has.
CONTAINER = """
mount -t tmpfs none "$1"
mkdir -p "$1/usr" "$1/proc" "$1/srv/inside"
mount --bind /usr "$1/usr"
for link in bin lib lib64; do ln -s usr/$link "$1/$link"; done
mount -t proc none "$1/proc"
cp "$2" "$1/srv/inside/app.py"
exec chroot "$1" /usr/bin/python3 /srv/inside/app.py
"""


@pytest.mark.usefixtures("needs_namespaces")
def test_container(tmp_path):
    """From outside, by a process that has another number inside."""
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "app.py").write_text(SERVE)
    if not shutil.which("unshare") or not os.path.islink("/bin"):
        pytest.skip("no unshare, or a root that is not merged into /usr")
    trace = tmp_path / "t.bin"
    with subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-eu", "-c", CONTAINER, "sh", root,
                           tmp_path / "app.py"]) as outer:
        try:
            programs.wait_until(lambda: len(programs.family(outer.pid)) == 4, outer, "processes in the container")
            pids = programs.family(outer.pid)[1:]
            programs.wait_until(lambda: all(programs.cpu_seconds(pid) > 0.1 for pid in pids), outer, "work in the container")
            attach(trace, pids[0], pids)
        finally:
            outer.kill()
    assert set(processes(trace)) == {("app.py", pid) for pid in pids}
    rows = check_whole(trace)
    assert any(row.startswith("handle") for row in rows), rows
