# SPDX-License-Identifier: Apache-2.0
"""libpycaptrace as somebody else has it: installed by make, compiled against with the flags of pkg-config and nothing else.

docs/example_reader.c, and a program that prints every fact of every sample, say what pysym's ndjson does.
"""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import measured
from conftest import PYSYM, ROOT
from trace_text import dump

TRACES = sorted((ROOT / "testdata").glob("*/*.trace"))
VIEW = ("--python-only", "--interpreter", "show", "--full-filenames")
MAKE_BOMB = pathlib.Path(PYSYM).parent / "tools/make_bomb"
HEADER = "pycap/trace.h"
# Each sample as a line of JSON, but for the texts, which are fields that a tab ends; and what lies at an address that is given.
EVERY_FACT = r"""
#include <pycap/trace.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    char why[PYCAP_MESSAGE_MAX];
    struct pycap_trace *t = pycap_trace_open(argv[1], why, sizeof why);
    const struct pycap_sample *s;
    int more;
    if (!t)
        return puts(why), 1;
    while ((more = pycap_trace_next(t, &s)) > 0) {
        printf("%llu\t%s\t%s\t%llu\t%u\t%s\t%s\t%u\t%u\t%u", (unsigned long long)s->time_ns, s->event->name, s->event->unit,
               (unsigned long long)s->weight * (s->event->bytes ? s->event->bytes : 1), s->thread->process->pid,
               s->thread->process->name, s->thread->process->comm, s->thread->tid, s->cpu, s->python_count);
        for (uint32_t i = 0; i < s->python_count; i++) {
            const struct pycap_python_frame *f = s->python[i];
            printf("\t%s\t%s\t%u\t%u\t%u", f->function, f->file, f->line, f->column, f->first_line);
        }
        for (uint32_t i = 0; i < s->label_count; i++)
            printf("\t%s\t%s", s->labels[i].key, s->labels[i].value);
        printf("%c", 0);
        for (uint32_t i = 0; i < s->native_count; i++)
            if (s->native[i]->module && !*s->native[i]->module->path)
                return puts("a module without a path"), 1;
        if (argc > 3) {
            uint64_t offset = 0, address = strtoull(argv[2], NULL, 10), time_ns = strtoull(argv[3], NULL, 10);
            const struct pycap_module *m = pycap_trace_find(t, s->thread->process, time_ns, address, &offset);
            return printf("%s\t%llu", m ? m->path : "", (unsigned long long)offset), pycap_trace_close(t), 0;
        }
    }
    if (more < 0)
        fprintf(stderr, "%s\n", pycap_trace_error(t));
    if (pycap_trace_summary(t)->damage)
        fprintf(stderr, "damage: %s\n", pycap_trace_summary(t)->damage);
    pycap_trace_close(t);
    return more < 0;
}
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Where make has installed the library, and the flags for it: those of the object files of this build."""
    if pathlib.Path(PYSYM).resolve() != ROOT / "build/pysym":
        pytest.skip("the library is installed from build alone")
    if not shutil.which("pkg-config") or not shutil.which("cc"):
        pytest.skip("no pkg-config, or no C compiler")
    place = tmp_path_factory.mktemp("installed")
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    made = subprocess.run(["make", "-s", "install-library", f"DESTDIR={place}", "prefix=/usr"], cwd=ROOT, capture_output=True,
                          text=True, env=plain, check=False)
    assert made.returncode == 0, made.stderr
    told = subprocess.run(["pkg-config", f"--define-variable=prefix={place}/usr", "--cflags", "--libs", "pycaptrace"],
                          env={**os.environ, "PKG_CONFIG_PATH": f"{place}/usr/lib/pkgconfig"}, capture_output=True, text=True, check=True)
    return place / "usr", told.stdout.split()


@pytest.fixture(scope="module")
def compiled(installed, tmp_path_factory):
    place, flags = installed
    folder = tmp_path_factory.mktemp("compiled")

    def run(source):
        program = folder / source.stem
        done = subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-o", program, source, *flags], capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0, done.stderr
        return program
    return run


@pytest.fixture(scope="module")
def example(compiled):
    return compiled(ROOT / "docs/example_reader.c")


@pytest.fixture(scope="module")
def every_fact(compiled, tmp_path_factory):
    source = tmp_path_factory.mktemp("source") / "every_fact.c"
    source.write_text(EVERY_FACT)
    return compiled(source)


