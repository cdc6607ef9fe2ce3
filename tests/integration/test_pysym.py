# SPDX-License-Identifier: Apache-2.0
"""pysym over made-up traces, from the command line to each format.

build/tools/make_trace writes the traces.
"""
import collections
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import time

import pytest

from conftest import PYSYM, ROOT, formats
from pysym_output import FORMATS, good, total_of_folded
from screen import on_terminal

TEXTS = [name for name in FORMATS if name not in ("pprof", "html")]  # test_pprof.py and test_page.py have the like for these


# ---- what comes out ----

def test_folded(make, pysym):
    """Runs stand in place of their eval frames, the C callback between them, the kernel innermost."""
    trace = make(samples=8, stacks=2, depth=3)
    assert good(pysym(trace, "-f", "folded")).splitlines() == [
        "python3.11-1000;Work.level0_0 (part0.py:1);Work.level1_0 (part1.py:11);Work.level2_0 (part2.py:21) 4",
        "python3.11-1000;Work.level0_0 (part0.py:1);Work.level1_1 (part1.py:12);Work.level2_1 (part2.py:22);"
        "entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k];ksys_read_[k] 4",
    ]
    out = good(pysym(trace, "-f", "folded", "--interpreter", "calls"))
    assert out.splitlines() == [
        "python3.11-1000;[python3.11];Work.level0_0 (part0.py:1);Work.level1_0 (part1.py:11);[python3.11];"
        "Work.level2_0 (part2.py:21) 4",
        "python3.11-1000;[python3.11];Work.level0_0 (part0.py:1);Work.level1_1 (part1.py:12);[python3.11];"
        "Work.level2_1 (part2.py:22);entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k];ksys_read_[k] 4",
    ]


def test_views(make, pysym):
    trace = make(samples=8, stacks=1, depth=2, threads=2)

    def stack(*options):
        lines = good(pysym(trace, "-f", "folded", *options)).splitlines()
        assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == 8
        return lines[0].rsplit(" ", 1)[0].split(";")[1:]

    native = "[python3.11]"
    assert stack() == stack("--interpreter", "hide") == ["Work.level0_0 (part0.py:1)", "Work.level1_0 (part1.py:11)"]
    assert stack("--interpreter", "calls") == [native, "Work.level0_0 (part0.py:1)", native, "Work.level1_0 (part1.py:11)"]
    assert stack("--python-only") == ["Work.level0_0 (part0.py:1)", "Work.level1_0 (part1.py:11)"]
    assert stack("--show-interpreter") == [native, native, "Work.level0_0 (part0.py:1)", native, native,
                                           "Work.level1_0 (part1.py:11)"]
    assert stack("--interpreter", "show") == stack("--show-interpreter")
    refused = pysym(trace, "-f", "folded", "--interpreter", "all")
    assert refused.returncode == 2 and "hide, calls or show" in refused.stderr
    assert stack("--nolineno")[0] == "Work.level0_0 (part0.py)"
    assert stack("--full-filenames")[0] == "Work.level0_0 (/srv/app/part0.py:1)"
    assert len(good(pysym(trace, "-f", "folded", "--threads")).splitlines()) == 2


def test_merge(make, pysym):
    """What is kept apart is in the stacks of folded, and in the names of speedscope's profiles; the sum stays."""
    trace = make(samples=800, stacks=2, threads=4, processes=2)

    def folded(*options):
        lines = [line.rsplit(" ", 1) for line in good(pysym(trace, "-f", "folded", *options)).splitlines()]
        assert sum(int(count) for _, count in lines) == 800
        return [stack.split(";") for stack, _ in lines]

    assert {stack[0] for stack in folded("--merge", "all")} == {"Work.level0_0 (part0.py:1)"}
    assert len(folded("--merge", "all")) == 2
    assert folded("--merge", "process") == folded()
    assert {stack[0] for stack in folded()} == {"python3.11-1000", "python3.11-1100"}
    assert len({tuple(stack[:2]) for stack in folded("--merge", "thread")}) == 4
    assert folded("--threads") == folded("--merge", "thread")
    for merge, count in [("all", 1), ("process", 2), ("thread", 4)]:
        profiles = json.loads(good(pysym(trace, "-f", "speedscope", "--merge", merge)))["profiles"]
        assert len(profiles) == count and not any("overview" in p for p in profiles)
        assert sum(sum(p["weights"]) for p in profiles) == 800 * 10**7
    overview, *threads = json.loads(good(pysym(trace, "-f", "speedscope")))["profiles"]
    assert overview["name"] == "all threads (8.0 s)" and overview["overview"] and len(threads) == 4
    assert sum(overview["weights"]) == sum(sum(p["weights"]) for p in threads) == 800 * 10**7


def test_top_on_a_terminal(make, pysym, tmp_path):
    """Colours, blocks and the width are the terminal's; a pipe and a file have whole names and no colours."""
    trace = make(samples=100, stacks=9)
    command = (PYSYM, trace, "-f", "top", "--full-filenames")
    shown = on_terminal(60, *command)
    assert "\x1b[36m" in shown and "\u2588" in shown
    plain = re.sub(r"\x1b\[\d+m", "", shown)
    rows = [line for line in plain.splitlines() if re.match(r" *[\d.]+% ", line)]
    assert len(rows) == 10 and max(map(len, rows)) <= 60 and any("\u2026" in row for row in rows), plain
    assert "\x1b" not in on_terminal(60, *command, NO_COLOR="1")
    assert "\x1b" not in on_terminal(60, *command, TERM="dumb")
    assert "\u2588" not in on_terminal(60, *command, LANG="C") and "########" in on_terminal(60, *command, LANG="C")
    piped = good(pysym(*command[1:]))
    assert "\x1b" not in piped and "\u2026" not in piped and "########" in piped
    on_terminal(60, *command, "-o", tmp_path / "top.txt")
    assert (tmp_path / "top.txt").read_text() == piped


