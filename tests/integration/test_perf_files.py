# SPDX-License-Identifier: Apache-2.0
"""pysym -f perf-data names its files, says what it wrote, and takes several inputs."""
import re
import shlex

import pytest

import profile_readers
from pysym_output import good


def written(pysym, out, *arguments):
    """What was written, and the words on standard error."""
    done = pysym(*arguments, "-o", out)
    assert done.returncode == 0 and done.stdout == "", done.stderr
    return profile_readers.PerfData(out, f"{out}.d"), done.stderr


@pytest.mark.parametrize("name", ["perf.data", "x.perf.data", "x.data"])
def test_format_by_extension(make, pysym, tmp_path, name):
    data, told = written(pysym, tmp_path / name, make(samples=10))
    assert len(data.samples) == 10
    assert told == f"pysym: to read it: perf --buildid-dir {tmp_path}/{name}.d/debug report -i {tmp_path}/{name}\n"
    assert sorted(p.name for p in tmp_path.iterdir() if not p.name.endswith(".bin")) == [name, name + ".d"]


def test_standard_output_is_refused(make, pysym, tmp_path):
    for arguments in ([], ["-o", "-"], ["-o", "/dev/null"]):
        done = pysym(make(samples=10), "-f", "perf-data", *arguments)
        assert done.returncode == 2 and done.stdout == "" and "perf-data cannot be written to" in done.stderr, done.stderr


@pytest.mark.parametrize("name", ["a b.data", "it's.data", "$(x)`;&.data", "ä.data"])
def test_line_to_type(make, pysym, tmp_path, name):
    """A shell takes the words apart as they were meant, as seen from the current folder."""
    folder = tmp_path / "with space"
    folder.mkdir()
    trace = make(samples=10)
    done = pysym(trace, "-o", folder / name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    line = re.match(r"pysym: to read it: (.*)\n$", done.stderr)[1]
    assert shlex.split(line) == ["perf", "--buildid-dir", f"with space/{name}.d/debug", "report", "-i", f"with space/{name}"]


def test_deep_stacks_are_told(make, pysym, tmp_path):
    trace = make(samples=10, stacks=1, depth=127)
    assert "--max-stack" not in written(pysym, tmp_path / "a.data", trace)[1]
    trace = make(samples=10, stacks=1, depth=900)
    data, told = written(pysym, tmp_path / "b.data", trace)
    assert {len(sample.chain) for sample in data.samples} == {900}
    assert told.endswith("pysym: stacks have up to 900 frames, of which perf reads 127: add --max-stack 900\n")


def test_no_samples(make, pysym, tmp_path):
    """A file that perf refuses: that is said here, too."""
    data, told = written(pysym, tmp_path / "perf.data", make(samples=0))
    assert not data.samples and told.endswith("pysym: no samples were recorded: perf report will end with an error\n")
    assert "no samples" not in written(pysym, tmp_path / "perf.data", make(samples=1))[1]


def test_inputs_of_one_time(make, pysym, tmp_path):
    """Two recordings of the same time: the second stands behind the first, each as long as it was."""
    one, two = make(samples=30), make(samples=50, pid=2000)
    data, told = written(pysym, tmp_path / "perf.data", one, two)
    times = [sample.time_ns for sample in data.samples]
    assert times == sorted(times) and [sample.pid for sample in data.samples] == [1000] * 30 + [2000] * 50
    assert times[29] - times[0] == 29 * 10**7 and times[79] - times[30] == 49 * 10**7
    assert "inputs overlap in time: samples of each are moved behind those of the one before" in told
    assert "overlap" not in written(pysym, tmp_path / "perf.data", one)[1]


def test_threads_and_losses(make, pysym, tmp_path):
    trace = make(samples=500, threads=3, losses=2)
    data, _ = written(pysym, tmp_path / "perf.data", trace)
    samples, _ = profile_readers.ndjson(good(pysym(trace, "-f", "ndjson")))
    assert {tid: name for (_, tid), name in data.comms.items() if tid != 1000} == \
        {row["tid"]: row["thread"] for row in samples if row["tid"] != 1000}
    assert sum(data.lost.values()) > 0
