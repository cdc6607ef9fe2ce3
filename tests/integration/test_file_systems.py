# SPDX-License-Identifier: Apache-2.0
"""Stacks are whole where an interpreter lies on overlayfs or btrfs.

There a mapping has another device than its file has for stat(); and there may be many copies.
"""
import os
import re
import shutil
import subprocess

import pytest

import accounts
import chance
from conftest import later, PYSYM, PYTHON

BURN = """
import time
def burn():
    end = time.process_time() + 0.5
    while time.process_time() < end:
        sum(range(1000))
burn()
"""
MOUNT = {
    "overlay": 'mount -t tmpfs none "$1/rw" && mkdir "$1/rw/upper" "$1/rw/work" && '
               'mount -t overlay overlay -o "lowerdir=$1/lower,upperdir=$1/rw/upper,workdir=$1/rw/work" "$1/merged"',
    "btrfs": 'mount -o loop "$1/image" "$1/merged" && cp "$1/lower/python" "$1/merged/python"',
}


@pytest.fixture
def folder(tmp_path):
    for name in ("lower", "rw", "merged"):
        (tmp_path / name).mkdir()
    shutil.copy(os.path.realpath(PYTHON), tmp_path / "lower/python")
    return tmp_path


def command(kind, folder, runs):
    """Mounts in a namespace of its own, as a container's runtime does, and runs the interpreter there so many times, in
    one namespace with a mount of its own each, all at once."""
    one = f'unshare --mount sh -c \'{MOUNT[kind]} && PYTHONHOME=/usr "$1/merged/python" -S -c "$2"\' sh "$1" "$2"'
    return ["sh", "-c", f"for i in {' '.join(map(str, range(runs)))}; do {one} & done; wait", "sh", folder, BURN]


def check(record, folded, folder, kind, runs):
    trace = record(*command(kind, folder, runs))
    rows = [(frames, count) for frames, count in folded(trace, "--interpreter", "calls")
            if any("burn" in frame for frame in frames)]
    burning = sum(count for _, count in rows)
    account = accounts.read(PYSYM, trace)
    ticks = runs * 0.5 * 199  # by the programs' own clocks
    assert burning >= ticks * (1 - account.skipped) - chance.of_count(ticks) - account.early and burning, account.text()
    # Native stacks begin where the thread does, through the interpreter's frames: its table is the right one. (It has no
    # names: its file is gone.)
    whole = sum(count for frames, count in rows if frames[1].startswith("__libc_start"))
    assert whole >= 0.95 * burning, rows[:5]


@pytest.mark.usefixtures("needs_bpf", "needs_namespaces")
def test_overlay(record, folded, folder):
    try:
        subprocess.run(["unshare", "--mount", "sh", "-c", MOUNT["overlay"], "sh", folder], check=True, capture_output=True,
                       text=True, timeout=60)
    except subprocess.CalledProcessError as error:
        pytest.skip("no overlayfs here: " + error.stderr.strip())
    check(record, folded, folder, "overlay", 3)


# What the interpreter and a shell need of this system, as an image.
IMAGE = ('mkdir -p "$1/low" "$1/root/usr/lib" && cp -L --parents {files} "$1/root" && cp -a /usr/lib/python3.11 "$1/root/usr/lib" && '
         'cd "$1/root" && ln -s usr/bin usr/lib usr/lib64 . && '
         '{make} >&2 && mount -o loop "$1/image" "$1/low" && ')
LOWER = {
    "root": ("", "/"),
    "squashfs": ('mksquashfs "$1/root" "$1/image" -quiet -no-progress', "$1/low"),
    "erofs": ('mkfs.erofs "$1/image" "$1/root"', "$1/low"),
}


def in_overlay(lower):
    """Mounts an overlay whose upper layer is a tmpfs, at $1/merged."""
    make, folder = LOWER[lower]
    programs = [PYTHON, "/bin/sh"]
    libraries = re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", *programs], capture_output=True, text=True, check=True).stdout)
    files = {os.path.join(os.path.realpath(os.path.dirname(file)), os.path.basename(file)) for file in programs + libraries}
    image = IMAGE.format(files=" ".join(sorted(files)), make=make) if make else ""
    return (f'mount -t tmpfs none "$1" && {image}mkdir "$1/upper" "$1/work" "$1/merged" && '
            f'mount -t overlay overlay -o "lowerdir={folder},upperdir=$1/upper,workdir=$1/work" "$1/merged"')


@pytest.mark.parametrize("lower", ["root", later("squashfs"), later("erofs")])
@pytest.mark.usefixtures("needs_bpf", "needs_namespaces")
def test_exec_on_two_file_systems(lower, record, folder):
    """The shell meets libc first, and its mapping is gone before the file was opened; the path proves nothing on this overlay."""
    mount = in_overlay(lower)
    tried = subprocess.run(["unshare", "--mount", "sh", "-c", mount, "sh", folder / "rw"], capture_output=True, text=True,
                           timeout=60, check=False)
    if tried.returncode:
        pytest.skip(f"no overlayfs over {lower} here: " + tried.stderr.strip())
    trace = record("unshare", "--mount", "sh", "-c", mount + f' && exec chroot "$1/merged" sh -c "exec {PYTHON} -S -c \'$2\'"',
                   "sh", folder / "rw", BURN)
    account = accounts.read(PYSYM, trace)
    assert 10 * account.losses["no_module"] < len(account.samples), account.text()


@pytest.mark.usefixtures("needs_bpf", "needs_namespaces")
def test_btrfs(record, folded, folder):
    if not shutil.which("mkfs.btrfs"):
        pytest.skip("no mkfs.btrfs")
    with open(folder / "image", "wb") as image:
        image.truncate(128 << 20)
    subprocess.run(["mkfs.btrfs", "-q", folder / "image"], check=True, timeout=60)
    try:
        subprocess.run(["unshare", "--mount", "sh", "-c", MOUNT["btrfs"], "sh", folder], check=True, capture_output=True,
                       text=True, timeout=60)
    except subprocess.CalledProcessError as error:
        pytest.skip("btrfs cannot be mounted here: " + error.stderr.strip())
    check(record, folded, folder, "btrfs", 1)
