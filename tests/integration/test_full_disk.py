# SPDX-License-Identifier: Apache-2.0
"""A disk that fills up while it is recorded to: what pycap says is in the file is what pysym reads of it, and nothing is lost in silence."""
import os
import re
import signal
import subprocess
import tempfile
import time

import pytest

import end_counts
from conftest import PYCAP, PYSYM, PYTHON, later

# Makes functions all the time, with names that cannot be packed, so that the file grows.
PROGRAM = """
import os, sys, time
end = time.monotonic() + float(sys.argv[1])
while (now := time.monotonic()) < end:
    space = {"time": time}
    name = "function_" + os.urandom(48).hex()
    exec(f"def {name}(until):\\n    while time.monotonic() < until: pass", space)
    space[name](now + float(sys.argv[2]))
"""
NAME = "cannot write: No space left on device"


@pytest.fixture
def disk(needs_bpf):
    """Mounts a disk of so many KiB; gone at the end."""
    if os.geteuid():
        pytest.skip("only root mounts disks")
    mounted = []

    def mount(kib):
        folder = tempfile.mkdtemp(prefix="pycap-test-", dir="/tmp")
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", folder], capture_output=True, text=True, check=False)
        if done.returncode:
            os.rmdir(folder)
            pytest.skip("no disk of its own here: " + done.stderr.strip())
        mounted.append(folder)
        return folder
    yield mount
    for folder in mounted:
        subprocess.run(["umount", folder], check=True)
        os.rmdir(folder)


def recording(folder, *options, seconds, name="t.bin", step=0.003):
    return [PYCAP, "record", "-F", "999", "--wall", "-o", f"{folder}/{name}", *options, "--", PYTHON, "-c", PROGRAM, str(seconds), str(step)]


def check(done):
    """The failure comes first; then what is in the file, as pysym counts it. The samples in it."""
    lines = done.stderr.splitlines()
    assert done.returncode == 1 and lines[0].endswith(NAME), done.stderr
    counts, path = end_counts.said(done.stderr)
    size = re.search(r" \(([\d.]+) (B|KiB)\)", done.stderr)
    on_disk = os.stat(path).st_size
    assert abs(float(size[1]) * {"B": 1, "KiB": 1024}[size[2]] - on_disk) <= 52, (size[0], on_disk)
    summary = end_counts.summary_of(PYSYM, path)
    assert summary["all_samples"] == counts.samples and not summary["files"][0]["damaged_bytes"]
    assert counts.losses == ({"not_written": counts.lost} if counts.lost else {})
    if summary["files"][0]["ended"]:
        assert summary["lost_samples"]["part"] >= (counts.lost or 0)  # others may have been lost before
        assert sum(row["count"] for row in summary["losses"] if row["loss"] == "not_written") == (counts.lost or 0)
    assert ("Next:" in done.stderr) == bool(counts.samples)
    return counts.samples


@pytest.mark.parametrize("kib", [4, 72, *map(later, (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256, 512, 1024))])
def test_full(disk, kib):
    """Of 4 KiB, not even the first block fits: what is missing is counted in what little there is."""
    options = {"seconds": 1.2 + kib / 20} if kib <= 128 else {"seconds": 60, "step": 0.0003}
    done = subprocess.run(recording(disk(kib), *(["-F", "4999"] if kib > 128 else []), **options), capture_output=True, text=True, timeout=300,
                          check=False)
    samples = check(done)
    assert samples if kib > 100 else not samples if kib == 4 else True


def test_full_while_files_rotate(disk):
    """The files before are whole; the last one is not offered where it holds nothing."""
    done = subprocess.run(recording(disk(72), "--rotate", "300ms", name="t-%t.bin", seconds=6), capture_output=True, text=True,
                          timeout=300, check=False)
    assert done.returncode == 1 and done.stderr.splitlines()[0].endswith(NAME), done.stderr
    said = re.search(rf"^Recorded {end_counts.NUMBER} samples into \d+ files \(.*; the last is (\S*); (.*) could not be written\.$",
                     done.stderr, re.M)
    assert said, done.stderr
    folder = os.path.dirname(said[2])
    found = {name: end_counts.summary_of(PYSYM, f"{folder}/{name}") for name in os.listdir(folder) if os.stat(f"{folder}/{name}").st_size}
    assert sum(summary["all_samples"] for summary in found.values()) == end_counts.number(said[1])
    last = found.get(os.path.basename(said[2]))
    if last and last["files"][0]["ended"]:
        assert last["lost_samples"]["part"] >= end_counts.number(said[3])
    else:  # not even the beginning of the file, or its end, had room
        assert last or said[3] == "what came then"
    assert ("Next:" in done.stderr) == bool(last and last["all_samples"])


def test_full_at_an_event(disk):
    """A flight recorder says how much of the event is in its file, and is not ended by it."""
    with subprocess.Popen(recording(disk(40), "--on-demand", "--before", "1s", "--after", "1s", name="t-%t.bin", seconds=60),
                          stderr=subprocess.PIPE, text=True) as recorder:
        time.sleep(2)
        recorder.send_signal(signal.SIGUSR1)
        said = recorder.stderr.readline()
        recorder.send_signal(signal.SIGINT)
        said += recorder.stderr.read()
    event = re.search(rf"^pycap: event \(SIGUSR1\): (\S+): {NAME}; the file ends early, with {end_counts.NUMBER} samples?", said, re.M)
    assert event, said
    summary = end_counts.summary_of(PYSYM, event[1])
    assert summary["all_samples"] == end_counts.number(event[2]) == end_counts.said(said)[0].samples
    assert f"({os.stat(event[1]).st_size / 1024:.1f} KiB)" in said
