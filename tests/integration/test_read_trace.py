# SPDX-License-Identifier: Apache-2.0
"""docs/read_trace.py, which was written from docs/trace-format.md alone, prints of every trace what pysym does.

Its weights are those of pysym's ndjson, added up; with --samples and --columns it prints the golden files of testdata/traces, which
are checked against what the programs told of themselves.
"""
import collections
import functools
import importlib.util
import json
import pathlib
import random
import re
import subprocess
import sys

import pytest

import measured
from conftest import PYSYM, ROOT
from trace_text import dump

READER = ROOT / "docs/read_trace.py"
TRACES = sorted((ROOT / "testdata").glob("*/*.trace"))
GOLDEN = [path for path in TRACES if path.with_suffix(".folded").exists()]
VIEW = ("--python-only", "--interpreter", "show", "--full-filenames")  # what a reader sees who looks at Python's stacks alone
RAW, STARTS_EPOCH = 0, 1
MAKE_BOMB = pathlib.Path(PYSYM).parent / "tools/make_bomb"
BOMB_MIB = 768  # at most: as it stops when it has unpacked more than a file of its size should


@functools.lru_cache(maxsize=None)
def python():
    """An interpreter that has the module zstandard: that of the tests, or Debian's."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        try:
            if subprocess.run([candidate, "-c", "import zstandard"], capture_output=True, check=False).returncode == 0:
                return candidate
        except OSError:
            pass
    return None


@pytest.fixture
def reader():
    if not python():
        pytest.skip("no Python module zstandard (Debian: python3-zstandard)")

    def run(*arguments, **keywords):
        keywords = {"capture_output": True, "timeout": 300, "check": False, **keywords}
        return subprocess.run([python(), "-B", READER, *map(str, arguments)], **keywords)
    return run


@functools.lru_cache(maxsize=None)
def library():
    """read_trace.py as a module: its checksums and numbers serve to make traces."""
    spec = importlib.util.spec_from_file_location("read_trace", READER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def clean(text):
    """As every output has it: a semicolon parts frames, a line break lines."""
    return re.sub("[\0-\x1f]", "_", text).replace(";", ":")


def pysym_lines(pysym, trace, folder):
    """The lines that ndjson's samples come to."""
    done = pysym(trace, "-f", "ndjson", *VIEW, "-o", folder / "t.ndjson")
    assert done.returncode == 0, done.stderr
    stacks, sums = {0: "[no frames]"}, collections.Counter()
    with open(folder / "t.stacks.ndjson", encoding="utf-8") as lines:
        for stack in map(json.loads, lines):
            stacks[stack["stack"]] = ";".join(
                clean(f["function"]) + (f" ({clean(f['file'])}{':%d' % f['line'] if f['line'] else ''})" if f["file"] else "")
                for f in stack["frames"])
    with open(folder / "t.ndjson", encoding="utf-8") as lines:
        for sample in map(json.loads, lines):
            process = clean(sample["process"]) + (f' "{sample["title"]}"' if sample["title"] else "")
            sums[sample["event"], f"{process}-{sample['pid']}", stacks[sample["stack"] or 0]] += sample["value"]
    several = len({event for event, _, _ in sums}) > 1
    return sorted((";".join(key[not several:]) + f" {value}").encode() for key, value in sums.items())


def folded_lines(pysym, trace):
    """The lines of the format folded, whose numbers are counts here, and what pysym said of damage."""
    done = pysym(trace, "-f", "folded", *VIEW, text=False)
    assert done.returncode == 0, done.stderr
    assert b"weigh differently" not in done.stderr
    return done.stdout.splitlines(), b"damaged" in done.stderr


def same(pysym, reader, trace, folder):
    done = reader(trace)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == pysym_lines(pysym, trace, folder)
    return done


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_recorded(trace, pysym, reader, tmp_path):
    said = same(pysym, reader, trace, tmp_path).stderr.decode().splitlines()
    ended = any(name == "end" for name, _ in dump(trace))
    assert said == ([] if ended else [f"read_trace.py: {trace}: it has no end: the recorder was killed or could not write"])


@pytest.mark.parametrize("trace", GOLDEN, ids=lambda path: path.stem)
def test_golden(trace, reader):
    """Lines and columns of every version, by its own encoding."""
    done = reader("--samples", "--columns", trace)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == trace.with_suffix(".folded").read_bytes()


@pytest.mark.smoke
def test_live(record, pysym, reader, tmp_path):
    """Threads that run and wait, and memory, in a recording of this moment."""
    trace = record(sys.executable, ROOT / "testdata/programs/threads.py", "0.02",
                   options=("-F", "199", "-e", "cpu-clock,off-cpu,page-faults"))
    assert same(pysym, reader, trace, tmp_path).stdout.count(b"\n") > 3