def test_marks_and_losses(make, pysym):
    trace = make(samples=100, stacks=1, depth=2, torn=10, losses=7)
    out = good(pysym(trace, "-f", "folded", "--interpreter", "calls"))
    torn = [line for line in out.splitlines() if "[torn]" in line]
    assert len(torn) == 1 and torn[0].endswith(" 10")
    assert ";[python3.11];[torn];Work.level0_0" in torn[0]
    assert re.search("^[^;]*;\\[torn\\];Work.level0_0", good(pysym(trace, "-f", "folded")), re.M)
    text = good(pysym(trace, "-f", "summary", "-v"))
    assert re.search(r"python_torn +10\.00 % +10\n", text), text
    assert re.search(r"ring_full +7  sample lost: the ring buffer was full", text), text

    out = good(pysym(make(samples=10, stacks=1, depth=2, unjoined=2), "-f", "folded", "--interpreter", "calls"))
    above = [line for line in out.splitlines() if line.split(";")[1].startswith("Work")]
    assert len(above) == 1 and above[0].endswith(" 5")
    assert above[0].split(";")[1:3] == ["Work.level0_0 (part0.py:1)", "Work.level1_0 (part1.py:11)"]


def test_unknown_machine(make, pysym):
    """Where the trace is from a machine that pysym cannot unwind for, Python is shown, and the rest is said and counted."""
    trace = make(samples=100, stacks=1, depth=2, foreign=1)
    result = pysym(trace, "-f", "folded")
    assert result.returncode == 0, result.stderr
    assert re.search(r"^pysym: \S+: was recorded on a pdp11, .* native stacks", result.stderr, re.M), result.stderr
    assert ";Work.level0_0 (part0.py:1);Work.level1_0 (part1.py:11) 100\n" in result.stdout, result.stdout
    text = pysym(trace, "-f", "summary", "-v").stdout
    assert re.search(r"machine_unknown +100\.00 % +100\n", text), text
    assert pysym(make(samples=10), "-f", "folded").stderr == ""


@pytest.mark.parametrize("files", [
    [{"slower_at": 500}],
    [{"uneven": 1}],
    [{"interval_us": 10000, "stacks": 3}, {"interval_us": 3700, "stacks": 7}],
], ids=["slower", "uneven", "two-rates"])
def test_weights_that_differ(files, make, pysym):
    """It is said that numbers are not samples."""
    traces = [make(**{"samples": 1999, "stacks": 7, "threads": 3, "native": 0, **settings}) for settings in files]
    assert pysym(*traces, "-f", "folded").stderr == "pysym: samples weigh differently: counts are microseconds\n"
    script = pysym(*traces, "-f", "perf-script")
    assert script.stderr == "pysym: samples weigh differently: periods are weights\n"
    summary = good(pysym(*traces, "-f", "summary", "-v"))
    assert ("samples, of different weights" in summary) == (len(files) == 1)  # each rate has a row of its own
    # A pipe is known as well as a file.
    done = through_pipe(pysym, traces[0], *traces[1:], "-f", "perf-script")
    assert done.stderr == script.stderr and good(done) == script.stdout


def test_weights_that_are_alike_behind_a_filter(make, pysym):
    """They are counted again."""
    trace = make(samples=1999, stacks=7, threads=3, native=0, slower_at=500)
    done = pysym(trace, "-f", "folded", "--time", "0,4")
    assert "weigh" not in done.stderr and total_of_folded(good(done)) == 399
    done = pysym(trace, "-f", "perf-script", "--time", "0,4")
    assert "weigh" not in done.stderr and len(re.findall(r": +1 cpu-clock: $", good(done), re.M)) == 399
    assert re.search(r"the rate changed 1 time: [\d,]+ ns each at the end", good(pysym(trace, "-f", "summary", "-v")))


def through_pipe(pysym, trace, *arguments, **keywords):
    with subprocess.Popen(["cat", trace], stdout=subprocess.PIPE) as cat:
        return pysym("-", *arguments, stdin=cat.stdout, **keywords)


def test_perf_script_of_pipes(make, pysym, tmp_path):
    """What cannot be read twice is kept in TMPDIR, under no name; what does not fit there is refused."""
    trace = make(samples=1999, slower_at=500)
    want = good(pysym(trace, "-f", "perf-script"))
    folder = tmp_path / "kept"
    folder.mkdir()
    environment = {**os.environ, "TMPDIR": str(folder)}
    assert good(through_pipe(pysym, trace, "-f", "perf-script", env=environment)) == want
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen(["sh", "-c", 'cat "$0" >"$1"', trace, fifo]) as writer:
        assert good(pysym(fifo, "-f", "perf-script", env=environment)) == want
    assert writer.returncode == 0 and not list(folder.iterdir())
    # Redirected input may start anywhere in its file.
    with open(trace, "rb") as stream:
        assert good(pysym("-", "-f", "perf-script", stdin=stream)) == want
    done = through_pipe(pysym, trace, "-f", "perf-script", env={**environment, "TMPDIR": str(tmp_path / "none")})
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == f"pysym: {tmp_path}/none: cannot create a temporary file here (TMPDIR chooses another folder): No such file or directory\n"
    done = through_pipe(pysym, trace, "-f", "perf-script", env=environment,
                        restore_signals=False,  # too large is an error then, no signal
                        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)))
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == (f"pysym: {folder}: standard input has to be read twice, and a copy of it cannot be kept here: "
                           "File too large\n")
    empty = pysym("-", "-f", "perf-script", stdin=subprocess.DEVNULL)
    assert empty.returncode == 1 and empty.stderr == "pysym: standard input: is empty\n"


def test_epochs_change_nothing(make, pysym):
    """Ids start over with each epoch; what is shown does not."""
    one, many = make(samples=1000), make(samples=1000, epoch_samples=77)
    for name in ("folded", "perf-script", "top"):
        assert good(pysym(one, "-f", name)) == good(pysym(many, "-f", name))


def test_several_files(make, pysym):
    """Parts of one capture are one process; another pid is another."""
    a, b, c = make(samples=10), make(samples=10), make(samples=10, pid=2000)
    out = good(pysym(a, b, c, "-f", "folded"))
    total = collections.Counter()
    for line in out.splitlines():
        total[line.split(";")[0]] += int(line.rsplit(" ", 1)[1])
    assert total == {"python3.11-1000": 20, "python3.11-2000": 10}
    text = good(pysym(a, c, "-f", "summary", "-v"))
    assert re.search(rf"^{a.name}$", text, re.M) and re.search(rf"^{c.name}$", text, re.M), text


