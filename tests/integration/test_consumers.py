# SPDX-License-Identifier: Apache-2.0
"""The programs that the output formats are made for read them.

build/tools/emit_demo writes a made-up profile with the names that have tripped consumers; each consumer has to show
all of its samples, thread by thread. consumers.py says where they come from, test_formats_agree.py compares the formats among
themselves.

  speedscope    its JSON schema, and the program itself in headless Chromium (a Debian package; not installed from here)
  Firefox       @firefox-devtools/profiler-cli, which has the Profiler's own importers inside
  inferno       the maintained port of stackcollapse-perf.pl and flamegraph.pl
  *.pl          Perl's originals are in no registry: used where they are on PATH
"""

import collections
import pathlib
import re
import shutil

import pytest

from conftest import CACHE, ROOT
from consumers import firefox_profiler, npm_package, obtain, run, speedscope_shows

pytestmark = pytest.mark.unsanitized

INFERNO = "0.12.8"
SAMPLES = 4000
KERNEL = {"do_syscall_64", "ext4_file_read_iter"}


@pytest.fixture(scope="session")
def demo():
    run("make", "-s", "build/tools/emit_demo", cwd=ROOT, timeout=600)

    def write(out_format, *options):
        return run(ROOT / "build/tools/emit_demo", out_format, *options, f"samples={SAMPLES}").stdout

    return write


@pytest.fixture(scope="session")
def truth(demo):
    """tid -> (samples, nanoseconds)"""
    rows = [line.split() for line in demo("totals").decode().splitlines()]
    return {int(tid): (int(samples), int(ns)) for tid, samples, ns in rows}


@pytest.fixture(scope="session")
def inferno():
    found = shutil.which("inferno-collapse-perf")
    if found:
        return pathlib.Path(found).parent
    folder = CACHE / f"inferno-{INFERNO}"
    if not (folder / "bin" / "inferno-collapse-perf").exists():
        features = ("--no-default-features", "--features", "cli")
        obtain(
            "inferno", "cargo", "install", "-q", "-j1", "--locked", "--root", folder, "--version", INFERNO, *features,
            "inferno",
        )  # fmt: skip
    return folder / "bin"


def folded_lines(text):
    for line in text.decode().splitlines():
        stack, count = line.rsplit(" ", 1)
        yield stack.split(";"), int(count)


# ---- speedscope ----

VALIDATE = """
const Ajv = require(process.argv[1]), fs = require('fs')
const validate = new Ajv({strict: false}).compile(JSON.parse(fs.readFileSync(process.argv[2])))
if (!validate(JSON.parse(fs.readFileSync(process.argv[3])))) {
    console.error(JSON.stringify(validate.errors.slice(0, 5)))
    process.exit(1)
}
"""


@pytest.mark.parametrize("options", [(), ("columns", "full_paths"), ("no_lines",), ("by_function",)])
def test_speedscope_schema(demo, tmp_path, options):
    schema = npm_package("speedscope") / "dist/release/file-format-schema.json"
    profile = tmp_path / "demo.speedscope.json"
    profile.write_bytes(demo("speedscope", *options))
    run("node", "-e", VALIDATE, npm_package("ajv"), schema, profile)


def test_speedscope_opens_speedscope(demo, truth, tmp_path):
    words = speedscope_shows(tmp_path, "x.json", demo("speedscope", "merge_thread"))
    for tid, (_, ns) in truth.items():
        at = next(i for i, w in enumerate(words) if w.endswith(f" {tid}") and re.match(r"\d", words[i + 1]))
        assert words[at + 1] == f"{ns / 1e9:.2f}s"
    assert "Server.serve (server.py:42)" in words
    assert "do_syscall_64_[k]" in words


def test_speedscope_opens_all_threads_first(demo, truth, tmp_path):
    words = speedscope_shows(tmp_path, "x.json", demo("speedscope"))
    seconds = sum(ns for _, ns in truth.values()) / 1e9
    assert f"all threads ({seconds:.1f} s)" in words
    # The sandwich view is of the profile that opens: its functions' totals are those of all threads.
    shown = [w for w in words if re.fullmatch(r"[\d.]+s \(\d+%\)|[\d.]+s \([\d.]+%\)", w)]
    assert shown and max(float(w.split("s")[0]) for w in shown) > max(ns for _, ns in truth.values()) / 1e9