def test_made(make, pysym, reader, tmp_path):
    """Epochs, changes of periods, several events, stacks that broke off, labels, flags of a later version; and from a pipe."""
    trace = make(samples=20000, natural=1, stacks=500, depth=20, processes=3, threads=7, second_event=1000, torn=50, labels=5, gil=1,
                 epoch_samples=3000, newer=20, slower_at=9000, command=1, sources=3)
    done = same(pysym, reader, trace, tmp_path)
    with open(trace, "rb") as stream:
        assert reader("-", stdin=stream).stdout == done.stdout


def test_records():
    """Its table of records is that of the document; both may have grown by records, and records by fields, since."""
    text = (ROOT / "docs/trace-format.md").read_text()
    sections = re.findall(r"^### (\d+) (\w+)\n(.*?)(?=^##)", text[text.index("## Record types"):], re.M | re.S)
    documented = {int(number): (name, [tuple((f"{field} {kind}".split() + [None])[:3]) for field, kind in
                                       re.findall(r"^\| `(\w+)` \| ([A-Z0-9]+(?: \w+)?) \|", rows, re.M)]) for number, name, rows in sections}
    assert len(documented) >= 34
    for number, (name, fields) in library().TYPES.items():
        assert (name, fields) == (documented[number][0], documented[number][1][:len(fields)])