def test_events_side_by_side_come_in_order_of_time(make, pysym):
    """Each event has records of its own; a thread's samples must not go back in time."""
    trace = make(samples=500, second_event=500, threads=3, interval_us=1000)
    last = collections.defaultdict(float)
    count = 0
    for match in re.finditer(r"^\S+ +\d+/(\d+) +\[\d+\] +([\d.]+):", good(pysym(trace, "-f", "perf-script")), re.M):
        assert float(match[2]) >= last[match[1]]
        last[match[1]] = float(match[2])
        count += 1
    assert count == 1000
    json.loads(good(pysym(trace, "-f", "speedscope")))


def test_waits(make, pysym):
    """Time off the CPU is an event of its own and no CPU time; its stacks end with what was waited for."""
    trace = make(samples=100, stacks=2, depth=2, waits=5)
    stack = "Work.level0_0 (part0.py:1);Work.level1_1 (part1.py:12);entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k];ksys_read_[k]"
    for options, labels in (((), ""), (("--labels",), "[system call read];")):
        assert good(pysym(trace, "-f", "folded", "--event", "off-cpu", *options)).splitlines() == [
            f"python3.11-1000;{labels}{stack};[wait: blocked] 15000", f"python3.11-1000;{labels}{stack};[wait: run queue] 5000"]
    text = good(pysym(trace, "-f", "top"))
    assert "100 samples of cpu-clock: 1.0 s of CPU time" in text and "10 samples of off-cpu: 20.0 ms of waiting" in text, text
    text = good(pysym(trace, "-f", "summary"))
    assert re.search(r"^Seen +110 samples, 1\.000 s of CPU time, 0\.020 s of waiting, of ", text, re.M), text
    assert "\nExactly      0.005 s on a CPU, 0.015 s blocked, 0.005 s run queue\n" in text, text
    assert len(re.findall("^ +100[01] .* 50\\.0 %$", text, re.M)) == 2, text  # a thread runs for as long as the clock says
    data = json.loads(good(pysym(trace, "-f", "summary", "--json")))
    assert [(row["state"], row["time_ns"], row["count"]) for row in data["exact_times"]] == [
        ("on-CPU", 5000000, 0), ("blocked", 15000000, 5), ("run queue", 5000000, 5)]
    assert [(row["tid"], row["state"], row["time_ns"], row["count"], row["sampled_ns"]) for row in data["thread_times"]] == [
        (1000, "on-CPU", 5000000, 0, 0), (1000, "blocked", 15000000, 5, 15000000), (1000, "run queue", 5000000, 5, 5000000)]
    assert re.search(r"^ +1000  python3\.11 +0\.005  blocked 0\.015 \(0\.015\), run queue 0\.005 \(0\.005\)$", text, re.M), text


def test_gil(make, pysym):
    """Who holds the GIL while others wait. What is exact stays where whole threads are chosen, and goes where samples are."""
    trace = make(samples=100, stacks=2, depth=2, native=0, gil=1, gil_waits=10)
    text = good(pysym(trace, "-f", "gil"))
    assert text == """\
python3.11 1000, recorded for 1.00 s
  held         535.0 ms \u00b1 70.7 ms (53.5 % of the time) by 1 thread: 500.0 ms running, 35.0 ms off the CPU
  waited for   72.5 ms by 1 thread, 20 times, exactly; 70.0 ms in samples
  blamed       70.0 ms \u00b1 12.6 ms on threads that held it: so long others waited for it, until they ran

  made others wait           ran with it  off CPU with it  waited for it  thread
 100.0%    70.0 ms ########     500.0 ms          35.0 ms              -  python3.11 1000
   0.0%     0.0 ms                     -                -        72.5 ms  worker-1 1001

Who held it while others waited, by the time that these lost
  57.1%    40.0 ms ########  Work.level1_0 (part1.py:11)
                             running
                             called by Work.level0_0 (part0.py:1)
  42.9%    30.0 ms ######    Work.level1_0 (part1.py:11)
                             blocked in clock_nanosleep
                             called by Work.level0_0 (part0.py:1)

Calls that blocked and did not release it, by their time off the CPU
 100.0%    35.0 ms ########  Work.level1_0 (part1.py:11)
                             blocked in clock_nanosleep
                             others waited for 30.0 ms meanwhile
                             called by Work.level0_0 (part0.py:1)

Who waited for it
 100.0%    70.0 ms ########  Work.level1_1 (part1.py:11)
                             called by Work.level0_0 (part0.py:1)
"""

    def figures(*options):
        process, = json.loads(good(pysym(trace, "-f", "gil", "--json", *options)))["processes"]
        return process["waited_exact_ns"], process["waited_ns"], process["blamed_ns"]
    assert figures() == figures("--pid", "1000") == (72500000, 70000000, 70000000)
    assert figures("--tid", "1001") == (72500000, 70000000, 0)
    assert figures("--ignore", "nothing") == figures("--time", "0,10") == (None, 70000000, 70000000)
    assert figures("--gil") == (None, 0, 70000000)
    done = pysym(trace, "-f", "gil", "--wall")
    assert done.returncode == 2 and "gil has each event by itself" in done.stderr
    alone = good(pysym(make(samples=100, stacks=2, depth=2, gil=1), "-f", "gil"))
    assert "500.0 ms \u00b1 70.7 ms (50.0 % of the time) by 1 thread, running, in 50 of 100 samples\n" in alone, alone
    assert "pycap record --wall records who waits for it\n" in alone and "blamed" not in alone, alone
    assert good(pysym(make(samples=10), "-f", "gil")).startswith("no sample says whether its thread held a GIL")


