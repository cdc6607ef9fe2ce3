# SPDX-License-Identifier: Apache-2.0
"""The pysym of every release that tests/releases lists, and what it makes of a trace.

Each is built once from this repository's history, into the tests' cache."""
import collections
import fcntl
import os
import re
import shutil
import subprocess

import pytest

from conftest import CACHE, ROOT

RELEASES = [line.split() for line in (ROOT / "tests/releases").read_text().splitlines() if line and not line.startswith("#")]


def build(version, commit):
    """The path of that release's pysym. Skips where the history does not reach back that far."""
    folder = CACHE / "releases" / f"{version}-{commit[:12]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(folder.name + ".lock"), "w", encoding="utf-8") as lock:  # tests run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "build/pysym").exists():
            make_release(version, commit, folder)
    return folder / "build/pysym"


def make_release(version, commit, folder):
    new = folder.with_name(folder.name + ".new")  # whole or not at all
    shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    archive = subprocess.run(["git", "-C", ROOT, "archive", commit], capture_output=True, check=False)
    if archive.returncode:
        pytest.skip(f"the history here does not have {version}: {archive.stderr.decode().strip()}")
    new.mkdir()
    subprocess.run(["tar", "x", "-C", new], input=archive.stdout, check=True)
    done = subprocess.run(["make", "-C", new, f"-j{os.cpu_count()}", "build/pysym"], capture_output=True, text=True, timeout=1800,
                          check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    new.rename(folder)


@pytest.fixture(params=RELEASES, ids=lambda release: release[0])
def released(request):
    """The path of a release's pysym, of one after the other."""
    return build(*request.param)


def account(pysym, trace):
    """Samples and the sum of their values by event, and the number of Python frames: what the sampler said, and no view of it."""
    done = subprocess.run([pysym, trace, "--format", "perf-script"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    samples, values, frames = collections.Counter(), collections.Counter(), 0
    for line in done.stdout.splitlines():
        head = re.search(r": +(\d+) (\S+): $", line)
        if head:
            samples[head[2]] += 1
            values[head[2]] += int(head[1])
        frames += bool(re.match(r"\t *[0-9a-f]+ py::", line))
    return samples, values, frames