def test_speedscope_opens_perf_script(demo, truth, tmp_path):
    words = speedscope_shows(tmp_path, "x.txt", demo("perf-script"))
    for tid in truth:
        assert any(w.endswith(f"tid: {tid}") for w in words)
    assert "py::Server.serve:/srv/app/server.py:42" in words
    # speedscope drops a frame whose binary has a space in it
    assert "std::unique_ptr<A>::operator→() const" in words


def test_speedscope_opens_folded(demo, tmp_path):
    words = speedscope_shows(tmp_path, "x.folded", demo("folded"))
    assert "Server.serve (server.py:42)" in words
    assert "ext4_file_read_iter_[k]" in words


# ---- stackcollapse-perf and flame graphs ----


def check_collapsed(text, truth):
    threads, kernel = collections.Counter(), set()
    for frames, count in folded_lines(text):
        tid = int(frames[0].rsplit("/", 1)[1])
        threads[tid] += count
        kernel |= {f[: -len("_[k]")] for f in frames if f.endswith("_[k]")}
        assert not any(f.endswith("_[i]") for f in frames)
    assert threads == {tid: n for tid, (n, _) in truth.items()}
    assert kernel == KERNEL
    for name in ("py::Server.serve:/srv/app/server.py:42", "[libodd.so]", "[vdso]", "{anonymous}::work", "[no frames]"):
        assert name.encode() in text


def check_flame_graph(svg):
    if isinstance(svg, bytes):
        svg = svg.decode()
    assert re.search(r"<title>all \(%s samples, 100%%\)" % f"{SAMPLES:,}", svg)
    assert "Server.serve (server.py:42)" in svg


@pytest.mark.long  # it takes minutes to compile
def test_inferno_collapse_perf(demo, truth, inferno):
    done = run(inferno / "inferno-collapse-perf", "--all", "--pid", "--tid", input=demo("perf-script"))
    assert b"weird" not in done.stderr.lower()
    check_collapsed(done.stdout, truth)


@pytest.mark.long
def test_inferno_flamegraph(demo, inferno):
    done = run(inferno / "inferno-flamegraph", input=demo("folded"))
    assert done.stderr == b""
    check_flame_graph(done.stdout)


def script_on_path(name):
    found = shutil.which(name)
    if not found:
        pytest.skip(f"{name} is in no package registry, and not on PATH")
    return found


def test_stackcollapse_perf_pl(demo, truth):
    script = script_on_path("stackcollapse-perf.pl")
    done = run(script, "--all", "--pid", "--tid", input=demo("perf-script"))
    assert done.stderr == b""
    check_collapsed(done.stdout, truth)


def test_flamegraph_pl(demo):
    done = run(script_on_path("flamegraph.pl"), input=demo("folded"))
    assert done.stderr == b""
    check_flame_graph(done.stdout)


# ---- Firefox Profiler ----


def test_firefox_profiler(demo, truth, tmp_path):
    profile = tmp_path / "demo.txt"
    profile.write_bytes(demo("perf-script"))
    with firefox_profiler(profile, tmp_path) as ask:
        threads = {t["tid"]: t["threadHandle"] for t in ask("thread", "list")["threads"]}
        counts = {tid: ask("thread", "info", "--thread", handle)["sampleCount"] for tid, handle in threads.items()}
        functions = ask("thread", "functions", "--thread", threads[100])["functions"]
    assert counts == {tid: n for tid, (n, _) in truth.items()}
    names = {f["name"] for f in functions}
    assert {"py::Server.serve:/srv/app/server.py:42", "{anonymous}::work(int, char*)", "[torn]"} <= names
    # What the Profiler takes for the kernel's it knows by this word in the binary's name.
    assert {f["name"] for f in functions if "kallsyms" in f.get("library", "")} == KERNEL