def run(program, *arguments, **keywords):
    return subprocess.run([program, *arguments], capture_output=True, timeout=300, check=False, **keywords)


@pytest.fixture
def ndjson(pysym, tmp_path):
    """The samples of a trace, each with its Python frames."""
    def read(trace):
        done = pysym(trace, "-f", "ndjson", *VIEW, "-o", tmp_path / "t.ndjson")
        assert done.returncode == 0, done.stderr
        stacks = {0: [], None: []}
        with open(tmp_path / "t.stacks.ndjson", encoding="utf-8") as lines:
            for stack in map(json.loads, lines):
                stacks[stack["stack"]] = [f for f in stack["frames"] if f["layer"] == "python"]
        with open(tmp_path / "t.ndjson", encoding="utf-8") as lines:
            return [{**sample, "frames": stacks[sample["stack"]]} for sample in map(json.loads, lines)]
    return read


def same_sums(example, ndjson, trace):
    done = run(example, trace)
    sums = collections.Counter()
    for s in ndjson(trace):
        if s["frames"]:
            name = f"{s['event']}\t{s['frames'][-1]['function']} ({s['frames'][-1]['file']})"
            sums[name] += s["faults"] or s["value"]
    expected = "".join(f"{weight}\t{name}\n" for name, weight in sorted(sums.items(), key=lambda row: (-row[1], row[0].encode())))
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode() == expected
    return done


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_example(trace, example, ndjson):
    """The example's sums of functions are pysym's."""
    same_sums(example, ndjson, trace)


@pytest.mark.smoke
def test_live(record, example, ndjson):
    """And those of a recording of this moment."""
    trace = record(sys.executable, ROOT / "testdata/programs/threads.py", "0.02",
                   options=("-F", "199", "-e", "cpu-clock,off-cpu,page-faults"))
    assert same_sums(example, ndjson, trace).stderr == b""


def test_example_of_pipe(example, ndjson):
    trace = ROOT / "testdata/waiting/flaskr.trace"
    with open(trace, "rb") as stream:
        assert run(example, stdin=stream).stdout == same_sums(example, ndjson, trace).stdout


def facts_of(sample):
    frames = [[f["function"], f["file"], str(f["line"]), str(f["column"] if f["line"] else 0), str(f["function_line"])]
              for f in sample["frames"]]  # what has no line has no column
    labels = sorted([key, value] for key, value in sample["labels"].items())
    return (*(str(sample[name]) for name in ("time_ns", "event", "unit", "value", "pid", "process", "comm", "tid", "cpu")), frames, labels)


def told_facts(text):
    """The same of what the program printed; texts may hold line breaks."""
    for line in text.split("\0")[:-1]:
        fields = line.split("\t")
        count = int(fields[9])
        frames = [fields[10 + 5 * i:15 + 5 * i] for i in range(count)]
        labels = fields[10 + 5 * count:]
        yield (*fields[:9], frames, sorted([key, value] for key, value in zip(labels[::2], labels[1::2])))


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_fact(trace, every_fact, ndjson):
    """Each sample's time, event, weight, process, thread, CPU, labels, and functions with files, lines and columns."""
    done = run(every_fact, trace)
    assert done.returncode == 0, done.stderr
    told = sorted(told_facts(done.stdout.decode()))
    expected = sorted(facts_of(s) for s in ndjson(trace))
    for facts in (told, expected):  # pysym's unit of memory is bytes
        facts[:] = [(*f[:2], "bytes" if f[2] == "faults" else f[2], *f[3:]) for f in facts]
    assert told == expected


def test_made(make, every_fact, ndjson):
    """Epochs, changes of periods, flags of a later version."""
    trace = make(samples=5000, natural=1, stacks=200, depth=10, processes=3, threads=7, second_event=500, torn=50, labels=5, gil=1,
                 epoch_samples=1000, newer=20, slower_at=2000)
    done = run(every_fact, trace)
    assert sorted((f[0], f[3], f[7], f[9]) for f in told_facts(done.stdout.decode())) == \
        sorted((f[0], f[3], f[7], f[9]) for f in map(facts_of, ndjson(trace)))