def test_gil_elsewhere(make, pysym):
    """Blame is an event of its own, and no time of the thread's own: neither computing nor waiting."""
    trace = make(samples=100, stacks=2, depth=2, native=0, gil=1, gil_waits=10)
    held, waits = "Work.level0_0 (part0.py:1);Work.level1_0 (part1.py:11)", "Work.level0_0 (part0.py:1);Work.level1_1 (part1.py:12)"
    assert good(pysym(trace, "-f", "folded", "--event", "gil-blame", "-F")).splitlines() == [
        f"python3.11-1000;{held} 40000", f"python3.11-1000;{held};[wait: blocked] 30000"]
    assert good(pysym(trace, "-f", "folded", "--event", "off-cpu")).splitlines() == [
        f"python3.11-1000;{held};[wait: blocked] 35000", f"python3.11-1000;{waits};[wait: GIL] 70000"]
    rows = [json.loads(line) for line in good(pysym(trace, "-f", "ndjson", "--event", "gil-blame")).splitlines()]
    assert sum(row["value"] for row in rows if row["type"] == "sample") == 70 * 10**6
    assert {(row["unit"], row["gil"]) for row in rows if row["type"] == "sample"} == {("ns", "held")}

    text = good(pysym(trace, "-f", "summary"))
    assert re.search(r"^Seen +140 samples, 1\.000 s of CPU time, 0\.105 s of waiting, 0\.070 s of waiting for what others held, ", text, re.M)
    assert re.search(r"^GIL +held in 50\.0 % of samples; waited for 0\.072 s by 1 thread, most because of python3\.11 \(1000\): 100 %$",
                     text, re.M), text
    assert len(re.findall("^ +100[01] .* 50\\.0 %$", text, re.M)) == 2, text  # a thread runs for as long as the clock says
    data = json.loads(good(pysym(trace, "-f", "summary", "--json")))
    assert data["gil"] == {"waited_ns": 72500000, "exact": True, "waiter_count": 1, "blamed_ns": 70000000,
                           "most_blamed": {"pid": 1000, "tid": 1000, "thread": "python3.11", "blamed_ns": 70000000}}
    data = json.loads(good(pysym(trace, "-f", "summary", "--json", "--focus", "level")))["gil"]
    assert (data["waited_ns"], data["exact"]) == (70000000, False)
    assert "-f gil " not in good(pysym(trace))
    assert "-f gil " in good(pysym(make(samples=10, stacks=2, gil=1, gil_waits=10)))


def test_output_is_the_same_everywhere(make, pysym, tmp_path):
    """No folder of the machine's is in it, whichever way the trace is named."""
    trace = make(samples=300, threads=3, processes=2, torn=9)
    second, third = tmp_path / "second", tmp_path / "a/third/one"
    second.mkdir()
    third.mkdir(parents=True)
    for folder in (second, third):
        (folder / trace.name).write_bytes(trace.read_bytes())
    for name in TEXTS:
        plain = good(pysym(trace.name, "-f", name, cwd=tmp_path))
        assert str(tmp_path) not in plain
        for file, cwd in ((trace, "/"), (f"./{trace.name}", second), (f"../../a//third/one/{trace.name}", third.parent),
                          (third / trace.name, second)):
            assert good(pysym(file, "-f", name, cwd=cwd)) == plain, (name, file)
        outputs = set()
        for fd in range(2):
            read, write = os.pipe()
            with subprocess.Popen(["cat", trace], stdout=write):
                os.close(write)
                outputs.add(good(pysym(f"/dev/fd/{read}" if fd else "-", "-f", name, stdin=read, pass_fds=[read])))
            os.close(read)
        assert {out.replace("standard input", trace.name) for out in outputs} == {plain} and len(outputs) == 1, name


def test_verdict(make, pysym):
    """What an operator wants to know, in plain words, and the processes; -v puts every figure behind it."""
    trace = make(samples=100, processes=2, torn=10, losses=7)
    text = good(pysym(trace, "-f", "summary", "--interpreter", "calls"))
    assert text == f"""\
{trace.name}: 1.0 s from 2023-11-14 22:13:20 UTC on testhost
Seen         100 samples, 1.000 s of CPU time, of 2 processes: python3.11
Lost         7 of 107 samples (6.5 %)
             7: the ring buffer was full (a larger --ring-size helps)
Stacks       Python 90.0 % whole, native 100 % whole
             10 Python stacks cut: the Python frame chain broke off
Names        Python 100 %, native 0 % of the frames in the stacks of all samples have a name; 100 % of samples have a native frame without one
             /opt/made-up/python3.11: the file has no build ID, in 100 samples

Processes
       pid  name                    Python      samples       share      running  threads
      1000  python3.11              3.11.2           50      50.0 %       50.0 %        1
      1100  python3.11              3.11.2           50      50.0 %       50.0 %        1

Every figure, all losses and all modules: -v
"""
    several = good(pysym(make(samples=100, second_event=5, losses=7), "-f", "summary"))
    assert "\n             7 of cpu-clock: the ring buffer was full (a larger --ring-size helps)\n" in several
    verdict = text.split("Processes\n")[0]
    assert good(pysym(trace, "-f", "summary", "-v", "--interpreter", "calls")).startswith(verdict + f"{trace.name}\n  recorded ")


def test_verdict_of_little(make, pysym):
    """Where there is nothing to say, nothing is said; where a file has no end, the verdict does not call it whole."""
    whole = make(samples=10, native=0)
    assert good(pysym(whole, "-f", "summary")).splitlines()[1:5] == [
        "Seen         10 samples, 0.100 s of CPU time, of 1 process: python3.11",
        "Lost         nothing",
        "Stacks       Python 100 % whole",
        "Names        Python 100 % of the frames in the stacks of all samples have a name"]
    text = pysym(make(samples=10, native=0, end=0), "-f", "summary").stdout
    assert ", not ended by its recorder: the end is missing\n" in text
    assert "\nLost         what the part of a file held that is damaged or missing\n" in text
    empty = good(pysym(make(samples=0), "-f", "summary"))
    assert "\nSeen         no sample\nLost         nothing\n\nEvery" in empty, empty
    many = good(pysym(*[whole] * 6, "-f", "summary"))
    assert many.count(f"{whole.name}: ") == 4 and "\nand 2 more files\n" in many
    assert "\nSeen         60 samples" in many


def test_verdict_on_some_samples(make, pysym):
    """Losses are those of the whole recording, which is said where filters show a part of it."""
    for losses, lost, quality in [(7, "7 of 107 samples (6.5 %)", "6.5 % of samples lost"), (0, "nothing", "no sample lost")]:
        trace = make(samples=100, processes=2, losses=losses)
        text = good(pysym(trace, "-f", "summary", "--pid", "1000"))
        assert f"\nLost         {lost} in the whole recording\n" in text, text
        assert f"\nQuality      {quality} in the whole recording; whole stacks" in good(pysym(trace, "--pid", "1000"))
        assert "whole recording" not in good(pysym(trace, "-f", "summary", "--full-filenames", "--hide", "^none$"))