def test_checksum():
    """Of every length, against one number from xxHash's own code: each of its ways is for some lengths."""
    xxh3 = library().xxh3
    data = bytes((i * 7 + i // 256) & 255 for i in range(3000))
    assert xxh3(b"".join(xxh3(data[n % 5:n % 5 + n]).to_bytes(8, "little") for n in range(4, 2100))) == 0xBB5C4EEAD21E9D9B


# ---- damage ----

def test_cut(pysym, reader, tmp_path):
    """A trace that ends anywhere gives what stands before that, and says so."""
    whole = (ROOT / "testdata/traces/3.12-shared.trace").read_bytes()
    for at in sorted(random.Random(1).sample(range(24, len(whole)), 20)):
        cut = tmp_path / "cut.trace"
        cut.write_bytes(whole[:at])
        done = reader("--samples", cut)
        assert (done.returncode, done.stdout.splitlines()) == (0, folded_lines(pysym, cut)[0]), at
        assert b"it has no end" in done.stderr, at


def test_flipped(make, pysym, reader, tmp_path):
    """A bit that is wrong costs an epoch at most, which both skip."""
    whole = make(samples=3000, epoch_samples=500, depth=4).read_bytes()
    draw = random.Random(2)
    for _ in range(30):
        wrong = bytearray(whole)
        wrong[draw.randrange(24, len(wrong))] ^= 1 << draw.randrange(8)
        path = tmp_path / "wrong.trace"
        path.write_bytes(wrong)
        done = reader("--samples", path)
        lines, damaged = folded_lines(pysym, path)
        assert (done.returncode, done.stdout.splitlines()) == (0, lines)
        assert damaged and b"; skipped " in done.stderr


def test_appended(pysym, reader, tmp_path):
    """A trace behind another one, with some bytes between them that belong to none."""
    both = tmp_path / "both.trace"
    one, other = ((ROOT / f"testdata/traces/{name}-shared.trace").read_bytes() for name in ("3.8", "3.13"))
    both.write_bytes(one + other)
    done = reader("--samples", both)
    assert (done.stderr, done.stdout.splitlines()) == (b"", folded_lines(pysym, both)[0])
    assert b"python3.8-" in done.stdout and b"python3.13-" in done.stdout
    both.write_bytes(one + b"\x89PYBLK nothing" + other)
    done = reader("--samples", both)
    assert b"no block begins here" in done.stderr
    assert done.stdout.splitlines() == folded_lines(pysym, both)[0]


# ---- records that no recorder writes ----

def number(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def rewrite(trace, change):
    """The trace with each record passed through change(type, fields as bytes), which returns records as pairs; nothing packed."""
    r, data, at = library(), trace.read_bytes(), 24
    out = bytearray(data[:at])
    while at < len(data):
        head = list(r.BLOCK_HEADER.unpack_from(data, at))
        payload = data[at + 48:at + 48 + head[7]]
        at += 48 + head[7]
        raw, records, k = r.unpack(payload, head[8]) if head[2] else payload, bytearray(), 0
        while k < len(raw):
            kind, k = r.varint(raw, k, len(raw))
            length, k = r.varint(raw, k, len(raw))
            for new_kind, fields in change(kind, raw[k:k + length]):
                records += number(new_kind) + number(len(fields)) + fields
            k += length
        head[2], head[7], head[8] = RAW, len(records), len(records)
        block = bytearray(r.BLOCK_HEADER.pack(*head)) + records
        block[8:16] = r.xxh3(bytes(block[16:])).to_bytes(8, "little")
        out += block
    return bytes(out)


@pytest.fixture
def changed(reader, pysym, tmp_path):
    """Both read a changed copy of a trace; returns their lines, which are the same, and what the reader said."""
    pytest.importorskip("zstandard", reason="the interpreter of the tests has no module zstandard")

    def run(trace, change):
        path = tmp_path / "changed.trace"
        path.write_bytes(rewrite(trace, change))
        done = reader("--samples", path)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert lines == folded_lines(pysym, path)[0]
        return lines, done.stderr
    return run


PLAIN = ROOT / "testdata/traces/3.12-shared.trace"


def test_newer(changed):
    """Records of a later version are left out, and so is what has been added to those that are known."""
    def change(kind, fields):
        complete = kind in (1, 2, 3, 16, 17, 21, 24)  # in this trace of 0.1.0: others have got fields since
        return [(kind, fields + b"\x05later" if complete else fields), *([(99, b"\xff" * 5)] if kind != 1 else [])]
    plain, _ = changed(PLAIN, lambda kind, fields: [(kind, fields)])
    newer, said = changed(PLAIN, change)
    assert newer == plain != []
    assert b"records of a newer pycap were left out" in said


def test_python_nobody_knows(changed):
    """No line, rather than that of another version's table; at the offset -1, too."""
    def change(kind, fields):
        r = library()
        if kind == 16:
            _, at = r.varint(fields, 0, len(fields))
            return [(kind, number(0x031601F0) + fields[at:])]
        if kind == 17:
            code, at = r.varint(fields, 0, len(fields))
            offset, end = r.varint(fields, at, len(fields))
            return [(kind, number(code) + number(1 if code % 2 else offset) + fields[end:])]
        return [(kind, fields)]
    lines, _ = changed(PLAIN, change)
    assert any(b"(/opt/app/program.py)" in line for line in lines)
    assert not any(re.search(rb":\d+\)", line) for line in lines)


def test_undefined(changed):
    """An id that is not defined is damage, as it is in pysym."""
    def change(kind, fields):
        return [(kind, fields[:-1] + b"\x7f" if kind == 21 and len(fields) == 3 else fields)]  # a stack of one frame
    _, said = changed(PLAIN, change)
    assert b"frame 127 is not defined; skipped " in said


# ---- what is no trace ----

@pytest.mark.parametrize("content, said", [
    (b"", b"is not a trace"), (b"PK\3\4" * 9, b"is not a trace"), (b"\x89PYCAP\r\n" + bytes(3), b"header is damaged")])
def test_no_trace(content, said, reader, tmp_path):
    path = tmp_path / "none"
    path.write_bytes(content)
    done = reader(path)
    assert said in done.stderr and not done.stdout
    assert b"Traceback" not in done.stderr


def test_no_file(reader, tmp_path):
    done = reader(tmp_path / "none")
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert b"No such file" in done.stderr
    assert reader().returncode == 2


def test_newer_format(reader, tmp_path):
    """One that needs a newer reader is refused."""
    r, path = library(), tmp_path / "newer"
    head = (2).to_bytes(2, "little") * 2 + (24).to_bytes(2, "little") + bytes(2)
    path.write_bytes(r.FILE_MAGIC + r.xxh3(head).to_bytes(8, "little") + head)
    done = reader(path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"needs a reader of format version 2" in done.stderr


def test_without_zstandard(reader, tmp_path):
    """What is missing is named, and how to get it."""
    (tmp_path / "zstandard.py").write_text("raise ImportError")
    done = reader(PLAIN, env={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"python3-zstandard" in done.stderr and b"Traceback" not in done.stderr


def mutations():
    """Traces with a few records made nonsense, by valid checksums."""
    draw = random.Random(3)

    def change(kind, fields):
        fields = bytearray(fields)
        if fields and not draw.randrange(40):
            fields[draw.randrange(len(fields))] = draw.randrange(256)
        return [(kind if draw.randrange(400) else draw.randrange(40), bytes(fields))]
    return change


def test_nonsense(reader, tmp_path):
    """Whatever records say, the reader ends with lines or with one plain reason."""
    pytest.importorskip("zstandard", reason="the interpreter of the tests has no module zstandard")
    change = mutations()
    for i in range(20):
        trace = GOLDEN[i % len(GOLDEN)]
        path = tmp_path / "nonsense.trace"
        path.write_bytes(rewrite(trace, change))
        done = reader(path)
        assert done.returncode in (0, 1) and b"Traceback" not in done.stderr, (trace, done.stderr)


@pytest.mark.parametrize("name", ["names", "owners", "processes", "tuples"])
def test_bomb(name, reader, tmp_path):
    """A small file that unpacks to much more takes no more memory than that."""
    if not MAKE_BOMB.exists():
        pytest.skip(f"{MAKE_BOMB} is not built")
    path = tmp_path / "bomb.bin"
    subprocess.run([MAKE_BOMB, path, name, "2"], check=True)
    used = measured.run(python(), "-B", READER, path)
    print(f"{name}: {used.cpu_s:.1f} s, {used.resident_kib >> 10} MiB, exit {used.returncode}: {used.stderr.strip()}")
    assert used.returncode == 1 and "unpacks to more" in used.stderr and "Traceback" not in used.stderr
    assert used.resident_kib >> 10 <= BOMB_MIB
