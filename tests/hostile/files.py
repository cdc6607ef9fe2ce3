# SPDX-License-Identifier: Apache-2.0
"""Attacks by files: traces that somebody hands to pysym or pycap archive, and things that lie where an output goes.

What must hold: no format takes more memory or time than a small trace may, nothing but regular files is opened, nothing
in an output or a message controls a terminal, and an output never goes into what is another user's.
"""
import gzip
import json
import os
import resource
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import xml.etree.ElementTree

import craft
import text_found
from beside import ATTACKER, Scene

MOST_RESIDENT_KIB = 256 << 10
MOST_CPU_S, FAIL_CPU_S = 2, 10  # the first is what is promised
QUICK = ("top", "summary", "folded", "speedscope", "tree", "brief", "svg", "annotate", "firefox", "html")
FORMATS = (*QUICK, "perf-script", "dump")
TEXTS = [b"\x1b]0;P\x07\x1b[31mX", b"a;b 99\n=cmd|'!A0", b"\"},{\"x\":\"</script><!--", b"\xff\xc0\x80\xed\xa0\x80",
         b"\xe2\x80\xae\xe2\x80\x8b\xe2\x81\xa6\xc2\x9b31m\xe2\x80\xa8", b"%s%n", b"\r\x08\x08"]


# ---- traces ----

def long_names(most_bytes):
    """Epochs of one code object each, with names of 7 MiB that pack well: each takes 700 bytes."""
    out, epoch = bytearray(craft.file_header()), 0
    while len(out) < most_bytes:
        out += craft.block(craft.begin(epoch) + craft.code(b"%08d" % epoch + b"A" * (7 << 20)) + craft.python_frame(1) +
                           craft.stack(0, [1]) + craft.whole_stack(python=1) + craft.samples([1]), epoch, samples=1)
        epoch += 1
    return bytes(out)


def deep_stacks(frames):
    """Each prefix of one deep stack is a sample."""
    body = craft.begin(0) + b"".join(craft.code(b"n%07d" % i) + craft.python_frame(i + 1) for i in range(3))
    body += craft.stack(0, [i % 3 + 1 for i in range(frames)])
    body += b"".join(craft.whole_stack(python=i + 1) for i in range(frames)) + craft.samples(range(1, frames + 1))
    return craft.file_header() + craft.block(body, 0, samples=frames)


def bad_texts():
    """Every string is one that a terminal, a page or a parser might obey."""
    body = craft.begin(0, TEXTS[0])
    for i, name in enumerate(TEXTS):
        body += craft.code(name, TEXTS[(i + 1) % len(TEXTS)]) + craft.python_frame(i + 1)
    body += craft.string(TEXTS[1]) + record_meta(4) + craft.stack(0, range(1, len(TEXTS) + 1))
    body += craft.whole_stack(python=len(TEXTS)) + craft.samples([1])
    return craft.file_header() + craft.block(body, 0, samples=1)


def record_meta(string_id):
    return craft.record(5, string_id, string_id)


def names_path(path, build_id=b"\x11" * 20, id_kind=1):
    """One sample in a module at that path."""
    body = craft.begin(0) + craft.string(os.fsencode(path)) + craft.module(4, build_id, id_kind, 4096) + craft.mapping(1, 4)
    body += craft.native_frame(1, 16) + craft.stack(0, [1]) + craft.whole_stack(native=1) + craft.samples([1])
    return craft.file_header() + craft.block(body, 0, samples=1)


# ---- running programs ----

class Run:
    """A program that was run with an output that is looked at and dropped: exit code, messages, and what it took."""

    def __init__(self, command, timeout_s=30, keep=False):
        before = time.monotonic()
        with subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            timer = threading.Timer(timeout_s, process.kill)
            timer.start()
            self.output, self.output_bytes, self.bad = b"", 0, ""
            errors = []
            reader = threading.Thread(target=lambda: errors.append(process.stderr.read()))
            reader.start()
            while chunk := process.stdout.read1(1 << 20):
                self.output_bytes += len(chunk)
                if keep:
                    self.output += chunk
            reader.join()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            timer.cancel()
        self.exit_code, self.messages = process.returncode, errors[0]
        self.cpu_s, self.resident_kib = usage.ru_utime + usage.ru_stime, usage.ru_maxrss
        self.wall_s = time.monotonic() - before


def bombs(_, pysym, scene):
    """Small traces that want much memory and time."""
    for name, data in (("names of 7 MiB", long_names(40_000)), ("stacks of 8,000 frames", deep_stacks(8000))):
        path = scene.top / "bomb.trace"
        path.write_bytes(data)
        for form in FORMATS:
            run = Run([pysym, path, "-f", form])
            print(f"          {name}, {len(data)} bytes, {form}: {run.cpu_s:.1f} s of CPU, {run.resident_kib >> 10} MiB, "
                  f"{run.output_bytes / 1e6:.0f} MB of output, exit code {run.exit_code}")
            if run.exit_code not in (0, 1) or (not run.output_bytes and not run.exit_code):
                yield f"{name}, {form}: exit code {run.exit_code}, {run.output_bytes} bytes of output"
            if run.resident_kib > MOST_RESIDENT_KIB:
                yield f"{name}, {form}: {run.resident_kib >> 10} MiB"
            if form in QUICK and run.cpu_s > FAIL_CPU_S:
                yield f"{name}, {form}: {run.cpu_s:.1f} s of CPU"