def test_skipped_ticks_of_others(make, pysym):
    """They are counted on all CPUs: what is recorded has lost its part of them, and no more."""
    trace = make(samples=100, skipped=50)
    text = good(pysym(trace, "-f", "summary", "-v"))
    assert "\nLost         5 of 105 samples (4.8 %)\n             about 5 of 50 on all CPUs: the kernel skipped a tick" in text, text
    assert re.search(r"^  tick_skipped +50 ", text, re.M), text
    assert "4.8 % of samples lost" in good(pysym(trace))
    assert json.loads(good(pysym(trace, "-f", "summary", "--json")))["lost_samples"] == {"part": 5, "whole": 105}
    assert pysym(trace, "-f", "folded", "--strict=lost:5").returncode == 0
    refused = pysym(trace, "-f", "folded", "--strict=lost:3")
    assert refused.returncode == 3 and "5 of 105 samples were lost (4.77 %, allowed: 3 %): 5 tick_skipped" in refused.stderr, refused.stderr


def test_verdict_on_threads(make, pysym):
    text = good(pysym(make(samples=60, threads=12), "-f", "summary"))
    assert len(re.findall(r"^ +\d+  .* python3\.11 +5 +\d", text.split("Busiest threads\n")[1], re.M)) == 10, text
    assert "  and 2 more (-v)\n" in text
    assert "Busiest" not in good(pysym(make(samples=60, threads=1), "-f", "summary"))


def test_first_page(make, pysym):
    """A trace alone gives the verdict in two lines, the table of functions, and where to go next."""
    trace = make(samples=100, native=0, losses=7)
    text = good(pysym(trace))
    assert text.startswith(f"""\
{trace.name}: 1.0 s from 2023-11-14 22:13:20 UTC on testhost
Quality      6.5 % of samples lost; whole stacks: Python 100 %; frames shown with a name: Python 100 %

""")
    _, top = text.split("Python 100 %\n\n")
    top, following = top.split("\nNext: ")
    assert top == good(pysym(trace, "-f", "top"))
    name = trace if len(str(trace)) <= 60 else "FILE"
    assert following.startswith(f"pysym {name} -o profile.html") and f"pysym {name} -f summary" in following
    with open(trace, "rb") as piped:
        assert "\nNext: pysym FILE -o " in good(pysym("-", stdin=piped))
    assert good(pysym(trace, "--strict=lost:off")) == text
    assert pysym(trace, "--strict").returncode == 3
    shown = good(pysym(make(samples=0)))
    assert "0 samples\n\nNext: pysym " in shown and "profile.html" not in shown


def test_summary_json(make, pysym):
    """The same figures as the text's, for scripts."""
    trace = make(samples=120, processes=2, threads=4, torn=10, losses=7, command=1)
    data = json.loads(good(pysym(trace, "-f", "summary", "--json", "--interpreter", "calls")))
    assert (data["format"], data["version"], data["name"]) == ("summary", 1, trace.name)
    assert (data["samples"], data["all_samples"], data["damaged"]) == (120, 120, False)
    assert data["lost_samples"] == {"part": 7, "whole": 127}
    assert data["whole_stacks"]["python"] == {"part": 108, "whole": 120}
    assert data["named"]["samples"] == {"part": 0, "whole": 120}
    assert data["files"][0]["hostname"] == "testhost" and data["files"][0]["settings"]["command.exit_status"] == "3"
    assert data["events"] == [{"event": "cpu-clock", "unit": "ns", "frequency_hz": 0, "period": 10_000_000,
                               "samples": 120, "weight_ns": 120 * 10_000_000}], data["events"]
    assert {loss["loss"]: (loss["class"], loss["count"]) for loss in data["losses"]} == {"ring_full": ("sample", 7)}
    assert sum(p["samples"] for p in data["processes"]) == sum(t["samples"] for t in data["threads"]) == 120
    assert sum(p["running_ns"] for p in data["processes"]) == sum(t["running_ns"] for t in data["threads"]) == 1_200_000_000
    assert [m["reason"] for m in data["modules_without_names"]] == ["the file has no build ID"]
    some = json.loads(good(pysym(trace, "-f", "summary", "--json", "--pid", "1000")))
    assert some["samples"] == 60 and some["all_samples"] == 120 and some["filters"] == "--pid 1000"
    assert [p["samples"] for p in some["processes"]] == [60]
    broken = json.loads(pysym(make(samples=10, end=0), "-f", "summary", "--json").stdout)
    assert broken["damaged"] and not broken["files"][0]["ended"]


def test_note(make, pysym):
    """What the command said of itself: in the summary beside how it ended, in JSON among the settings."""
    trace = make(samples=10, command=1, work=20_000)
    text = good(pysym(trace, "-f", "summary", "-v"))
    assert "\n  command       exit status 3, 2.500 s, 1.251 s of CPU\n" \
           "  note          work=20000\n                branch=main\n  duration " in text, text
    settings = json.loads(good(pysym(trace, "-f", "summary", "--json")))["files"][0]["settings"]
    assert (settings["note.work"], settings["note.branch"]) == ("20000", "main")
    text = good(pysym(make(samples=10, note_cut=904), "-f", "summary", "-v"))
    assert "\n  note          904 bytes too many, which were not read: units of work are not known\n" \
           "                of its lines 1 could not be used\n" in text, text
    assert "note" not in good(pysym(make(samples=10, command=1), "-f", "summary", "-v"))


