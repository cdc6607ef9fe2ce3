# SPDX-License-Identifier: Apache-2.0
"""A capture can be read on another machine.

Binaries are collected into archives, generated code brings its symbols, and debuginfod has the rest.
"""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time

import pytest

import measured
from accounts import is_begun
from conftest import PYCAP, PYSYM
from pysym_output import good

VIEWS = ["folded", "speedscope", "perf-script"]

SPIN_C = """
static inline int deep(int x) { volatile int n = x; for (int i = 0; i < 400; i++) n += i; return n; }
__attribute__((noinline)) int spin_inner(int x) { return deep(x) + 1; }
int spin(int n) { int x = 0; for (int i = 0; i < n; i++) x += spin_inner(i); return x; }
"""
# Calls spin() of a library for so many seconds of CPU time, or until the standard input ends. With "unlink" the library is removed once it is loaded; with
# "replace" another build takes its place.
SPIN_PY = """
import ctypes, os, select, sys, time
path, seconds, what = sys.argv[1:]
lib = ctypes.CDLL(path)
if what == "unlink":
    os.unlink(path)
if what == "replace":
    os.rename(path + ".new", path)
print("ready", flush=True)
if seconds == "input":
    while not select.select([0], [], [], 0)[0]:
        lib.spin(500)
else:
    end = time.process_time() + float(seconds)
    while time.process_time() < end:
        lib.spin(500)
"""


def compile_c(target, source, *flags):
    target.with_suffix(".c").write_text(source)
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,--build-id", *flags, "-o", target, target.with_suffix(".c")], check=True)


def make_spin(folder):
    library, program = folder / "libspin.so", folder / "spin.py"
    compile_c(library, SPIN_C, "-O1", "-g", "-fno-omit-frame-pointer")
    program.write_text(SPIN_PY)
    return library, program


@pytest.fixture
def spin(tmp_path):
    """A library with symbols and DWARF, and the program that spins in it."""
    return make_spin(tmp_path)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """The library, and traces of it by how stacks are unwound, each recorded once."""
    folder, traces = tmp_path_factory.mktemp("spin"), {}
    library, program = make_spin(folder)

    def get(unwind):
        if unwind not in traces:
            trace = folder / f"{unwind}.bin"
            good(subprocess.run([PYCAP, "record", "-F", "499", "--unwind", unwind, "-o", trace, "--", sys.executable, program, library,
                                 "0.5", "stay"], capture_output=True, text=True, timeout=300, check=False))
            traces[unwind] = trace
        return library, traces[unwind]
    return get


@pytest.fixture
def spun(needs_bpf, recordings, tmp_path):
    """The library, which the test may change or remove, and a copy of a trace of it."""
    kept = tmp_path / "kept.so"

    def run(unwind="tables"):
        library, trace = recordings(unwind)
        shutil.copy(library, kept)
        return library, pathlib.Path(shutil.copy(trace, tmp_path / "t.bin"))
    yield run
    library, _ = recordings("tables")
    kept.replace(library)


def has_spun(pysym, trace):
    """Whether the trace has samples of the library: of the program nearly all are."""
    stacks = pysym(trace, "-f", "folded", "--python-only").stdout
    return sum(map(int, re.findall(r"spin\.py:\d+\) (\d+)$", stacks, re.M))) > 20


