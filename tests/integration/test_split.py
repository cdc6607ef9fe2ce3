# SPDX-License-Identifier: Apache-2.0
"""The files of pysym --split and --window together are what one file would be.

None is there if one cannot be.
"""
import collections
import gzip
import os
import re
import resource

import pytest

from conftest import ROOT, formats

# Formats that are one output of all samples, whatever is asked for.
WHOLE = {"summary", "dump", "unwind-check", "perf-data"}


@pytest.fixture
def split(pysym, tmp_path):
    """Runs pysym with -o in an empty folder; returns {what was added to the name: content}."""
    def run(*arguments, **keywords):
        folder = tmp_path / "parts"
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        done = pysym(*arguments, "-o", folder / "p.x", **keywords)
        assert done.returncode == 0, done.stderr
        found = {re.fullmatch(r"p\.(.*)\.x", path.name)[1]: path.read_text() for path in sorted(folder.iterdir())}
        count = f"{len(found)} file{'s' if len(found) != 1 else ''}"
        assert done.stderr.endswith(f"pysym: wrote {count}: {folder}/p.*.x\n"), done.stderr
        return found
    return run


def folded(text):
    lines = [line.rsplit(" ", 1) for line in text.splitlines()]
    return collections.Counter({stack: int(count) for stack, count in lines})


def perf_script(text):
    return collections.Counter(text.split("\n\n"))


WAYS = [["--split", "process"], ["--split", "thread"], ["--window", "500ms"], ["--split", "thread", "--window", "1s"]]


def check_sums(pysym, split, trace, *options, rounded=False):
    for name, read in (("folded", folded), ("perf-script", perf_script)):
        arguments = [trace, "-f", name, "--full-filenames", "--merge", "thread", *options]
        whole = pysym(*arguments)
        assert whole.returncode == 0, whole.stderr
        for way in WAYS:
            parts = split(*arguments, *way)
            added = sum((read(text) for text in parts.values()), collections.Counter())
            added.pop("", None)
            expected = read(whole.stdout)
            expected.pop("", None)
            if name == "folded" and rounded:  # to microseconds, in each file apart, so that its own sum is right
                assert added.keys() == expected.keys()
                assert all(abs(added[stack] - expected[stack]) <= len(parts) for stack in added), way
                assert abs(added.total() - expected.total()) <= len(parts), way
            else:
                assert added == expected, (name, way)
            assert split(*arguments, *way) == parts


@pytest.mark.parametrize("name", ["3.6-shared", "3.12-shared", "3.14-static"])
def test_parts_of_recordings(pysym, split, name):
    check_sums(pysym, split, ROOT / f"testdata/traces/{name}.trace", "--no-host")


@pytest.mark.parametrize("settings", [
    {"processes": 3, "threads": 7, "samples": 900, "cpus": 2, "epoch_samples": 100},
    # The rate is halved: every part says so, also one in which all samples weigh the same.
    {"threads": 2, "samples": 400, "slower_at": 200},
    {"threads": 2, "samples": 400, "slower_at": 200, "second_event": 100},
    {"threads": 3, "samples": 300, "uneven": 1, "torn": 10, "end": 0},
], ids=["processes", "rates", "events", "uneven"])
def test_parts_of_made_traces(pysym, split, make, settings):
    trace = make(**settings)
    rounded = "uneven" in settings
    check_sums(pysym, split, trace, rounded=rounded)
    check_sums(pysym, split, trace, "--time", "10%,60%", "--ignore", "level1_1", rounded=rounded)


def test_windows(make, split):
    """The made clock says 22:13:20 when the first sample is taken: windows begin at multiples of real time, not there."""
    trace = make(samples=1000, threads=1, processes=1)
    parts = split(trace, "-f", "perf-script", "--window", "7s")
    assert list(parts) == [f"20231114T2213{s}Z" for s in (14, 21, 28)]
    times = [[float(t) for t in re.findall(r" (\d+\.\d+): ", text)] for text in parts.values()]
    assert [len(t) for t in times] == [99, 700, 201]
    for begin, within in zip((994, 1001, 1008), times):
        assert min(within) >= begin and max(within) < begin + 7


def numbers_of(profile):
    """The fields of a pprof profile that are numbers."""
    data, at, found = gzip.decompress(profile), 0, {}

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte, at = data[at], at + 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        value = varint()
        if key & 7:
            at += value
        else:
            found[key >> 3] = value
    return found


def test_window_of_pprof(make, pysym, tmp_path):
    """time_nanos (9) and duration_nanos (10) are those of the window, or of the part of it that was recorded."""
    done = pysym(make(samples=1000, threads=1), "--window", "7s", "-o", tmp_path / "p.pb.gz")
    assert done.returncode == 0, done.stderr
    times = [numbers_of(path.read_bytes()) for path in sorted(tmp_path.glob("p.*"))]
    begin = 1700000000
    assert [t[9] for t in times] == [begin * 10**9, (begin + 1) * 10**9, (begin + 8) * 10**9]
    assert [t[10] for t in times[:2]] == [10**9, 7 * 10**9] and 2 * 10**9 <= times[2][10] < 3 * 10**9


