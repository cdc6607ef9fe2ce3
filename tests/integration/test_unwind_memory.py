# SPDX-License-Identifier: Apache-2.0
"""Memory for unwind tables: taken when it is needed, never from tables in use, and what lacks room is said."""
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from conftest import PYCAP, PYTHON

# Calls its argument, behind functions with four rows of call frame information each.
LIBRARY = """
.text
.globl turn
.type turn, @function
turn:
    .cfi_startproc
    push %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    call *%rdi
    pop %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    ret
    .cfi_endproc
.size turn, . - turn
.rept {functions}
    .cfi_startproc
    push %rbx
    .cfi_adjust_cfa_offset 8
    push %rbp
    .cfi_adjust_cfa_offset 8
    push %r12
    .cfi_adjust_cfa_offset 8
    add $24, %rsp
    .cfi_adjust_cfa_offset -24
    ret
    .cfi_endproc
.endr
.section .note.GNU-stack,"",@progbits
"""

# Spins below each of the libraries by turns.
TURNS = """
import ctypes, sys, time
def spin():
    until = time.process_time() + 0.15
    while time.process_time() < until: sum(range(200))
callback = ctypes.CFUNCTYPE(None)(spin)
libraries = [ctypes.CDLL(path) for path in sys.argv[1:]]
for library in 3 * libraries:
    library.turn(callback)
"""

ROW_BYTES, MIB = 8, 1 << 20
LARGE = 2 * MIB // (4 * ROW_BYTES)  # functions whose rows take so much


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """Two whose tables are not the same: the second has one function more."""
    folder = tmp_path_factory.mktemp("libraries")

    def compiler(*arguments):
        subprocess.run([os.environ.get("CC", "cc"), *arguments], check=True)

    objects = [folder / "large.o", folder / "more.o"]
    for out, functions, name in (objects[0], LARGE, "turn"), (objects[1], 1, "more"):
        source = out.with_suffix(".S")
        source.write_text(LIBRARY.format(functions=functions).replace("turn", name))
        compiler("-c", "-o", out, source)
    made = folder / "libfirst.so", folder / "libsecond.so"
    for i, library in enumerate(made):
        compiler("-shared", "-nostdlib", "-o", library, *objects[:i + 1])
    return made


def losses(said):
    return {name: int(count) for name, count in re.findall(r"^  (\w+) +(\d+)  ", said, re.M)}


@pytest.mark.live
@pytest.mark.usefixtures("needs_bpf")
def test_two_by_turns(pycap, libraries, tmp_path):
    """The first keeps its room, the other's samples say that it has none; with what is proposed both have."""

    def run(size):
        done = pycap("record", "-F", "499", "--unwind-memory", size, "-o", tmp_path / "t.bin", "--", PYTHON, "-c", TURNS, *libraries)
        assert done.returncode == 0, done.stderr
        return done.stderr, losses(done.stderr)

    said, lost = run("4M")
    samples = int(re.search(r"Recorded ([\d,]+) sample", said)[1].replace(",", ""))
    assert samples / 8 < lost["table_no_room"] < samples * 7 / 8, said
    assert lost.get("table_missing", 0) < samples / 4, said
    wanted, fitted, proposed, left_out = re.search(
        r"^Up to (\d+) MiB of unwind tables were wanted at once, and (\d+) MiB fitted: --unwind-memory (\d+M)\. Left out at one time or another: (.*)$", said, re.M).groups()
    assert 4 < int(wanted) < 8 and int(fitted) < 5, said
    assert re.fullmatch(r"lib(first|second)\.so \([23] MiB\)", left_out), said
    said, lost = run(proposed)
    assert "table_no_room" not in lost and "unwind tables" not in said, said


def kernel_bytes(pid):
    """Memory of the BPF maps that a process has open or mapped, each once."""
    folder, maps = pathlib.Path(f"/proc/{pid}"), {}
    for fd in (folder / "fdinfo").iterdir():
        try:
            found = dict(re.findall(r"^(memlock|map_id):\s+(\d+)$", fd.read_text(), re.M))
        except FileNotFoundError:  # closed since
            continue
        if "map_id" in found:
            maps[found["map_id"]] = int(found["memlock"])
    mapped = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) rw-s 0+ .*anon_inode:bpf-map$", (folder / "maps").read_text(), re.M)
    chunks = sum(MIB for start, end in mapped if int(end, 16) - int(start, 16) >= MIB)
    return sum(maps.values()) + chunks


@pytest.mark.live
@pytest.mark.usefixtures("needs_bpf")
def test_a_small_program_takes_little(tmp_path):
    """By default tables may take hundreds of MiB, and of a small program they take a few."""
    status = tmp_path / "status"
    with subprocess.Popen([PYCAP, "record", "-q", "--status", status, "-o", tmp_path / "t.bin", "--", PYTHON, "-c", "input()"],
                          stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
        deadline = time.monotonic() + 300
        while not status.exists() and recorder.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        held = kernel_bytes(recorder.pid)
        _, said = recorder.communicate("\n", timeout=300)
    assert recorder.returncode == 0, said
    cpus = os.cpu_count()
    assert held < (40 + 2 * cpus) * MIB, held / MIB


@pytest.mark.live
@pytest.mark.usefixtures("needs_bpf")
def test_no_more_to_be_had(libraries, tmp_path):
    """Where the process that makes room is gone, or the kernel has none, pycap goes on with what there is, and says so."""
    script = "import sys; input()\n" + TURNS
    with subprocess.Popen([PYCAP, "record", "-F", "199", "-o", tmp_path / "t.bin", "--", PYTHON, "-c", script, *libraries],
                          stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
        maker, deadline = None, time.monotonic() + 300
        while not maker and recorder.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
            children = pathlib.Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children").read_text().split()
            if (tmp_path / "t.bin").exists():
                maker = next((int(c) for c in children if pathlib.Path(f"/proc/{c}/comm").read_text() == "pycap-tables\n"), None)
        os.kill(maker, signal.SIGKILL)
        _, said = recorder.communicate("\n", timeout=300)
    assert recorder.returncode == 0, said
    assert losses(said)["table_no_room"], said
    assert re.search(r"^Up to \d+ MiB of unwind tables were wanted at once, and \d MiB fitted, for no more could be had\. "
                     r"Left out at one time or another: lib(first|second)\.so \([23] MiB\)$",
                     said, re.M), said
