# SPDX-License-Identifier: Apache-2.0
"""Binaries that a build ID does not tell apart: large ones without one, and two with the same.

A library of more than 256 MiB without a build ID is known by a hash of parts, wherever it lies. It is sparse, so that it costs
no more than a small one. Of a library that was copied to another name, as wheels do, both copies have their names, in every format.
"""
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import types

import pytest

import perf_readers
from conftest import PYCAP, PYSYM, PYTHON, formats, why_no_bpf
from pysym_output import good

LARGE_BYTES = 257 << 20
SOURCE = "__attribute__((noinline)) double %s(int n){volatile double x = 1; for (int i = 0; i < n; i++) x = x * 1.01 + .1; return x;}"
PROGRAM = """
import ctypes, time
large, one, two = (ctypes.CDLL("./" + path) for path in ("large.so", "a/libone.so", "b/libtwo.so"))
end = time.process_time() + 0.5
while time.process_time() < end:
    large.large_burn(100000); one.twin_burn(100000); two.twin_burn(100000)
"""
AS_TEXT = ("speedscope", "folded", "perf-script", "top", "tree", "brief", "svg")  # shows names as they are
TWINS = ("a/libone.so", "b/libtwo.so")


def build(target, function, build_id):
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", f"-Wl,--build-id={build_id}", "-o", target, "-xc", "-"], check=True, text=True,
                   input=SOURCE % function)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A recording with an archive of its own, and the libraries."""
    why = why_no_bpf()
    if why:
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("run")
    for name in "ab":
        (folder / name).mkdir()
    build(folder / "large.so", "large_burn", "none")
    os.truncate(folder / "large.so", LARGE_BYTES)
    build(folder / "a/libone.so", "twin_burn", "sha1")
    shutil.copy(folder / "a/libone.so", folder / "b/libtwo.so")
    (folder / "work.py").write_text(PROGRAM)
    subprocess.run([PYCAP, "record", "-q", "-F", "499", "-o", "t.bin", "--archive", "own.tar", "--", PYTHON, "work.py"], cwd=folder,
                   check=True, timeout=300)
    return types.SimpleNamespace(folder=folder, trace=folder / "t.bin", archive=folder / "own.tar", large=folder / "large.so")


@pytest.fixture
def gone(run):
    """Takes libraries away until the test has ended."""
    moved = []

    def take(*names):
        for name in names:
            moved.append((run.folder / (name + ".gone")).absolute())
            (run.folder / name).rename(moved[-1])
        return moved[-1]
    yield take
    for path in moved:
        path.rename(str(path).removesuffix(".gone"))


def shares(pysym, trace, *options):
    """What part of the samples ends in which function, by name: a third each, but for the program's start."""
    leaves = [line.rsplit(";", 1)[-1].rsplit(" ", 1) for line in good(pysym(trace, "-f", "folded", *options)).splitlines()]
    total = sum(int(count) for _, count in leaves)
    found = {}
    for name, count in leaves:
        name = name.split(" ")[0]
        found[name] = found.get(name, 0) + int(count) / total
    return found


def module(pysym, trace, name):
    """The MODULE record of a path that ends so, as text by field."""
    dump = good(pysym(trace, "-f", "dump", encoding="latin-1"))
    string = re.search(rf'^string id=(\d+) data="[^"]*/{re.escape(name)}"$', dump, re.M)[1]
    record = re.search(rf"^module .* path={string} .*$", dump, re.M)[0]
    return dict(re.findall(r"(\w+)=(\[[^]]*\]|\S+)", record))


# ---- no build ID, and large ----

def test_large(run, pysym):
    assert shares(pysym, run.trace)["large_burn"] > 0.1
    record = module(pysym, run.trace, "large.so")
    assert record["id_kind"] == "4" and len(record["build_id"]) == 34
    assert "hash of parts " + record["build_id"][1:-1] in good(pysym(run.trace, "-f", "summary", "-v"))


@pytest.mark.parametrize("way", ["recorded", "archive", "--strip-code", "symfs", "build-id folder"])
def test_large_elsewhere(run, pysym, pycap, gone, tmp_path, way):
    options = ["--symfs", tmp_path]
    if way == "recorded":
        options = ["--archive", run.archive]
    elif way in ("archive", "--strip-code"):
        options = ["--archive", tmp_path / "a.tar.zst"]
        good(pycap("archive", "--strict", run.trace, "-o", options[1], *([way] if way != "archive" else [])))
    there = gone("large.so")
    assert "large_burn" not in shares(pysym, run.trace)
    if way == "symfs":
        (tmp_path / "large.so").symlink_to(there)
    elif way == "build-id folder":
        with tarfile.open(run.archive) as tar:
            link = next(member for member in tar if member.issym() and member.linkname.split("/")[-2] == "large.so")
        assert link.name.replace("/", "") == ".build-id" + module(pysym, run.trace, "large.so")["build_id"][1:-1]
        (tmp_path / link.name).parent.mkdir(parents=True)
        (tmp_path / link.name).symlink_to(there)
    assert shares(pysym, run.trace, *options)["large_burn"] > 0.1


