# SPDX-License-Identifier: Apache-2.0
"""Tracepoints are recorded as often, and with as many bytes, as the program itself counts.

By function; several events at once have an account each, in which nothing is missing.
"""
import collections
import json
import math
import os
import shutil
import subprocess

import pytest

import chance
from conftest import PYTHON, ROOT, record_behind_gate, record_until_slower
from trace_text import dump, samples_of

PROGRAM = ROOT / "testdata/programs/hits.py"
OPENS, WRITES, FORKS = "syscalls:sys_enter_openat", "syscalls:sys_enter_write", "sched:sched_process_fork"
RING = ["--ring-size", "64M"]
LOST = (2, 5, 21, 47, 57, 72)  # samples that are lost, by their numbers in losses.def
SKIPPED = 4


class Account:
    """Of each event of a trace: its record, its ticks over all CPUs, and what was lost of it."""

    def __init__(self, pysym, trace):
        records = dump(trace)
        self.samples = collections.defaultdict(list)
        for s in samples_of(pysym, trace):
            self.samples[s.event].append(s)
        self.events = [f for kind, f in records if kind == "event"]
        self.ticks = collections.defaultdict(collections.Counter)
        self.lost, self.skipped = collections.Counter(), collections.Counter()
        self.periods = collections.defaultdict(list)
        for kind, f in records:
            if kind == "ticks":
                self.ticks[f["event"]].update({k: f[k] for k in ("seen", "idle", "unsampled", "thinned", "count")})
            elif kind == "loss":
                self.lost[f["event"]] += f["count"] * (f["reason"] in LOST)
                self.skipped[f["event"]] += f["count"] * (f["reason"] == SKIPPED)
            elif kind == "period":
                self.periods[f["event"]].append(f["period"])

    def check(self, number, name):
        """Each tick of the event with that id is a sample, or told of."""
        t = self.ticks[number]
        assert t["seen"] == t["idle"] + t["unsampled"] + t["thinned"] + len(self.samples[name]) + self.lost[number], (name, t)

    def values(self, name, function):
        return sum(s.value for s in self.samples[name] if function in s.functions)


def record(pysym, tmp_path, events, count=200, threads=2):
    options = [*RING, "-v", *(word for event in events for word in ("-e", event))]
    trace, told, said = record_behind_gate(pysym, tmp_path, options, PYTHON, PROGRAM, count, threads)
    return Account(pysym, trace), json.loads(told), said


@pytest.mark.smoke(load=True)
def test_hits_are_the_programs_own_calls(needs_bpf, pysym, tmp_path):
    account, told, said = record(pysym, tmp_path, ["cpu-clock", OPENS, f"{WRITES}/weight=count,unit=bytes/", FORKS])
    for number, name in enumerate(("cpu-clock", OPENS, WRITES, FORKS), 1):
        account.check(number, name)
        assert f"{'Ticks of cpu-clock' if name == 'cpu-clock' else f'Samples of {name} on all CPUs'}: {account.ticks[number]['seen']}" in said
    for number, name, function, what in ((2, OPENS, "opens", "calls"), (3, WRITES, "writes_small", "bytes"),
                                         (3, WRITES, "writes_large", "bytes"), (4, FORKS, "forks", "calls")):
        found, real = account.values(name, function), told[function][what]
        # What the kernel skipped is told, in hits: none of them counts more than the largest write.
        slack = account.skipped[number] * (told[function]["largest"] if what == "bytes" else 1)
        assert real - slack <= found <= real, (name, function)
    for number, name in ((2, OPENS), (3, WRITES), (4, FORKS)):  # with a period of 1, each hit is a sample
        assert sum(s.value for s in account.samples[name]) == account.ticks[number]["count"] or account.lost[number]


def test_what_ran_before_exec_is_not_counted(needs_bpf, pysym, tmp_path):
    """A shell that executes Python is looked at as what may become Python: its hits are nobody's, and in no count."""
    shell = "for i in $(seq 50); do : </dev/null; done; exec \"$0\" \"$@\""
    trace, told, _ = record_behind_gate(pysym, tmp_path, [*RING, "-e", f"cpu-clock,{OPENS}"], "sh", "-c", shell, PYTHON, PROGRAM, 100, 1)
    account = Account(pysym, trace)
    account.check(2, OPENS)
    assert account.ticks[2]["unsampled"] >= 50
    real = json.loads(told)["opens"]["calls"]
    assert real - account.skipped[2] <= account.values(OPENS, "opens") <= real
    assert sum(s.value for s in account.samples[OPENS]) == account.ticks[2]["count"] or account.lost[2]


