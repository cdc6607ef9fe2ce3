# SPDX-License-Identifier: Apache-2.0
"""A slow reader of a recording's pipe costs samples, which are counted, and nothing else.

It may also stop, or go away.
"""
import os
import pathlib
import re
import select
import signal
import subprocess
import threading
import time

import pytest

import accounts
from conftest import PYCAP, PYSYM, PYTHON, later

pytestmark = pytest.mark.usefixtures("needs_bpf")
# Has ever new stacks, and says when it has run for so many seconds of CPU time how many those were, and ends after a pause.
VARIED = """
import random, sys, time
functions = []
for i in range(40):
    exec(f'''def f{i}(depth):
    if depth:
        functions[random.randrange(40)](depth - 1)
    sum(range(300))
functions.append(f{i})''')
end = time.process_time() + float(sys.argv[1])
while time.process_time() < end:
    functions[0](25)
"""


def cpu_seconds(pid):
    user, system = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def wait_for_cpu(target, seconds):
    """Until it has run for so long, which on a busy machine takes it longer."""
    enough, longest = cpu_seconds(target.pid) + seconds, time.monotonic() + 240
    while cpu_seconds(target.pid) < enough:
        assert time.monotonic() < longest
        time.sleep(0.05)


def take(recorder, path, rate, is_behind, goes_on):
    """Reads what comes from its pipe at that rate (bytes a second; 0: not at all) until it is far behind; and then the rest at once,
    from `goes_on` on."""
    longest = time.monotonic() + 240
    with open(path, "wb") as out:
        while not is_behind() and time.monotonic() < longest:
            time.sleep(0.1)
            if rate:
                out.write(os.read(recorder.stdout.fileno(), rate // 10))
        goes_on.set()
        while piece := os.read(recorder.stdout.fileno(), 1 << 20):
            out.write(piece)


def start(*options, **keywords):
    return subprocess.Popen([PYCAP, "record", *options, "-o", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            **keywords)


def figure(status, name, labels=""):
    """Of what the file of figures has said so far."""
    found = re.search(rf"^{name}{re.escape(labels)} (\S+)", status, re.M)
    return float(found[1]) if found else 0


@pytest.mark.parametrize("rate", [0, later(10_000)])
@pytest.mark.parametrize("unwind", [later("tables"), "snapshot"])
def test_samples_are_left_out(unwind, rate, pysym, tmp_path):
    """
    With tables only samples are left out. With copies of stacks, and little room, nothing is written for a stopped reader any
    more, and an epoch begins when it reads again. Both times the recorder goes on, and every tick is accounted for.
    """
    trace, status = tmp_path / "t.bin", tmp_path / "status.prom"
    with subprocess.Popen([PYTHON, "-c", VARIED, "1000"]) as target:
        try:
            # So that a stopped reader does not need minutes to be too far behind.
            limit = 100_000 if unwind == "snapshot" else 0

            def is_behind():
                figures = status.read_text()
                return (figure(figures, "pycap_losses_total", '{reason="reader_slow"}') > 500
                        and (rate or figure(figures, "pycap_unread_bytes") > limit))

            environment = {**os.environ, "PYCAP_STREAM_LIMIT": str(limit)} if limit else os.environ
            with start("-F", "3999", "--unwind", unwind, "--ring-size", "64M", "-p", str(target.pid), "--status", status,
                       env=environment) as recorder:
                while not status.exists():
                    assert recorder.poll() is None
                    time.sleep(0.01)
                begun_ns, goes_on = time.monotonic_ns(), threading.Event()
                reader = threading.Thread(target=take, args=(recorder, trace, rate, is_behind, goes_on))
                reader.start()
                assert goes_on.wait(300)
                gone_on_ns = time.monotonic_ns()
                wait_for_cpu(target, 1)
                late_ns = time.monotonic_ns()
                wait_for_cpu(target, 0.5)
                ended_ns = time.monotonic_ns()
                figures = status.read_text()
                recorder.send_signal(signal.SIGTERM)
                reader.join(60)
                assert recorder.wait(60) == 0, recorder.stderr.read()
                said = recorder.stderr.read()
        finally:
            target.kill()
    account = accounts.read(PYSYM, trace)
    assert account.ends == [0] and account.residue == 0, account.text()
    assert account.losses["reader_slow"] > 100, account.text()
    assert not account.losses["ring_full"], account.text()  # sideband_lost would be of the whole host, whoever forks there
    assert "samples were lost" in said, said
    epochs = {int(n) for n in re.findall(r"^epoch .*number=(\d+)", pysym(trace, "--format", "dump").stdout, re.M)}
    # It goes on when the reader does: there are samples of the last half of a second, and of the time before.
    times = [s.time_ns for s in account.samples]
    gaps = [b - a for a, b in zip(sorted(times), sorted(times)[1:])]
    assert times and max(gaps) < ended_ns - begun_ns, max(gaps)
    assert min(times) < gone_on_ns and max(times) > late_ns
    if unwind == "snapshot" and not rate:
        assert len(epochs) > 1 and epochs == set(range(len(epochs))), epochs
    done = pysym(trace, "--format", "folded")
    assert done.returncode == 0 and done.stderr == "" and "f3" in done.stdout, done.stderr
    assert "too slow" in pysym(trace, "--format", "summary").stdout
    text = status.read_text()
    assert figure(text, "pycap_lost_samples_total") == sum(account.losses[n] for n in accounts.SEEN_BUT_LOST) + account.losses["tick_skipped"]
    assert "pycap_unread_bytes" in figures


@pytest.mark.smoke(load=True)
def test_reader_that_keeps_up(tmp_path):
    """Nothing is lost, and something comes each second, also when nothing happens."""
    trace = tmp_path / "t.bin"
    with subprocess.Popen([PYTHON, "-c", "import time; time.sleep(1000)"]) as target:
        try:
            with start("-q", "-p", str(target.pid)) as recorder:
                sizes = []
                with open(trace, "wb") as out:
                    for _ in range(5):
                        assert select.select([recorder.stdout], [], [], 60)[0]
                        piece = os.read(recorder.stdout.fileno(), 1 << 20)
                        out.write(piece)
                        sizes.append(len(piece))
                    recorder.send_signal(signal.SIGTERM)
                    while piece := os.read(recorder.stdout.fileno(), 1 << 20):
                        out.write(piece)
                assert recorder.wait(60) in (0, 1)  # without a sample it is 1
        finally:
            target.kill()
    assert all(sizes)
    account = accounts.read(PYSYM, trace)
    assert account.ends == [0] and account.residue == 0 and not account.losses["reader_slow"], account.text()


def test_reader_that_goes_away(tmp_path):
    """That ends the recording of an idle process too: a line says so, and the exit code is a shell's for SIGPIPE."""
    with subprocess.Popen([PYTHON, "-c", "import time; time.sleep(1000)"]) as target:
        try:
            with start("-p", str(target.pid)) as recorder:
                assert os.read(recorder.stdout.fileno(), 1)
                recorder.stdout.close()
                assert recorder.wait(60) == 128 + signal.SIGPIPE
                said = recorder.stderr.read()
                assert "the reader of the trace has gone" in said and "roken pipe" not in said, said
        finally:
            target.kill()
