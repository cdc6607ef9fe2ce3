# SPDX-License-Identifier: Apache-2.0
"""The options of pysym that choose samples and change stacks do so in every format.

Over made-up traces and those of testdata/: what passes, what its weight is in each format, what is said of it, and what is said
where nothing passes.
"""
import collections
import json
import re

import pytest

from conftest import ROOT
from pysym_output import good, total_of_folded

FILTERS = [["--pid", "1000"], ["--tid", "1000,1101"], ["--comm", "^python"], ["--exe", "made-up"], ["--thread", "worker-[12]"],
           ["--cpu", "1"], ["--gil"], ["--time", "0.1,0.3"], ["--time", "25%,75%"], ["--time", "22:13:20.1,22:13:20.3"],
           ["--around", "level4_3$"], ["--focus", "level4_1"], ["--ignore", "level4_1"], ["--root-at", "level3_[12]"],
           ["--callers-of", "level2_2"], ["--hide", "level[23]"], ["--show", "level1"], ["--layer", "python"],
           ["--group", "module"], ["--collapse-recursion"],
           ["--pid", "1000", "--focus", "level4_1", "--hide", "level2", "--group", "file"]]


@pytest.fixture
def trace(make):
    return make(samples=400, processes=2, threads=4, cpus=2, stacks=7, gil=1, native=0, interval_us=2000)


@pytest.mark.parametrize("options", FILTERS, ids=" ".join)
def test_what_is_shown_is_said(options, trace, pysym):
    """On standard error, or in the output where that is for people; how much it is, and by which options."""
    folded = pysym(trace, "-f", "folded", *options)
    said = re.fullmatch(r"pysym: (\d+\.\d\d) s of 0\.80 s shown \((.*)\)\n", folded.stderr)
    assert said and abs(float(said[1]) - total_of_folded(good(folded)) * 0.002) < 0.0051, folded.stderr
    assert said[2].replace("'", "") == " ".join(options)
    named = json.loads(good(pysym(trace, "-f", "speedscope", *options)))["name"]
    assert named.startswith(trace.name) and named.replace("'", "").endswith(f"({' '.join(options)})")
    top = pysym(trace, "-f", "top", *options)
    assert folded.stderr[len("pysym: "):] in good(top) and top.stderr == ""


def test_how_many_pass(trace, pysym):
    """Counts known from how the trace is made: samples go round threads, CPUs and stacks."""
    def chosen(*options):
        return total_of_folded(good(pysym(trace, "-f", "folded", *options)))

    assert chosen() == 400
    assert chosen("--pid", "1000") == chosen("--cpu", "0") == chosen("--cpu", "1-3") == 200
    assert chosen("--pid", "1000,1100") == chosen("--pid", "1000", "--pid", "1100") == 400
    assert chosen("--tid", "1000") == chosen("--thread", "worker-3") == chosen("--gil") == 100
    assert chosen("--thread", "worker") == 300
    assert chosen("--time", ",50%") + chosen("--time", "50%,") == 400
    assert chosen("--time", "0,0.1") + chosen("--time", "0.1,") == 400
    each = [chosen("--focus", f"level4_{i}") for i in range(7)]
    assert sum(each) == 400 and min(each) > 50
    assert chosen("--ignore", "level4_0") == 400 - each[0]
    assert chosen("--focus", "level4_0|level4_1") == each[0] + each[1]
    assert chosen("--root-at", "level4_0", "--root-at", "level4_1") == each[0] + each[1]


def test_time_goes_to_the_caller(trace, pysym):
    """What is left out in a stack takes no sample with it."""
    def stacks(*options):
        lines = good(pysym(trace, "-f", "folded", "--nolineno", *options)).splitlines()
        assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == 400
        return {line.rsplit(" ", 1)[0].split(";", 1)[1] for line in lines}

    outer = "Work.level0_0 (part0.py);Work.level1_0 (part1.py)"
    assert stacks("--hide", "level[234]") == {outer}
    assert stacks("--show", "level[01]") == {outer}
    assert stacks("--group", "module") == {"part0;part1;part2;part0;part1"}
    assert stacks("--group", "package") == {"app"}
    assert stacks("--group", "layer") == {"Python"}
    assert stacks("--group", "module", "--hide", "level2", "--collapse-recursion") == {"part0;part1"}
    assert stacks("--callers-of", "level1") == {outer}
    assert stacks("--root-at", "level1", "--callers-of", "level1") == {"Work.level1_0 (part1.py)"}
    assert stacks("--layer", "kernel", "--layer", "python", "--hide", "level[1-4]") == {"Work.level0_0 (part0.py)"}