def test_stacks_end_at_the_tracepoint(needs_bpf, pysym, tmp_path):
    """What the kernel does to call the sampler is in no stack, and of a system call that begins there is nothing else."""
    work = ("import os, sys, time\ndef warm():\n    while not os.path.exists(sys.argv[1]): os.write(null, b'x'); time.sleep(0.01)\n"
            "def calls():\n    for _ in range(100): os.write(null, b'x')\n    if not os.fork(): os._exit(0)\n    os.wait()\n"
            "null = os.open('/dev/null', os.O_WRONLY)\nwarm()\ncalls()\n")
    trace, _, _ = record_behind_gate(pysym, tmp_path, [*RING, "-e", f"{WRITES},{FORKS}"], PYTHON, "-c", work)
    for name, is_kernel in ((WRITES, False), (FORKS, True)):
        lines = [line for line in pysym(trace, "--format", "folded", "--event", name).stdout.splitlines() if ";calls (" in line]
        assert lines
        for line in lines:
            last = line.rsplit(" ", 1)[0].rsplit(";", 1)[-1]
            assert last.endswith("_[k]") == is_kernel and not last.startswith(("perf_", "trace_", "__traceiter_", "bpf_")), line


def test_a_period_takes_one_of_so_many(needs_bpf, pysym, tmp_path):
    opens, size = 7, 65536
    account, told, _ = record(pysym, tmp_path, ["cpu-clock", f"{OPENS}/period={opens}/",
                                                f"{WRITES}/weight=count,unit=bytes,period={size}/"])
    cpus = os.cpu_count()
    for number, name, period in ((2, OPENS, opens), (3, WRITES, size)):
        account.check(number, name)
        assert all(s.value % period == 0 for s in account.samples[name])
        left = account.ticks[number]["count"] - sum(s.value for s in account.samples[name])
        assert 0 <= left < cpus * period or account.lost[number]
    assert account.ticks[2]["thinned"] > account.ticks[2]["count"] // 2
    # At either end a period may be filled by hits of others, or others' periods by these.
    for name, function, what, period in ((OPENS, "opens", "calls", opens), (WRITES, "writes_large", "bytes", size)):
        number = 2 if name == OPENS else 3
        slack = 2 * cpus * period + account.skipped[number] * (1 if what == "calls" else told[function]["largest"])
        found = account.values(name, function)
        # Threads of the program take turns: what one has left, the other fills.
        assert abs(found - told[function][what]) <= slack * 2, (name, found, told)


def test_a_negative_field_counts_nothing(needs_bpf, pysym, tmp_path):
    """write() that fails returns a negative number."""
    work = ("import os, sys, time\nnull = os.open('/dev/null', os.O_WRONLY)\nfull = os.open('/dev/full', os.O_WRONLY)\n"
            "def warm():\n    while not os.path.exists(sys.argv[1]): os.write(null, b'x'); time.sleep(0.01)\n"
            "def good():\n    for _ in range(100): os.write(null, b'x' * 300)\n"
            "def bad():\n    for _ in range(100):\n        try: os.write(full, b'x' * 300)\n        except OSError: pass\n"
            "warm()\nbad()\ngood()\n")
    trace, _, _ = record_behind_gate(pysym, tmp_path, [*RING, "-e", "syscalls:sys_exit_write/weight=ret,unit=bytes/"], PYTHON, "-c", work)
    account = Account(pysym, trace)
    account.check(1, "syscalls:sys_exit_write")
    good, bad = (account.values("syscalls:sys_exit_write", f) for f in ("good", "bad"))
    assert 30000 - 300 * account.skipped[1] <= good <= 30000 and bad == 0
    assert account.ticks[1]["thinned"] >= 100 - account.skipped[1]