def zeros_by_name(names, gib_each):
    """A packed tar of files of zeros, each some GiB long; a piece of gzip stands for 64 MiB."""
    piece, out = gzip.compress(bytes(64 << 20)), bytearray()
    for name in names:
        member = tarfile.TarInfo(name)
        member.size = gib_each << 30
        out += gzip.compress(member.tobuf()) + piece * (gib_each << 4)
    return bytes(out)


def archives(_, pysym, scene):
    """Archives that unpack to far more than they are: what the trace names, what it does not, what is no binary; packed twice."""
    trace, archive, named = scene.top / "named.trace", scene.top / "bomb.tar.gz", "libx.so/" + "11" * 20
    trace.write_bytes(names_path("/opt/none/libx.so"))
    folder = scene.top / "temporary"
    folder.mkdir()
    for what, data in (("named", zeros_by_name([f"{named}/elf"], 3)), ("not named", zeros_by_name([f"libx.so/{'22' * 20}/elf"] * 3, 3)),
                       ("no binary", zeros_by_name(["text"], 3)),
                       ("packed twice", gzip.compress(gzip.compress(b"") * 3_000_000) * 20), ("nothing, often", gzip.compress(b"") * 3_000_000)):
        archive.write_bytes(data)
        run = Run(["env", f"TMPDIR={folder}", pysym, trace, "--archive", archive, "-f", "top"], keep=True)
        print(f"          {what}, {len(data) / 1e6:.1f} MB: {run.cpu_s:.1f} s of CPU, {run.resident_kib >> 10} MiB, exit code {run.exit_code}")
        if run.exit_code not in (0, 1) or run.cpu_s > FAIL_CPU_S or run.resident_kib > MOST_RESIDENT_KIB or list(folder.iterdir()):
            yield f"{what}: exit code {run.exit_code}, {run.cpu_s:.1f} s of CPU, {run.resident_kib >> 10} MiB; {run.messages!r}"


def texts(_, pysym, scene):
    """Strings that a terminal or a parser would obey, in every format."""
    path = scene.top / "texts\x1b[31m\u202e.trace"
    path.write_bytes(bad_texts())
    for form in FORMATS:
        run = Run([pysym, path, "-f", form], keep=True)
        found = text_found.unprintable(run.output.replace(b"\t", b"")) or text_found.unprintable(run.messages)
        if found or run.exit_code or (b"31m" not in run.output and form != "html"):  # whose names are packed
            yield f"{form}: exit code {run.exit_code}, {found}; {run.messages!r}"
        if form in ("speedscope", "firefox"):
            json.loads(run.output)
            if form == "speedscope" and b"</" in run.output:
                yield "speedscope: </ is not escaped"
        if form == "svg":
            xml.etree.ElementTree.fromstring(run.output)
    run = Run([pysym, scene.top / "no\x1b[31m\u202e", "-f", "top"])
    if run.exit_code != 1 or text_found.unprintable(run.messages):
        yield f"a path that is not there: exit code {run.exit_code}, {text_found.unprintable(run.messages)}"


def paths(pycap, pysym, scene):
    """A trace that names what must not be opened: FIFOs, devices, endless files, what only root may read."""
    trace = scene.top / "paths.trace"
    for path in (scene.fifo, "/proc/self/pagemap", "/dev/ptmx", scene.secret):
        for id_kind, identity in ((1, b"\x11" * 20), (2, b"\x11" * 8)):
            trace.write_bytes(names_path(path, identity, id_kind))
            for command in ([pysym, trace, "-f", "top"], [pysym, trace, "-f", "summary", "-v"],
                            [pycap, "archive", trace, "-o", scene.top / "paths.tar"]):
                run = Run(command, timeout_s=5, keep=True)
                what = f"{os.path.basename(command[0])} {command[1]}, {path}"
                if run.exit_code not in (0, 3) or b"damaged" in run.messages:
                    yield f"{what}: exit code {run.exit_code}; {run.messages!r}"
                if scene.word.encode() in run.output + run.messages:
                    yield f"{what}: shows what only root may read"
    if scene.fifo_opened:
        yield "a FIFO was opened"


# ---- outputs ----

