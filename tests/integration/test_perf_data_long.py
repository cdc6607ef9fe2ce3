# SPDX-License-Identifier: Apache-2.0
"""perf.data files of every version and of many kinds of code; and samply reads them.

There are more captures than test_perf_data.py has time for.

samply comes from the crates registry and takes minutes to compile; it stays in the cache.
"""
import pytest

import perf_readers
from conftest import CACHE, PYCAP, PYTHON, ROOT
from consumers import obtain
from perf_readers import HOTSPOT_NAMES, check, expected, needed, only, perf_script, report, run, top, write

pytestmark = pytest.mark.long

TRACES = sorted((ROOT / "testdata/traces").glob("*.trace"))
SAMPLY = "0.13.1"


@pytest.fixture(scope="module")
def samply():
    folder = CACHE / f"samply-{SAMPLY}"
    program = folder / "bin/samply"
    if not program.exists():
        obtain("samply", "nice", "cargo", "install", "-q", "-j1", "--locked", "--root", folder, "--version", SAMPLY, "samply",
               timeout=3600)
    return program


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.stem)
def test_every_version(trace, perf, tmp_path):
    data = write(trace, tmp_path)
    check(expected(trace), perf_script(data.with_names(perf), data.path))


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.stem)
def test_every_version_hotspot(trace, tmp_path):
    parser = needed(perf_readers.hotspot())
    data = write(trace, tmp_path)
    check(expected(trace), perf_readers.perfparser(parser, data.path, data.cache), HOTSPOT_NAMES)


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.stem)
def test_every_version_samply(trace, samply, tmp_path):
    """Frames of Python, and what stands for those that are missing: names, files and lines."""
    data = write(trace, tmp_path)
    shown = perf_readers.samply_samples(samply, data.path)
    check(only(expected(trace), ("python", "mark")), only(shown, ("python", "code")))


PARTS = ("pure", "json", "regex", "zlib", "hashes", "sqlite", "decimal", "threads", "signals", "callbacks", "c_code")


@pytest.mark.parametrize("options", [[], ["--interpreter", "show"]], ids=["default", "show"])
def test_code_of_many_makers(options, perf, needs_bpf, tmp_path):
    programs, trace = ROOT / "testdata/programs", tmp_path / "trace.bin"
    run("cc", "-O2", "-g", "-shared", "-fPIC", "-o", tmp_path / "mix.so", programs / "mix_native.c")
    work = "\n".join([f"{PYTHON} mix.py {part} 0.1" for part in PARTS] +
                     [f"{PYTHON} {name} 0.02 >/dev/null" for name in ("thread_names.py", "tasks.py", "names.py", "chains.py")])
    run(PYCAP, "record", "-q", "-F", "499", "-e", "cpu-clock,page-faults,context-switches", "-o", trace, "--",
        "env", f"MIX_NATIVE={tmp_path}/mix.so", "sh", "-ec", f"cd {programs}\n{work}")
    data = write(trace, tmp_path / "out", *options)
    check(expected(trace, *options), perf_script(data.with_names(perf), data.path))


def test_a_million_samples(make, perf, tmp_path):
    trace = make(samples=1000000, stacks=1000, depth=20, threads=16, processes=4, cpus=4)
    data = write(trace, tmp_path / "out")
    rows, total = top(trace)["cpu-clock"]
    shown = report(perf, data, "--no-children", "--fields", "period,sym")
    assert sum(int(period) for period, _ in shown) == total
    assert len(shown) <= len(rows)