def test_address(every_fact):
    """What lies at an address of a process at a time: the module, and where in its file."""
    trace = ROOT / "testdata/traces/3.12-shared.trace"
    strings, modules, mappings = {}, [None], []
    for name, fields in dump(trace):
        if name == "string":
            strings[fields["id"]] = str(fields["data"]).strip('"')
        elif name == "module":
            modules.append(strings[fields["path"]])
        elif name == "mapping" and fields["module"] and fields["length"] > 8192:
            mappings.append(fields)
    assert len(mappings) > 1
    for mapping in mappings:
        address, time_ns = int(mapping["address"], 16) + 8192, mapping["time_ns"]

        def found(address, time_ns):
            return run(every_fact, trace, str(address), str(time_ns)).stdout.decode().split("\0")[1].split("\t")
        assert found(address, time_ns) == [modules[mapping["module"]], str(mapping["file_offset"] + 8192)]
        assert found(address, time_ns - 1) == found(16, time_ns) == ["", "0"]


# ---- the library itself ----

def test_names(installed):
    """It exports what the header declares, and the linker needs nothing but the C library and zstd."""
    place, flags = installed
    archive = place / "lib/libpycaptrace.a"
    symbols = subprocess.run(["nm", "-g", "--defined-only", archive], capture_output=True, text=True, check=True).stdout
    declared = re.findall(r"^[a-z].*?\b(pycap_\w+)\(", (place / "include" / HEADER).read_text(), re.M)
    assert sorted(re.findall(r" [A-Z] (\w+)$", symbols, re.M)) == sorted(declared) and declared
    assert not [flag for flag in flags if flag.startswith("-l") and flag not in ("-lpycaptrace", "-lzstd")]


@pytest.mark.parametrize("compiler, standard", [("cc", "c99"), ("cc", "c17"), ("c++", "c++11")])
def test_header(installed, compiler, standard, tmp_path):
    """The header needs no other one before it, in C and in C++."""
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    source = tmp_path / ("one.cc" if compiler == "c++" else "one.c")
    source.write_text(f"#include <{HEADER}>\nint main(void) {{ pycap_trace_close(0); return 0; }}\n")
    done = subprocess.run([compiler, f"-std={standard}", "-Wall", "-Wextra", "-pedantic", "-Werror", "-o", tmp_path / "one", source,
                           *installed[1]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_in_a_shared_library(installed, tmp_path):
    """It can be part of one, such as a module of Python."""
    source = tmp_path / "part.c"
    source.write_text(f"#include <{HEADER}>\nconst char *part(void) {{ return pycap_loss_meaning(10); }}\n")
    done = subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-z,defs", "-o", tmp_path / "part.so", source, *installed[1]],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ---- what is wrong with a file ----

def test_damaged(example, ndjson, tmp_path):
    """A trace that ends anywhere: what stands before, and that something is damaged."""
    whole = (ROOT / "testdata/traces/3.12-shared.trace").read_bytes()
    cut = tmp_path / "cut.trace"
    for at in range(25, len(whole), len(whole) // 12):
        cut.write_bytes(whole[:at])
        assert b"bytes are damaged: " in same_sums(example, ndjson, cut).stderr


def test_no_trace(example, tmp_path):
    """One line says which file cannot be read, and why."""
    for content, said in ((None, b"No such file"), (b"", b"is empty"), (b"no trace at all, but longer", b"is not a pycap trace")):
        path = tmp_path / "none"
        if content is not None:
            path.write_bytes(content)
        done = run(example, path)
        assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (1, b"", 1)
        assert said in done.stderr and str(path).encode() in done.stderr


@pytest.mark.parametrize("name", ["names", "processes", "tuples", "renames", "periods", "line-tables"])
def test_bomb(name, example, tmp_path):
    """A small file that unpacks to much more ends in an error or at its end, in bounded memory."""
    if not MAKE_BOMB.exists():
        pytest.skip(f"{MAKE_BOMB} is not built")
    path = tmp_path / "bomb.bin"
    subprocess.run([MAKE_BOMB, path, name], check=True)
    used = measured.run(example, path)
    print(f"{name}: {used.cpu_s:.1f} s, {used.resident_kib >> 10} MiB, exit {used.returncode}: {used.stderr.strip()}")
    assert used.returncode == 0 or "more memory or work than one of its size may" in used.stderr
    assert used.resident_kib >> 10 <= 256