def branches(lines):
    """The weight of every branch, by its frames; a line ends a branch."""
    out = collections.Counter()
    for line in lines:
        frames, number = line.rsplit(" ", 1)
        frames = tuple(frames.split(";"))
        for i in range(len(frames)):
            out[frames[:i + 1]] += int(number)
    return out


def test_thin_branches(make, pysym):
    """They become one box beside their neighbours; everything else, and the sum, stays."""
    trace = make(samples=1000, stacks=9, depth=4, native=0, interval_us=1000)
    whole = branches(good(pysym(trace, "-f", "folded")).splitlines())
    thin = branches(good(pysym(trace, "-f", "folded", "--min", "12%")).splitlines())
    box = "[less than 12%]"
    kept = {frames: weight for frames, weight in thin.items() if frames[-1] != box}
    assert kept == {frames: weight for frames, weight in whole.items() if weight >= 120}
    # Of nine leaves none has 12 %; of the functions that call them two have, each of two of the leaves.
    joined = {frames: weight for frames, weight in thin.items() if frames[-1] == box}
    assert sum(joined.values()) == 1000 and len(joined) == 3, joined
    assert sum(weight for frames, weight in thin.items() if len(frames) == 1) == 1000
    assert good(pysym(trace, "-f", "folded", "--min", "0")) == good(pysym(trace, "-f", "folded"))
    assert good(pysym(trace, "-f", "folded", "--min", "100")).count("\n") == 1
    top = json.loads(good(pysym(trace, "-f", "top", "--top", "0", "--json", "--min", "12%")))
    assert sorted(row["total_samples"] for row in top["events"][0]["tables"][0]["rows"]) == sorted(
        sum(weight for frames, weight in whole.items() if frames[-1] == name)
        for name in {frames[-1] for frames in kept if len(frames) > 1})
    for name in ("speedscope", "perf-script", "summary"):
        done = pysym(trace, "-f", name, "--min", "1%")
        assert done.returncode == 2 and "--min is for folded, tree, svg, top" in done.stderr


def test_thin_branches_of_several_events(make, pysym):
    """Shares are of each event."""
    trace = make(samples=100, second_event=100, stacks=2, native=0)
    lines = good(pysym(trace, "-f", "folded", "--min", "60%")).splitlines()
    assert [line.split(";")[0] for line in lines] == ["cpu-clock", "page-faults"]
    assert all(";[less than 60%] " in line for line in lines), lines
    assert [int(line.rsplit(" ", 1)[1]) for line in lines] == [100, 100 * 4096]


def test_layers(make, pysym):
    trace = make(samples=100)
    kernel = good(pysym(trace, "-f", "folded", "--layer", "kernel"))
    assert {line.split(";", 1)[1] for line in kernel.splitlines()} == {
        "[no frames] 50", "entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k];ksys_read_[k] 50"}
    done = pysym(make(samples=10, native=0), "-f", "folded", "--layer", "native,kernel")
    assert done.returncode == 1
    assert done.stderr.startswith("pysym: no sample passes --layer native,kernel; functions with the most time: Work.level4_")