def test_several_inputs(make, split):
    """Two files of one host and time: each window has the samples of both."""
    first, second = make("a.bin", samples=300, threads=1), make("b.bin", samples=300, threads=1, pid=2000)
    alone, both = (split(*files, "-f", "folded", "--window", "2s") for files in ([first], [first, second]))
    assert list(alone) == list(both)
    for window, text in alone.items():
        assert sum(folded(both[window]).values()) == 2 * sum(folded(text).values())
        assert folded(text) == {k: v for k, v in folded(both[window]).items() if "-1000" in k}


@pytest.mark.sanitized
@pytest.mark.parametrize("name", formats())
def test_every_format(pysym, make, tmp_path, name):
    """What is written of samples can be split; what is of the trace cannot, and says so."""
    trace, out = make(samples=40, processes=2, threads=2), tmp_path / "parts"
    out.mkdir()
    done = pysym(trace, "-f", name, "--split", "process", "-o", out / "p.x")
    if name in WHOLE:
        assert done.returncode == 2 and f"--split: {name} is always one output" in done.stderr
        assert ("; --pid or --tid chooses some" in done.stderr) == (name == "perf-data"), done.stderr
        assert not os.listdir(out)
        return
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(out)) == ["p.python3.11-1000.x", "p.python3.11-1100.x"]
    alone = pysym(trace, "-f", name, "--pid", "1000", "-o", tmp_path / "alone")
    assert alone.returncode == 0, alone.stderr
    part = (out / "p.python3.11-1000.x").read_bytes()
    assert part and len(part) < 3 * len((tmp_path / "alone").read_bytes())


@pytest.mark.parametrize("arguments, says", [
    (["--split", "process"], "--split writes several files: say how their names begin and end"),
    (["-f", "folded", "--window", "1s"], "--window writes several files"),
    (["-f", "folded", "-o", "-", "--window", "1s"], "--window writes several files"),
    (["-f", "folded", "-o", "/dev/null", "--window", "1s"], "/dev/null cannot be split into several files"),
    (["-f", "folded", "-o", "DIR/", "--window", "1s"], "DIR/ cannot be split into several files"),
    (["-o", "x.folded", "--window", "0"], "--window wants a length of time, like 15s, 1m or 500ms, not '0'"),
    (["-o", "x.folded", "--window", "0.0001"], "--window wants 1ms at least"),
    (["-o", "x.folded", "--split", "all"], "--split wants process or thread, not 'all'"),
    (["-o", "x" * 240 + ".folded", "--split", "process"], "is too long a name for several files"),
])
def test_refused(pysym, make, tmp_path, arguments, says):
    trace = make(samples=4)
    (tmp_path / "DIR").mkdir()
    done = pysym(trace, *arguments, cwd=tmp_path)
    assert done.returncode == 2 and says in done.stderr, done.stderr
    assert sorted(os.listdir(tmp_path)) == ["DIR", "made1.bin"]


def test_few_descriptors(make, split):
    trace = make(samples=900, processes=300, threads=300)
    few = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))}
    for name in ("perf-script", "speedscope"):
        assert len(split(trace, "-f", name, "--split", "process", **few)) == 300


def test_all_or_none(pysym, make, tmp_path):
    """One that stands in the way, a limit and a full disk leave what was there before, and nothing else."""
    trace, out = make(samples=4000, stacks=400, processes=2), tmp_path / "out"
    out.mkdir()
    first, second = out / "p.python3.11-1000.folded", out / "p.python3.11-1100.folded"
    first.write_text("before")
    second.symlink_to("elsewhere")
    done = pysym(trace, "-o", out / "none" / "p.folded", "--split", "process")
    assert done.returncode == 1 and f"{out}/none/p.folded: would lie in a folder that is not there" in done.stderr, done.stderr
    done = pysym(trace, "-o", out / "p.folded", "--split", "process")
    assert done.returncode == 1 and f"{second}: is a symbolic link" in done.stderr
    assert first.read_text() == "before" and len(os.listdir(out)) == 2
    second.unlink()
    limits = [({"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)), "restore_signals": False},
               [], f"{out}/p.folded: cannot write the folded stacks: File too large"),
              ({}, ["--max-output", "20k"], "the output would be larger than 20.0 KiB; --max-output")]
    for keywords, options, says in limits:
        done = pysym(trace, "-o", out / "p.folded", "--split", "process", *options, **keywords)
        assert done.returncode == 1 and says in done.stderr, done.stderr
        assert first.read_text() == "before" and len(os.listdir(out)) == 1
    assert pysym(trace, "-o", out / "p.folded", "--split", "process").returncode == 0
    assert first.read_text() != "before" and len(os.listdir(out)) == 2
    # A part that would be the trace itself.
    os.link(trace, tmp_path / "keep")
    os.rename(trace, out / "p.python3.11-1000.bin")
    done = pysym(out / "p.python3.11-1000.bin", "-f", "folded", "-o", out / "p.bin", "--split", "process")
    assert done.returncode == 2 and "is an input and cannot be an output" in done.stderr, done.stderr


def test_no_samples(make, split):
    assert split(make(samples=0), "-f", "folded", "--split", "process") == {}