def test_each_of_several_events_keeps_to_its_rate(needs_bpf, pysym, tmp_path):
    """The kernel's count of each clock over its period is the number of its ticks, whatever else is recorded."""
    account, _, _ = record(pysym, tmp_path, ["cpu-clock/freq=99/", "task-clock/freq=499/", "page-faults/period=4/",
                                             f"{OPENS}/period=3/", WRITES])
    for number, name in enumerate(("cpu-clock", "task-clock", "page-faults", OPENS, WRITES), 1):
        account.check(number, name)
        assert not account.periods[number], "the rate was lowered"
    assert [e["period"] for e in account.events[:5]] == [10 ** 9 // 99, 10 ** 9 // 499, 4, 3, 1]
    faults = account.ticks[3]
    assert abs(faults["count"] // 4 - faults["seen"] - account.skipped[3]) <= os.cpu_count()
    assert account.samples["task-clock"] and account.samples["cpu-clock"] and account.samples["page-faults"]


def test_where_the_sampler_itself_works(needs_bpf, pycap, pysym, tmp_path):
    """Tracepoints of switches, wake-ups, memory, interrupts and page faults, beside programs of ours at the same places."""
    names = ["cpu-clock", "off-cpu", "sched:sched_switch", "sched:sched_waking", "kmem:mm_page_alloc", "exceptions:page_fault_kernel",
             "irq:softirq_entry"]
    trace = tmp_path / "t.bin"
    done = pycap("record", *RING, "-F", "999", "-o", trace, "-e", ",".join(names), "--", PYTHON, PROGRAM, 200, 4, "/")
    assert done.returncode == 0, done.stderr
    account = Account(pysym, trace)
    for number, name in enumerate(names, 1):
        if name != "off-cpu":
            account.check(number, name)
    assert account.samples["sched:sched_switch"] and account.samples["kmem:mm_page_alloc"]


def test_a_process_with_very_many_hits(needs_bpf, pycap, pysym, tmp_path):
    """Of some hundred thousand hits a second few have stacks; these stand for all of them, and the clock keeps its rate."""
    work = "import os, time\ndef calls():\n    while time.process_time() < 1.2:\n        for _ in range(1000): os.getppid()\n" \
           "began = time.monotonic()\ncalls()\nprint(time.monotonic() - began)\n"
    trace = tmp_path / "t.bin"
    done = pycap("record", *RING, "-o", trace, "-e", "cpu-clock,raw_syscalls:sys_enter", "--", PYTHON, "-c", work)
    assert done.returncode == 0, done.stderr
    account = Account(pysym, trace)
    name = "raw_syscalls:sys_enter"
    account.check(1, "cpu-clock")
    account.check(2, name)
    count, samples = account.ticks[2]["count"], account.samples[name]
    found = sum(s.value for s in samples)
    assert not account.periods[1]
    # With 4,096 stacks in a second the chance of one is halved, and so on: where it got less of a CPU, fewer are left out.
    most = (float(done.stdout) + 2) * 4096
    assert len(samples) < most * (2 + math.log2(1 + count / most)), (len(samples), count, done.stdout)
    # Each sample stands for as many hits as one of them was chosen from: a coin each, whose variance is less than that squared.
    assert abs(found - count) < chance.of_weights([2 * s.value for s in samples], 0.5) + account.lost[2] * 1024, (found, count)


def test_the_budget_makes_the_period_longer(needs_bpf, pysym, tmp_path):
    """When pycap says that it does, the program goes on for as long as it takes to be sampled by the longer one."""
    work = "import os, select, time\nend = 1e9\nwhile time.process_time() < end:\n    for _ in range(1000): os.getppid()\n" \
           "    if end == 1e9 and select.select([0], [], [], 0)[0]: end = time.process_time() + 0.5\n"
    trace = tmp_path / "t.bin"
    said = record_until_slower(*RING, "--max-cpu", "3", "-o", trace, "-e", "raw_syscalls:sys_enter", "--", PYTHON, "-c", work)
    assert " from here on: " in said, said
    account = Account(pysym, trace)
    account.check(1, "raw_syscalls:sys_enter")
    assert account.periods[1] and account.periods[1][0] > 1, said
    assert {s.value for s in account.samples["raw_syscalls:sys_enter"]} > {1}


def test_perf_counts_the_same(needs_bpf, pycap, pysym, tmp_path):
    """From the first instruction of the program on, when nobody knows yet that it is a Python."""
    perf = shutil.which("perf")
    if not perf:
        pytest.skip("perf is not installed")
    # Isolated: a folder of PYTHONPATH is read anew whenever somebody makes a file there.
    command = [PYTHON, "-I", "-S", str(PROGRAM), "100", "1", "/"]
    trace, text = tmp_path / "t.bin", tmp_path / "perf.txt"
    subprocess.run(command, capture_output=True, timeout=60, check=True)  # its files are compiled from here on
    counted = subprocess.run([perf, "stat", "-x", ",", "-e", OPENS, "-o", text, "--", *command], capture_output=True, text=True,
                             timeout=120, check=False)
    rows = [line.split(",")[0] for line in text.read_text().splitlines() if OPENS in line] if text.exists() else []
    if counted.returncode or not rows or not rows[0].isdigit():
        pytest.skip(f"perf counts no tracepoints here: {counted.stderr}")
    done = pycap("record", *RING, "-o", trace, "-e", OPENS, "--", *command)
    assert done.returncode == 0, done.stderr
    account = Account(pysym, trace)
    account.check(1, OPENS)
    found = sum(s.value for s in account.samples[OPENS]) + account.lost[1]
    assert int(rows[0]) - account.skipped[1] <= found <= int(rows[0])
