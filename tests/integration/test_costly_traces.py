# SPDX-License-Identifier: Apache-2.0
"""Small traces that are made to be costly take memory and time in proportion to their size.

build/tools/make_bomb writes them.
"""
import os
import pathlib
import subprocess
import sys

import pytest

import measured
from conftest import PYSYM, later

sys.path.append(str(pathlib.Path(__file__).parents[1] / "hostile"))
import craft  # noqa: E402

MAKE_BOMB = pathlib.Path(PYSYM).parent / "tools/make_bomb"
MEMORY_MIB = 256
SECONDS = 2  # of CPU; printed, and a failure at five times as much, since the machine may be slow
EACH_SAMPLE = ("perf-script", "dump")  # as long as their output
SANITIZED = "asan" in PYSYM  # which takes time and memory of its own: what is repeated is less


def bombs():
    """(bomb, format)."""
    if not os.access(MAKE_BOMB, os.X_OK):
        yield pytest.param("", "", marks=pytest.mark.skip(f"{MAKE_BOMB} is not built"))
        return
    for name in subprocess.run([MAKE_BOMB], capture_output=True, text=True, check=True).stdout.split():
        yield name, "folded"
        yield later(name, "speedscope")
    for form in ("top", "summary", *EACH_SAMPLE):
        yield pytest.param("owners", form, marks=pytest.mark.unsanitized)


def run(*args):
    """pysym's exit code, what it said, CPU seconds and MiB of memory. What it writes is thrown away."""
    used = measured.run(PYSYM, *args)
    return used.returncode, used.stderr, used.cpu_s, used.resident_kib / 1024


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bombs")

    def make(name):
        path = folder / f"{name}.bin"
        if not path.exists():
            subprocess.run([MAKE_BOMB, path, name, *(["2"] if SANITIZED else [])], check=True)
        assert path.stat().st_size <= 1 << 20
        return path
    return make


@pytest.mark.parametrize("name, form", bombs())
def test_bomb(made, name, form):
    code, said, seconds, mib = run(made(name), "-f", form, "--max-output", "64M")
    print(f"{name:12} {form:12} {seconds:5.2f} s {mib:4.0f} MiB, exit {code}: {said[:70].strip()}")
    assert code in (0, 1) and "a block is longer" not in said, said
    assert code == 0 or "--max-memory" in said or "--max-output" in said, said
    if SANITIZED:
        return
    assert mib <= MEMORY_MIB
    if form not in EACH_SAMPLE:
        assert seconds <= 5 * SECONDS


@pytest.mark.unsanitized
def test_the_limits_are_options(make, tmp_path):
    """A trace that is refused with little memory is read with more; an output that is cut has whole lines and an error."""
    trace = make(samples=20000, stacks=20000, depth=40)
    code, said, _, _ = run(trace, "-f", "folded", "--max-memory", "2M")
    assert code == 1 and "--max-memory" in said, said
    assert run(trace, "-f", "folded", "--max-memory", "1G")[0] == 0
    assert run(trace, "-f", "folded")[0] == 0

    done = subprocess.run([PYSYM, trace, "-f", "perf-script", "--max-output", "1M"], capture_output=True, text=True)
    assert done.returncode == 1 and "--max-output" in done.stderr, done.stderr
    assert 1 << 19 < len(done.stdout) <= 1 << 20 and done.stdout.endswith("\n")
    whole = subprocess.run([PYSYM, trace, "-f", "perf-script"], capture_output=True, text=True, check=True).stdout
    assert whole.startswith(done.stdout)
    # A file is complete or not there at all.
    out = tmp_path / "out.txt"
    assert run(trace, "-f", "perf-script", "--max-output", "1M", "-o", out)[0] == 1
    assert not list(tmp_path.glob("out*"))


def equal_samples(count):
    body = craft.begin(0) + craft.code(b"f") + craft.python_frame(1) + craft.stack(0, [1]) + craft.whole_stack(python=1)
    row = craft.signed(1000) + craft.number(1) + craft.number(1) + b"\0\0"
    body += craft.record(26, 1, 1000, count, craft.text(row * count))
    return craft.file_header() + craft.block(body, 0, samples=count)


@pytest.mark.unsanitized
@pytest.mark.parametrize("form", ["perf-script", later("ndjson"), later("dump")])
def test_equal_samples(tmp_path, form):
    """An output goes by the size of its trace, and says so; the option lifts that. A trace in a pipe has no size."""
    trace = tmp_path / "equal.bin"
    trace.write_bytes(equal_samples(2_000_000))
    size = trace.stat().st_size
    assert size < 4000
    done = subprocess.run([PYSYM, trace, "-f", form], capture_output=True, check=False)
    assert done.returncode == 1 and b"out of proportion" in done.stderr and b"--max-output allows more" in done.stderr, done.stderr
    assert 60 << 20 < len(done.stdout) <= (64 << 20) + 4096 * size and done.stdout.endswith(b"\n")
    assert run(trace, "-f", form, "--max-output", "2G")[0] == 0
    assert subprocess.run(["sh", "-c", f"cat {trace} | {PYSYM} - -f {form} >/dev/null"], check=False, capture_output=True).returncode == 0