def record_until(known, trace, *options, until=None):
    """Records with these options until `known()`. Then the standard input of what runs ends."""
    with subprocess.Popen([PYCAP, "record", "-F", "199", "-o", trace, *map(str, options)], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as recorder:
        deadline = time.monotonic() + 300
        while recorder.poll() is None and time.monotonic() < deadline and not (is_begun(trace) and known()):
            time.sleep(0.1)
        if until:
            recorder.send_signal(until)
        _, said = recorder.communicate(timeout=300)
    assert recorder.returncode == 0, said


def build_id(path):
    notes = subprocess.run(["readelf", "-nW", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: (\w+)", notes)[1]


def empty_root(place, *files):
    """A root with pysym, its libraries and the files; a function that runs pysym in it without privilege."""
    if os.geteuid():
        pytest.skip("a root of its own needs root")
    if "asan" in PYSYM:
        pytest.skip("the sanitizers want /proc")
    root = place / "root"
    (root / "tmp").mkdir(parents=True)
    needed = subprocess.run(["ldd", PYSYM], capture_output=True, text=True, check=True).stdout
    for library in re.findall(r"(/\S+) \(0x", needed):
        (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library[1:])
    shutil.copy(PYSYM, root / "pysym")
    for file in files:
        shutil.copy(file, root / file.name)
        os.chmod(root / file.name, 0o644)
    os.chmod(root / "tmp", 0o777)

    def run(*arguments):
        return subprocess.run(["chroot", "--userspec=65534:65534", root, "/pysym", *arguments], capture_output=True,
                              text=True, timeout=300, check=False)
    return run


@pytest.mark.smoke("tables", "stripped")
@pytest.mark.parametrize("unwind", ["tables", "snapshot"])
@pytest.mark.parametrize("strip", [False, True], ids=["whole", "stripped"])
def test_empty_root(spun, pysym, pycap, tmp_path, place, unwind, strip):
    """The trace and the archive alone, in an empty root: the bytes that the recorded host gives."""
    _, trace = spun(unwind)
    archive = tmp_path / "a.tar.zst"
    good(pycap("archive", "--strict", trace, "-o", archive, *(["--strip-code"] if strip else [])))
    there = empty_root(place, trace, archive)
    for view in VIEWS:
        here = good(pysym(trace.name, "-f", view, cwd=trace.parent))
        assert good(there(trace.name, "-f", view, "--archive", archive.name)) == here, view
    # The comparison says something: names and lines of the library, which the bare root does not have.
    here = good(pysym(trace, "-f", "folded"))
    assert ";spin;spin_inner;deep " in here or ";spin;spin_inner " in here, here[-2000:]
    assert good(there(trace.name, "-f", "folded")) != here
    summary = good(there(trace.name, "-f", "summary", "-v", "--archive", archive.name))
    assert re.search(r"libspin\.so\n +build ID \w+; DWARF; archive\n", summary), summary


def test_unwind_check(spun, pysym, pycap, tmp_path):
    """Every unwinder finds in a stripped archive what it finds in the files."""
    library, trace = spun("both")
    archive = tmp_path / "a.tar.zst"
    good(pycap("archive", "--strip-code", trace, "-o", archive))
    here = good(pysym(trace, "-f", "unwind-check"))
    library.unlink()
    assert good(pysym(trace, "-f", "unwind-check", "--archive", archive)) == here
    assert good(pysym(trace, "-f", "unwind-check")) != here


def test_stripped_is_smaller(spun, pycap, tmp_path):
    library, trace = spun()
    whole, thin = tmp_path / "whole.tar", tmp_path / "thin.tar"
    thin.touch(0o644)
    good(pycap("archive", trace, "-o", whole))
    good(pycap("archive", "--strip-code", trace, "-o", thin))
    assert whole.stat().st_mode & 0o777 == thin.stat().st_mode & 0o777 == 0o600
    with tarfile.open(whole) as a, tarfile.open(thin) as b:
        assert a.getnames() == b.getnames()
        member = next(name for name in a.getnames() if "libspin.so" in name and name.endswith("/elf"))
        full, stripped = a.extractfile(member).read(), b.extractfile(member).read()
    assert len(full) == len(stripped)
    (tmp_path / "thin.so").write_bytes(stripped)
    assert build_id(tmp_path / "thin.so") == build_id(library)
    assert full.count(0) < stripped.count(0)
    # Equal input, equal bytes.
    again = tmp_path / "again.tar"
    good(pycap("archive", "--strip-code", trace, "-o", again))
    assert again.read_bytes() == thin.read_bytes()
    # A long file is not read into memory.
    os.truncate(library, 1 << 29)
    used = measured.run(PYCAP, "archive", "-q", "--strip-code", trace, "-o", tmp_path / "long.tar.zst")
    assert used.returncode == 0, used.stderr
    assert "asan" in PYCAP or used.resident_kib < 128 << 10, used.resident_kib


def test_interrupted(spun, tmp_path):
    """A signal that ends pycap archive leaves nothing behind."""
    library, trace = spun()
    os.truncate(library, 3 << 30)  # holes, to have enough to pack
    folder = tmp_path / "out"
    folder.mkdir()
    running = subprocess.Popen([PYCAP, "archive", "-q", trace, "-o", folder / "a.tar.xz"])
    while not list(folder.iterdir()):
        assert running.poll() is None
        time.sleep(0.001)
    time.sleep(0.05)
    running.terminate()
    assert running.wait(60) == -signal.SIGTERM
    assert not list(folder.iterdir())


@pytest.mark.parametrize("what", ["unlink", "replace"])
def test_changed_during_capture(needs_bpf, pysym, pycap, spin, tmp_path, what):
    """What was replaced or removed is in the archive of the recording, and is never had from its path afterwards."""
    library, program = spin
    identity = build_id(library)
    compile_c(tmp_path / "new.so", SPIN_C.replace("400", "401"), "-O1", "-g")
    (tmp_path / "new.so").rename(str(library) + ".new")
    trace, archive = tmp_path / "t.bin", tmp_path / "a.tar.zst"
    record_until(lambda: has_spun(pysym, trace), trace, "--archive", archive, "--", sys.executable, program, library, "input", what)
    assert archive.stat().st_mode & 0o777 == 0o600
    named = good(pysym(trace, "-f", "folded", "--archive", archive))
    assert ";spin;spin_inner" in named
    without = pysym(trace, "-f", "folded")
    assert "spin_inner" not in good(without)

    late = pycap("archive", "--strict", trace, "-o", tmp_path / "late.tar.zst")
    assert late.returncode == 3
    line = next(line for line in late.stderr.splitlines() if "libspin.so" in line)
    assert identity in line
    assert line.endswith(": gone") if what == "unlink" else "replaced: what is there now has " + build_id(library) in line
    good(pycap("archive", trace, "-o", tmp_path / "late.tar.zst"))
    with tarfile.open(fileobj=unzstd(tmp_path / "late.tar.zst"), mode="r:") as tar:
        assert not [name for name in tar.getnames() if "libspin" in name]


def unzstd(path):
    import io
    return io.BytesIO(subprocess.run(["zstd", "-dqc", path], capture_output=True, check=True).stdout)


def test_deleted_but_alive(needs_bpf, pysym, pycap, spin, tmp_path):
    """A deleted library is had from a process that still maps it."""
    library, program = spin
    trace = tmp_path / "t.bin"
    process = subprocess.Popen([sys.executable, program, library, "input", "unlink"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"ready\n"
        record_until(lambda: has_spun(pysym, trace), trace, "-p", process.pid, until=signal.SIGINT)
        good(pycap("archive", "--strict", trace, "-o", tmp_path / "a.tar.zst"))
    finally:
        process.kill()
        process.wait()
    assert ";spin;spin_inner" in good(pysym(trace, "-f", "folded", "--archive", tmp_path / "a.tar.zst"))


def test_perf_layout(spun, pysym, pycap, tmp_path):
    """Unpacked as perf archive tells its users to, perf takes the files for its own, and pysym, too."""
    library, trace = spun()
    archive = tmp_path / "a.tar.gz"
    good(pycap("archive", trace, "-o", archive))
    home = tmp_path / "home"
    (home / ".debug").mkdir(parents=True)
    subprocess.run(["tar", "xf", archive, "-C", home / ".debug"], check=True)
    identity = build_id(library)
    link = home / ".debug/.build-id" / identity[:2] / identity[2:]
    assert link.is_symlink() and (link / "elf").read_bytes() == library.read_bytes()
    assert os.readlink(link) == f"../..{library}/{identity}"
    environment = {**os.environ, "HOME": str(home)}
    perf = shutil.which("perf")
    if perf:
        listed = subprocess.run([perf, "buildid-cache", "-l"], capture_output=True, text=True, env=environment, check=True).stdout
        assert re.search(rf"^{identity} .*libspin\.so", listed, re.M), listed
    named = good(pysym(trace, "-f", "folded"))
    library.unlink()
    assert good(pysym(trace, "-f", "folded", env=environment)) == named


def test_perf_uses_it(spun, pycap, tmp_path):
    """perf script names functions out of an unpacked archive of pycap."""
    library, trace = spun()
    perf = shutil.which("perf")
    if not perf:
        pytest.skip("perf is not installed")
    data = tmp_path / "perf.data"
    # With build IDs in its events; to read them at the end crashes some versions of perf.
    recorded = subprocess.run([perf, "record", "--buildid-mmap", "-e", "cpu-clock", "-F", "199", "-o", data, "--",
                               sys.executable, library.with_name("spin.py"), library, "0.5", "stay"], capture_output=True, text=True,
                              check=False, env={**os.environ, "HOME": str(tmp_path / "recorder")})
    if recorded.returncode:
        pytest.skip("perf cannot record here: " + recorded.stderr.strip()[-200:])
    archive = tmp_path / "a.tar.gz"
    good(pycap("archive", "--strip-code", trace, "-o", archive))
    home = tmp_path / "home"
    (home / ".debug").mkdir(parents=True)
    subprocess.run(["tar", "xf", archive, "-C", home / ".debug"], check=True)
    library.unlink()

    def script(environment):
        return subprocess.run([perf, "script", "-i", data, "-F", "ip,sym,dso"], capture_output=True, text=True,
                              env=environment, check=True).stdout
    assert "spin_inner" not in script({**os.environ, "HOME": str(tmp_path / "nobody")})
    assert "spin_inner" in script({**os.environ, "HOME": str(home)})


def test_foreign_archives(spun, pysym, tmp_path):
    """Any tar file of binaries serves; one of other builds does not, and says so."""
    library, trace = spun()
    named = good(pysym(trace, "-f", "folded"))
    plain = tmp_path / "plain.tar.xz"
    subprocess.run(["tar", "cJf", plain, "-C", library.parent, "libspin.so"], check=True)
    compile_c(tmp_path / "libother.so", SPIN_C, "-O2")
    other = tmp_path / "other.tar"
    subprocess.run(["tar", "cf", other, "-C", tmp_path, "libother.so", "--transform", "s/other/spin/"], check=True)
    library.unlink()
    assert "spin_inner" not in good(pysym(trace, "-f", "folded", "--archive", other))
    assert "spin_inner" in good(pysym(trace, "-f", "folded", "--archive", plain))
    assert good(pysym(trace, "-f", "folded", "--archive", other, "--archive", plain)) == named
    assert "not found, neither by its path nor by its build ID" in good(pysym(trace, "-f", "summary", "-v", "--archive", other))


def test_bad_archives(spun, pysym, tmp_path):
    _, trace = spun()
    noise = tmp_path / "noise.tar.zst"
    noise.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(range(200)))
    for path in (tmp_path / "absent.tar", noise, trace):
        done = pysym(trace, "-f", "folded", "--archive", path)
        assert done.returncode == 1 and done.stderr.startswith(f"pysym: {path}: "), done.stderr
        assert not done.stdout
    # An archive is not written over.
    done = pysym(trace, "-f", "folded", "--archive", noise, "-o", noise)
    assert done.returncode == 2 and "cannot be the output" in done.stderr
    # Nothing of an archive is needed for Python alone.
    good(pysym(trace, "-f", "folded", "--python-only", "--archive", noise))


def test_usage(spun, pycap, tmp_path):
    _, trace = spun()
    assert pycap("archive").returncode == 2
    assert pycap("archive", trace, "-o", trace).returncode == 2
    assert pycap("archive", "--nonsense", trace).returncode == 2
    assert pycap("record", "--strip-code", "--", "true").returncode == 2
    done = pycap("archive", tmp_path / "absent.bin")
    assert done.returncode == 1 and "absent.bin" in done.stderr
    done = pycap("archive", trace, "-o", "/dev/full")
    assert done.returncode == 1 and "/dev/full: could not be written: No space left on device" in done.stderr
    done = pycap("archive", trace, "-o", tmp_path / "no/such/place.tar")
    assert done.returncode == 1 and "place.tar" in done.stderr
    # By default beside the trace; what was there is replaced when the new one is whole.
    named = trace.with_suffix(".tar.zst")
    named.write_text("old")
    done = pycap("archive", trace, cwd=tmp_path)
    assert good(done) == "" and f"in {named}" in done.stderr
    assert named.stat().st_size > 10000
    done = pycap("archive", "-q", trace, "-o", "-", text=False)
    assert done.returncode == 0 and done.stdout == named.read_bytes() and done.stderr == b""
    assert not [name for name in os.listdir(tmp_path) if ".tar.zst." in name]


def test_debug_files(record, pysym, pycap, spin, tmp_path):
    """The debug file that a binary's link names, beside it, travels; then the bare binary has lines."""
    library, program = spin
    subprocess.run("objcopy --only-keep-debug libspin.so spin.debug && strip libspin.so && "
                   "objcopy --add-gnu-debuglink=spin.debug libspin.so", shell=True, cwd=tmp_path, check=True)
    trace = record(sys.executable, program, library, "0.4", "stay")
    archive = tmp_path / "a.tar"
    good(pycap("archive", trace, "-o", archive))
    with tarfile.open(archive) as tar:
        assert f"{str(library)[1:]}/{build_id(library)}/debug" in tar.getnames()
    library.unlink()
    (tmp_path / "spin.debug").unlink()
    assert ";spin;spin_inner" in good(pysym(trace, "-f", "folded", "--archive", archive))
    summary = good(pysym(trace, "-f", "summary", "-v", "--archive", archive))
    assert re.search(r"libspin\.so\n +build ID \w+; DWARF; archive; debug file: archive\n", summary), summary


def test_supplement(record, pysym, pycap, spin, tmp_path):
    """What dwz moved into a file that debug files share travels, too."""
    if not shutil.which("dwz"):
        pytest.skip("dwz is not installed")
    library, program = spin
    # Two debug files with the same types, for something to be shared.
    source = "struct shared { int a, b, c; char name[64]; struct shared *next; }; " + "".join(
        f"struct shared{i} {{ struct shared s; long n{i}[{i + 2}]; }}; struct shared{i} v{i};\n" for i in range(40)) + SPIN_C
    compile_c(library, source, "-O1", "-gdwarf-4")
    shared = "/usr/lib/debug/.dwz"
    name = f"pycap-test-{os.getpid()}.debug"
    if os.geteuid():
        pytest.skip("the supplement lies in /usr/lib/debug: needs root")
    os.makedirs(shared, exist_ok=True)
    try:
        subprocess.run(f"objcopy --only-keep-debug libspin.so spin.debug && cp spin.debug twin.debug && strip libspin.so && "
                       f"dwz -m {shared}/{name} -M {shared}/{name} spin.debug twin.debug && "
                       f"objcopy --add-gnu-debuglink=spin.debug libspin.so", shell=True, cwd=tmp_path, check=True)
        trace = record(sys.executable, program, library, "0.4", "stay")
        here = good(pysym(trace, "-f", "perf-script"))
        archive = tmp_path / "a.tar"
        good(pycap("archive", trace, "-o", archive))
        shutil.copy(f"{shared}/{name}", tmp_path / "kept")
    finally:
        if os.path.exists(f"{shared}/{name}"):
            os.unlink(f"{shared}/{name}")
    identity = build_id(tmp_path / "kept")
    with tarfile.open(archive) as tar:
        assert f".build-id/{identity[:2]}/{identity[2:]}.debug" in tar.getnames()
    library.unlink()
    (tmp_path / "spin.debug").unlink()
    assert good(pysym(trace, "-f", "perf-script", "--archive", archive)) == here
    assert "supplement: archive" in good(pysym(trace, "-f", "summary", "-v", "--archive", archive))


def test_names_that_drive_terminals(record, pysym, spin, tmp_path):
    """Of a binary's path nothing reaches a terminal that could drive it, wherever the path stands in the summary."""
    library, program = spin
    odd = tmp_path / "odd\x1b[31m\u009b31m.so"
    library.rename(odd)
    trace = record(sys.executable, program, odd, "0.4", "stay")
    compile_c(odd, SPIN_C + "int another_build;\n", "-O1")
    summary = good(pysym(trace, "-f", "summary", "-v"))
    assert re.search(r"build ID differs: .*odd\\x1b\[31m\\xc2\\x9b31m\.so has", summary), summary
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", summary)


def test_line_directives(record, pysym, spin, tmp_path):
    """Lines of the file that C code was made from, as Cython names it with #line."""
    library, program = spin
    compile_c(library, '#line 11 "mod.pyx"\n' + SPIN_C, "-O1", "-g")
    trace = record(sys.executable, program, library, "0.4", "stay")
    frames = re.findall(r"spin\w*|deep", good(pysym(trace, "-f", "folded")))
    assert "spin_inner" in frames
    text = good(pysym(trace, "-f", "top", "--by", "line", "--top", "0"))
    # SPIN_C's first line is empty, and is line 11.
    assert re.search(r"(deep|spin_inner) \(mod\.pyx:1[23]\)", text), text


# ---- code made at run time ----

JIT_PY = """
import ctypes, mmap, os, select, sys, time
# Works for so many seconds of CPU time, or until the standard input ends.
# push %rbp; mov %rsp, %rbp; mov %rdi, %rax; 1: sub $1, %rax; jne 1b; pop %rbp; ret
code = bytes.fromhex("554889e54889f84883e80175fa5dc3")
memory = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
                   prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
memory.write(code)
if sys.argv[0] != "-c":
    with open(sys.argv[0] + ".pids", "a") as pids:
        pids.write(f"{os.getpid()}\\n")
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
function = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)(address)
if sys.argv[2] != "none":
    with open(f"/tmp/perf-{os.getpid()}.map", "w") as table:
        table.write(f"{address:x} {len(code):x} was here before\\n{address:x} {len(code):x} {sys.argv[2]}\\n"
                    "not a line\\nffffffffffffffff 10 wraps\\n")
if sys.argv[1] == "input":
    while not select.select([0], [], [], 0)[0]:
        function(5_000_000)
else:
    end = time.process_time() + float(sys.argv[1])
    while time.process_time() < end:
        function(5_000_000)
os._exit(0)
"""


@pytest.fixture
def jit(tmp_path):
    program = tmp_path / "jit.py"
    program.write_text(JIT_PY)
    yield program
    # Other recordings may be about to read tables of theirs.
    for pids in tmp_path.glob("*.pids"):
        for pid in pids.read_text().split():
            pathlib.Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)


@pytest.mark.parametrize("unwind", ["tables", "snapshot"])
def test_generated_code(record, pysym, jit, tmp_path, unwind):
    trace = record(sys.executable, jit, "0.5", "gen::loop(int)", options=("-F", "199", "--unwind", unwind))
    out = good(pysym(trace, "-f", "folded"))
    # One character of the name parts frames, and is replaced.
    assert "gen::loop(int) " in out and "was here before" not in out, good(pysym(trace, "-f", "summary", "-v"))
    assert re.search(r"gen::loop\(int\)\+0x\w+ \(/tmp/perf-\d+\.map\)", good(pysym(trace, "-f", "perf-script")))
    summary = good(pysym(trace, "-f", "summary", "-v"))
    assert re.search(r"/tmp/perf-\d+\.map\n +code made at run time; 2 names", summary), summary


def test_generated_code_of_ended_process(needs_bpf, pysym, jit, tmp_path):
    """The process ends before the recording, and its table is read then."""
    trace = tmp_path / "t.bin"
    record_until(lambda: "\nperf_map " in pysym(trace, "-f", "dump").stdout, trace, "--", "sh", "-c",
                 f"{sys.executable} {jit} 0.4 gen_early; cat")
    assert "gen_early " in good(pysym(trace, "-f", "folded")), good(pysym(trace, "-f", "summary", "-v")) + good(pysym(trace, "-f", "dump"))


@pytest.mark.parametrize("outlived", [True, False], ids=["outlived", "with-it"])
def test_generated_code_in_namespaces(needs_bpf, pysym, needs_namespaces, tmp_path, outlived):
    """
    A process with another /tmp and another idea of its pid. A neighbour shows its /tmp when it is gone; or its /tmp goes
    with it, and pycap has the file.
    """
    trace = tmp_path / "t.bin"
    # Not from a file: that would lie in the /tmp that is hidden.
    script = "mount -t tmpfs none /tmp && " + \
        ('"$0" -c "$1" 0.4 gen_inside; cat' if outlived else 'exec "$0" -c "$1" input gen_inside')
    known = r"\nperf_map " if outlived else r"/tmp/perf-\d+\.map"  # what goes with the process: pycap has met it
    record_until(lambda: re.search(known, pysym(trace, "-f", "dump").stdout), trace, "--", "unshare", "--mount", "--pid", "--fork",
                 "--mount-proc", "sh", "-c", script, sys.executable, JIT_PY)
    out = good(pysym(trace, "-f", "perf-script"))
    number = re.search(r"gen_inside\+0x\w+ \(/tmp/perf-(\d+)\.map\)", out)
    assert number and int(number[1]) < 10, out[-500:]
    assert not os.path.exists(f"/tmp/perf-{number[1]}.map")


def test_event_for_others(spun):
    """pkill -USR1 -x pycap reports an event to recorders that stand by. It ends no other pycap."""
    _, trace = spun()
    with subprocess.Popen([PYCAP, "archive", trace, "-o", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as packing:
        packing.stdout.read(1)  # it waits now until the rest is read
        packing.send_signal(signal.SIGUSR1)
        packing.stdout.read()
        assert packing.wait(60) == 0, packing.stderr.read()


def test_long_table(record, pysym, jit, tmp_path):
    """More than 8 MiB is cut, and counted."""
    program = tmp_path / "long.py"
    program.write_text(JIT_PY.replace('"not a line', '"1000 10 " + "x" * 100 + "\\n" + "2000 10 y\\n" * 900_000 + "not a line'))
    trace = record(sys.executable, program, "0.6", "gen_first", options=("-F", "199"))
    assert "gen_first " in good(pysym(trace, "-f", "folded"))
    summary = good(pysym(trace, "-f", "summary", "-v"))
    assert re.search(r"perf_map_cut +1 ", summary), summary
    size = int(re.search(r"\nperf_map .*file_size=(\d+)", good(pysym(trace, "-f", "dump")))[1])
    assert size > 8 << 20


def test_foreign_table_is_not_believed(record, pysym, jit, tmp_path):
    """A table that was there before the process, and one that is a link, say nothing of it."""
    stale = "import os, subprocess, sys\n" \
            "path = f'/tmp/perf-{os.getpid()}.map'\n" \
            "open(path, 'w').write('0 7fffffffffff stale\\n')\n" \
            "os.utime(path, (1, 1))\n" \
            "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])\n"
    (tmp_path / "stale.py").write_text(stale)
    trace = record(sys.executable, tmp_path / "stale.py", jit, "0.4", "none", options=("-F", "199"))
    assert "\nperf_map " not in good(pysym(trace, "-f", "dump"))
    linked = stale.replace("open(path, 'w').write('0 7fffffffffff stale\\n')\nos.utime(path, (1, 1))",
                           f"open('{tmp_path}/secret', 'w').write('0 7fffffffffff stale\\n')\n"
                           f"os.symlink('{tmp_path}/secret', path)")
    (tmp_path / "linked.py").write_text(linked)
    trace = record(sys.executable, tmp_path / "linked.py", jit, "0.4", "none", options=("-F", "199"))
    assert "\nperf_map " not in good(pysym(trace, "-f", "dump"))
    assert "the trace has no table of its symbols" in good(pysym(trace, "-f", "summary", "-v"))


def test_perf_trampolines(python, record, pysym, tmp_path, jit):
    """CPython's own trampolines stand for a Python frame that is there already."""
    if python.version < (3, 12):
        pytest.skip("-X perf is of 3.12")
    program = tmp_path / "work.py"
    program.write_text(f"import os\nopen({str(program) + '.pids'!r}, 'w').write(str(os.getpid()))\n"
                       "import time\ndef inner(n):\n    return sum(i for i in range(n))\n"
                       "def outer():\n    return max([1, 2], key=lambda x: inner(20000))\n"
                       "end = time.process_time() + 0.8\nwhile time.process_time() < end:\n    outer()\n")
    trace = record(python.path, "-X", "perf", program, options=("-F", "199", "--unwind", "tables"))
    assert "\nperf_map " in good(pysym(trace, "-f", "dump"))
    stacks = good(pysym(trace, "-f", "folded")).splitlines()
    assert any("inner (work.py" in line for line in stacks)
    # Without Python frames (a sample from before the process was known) they are all there is.
    with_python = [line for line in stacks if re.search(r" \([^;]*:\d+\)[; ]", line)]
    shown = [line for line in with_python if re.search(r";py::|;py_trampoline_evaluator;[^;]* \(work\.py", line)]
    assert not shown, shown[0]
    assert "py::inner:" in good(pysym(trace, "-f", "folded", "--show-interpreter"))


# ---- another distribution ----

def test_other_system(python, needs_bpf, pycap, tmp_path, place):
    """A capture of an interpreter that this system has not opens from trace and archive alone, in an empty root."""
    if not python.root:
        pytest.skip("this interpreter is of this system")
    program = tmp_path / "work.py"
    program.write_text("import json, time\ndef \u00e4u\u00dferes(n):\n    return json.dumps(list(range(n)), indent=1)\n"
                       "end = time.process_time() + 1\nwhile time.process_time() < end:\n    \u00e4u\u00dferes(2000)\n")
    trace, archive = tmp_path / "t.bin", tmp_path / "t.tar.zst"
    good(pycap("record", "-F", "499", "-o", trace, "--archive", archive, "--", python.path, program))
    there = empty_root(place, trace, archive)
    text = good(there(trace.name, "-f", "folded", "--interpreter", "calls", "--archive", archive.name))
    stacks = [line for line in text.splitlines() if "\u00e4u\u00dferes (work.py:3)" in line]
    # An exported function of its interpreter's library, which no other file here has a name for.
    assert any("_start;" in line for line in stacks) and any(re.search(r";_?Py[A-Z]\w+", line) for line in stacks), text[-2000:]
    for view in ["speedscope", "perf-script", "top"]:
        good(there(trace.name, "-f", view, "--archive", archive.name))
    bare = good(there(trace.name, "-f", "folded", "--interpreter", "calls"))
    assert "\u00e4u\u00dferes (work.py:3)" in bare and not re.search(r";_?Py[A-Z]\w+", bare)


# ---- debuginfod ----

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start_server(program, folder, log):
    """debuginfod and its port. Somebody else may take the port before it does: then it ends, and gets another one."""
    for _ in range(5):
        port = free_port()
        process = subprocess.Popen([program, "-F", "-p", str(port), "-d", ":memory:", "-t", "0", folder], stdout=log, stderr=log,
                                   env={**os.environ, "DEBUGINFOD_URLS": ""})
        while process.poll() is None:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", port)) == 0 and process.poll() is None:
                    return process, port
            time.sleep(0.05)
    pytest.fail("debuginfod ends at once")


def test_debuginfod(record, pysym, spin, tmp_path):
    """A real server on the loopback has the binary and its debug file; it is asked only on request."""
    server = shutil.which("debuginfod")
    if not server:
        pytest.skip("debuginfod is not installed")
    library, program = spin
    subprocess.run("objcopy --only-keep-debug libspin.so spin.debug && strip libspin.so", shell=True, cwd=tmp_path,
                   check=True)
    trace = record(sys.executable, program, library, "0.4", "stay")
    (tmp_path / "served").mkdir()
    library.rename(tmp_path / "served/libspin.so")
    (tmp_path / "spin.debug").rename(tmp_path / "served/spin.debug")
    identity = build_id(tmp_path / "served/libspin.so")
    log = open(tmp_path / "server.log", "w")
    process, port = start_server(server, tmp_path / "served", log)
    environment = {**os.environ, "HOME": str(tmp_path), "DEBUGINFOD_URLS": f"http://127.0.0.1:{port}",
                   "DEBUGINFOD_CACHE_PATH": str(tmp_path / "cache"), "no_proxy": "127.0.0.1"}
    try:
        wait_for(f"http://127.0.0.1:{port}/buildid/{identity}/executable", process)
        wait_for(f"http://127.0.0.1:{port}/buildid/{identity}/debuginfo", process)
        assert "spin_inner" not in good(pysym(trace, "-f", "folded", env=environment))
        assert not (tmp_path / "cache").exists()
        out = good(pysym(trace, "-f", "folded", "--debuginfod", env=environment))
        summary = good(pysym(trace, "-f", "summary", "-v", "--debuginfod", env=environment))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
        log.close()
    assert ";spin;spin_inner" in out
    assert re.search(r"libspin\.so\n +build ID \w+; DWARF; debuginfod; debug file: debuginfod\n", summary), summary
    # Without a server the reason is told.
    shutil.rmtree(tmp_path / "cache")
    summary = good(pysym(trace, "-f", "summary", "-v", "--debuginfod", env=environment))
    assert re.search(r"libspin\.so\n.*; not found, neither by its path nor by its build ID; debuginfod: ", summary), summary
    done = pysym(trace, "-f", "folded", "--debuginfod", env={**environment, "DEBUGINFOD_URLS": ""})
    assert done.returncode == 2 and "DEBUGINFOD_URLS" in done.stderr


def wait_for(url, process):
    """Until the server has read the files: it answers 404 before."""
    import urllib.error
    import urllib.request
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for _ in range(600):
        assert process.poll() is None, "debuginfod ended"
        try:
            with opener.open(url, timeout=10) as answer:
                answer.read()
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    pytest.fail(f"{url} is not served")