@pytest.mark.parametrize("options, message", [
    (["--pid", "4"], "no sample passes --pid 4; the trace has processes 1000 python3.11, 1100 python3.11"),
    (["--tid", "1"], "no sample passes --tid 1; the trace has threads 1000 python3.11, 1101 worker-1, 1002 worker-2, "
                     "1103 worker-3"),
    (["--comm", "gunicorn"], "no sample passes --comm gunicorn; the trace has commands python3.11"),
    (["--exe", "x y"], "no sample passes --exe 'x y'; the trace has programs /opt/made-up/python3.11"),
    (["--cgroup", "/a"], "no sample passes --cgroup /a; the trace has no cgroups"),
    (["--container", "ab"], "no sample passes --container ab; the trace has no containers"),
    (["--thread", "x"], "no sample passes --thread x; the trace has threads python3.11, worker-1, worker-2, worker-3"),
    (["--cpu", "7-9"], "no sample passes --cpu 7-9; the trace has CPUs 0, 1"),
    (["--task", "x"], "no sample passes --task x; the trace has no asyncio tasks"),
    (["--subinterpreter", "3"], "no sample passes --subinterpreter 3; the trace has interpreters 0"),
    (["--event", "page-faults"], "no sample passes --event page-faults; the trace has events cpu-clock"),
    (["--time", "100,"], "no sample passes --time 100,; the samples lie between 0.00 s and 0.40 s "
                         "(2023-11-14 22:13:20.00 to 2023-11-14 22:13:20.40 UTC)"),
    (["--time", "10:00,11:00"], "no sample passes --time 10:00,11:00; the samples lie between"),
    (["--focus", "work.levle"], "no function, file or module matches 'work.levle' (--focus); functions with similar names: "
                                "Work.level"),
    (["--around", "Work.level4_9"], "no function, file or module matches 'Work.level4_9' (--around); functions with similar names: "
                               "Work.level4_"),
    (["--root-at", "file:/opt"], "no file matches 'file:/opt' (--root-at); functions with the most time: Work.level4_"),
    (["--ignore", "."], "nothing is left by --ignore .; functions with the most time: Work.level4_"),
    (["--show", "zz"], "no function, file or module matches 'zz' (--show); "),
    (["--pid", "1000", "--tid", "1101"], "no sample passes --tid 1101 of those that pass --pid 1000; they have threads "
                                         "1000 python3.11, 1002 worker-2"),
    (["--focus", "level4_0", "--root-at", "level4_1"],
     "no sample passes --root-at level4_1 of those that pass --focus level4_0; functions with the most time: "),
])
def test_nothing_passes(options, message, trace, pysym, tmp_path):
    """That is an error in every format; it names the filter and what there is, and no output is left behind."""
    assert pysym(trace, *options).stderr.startswith(f"pysym: {message}")  # the first page
    for name in ("folded", "perf-script", "speedscope", "top", "summary"):
        done = pysym(trace, "-f", name, "-o", tmp_path / "out", *options)
        assert (done.returncode, done.stdout) == (1, ""), name
        assert done.stderr.startswith(f"pysym: {message}") and done.stderr.count("\n") == 1, done.stderr
        assert not (tmp_path / "out").exists()
    done = pysym(trace, "-f", "folded", *options)
    assert (done.returncode, done.stdout) == (1, "")


def test_patterns_that_match_nothing(trace, pysym):
    """Where something is left, a pattern without a match is only told."""
    done = pysym(trace, "-f", "folded", "--hide", "zz", "--ignore", "file:x y", "--hide", "level4")
    assert total_of_folded(good(done)) == 400
    assert done.stderr.splitlines() == [
        "pysym: 0.80 s of 0.80 s shown (--hide zz --ignore 'file:x y' --hide level4)",
        "pysym: no frame of these samples matches --ignore 'file:x y', --hide 'zz'"]
    assert "no frame of these samples matches --hide 'zz'" in pysym(trace, "-f", "summary", "--hide", "zz").stderr


def test_epochs_change_nothing(make, pysym):
    """Ids start over with each epoch, and with them what filters remember."""
    settings = {"samples": 400, "processes": 2, "threads": 4, "cpus": 2, "stacks": 7, "gil": 1}
    one, many = make(**settings), make(**settings, epoch_samples=33)
    for options in (["--pid", "1000"], ["--thread", "worker"], ["--cpu", "0", "--gil"], ["--time", "50%,"],
                    ["--focus", "level4_1", "--group", "module"], ["--around", "level4_3"]):
        assert good(pysym(one, "-f", "folded", *options)) == good(pysym(many, "-f", "folded", *options))
    failed = [pysym(trace, "-f", "folded", "--tid", "1").stderr for trace in (one, many)]
    assert failed[0] == failed[1] and "1002 worker-2" in failed[0]


def test_several_events(make, pysym):
    """Each has its own figures; one can be chosen."""
    trace = make(samples=100, second_event=50)
    done = pysym(trace, "-f", "folded", "--event", "cpu-clock")
    assert total_of_folded(good(done)) == 100
    assert "pysym: cpu-clock: 1.00 s of 1.00 s shown (--event cpu-clock)" in done.stderr