@pytest.mark.parametrize("what", ["end", "size"])
def test_another_large(run, pysym, pycap, gone, tmp_path, what):
    """A file that is not the one of the trace is neither used nor packed."""
    shutil.copy(gone("large.so"), run.large)
    try:
        with open(run.large, "r+b") as file:
            file.seek(0 if what == "size" else -1, os.SEEK_END)
            file.write(b"x")
        assert "large_burn" not in shares(pysym, run.trace)
        assert "content differs: " in good(pysym(run.trace, "-f", "summary", "-v"))
        late = pycap("archive", "--strict", run.trace, "-o", tmp_path / "late.tar")
        assert late.returncode == 3 and re.search(r"large\.so \(hash of parts \w{32}\): replaced", late.stderr), late.stderr
    finally:
        run.large.unlink()


def test_htlhash(run, pysym):
    """Each file's is in the trace, as OpenTelemetry's specification says it."""
    for path in (run.large, run.folder / TWINS[0], PYTHON):
        with open(os.path.realpath(path), "rb") as file:
            head = file.read(4096)
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - 4096))
            expected = hashlib.sha256(head + file.read() + size.to_bytes(8, "big")).hexdigest()[:32]
        assert module(pysym, run.trace, os.path.basename(os.path.realpath(path)))["htlhash"] == f"<{expected}>"


# ---- two with one build ID ----

@pytest.mark.parametrize("files", [1, 2])
def test_twins_in_every_format(run, pysym, tmp_path, files):
    """Also where the recording is read twice, as one of a series may be."""
    traces = [run.trace] * files
    for name in formats():
        if name == "unwind-check":  # needs snapshots
            continue
        for options in ([], ["--native-names"]) if name == "perf-data" else [[]]:
            out = tmp_path / f"{name}{len(options)}"
            good(pysym(*traces, "-f", name, "-o", out, *options))
            assert name not in AS_TEXT or "twin_burn" in out.read_text(), name


def test_twins_beside_perf_data(run, pysym, tmp_path):
    """The names of both are one file, found by both paths; both binaries keep their time."""
    out = tmp_path / "perf.data"
    good(pysym(run.trace, "-f", "perf-data", "--native-names", "-o", out))
    paths = [tmp_path / f"perf.data.d/native{run.folder}/{name}" for name in TWINS]
    assert all(path.is_symlink() for path in paths)
    assert paths[0].resolve() == paths[1].resolve() and paths[0].resolve().is_relative_to(tmp_path.resolve())
    assert b"twin_burn" in paths[0].read_bytes()
    links = [path for path in (tmp_path / "perf.data.d/debug/.build-id").glob("*/*") if (path / "elf").resolve() == paths[0].resolve()]
    assert len(links) == 1
    if shutil.which("perf"):
        samples = perf_readers.perf_script(["perf", "--buildid-dir", f"{out}.d/debug"], out, lines=False)
        for path in paths:
            assert sum(sample.frames[0].name == "twin_burn" and sample.frames[0].binary.endswith(path.name) for sample in samples) > 10


@pytest.mark.parametrize("there", TWINS)
def test_twins_at_one_place(run, pysym, gone, there):
    """The file of one is the file of the other, whichever the trace names first."""
    both = shares(pysym, run.trace)
    gone(*(name for name in TWINS if name != there))
    assert shares(pysym, run.trace) == both
    assert both["twin_burn"] > 0.2


@pytest.mark.parametrize("own", [True, False])
def test_twins_in_archive(run, pysym, pycap, gone, tmp_path, own):
    """Packed once; both are named by it."""
    archive = run.archive if own else tmp_path / "a.tar"
    if not own:
        good(pycap("archive", "--strict", run.trace, "-o", archive))
    with tarfile.open(archive) as tar:
        assert len([name for name in tar.getnames() if re.search(r"lib(one|two)\.so/\w+/elf$", name)]) == 1
    both = shares(pysym, run.trace)
    gone(*TWINS)
    assert "twin_burn" not in shares(pysym, run.trace)
    assert shares(pysym, run.trace, "--archive", archive) == both