@pytest.mark.parametrize("arguments, said", [
    (["-f", "speedscop"], "unknown format 'speedscop': did you mean speedscope?"),
    (["-f", "sumary"], "did you mean summary?"),
    (["-f", "dum"], "did you mean dump?"),
    (["-f", "unwind_check"], "did you mean unwind-check?"),
    (["-f", "flamegraph"], "unknown format 'flamegraph': use -f html: a page with a flame graph"),
    (["-f", "calltree"], "use -f tree"),
    (["-f", "markdown"], "use -f brief"),
    (["-f", "perf"], "use -f perf-data, or -f perf-script for"),
    (["-f", "gecko"], "use -f firefox: https://profiler.firefox.com"),
    (["-f", "otlp"], "use -f pprof, which the OpenTelemetry Collector receives"),
    (["-f", "pb"], "unknown format 'pb': use -f pprof (formats"),
    (["-o", "x.parquet"], "none is known by the name 'x.parquet': use -f ndjson: DuckDB"),
    (["-f", "sql"], "use -f ndjson"),
    (["-f", "ndjsn"], "did you mean ndjson?"),
    (["-f", "xyz"], "unknown format 'xyz' (formats are: "),
    (["-f", ""], "--format wants an argument that is not empty"),
    (["-f", "x" * 200], "unknown format 'xxx"),
    (["-o", "x.png"], "say which --format: none is known by the name 'x.png': use -f svg"),
    (["-o", "x.htm"], "use -f html"),
    (["-o", "x.firefox.json.gz"], "pysym: x.firefox.json.gz: pysym does not compress this format: write x.firefox.json, then gzip it"),
    (["-o", "x.gz"], "none is known by the name 'x.gz': use -f pprof"),
    (["-o", "x.prof"], "use -f pprof (formats"),
    (["-o", "x.pstats"], "use -f pprof or -f speedscope"),
    (["-o", "x"], "none is known by the name 'x' (formats are: "),
])
def test_wrong_formats(make, pysym, tmp_path, arguments, said):
    """What other tools write is answered by what to use here; a slip of the pen by the nearest name."""
    done = pysym(make(samples=1), *arguments, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and not done.stdout, done.stderr
    assert not [file for file in tmp_path.iterdir() if file.suffix != ".bin"]


def test_summary(make, pysym):
    text = good(pysym(make(samples=100, processes=2), "-f", "summary", "-v"))
    for part in ["testhost", "6.1.0-test", "2023-11-14 22:13:20 UTC", "make_trace", "3.11.2", "cpu-clock",
                 "ended when its duration was over", "/opt/made-up/python3.11", "no build ID"]:
        assert part in text, text
    assert re.search(r"^ +Python stacks that reached their root +100.00 % +100$", text, re.M), text
    assert re.search(r"Losses\n  none\n", text), text


def test_summary_of_host_and_command(make, pysym):
    """What a trace may say of the machine and of the command; one that does not has no line of it."""
    plain = good(pysym(make(samples=10), "-f", "summary", "-v"))
    assert "CPU  " not in plain and "memory" not in plain and "command" not in plain, plain
    text = good(pysym(make(samples=10, hardware=1, command=1), "-f", "summary", "-v"))
    assert "  CPU           Made-up CPU @ 2.00GHz\n  memory        8,589,934,592 bytes\n" in text, text
    assert re.findall(r".*command.*", text) == ["  command       exit status 3, 2.500 s, 1.251 s of CPU"], text
    text = good(pysym(make(samples=10, command=2), "-f", "summary", "-v"))
    assert re.findall(r".*command.*", text) == ["  command       ended by signal 9, 2.500 s, 1.251 s of CPU"], text


@pytest.mark.sanitized
def test_newer_flags(make, pysym):
    """Flags of a later version are skipped, with what comes with them: the samples count, and the summary says so."""
    trace = make(samples=10, newer=3, native=0)
    assert total_of_folded(good(pysym(trace, "-f", "folded", "--strict"))) == 13
    assert re.findall(r".*newer.*", good(pysym(trace, "-f", "summary", "-v"))) == [
        "  not read      flags of 3 samples of a newer format"]
    assert len(re.findall(r"^  sample .* flags=0x124$", good(pysym(trace, "-f", "dump")), re.M)) == 3
    assert "newer" not in good(pysym(make(samples=10), "-f", "summary", "-v"))


def test_dump_has_every_sample_and_record(make, pysym):
    text = good(pysym(make(samples=50), "-f", "dump"))
    assert len(re.findall(r"^  sample ", text, re.M)) == 50
    for name in ("epoch", "host", "event", "process", "thread", "module", "mapping", "code", "python_frame",
                 "native_frame", "kernel_frame", "stack", "join", "tuple", "samples", "end"):
        assert re.search(rf"^{name} ", text, re.M), name


def test_dump_has_source_files(make, pysym):
    """What stat said of them, in each epoch; of two processes with different files of one name, both."""
    text = good(pysym(make(samples=4, epoch_samples=2, native=0, processes=2, sources=9), "-f", "dump"))
    epochs = [dict(re.findall(r"^string id=(\d+) data=(.*)$", epoch, re.M)) | {"": epoch} for epoch in text.split("\nepoch ")]
    assert len(epochs) == 2
    for strings in epochs:
        rows = re.findall(r"^source process=(\d) file=(\d+) time_ns=1000000000000 state=1 size_bytes=(\d+)"
                          r" modified_ns=1690000000123456789$", strings[""], re.M)
        assert [(process, strings[file].strip('"'), int(size)) for process, file, size in rows] == [
            ("1", "/srv/app/part0.py", 1000), ("1", "/srv/app/part1.py", 1001), ("1", "/srv/app/part2.py", 1002),
            ("2", "/srv/app/part0.py", 4711)]


# ---- which samples ----

def test_gil_needs_to_be_known(make, pysym):
    done = pysym(make(samples=10), "-f", "folded", "--gil")
    assert done.returncode == 1
    assert "GIL" in done.stderr


# ---- in and out ----

def test_stdin_and_stdout(make, pysym, tmp_path):
    trace = make(samples=300, threads=3)
    for name in TEXTS:
        plain = good(pysym(trace, "-f", name))
        with open(trace, "rb") as file:
            piped = good(pysym("-", "-f", name, "-o", "-", stdin=file))
        assert piped.replace("standard input", trace.name) == plain
        out = tmp_path / "out"
        assert good(pysym(trace, "-f", name, "-o", out)) == ""
        if name == "ndjson":  # in two files
            rows = [(out.parent / f"out{end}").read_text() for end in ("", ".stacks.ndjson")]
            assert sorted("".join(rows).splitlines()) == sorted(plain.splitlines())
        else:
            assert out.read_text() == plain
        out.unlink()


def test_format_by_extension(make, pysym, tmp_path):
    trace = make(samples=10)
    for name, begin in [("x.speedscope.json", b"{"), ("x.json", b"{"), ("x.folded", b"python3.11-1000;"),
                        ("x.txt", b"python3.11-1000;"), ("x.html", b"<!DOCTYPE html>"), ("x.ndjson", b'{"type":'), ("x.jsonl", b'{"type":'),
                        ("perf.data", b"PERFILE2"), ("x.data", b"PERFILE2"), ("x.perf.data", b"PERFILE2"),
                        ("x.perf", b"python3.11  "), ("x.pb.gz", b"\x1f\x8b"), ("x.pprof", b"\x1f\x8b"), ("x.pb", b"\x1f\x8b")]:
        good(pysym(trace, "-o", tmp_path / name))
        assert (tmp_path / name).read_bytes().startswith(begin), name
    done = pysym(trace, "-o", tmp_path / "x.unknown")
    assert done.returncode == 2
    assert "formats are: " + " ".join(formats(views=True)) in done.stderr
    assert not (tmp_path / "x.unknown").exists()


def test_output_is_whole_or_not_there(make, pysym, tmp_path):
    out = tmp_path / "keep.folded"
    out.write_text("before\n")
    out.chmod(0o640)
    assert pysym(tmp_path / "none.bin", "-o", out).returncode == 1
    assert out.read_text() == "before\n"
    good(pysym(make(samples=10), "-o", out))
    assert total_of_folded(out.read_text()) == 10
    assert out.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in tmp_path.iterdir() if "folded" in p.name] == ["keep.folded"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing(tmp_path, number):
    """pysym waits for its input, and has begun its output. The signal may be ignored here, as below nohup."""
    def handles(pid):
        caught = re.search(r"^SigCgt:\s*(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)
        return caught and int(caught[1], 16) >> (number - 1) & 1

    with subprocess.Popen([PYSYM, "-", "-f", "folded", "-o", tmp_path / "out"], stdin=subprocess.PIPE,
                          preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)) as process:
        while process.poll() is None and not handles(process.pid):
            time.sleep(0.01)
        assert len(os.listdir(tmp_path)) == 1
        process.send_signal(number)
        assert process.wait() == -number
    assert os.listdir(tmp_path) == []


def test_output_follows_no_link(make, pysym, tmp_path):
    """Whoever can write into the folder may have put a link there, to a file that is not his."""
    out, link, second = tmp_path / "keep.folded", tmp_path / "link.folded", tmp_path / "second.folded"
    out.write_text("before\n")
    link.symlink_to(out)
    os.link(out, second)
    for name, word in ((link, "symbolic link"), (second, "hard link")):
        done = pysym(make(samples=10), "-o", name)
        assert done.returncode == 1 and word in done.stderr and str(name) in done.stderr, done.stderr
    assert out.read_text() == "before\n" and link.is_symlink()
    for name in "/dev/stdout", "/proc/self/fd/1":
        assert total_of_folded(pysym(make(samples=10), "-f", "folded", "-o", name).stdout) == 10


def test_file_limit(make, pysym, tmp_path):
    """ulimit -f is an error like any other, not a signal; nothing is left."""
    done = pysym(make(samples=5000, stacks=500), "-o", tmp_path / "out.folded",
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    assert done.returncode == 1 and "out.folded" in done.stderr and "File too large" in done.stderr, done.stderr
    assert not [p for p in tmp_path.iterdir() if "folded" in p.name]


def test_input_is_not_overwritten(make, pysym):
    trace = make(samples=10)
    before = trace.read_bytes()
    done = pysym(trace, "-f", "folded", "-o", trace)
    assert done.returncode == 2 and "input" in done.stderr
    assert trace.read_bytes() == before


@pytest.mark.parametrize("name", FORMATS)
def test_full_disk(make, pysym, name):
    done = pysym(make(samples=5000, stacks=500, native=0), "-f", name, "-o", "/dev/full")
    assert done.returncode == 1
    assert "/dev/full" in done.stderr and "No space left" in done.stderr, done.stderr


@pytest.mark.parametrize("name", FORMATS)
def test_full_disk_on_stdout(make, pysym, name):
    with open("/dev/full", "wb") as full:
        done = pysym(make(samples=100), "-f", name, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert "standard output" in done.stderr, done.stderr


# ---- bad input ----

def test_places_that_are_not_there(make, pysym, tmp_path):
    """Given by hand, and looked into for nothing: that is told before anything is written."""
    trace = make(samples=10)
    for option in ("--symfs", "--sysroot", "--archive"):
        for name in FORMATS:
            for more in ([], ["--python-only"]):
                done = pysym(trace, "-f", name, option, tmp_path / "none", "-o", tmp_path / "out", *more)
                assert done.returncode == 1 and str(tmp_path / "none") in done.stderr, (option, name, done.stderr)
                assert "No such file" in done.stderr and not (tmp_path / "out").exists()
    for option in ("--symfs", "--sysroot"):
        done = pysym(trace, "-f", "folded", option, trace)
        assert done.returncode == 1 and f"{trace}: " in done.stderr and "Not a directory" in done.stderr, done.stderr
        assert good(pysym(trace, "-f", "folded", option, tmp_path)) == good(pysym(trace, "-f", "folded"))


def test_usage(make, pysym, tmp_path):
    trace = make(samples=1)
    for arguments, message in [
            ([], "name a trace"), ([trace, "-f", "foo"], "unknown format 'foo' (formats are: html speedscope"),
            ([trace, "--frobnicate"], "unknown option --frobnicate"), ([trace, "-z"], "unknown option -z"),
            ([trace, "--function=3"], "--function takes no argument"), ([trace, "--columns=3"], "--columns takes no argument"),
            ([trace, "--frobnicate=3"], "unknown option --frobnicate"),
            ([trace, "-f"], "wants an argument"), ([trace, "-f", "folded", "--pid", "x"], "--pid wants numbers of processes, like 123,456, not 'x'"),
            ([trace, "-f", "folded", "--pid", "1,"], "--pid wants numbers"),
            ([trace, "-f", "folded", "--time", "5"], "--time wants"),
            ([trace, "-f", "folded", "--time", "5,2"], "--time wants"),
            ([trace, "-f", "folded", "--merge", "cpu"], "--merge wants all, process or thread, not 'cpu'"),
            ([trace, "-f", "top", "--sort", "name"], "--sort wants self or total, not 'name'"),
            ([trace, "-f", "top", "--by", "module"], "--by wants function or line, not 'module'"),
            ([trace, "-f", "top", "--by", "line", "-F"], "--by line needs the lines that --function and --nolineno leave out"),
            ([trace, "-f", "folded", "--json"], "--json is for --format top"),
            ([trace, "-f", "folded", "--native-names"], "--native-names is for --format perf-data"),
            ([trace, "-f", "dump", "--native-names"], "--native-names is for --format perf-data"),
            ([trace, "-f", "folded", "--merge", ""], "--merge wants all, process or thread"),
            ([trace, "-f", "folded", "--top", "many"], "--top wants"), (["-", "-", "-f", "folded"], "standard input")]:
        done = pysym(*arguments)
        assert done.returncode == 2, arguments
        assert message in done.stderr, done.stderr
        assert done.stdout == ""


def test_help_lists_all_formats(make, pysym):
    """The formats of --help are the emitters and pysym's own, and each is known to --format."""
    emitters = [re.search(r'^const struct emitter .*\n?    .name = "([a-z-]+)"', path.read_text(), re.M)
                for path in (ROOT / "formats/emit").glob("**/*.c")]
    emitters = [found[1] for found in emitters if found]
    assert len(emitters) > 3 and set(emitters) < set(formats()), emitters
    for name in FORMATS:
        good(pysym(make(samples=1), "-f", name, text=False))
    assert re.match(r"pysym \d+\.\d+\.\d+\n$", good(pysym("--version")))


@pytest.mark.sanitized
def test_files_that_are_no_trace(make, pysym, tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_text("no trace at all, just a text that is long enough to be mistaken\n" * 9)
    for name, message in [("missing", "No such file"), ("empty", ""), ("text", ""), (".", "")]:
        done = pysym(tmp_path / name, "-f", "folded")
        assert done.returncode == 1, name
        assert str(tmp_path / name) in done.stderr and message in done.stderr, done.stderr
        assert done.stdout == "" and done.stderr.count("\n") == 1


@pytest.mark.sanitized
def test_newer_version(make, pysym, tmp_path):
    """The header's version fields stand behind its magic; a checksum covers them or not, it is refused in any case."""
    data = bytearray(make(samples=10).read_bytes())
    for at in range(4, 16):
        data[at] = 99
    path = tmp_path / "newer.bin"
    path.write_bytes(data)
    done = pysym(path, "-f", "folded")
    assert done.returncode == 1
    assert str(path) in done.stderr


@pytest.mark.sanitized
def test_truncated(make, pysym, tmp_path):
    """What is whole is read; what is not is told."""
    data = make(samples=3000, interval_us=5000, native=0).read_bytes()
    path = tmp_path / "cut.bin"
    counts = []
    for share in (0.3, 0.6, 0.99):
        path.write_bytes(data[:int(len(data) * share)])
        done = pysym(path, "-f", "folded")
        assert done.returncode == 0, done.stderr
        assert str(path) in done.stderr
        assert pysym(path, "-f", "folded", "--strict").returncode == 3
        counts.append(total_of_folded(done.stdout))
    assert counts == sorted(counts) and 0 < counts[0] < counts[1] < 3000
    assert "NOT ended in good order" in pysym(path, "-f", "summary", "-v").stdout


@pytest.mark.sanitized
def test_flipped_bits(make, pysym, tmp_path):
    """Whatever bit flips: an answer, no crash, and damage is told."""
    data = make(samples=400, interval_us=50000, epoch_samples=50).read_bytes()
    path = tmp_path / "flipped.bin"
    for at in range(0, len(data), max(1, len(data) // 60)):
        flipped = bytearray(data)
        flipped[at] ^= 1 << at % 8
        path.write_bytes(flipped)
        done = pysym(path, "-f", "folded", "--strict")
        assert done.returncode in (1, 3), (at, done.stderr)
        assert str(path) in done.stderr or done.returncode == 3
        if done.returncode == 3:
            assert total_of_folded(done.stdout) >= 300 or at < 100, at
            assert pysym(path, "-f", "dump").returncode == 0


def test_strict(make, pysym):
    """Each flaw fails what it is a flaw of, and is named with its figures; the output is complete all the same."""
    whole, calls = {"samples": 10, "native": 0}, ("--interpreter", "calls")
    assert pysym(make(**whole), "-f", "folded", "--strict=all").returncode == 0
    assert pysym(make(samples=10), "-f", "folded", "--strict=all").returncode == 0  # all without a name are hidden
    for flaw, said in [
        ({"torn": 5}, "python: 8 of 10 Python stacks are whole (80.00 %, wanted: 100 %): 2 python_torn"),
        ({"losses": 1}, "lost: 1 of 11 samples were lost (9.10 %, allowed: 0 %): 1 ring_full"),
        ({"end": 0}, "a trace is damaged, or its recorder did not end it"),
        ({"native": 1}, "names: 0 of 10 samples have a name for every native frame (0.00 %, wanted: 100 %): python3.11"),
    ]:
        trace = make(**{**whole, **flaw})
        for name in ("folded", "top", "summary"):
            done = pysym(trace, "-f", name, "--strict=all", *calls)
            assert done.returncode == 3, (flaw, name)
            assert f"pysym: incomplete: {said}\n" in done.stderr, done.stderr
            assert done.stdout == good(pysym(trace, "-f", name, *calls))


def test_strict_thresholds(make, pysym):
    """Plain --strict is a gate for real recordings: names do not count, a lost sample of a hundred neither."""
    def status(settings, *options):
        return pysym(make(samples=1000, **settings), "-f", "folded", *options).returncode
    for settings, options, expected in [
        ({"native": 1}, ["--strict"], 0),
        ({"native": 1}, ["--strict=names:95"], 0),
        ({"native": 1}, ["--strict=names:95", "--interpreter", "calls"], 3),
        ({"losses": 10}, ["--strict"], 0),
        ({"losses": 20}, ["--strict"], 3),
        ({"losses": 20}, ["--strict=lost:2%"], 0),
        ({"torn": 100}, ["--strict"], 3),
        ({"torn": 100}, ["--strict=python:99"], 0),
        ({"torn": 100}, ["--strict=python:off"], 0),
        ({"unjoined": 100}, ["--strict"], 0),
        ({"unjoined": 100}, ["--strict=join:99.5"], 3),
        ({"end": 0}, ["--strict"], 3),
    ]:
        assert status(settings, *options) == expected, (settings, options)
    done = pysym(make(samples=10), "-f", "folded", "--strict=python:high")
    assert done.returncode == 2 and "not 'python:high'; classes are: python native" in done.stderr, done.stderr