def test_several_files(make, pysym):
    """Shares of the time, and ranges around a function, are of each file."""
    a, b = make(samples=100, native=0), make(samples=200, native=0)
    assert total_of_folded(good(pysym(a, b, "-f", "folded", "--time", "50%,"))) == 51 + 101
    assert total_of_folded(good(pysym(a, b, "-f", "folded", "--time", "0.5,"))) == 51 + 151
    assert total_of_folded(good(pysym(a, b, "-f", "folded", "--around", "level4_1"))) > 280


def test_filters_of_a_pipe(trace, pysym):
    """What has to be known beforehand is found out of a pipe as well."""
    for options in (["--time", "50%,"], ["--around", "level4_1"], ["--pid", "1000"]):
        want = good(pysym(trace, "-f", "folded", *options))
        assert good(pysym("-", "-f", "folded", *options, input=trace.read_bytes(), text=False)).decode() == want


@pytest.mark.parametrize("options, message", [
    (["--focus", "("], r"--focus wants a regular expression, not '(': Unmatched ( or \("),
    (["--exe", "[a"], "--exe wants a regular expression, not '[a': Unmatched [, [^, [:, [., or [="),
    (["--hide", "file:"], "--hide wants a regular expression, not 'file:': it is empty"),
    (["--min", "x"], "--min wants a share of the whole, like 0.5%, not 'x'"), (["--min", "101%"], "--min wants a share"),
    (["--min", "-1"], "--min wants a share"), (["--min", "1%%"], "--min wants a share"),
    (["--layer", "user"], "--layer wants layers: python, native or kernel, with commas between them, not 'user'"),
    (["--group", "line"], "--group wants module, package, file or layer, not 'line'"),
    (["--cpu", "3-1"], "--cpu wants numbers of CPUs, like 0,4-7, not '3-1'"),
    (["--cpu", "1,"], "--cpu wants numbers of CPUs"),
    (["--cgroup", ""], "--cgroup wants the path of a cgroup, not ''"),
    (["--time", "50%"],
     "--time wants FROM,TO, the earlier one first: seconds since the start, 50%, 14:05:00 or 2026-11-22T14:05:00, not '50%'"),
])
def test_usage(options, message, trace, pysym):
    done = pysym(trace, "-f", "folded", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_where_filters_do_not_apply(trace, pysym):
    done = pysym(trace, "-f", "dump", "--pid", "1000")
    assert (done.returncode, done.stdout) == (2, "")
    assert "dump writes every record: it takes no filter such as --pid" in done.stderr
    done = pysym(trace, "-f", "unwind-check", "--focus", "f")
    assert (done.returncode, done.stdout) == (2, "")
    assert "unwind-check compares stacks as they were recorded" in done.stderr


def test_real_trace(pysym):
    """A golden of several filters together, over a trace of CPython 3.12; the same lines are in its whole output."""
    trace = ROOT / "testdata/traces/3.12-shared.trace"
    lines = good(pysym(trace, "-f", "folded", "--python-only", "--nolineno", "--no-host")).splitlines()
    want = {}
    for line in lines:
        frames, number = line.rsplit(" ", 1)
        frames = frames.split(";")
        at = next((i for i, frame in enumerate(frames) if frame.startswith("decorate")), None)
        if at is not None:
            key = ";".join(frames[:1] + frames[at:])
            want[key] = want.get(key, 0) + int(number)
    assert want
    got = good(pysym(trace, "-f", "folded", "--no-host", "--nolineno", "--layer", "python", "--root-at", "function:^decorate"))
    assert dict((line.rsplit(" ", 1)[0], int(line.rsplit(" ", 1)[1])) for line in got.splitlines()) == want


def test_names_cannot_command_a_terminal(make, pysym):
    """What a filter repeats is the user's own text; control characters in it are escaped all the same."""
    done = pysym(make(samples=10, native=0), "-f", "folded", "--comm", "x\033")
    assert done.returncode == 1 and "\033" not in done.stderr and "\\x1b" in done.stderr
    done = pysym(make(samples=10, native=0), "-f", "folded", "--ignore", "x\033[a]")
    assert done.returncode == 0 and "\033" not in done.stderr and "\\x1b" in done.stderr