def places(scene):
    """Things of an attacker's in a folder open to all, where an output of root's is to go: (name, path, what to look at)."""
    folder = scene.top / "open"
    folder.mkdir(exist_ok=True)
    os.chmod(folder, 0o1777)
    for name in ("symlink", "hard link", "file of another's"):
        target = folder / name.split()[0]
        if target.is_symlink() or target.exists():
            target.unlink()
        if name == "symlink":
            target.symlink_to(scene.secret)
            os.lchown(target, ATTACKER, ATTACKER)
        elif name == "hard link":
            os.link(scene.secret, target)
        else:
            target.write_bytes(b"before")
            os.chown(target, ATTACKER, ATTACKER)
        yield name, target


def outputs(pycap, pysym, scene):
    """Outputs into a folder where another user has laid something at their name."""
    trace = scene.top / "demo.trace"
    trace.write_bytes(bad_texts())
    secret = scene.secret.read_bytes()
    for command in ([pycap, "record", "-d", "0.1", "-o"], [pycap, "archive", trace, "-o"], [pysym, trace, "-f", "folded", "-o"]):
        for name, target in places(scene):
            held = None if name != "file of another's" else open(target, "rb")
            run = Run([*command, target])
            what = f"{' '.join(map(str, command[:2]))}, {name}"
            if run.exit_code not in (0, 1):
                yield f"{what}: exit code {run.exit_code}"
            if scene.secret.read_bytes() != secret:
                yield f"{what}: a file of root's was changed"
                scene.secret.write_bytes(secret)
            if held:
                if held.read() != b"before":
                    yield f"{what}: the other user reads the output by the descriptor that was open before"
                held.close()
                if target.exists() and target.stat().st_uid == ATTACKER and target.read_bytes() != b"before":
                    yield f"{what}: the output is the other user's"


SWAP = """
import ctypes, os, sys
libc, folder = ctypes.CDLL(None), sys.argv[1].encode()
while True:
    libc.renameat2(-100, folder + b"/x", -100, folder + b"/y", 2)  # exchanges them
"""


def swapped(pycap, pysym, scene):
    """Outputs below a folder of another user, who has a link to a folder of root's there, and a folder and that link in turns."""
    trace, theirs, held = scene.top / "demo.trace", scene.top / "theirs", scene.top / "held"
    trace.write_bytes(bad_texts())
    held.mkdir()
    theirs.mkdir()
    (theirs / "x").mkdir()
    (theirs / "y").symlink_to(held)
    for path in (theirs, theirs / "x", theirs / "y"):
        os.lchown(path, ATTACKER, ATTACKER)

    def outputs_to(name):
        out = theirs / name
        record = [pycap, "record", "-q", "-d", "0.2", "-o"]
        for i in range(6 if name == "x" else 1):
            for command in ([*record, out / f"a{i}.bin"], [*record, out / "b-%t.bin", "--rotate", "0.1", "--keep", "1"],
                            [*record, scene.top / "c.bin", "--status", out / "c.prom"],
                            [*record, scene.top / "d.bin", "--archive", out / f"d{i}.tar"],
                            [pycap, "archive", trace, "-o", out / f"e{i}.tar"], [pysym, trace, "-o", out / f"f{i}.folded"],
                            [pysym, trace, "-o", out / f"g{i}.perf.data"],
                            [pysym, trace, "-f", "folded", "--split", "process", "-o", out / f"h{i}.folded"],
                            [pysym, "baseline", trace, "-o", out / f"i{i}.pyb"],
                            [pysym, "push", "--pyroscope", "http://127.0.0.1:1", "--retry-for", "0s", "--state", out / f"j{i}", trace]):
                run = Run(command)
                there = [path.name for path in held.iterdir()]
                if there:
                    yield f"{os.path.basename(command[0])} {command[1]}: {there} in a folder of root's"
                    shutil.rmtree(held)
                    held.mkdir()
                if name == "y" and not run.exit_code and "--status" not in command:
                    yield f"{os.path.basename(command[0])} {command[1]} said nothing"

    yield from outputs_to("y")
    with subprocess.Popen([sys.executable, "-c", SWAP, theirs], user=ATTACKER, group=ATTACKER, extra_groups=[]) as attacker:
        try:
            yield from outputs_to("x")
        finally:
            attacker.kill()


def limit(pycap, _, scene):
    """A limit of the size of files: an error with words, and no signal."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    done = subprocess.run([pycap, "record", "-d", "1", "-o", scene.top / "limited.trace"], capture_output=True, check=False,
                          timeout=30, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1])))
    if done.returncode != 1 or b"File too large" not in done.stderr:
        yield f"exit code {done.returncode}: {done.stderr!r}"


# Each check takes the two programs and a scene, and yields its faults.
CHECKS = [
    ("strings that a terminal would obey", texts),
    ("paths that must not be opened", paths),
    ("small traces that want much", bombs),
    ("archives that unpack to much", archives),
    ("another user's things where an output goes", outputs),
    ("links that another user swaps on the way to an output", swapped),
    ("a limit of the size of files", limit),
]


def run(check, pycap, pysym, programs):
    """The faults that a check finds, as texts."""
    scene = Scene(programs)
    try:
        return list(check(pycap, pysym, scene))
    finally:
        scene.close()
