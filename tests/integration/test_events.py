# SPDX-License-Identifier: Apache-2.0
"""Page faults and context switches are recorded as often as the program itself counts them.

Several events in one trace have their own periods, ticks and losses.
"""
import collections
import contextlib
import ctypes
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import time

import pytest

from conftest import PYCAP, PYTHON, ROOT, cpu_seconds, record_behind_gate, record_until_slower
from trace_text import dump, samples_of, script_samples

PROGRAMS = ROOT / "testdata/programs"

# Touches fresh memory again and again, until the standard input ends.
FAULTING = """
import mmap, select
while not select.select([0], [], [], 0)[0]:
    with mmap.mmap(-1, 1 << 22) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        memory.write(b'x' * (1 << 22))
"""


def events_of(trace):
    """The EVENT records of a trace with one epoch, in order."""
    return [fields for name, fields in dump(trace) if name == "event"]


def skipped_of(pysym, trace):
    found = re.search(r"^  tick_skipped +([\d,]+)", pysym(trace, "--format", "summary", "-v").stdout, re.M)
    return int(found[1].replace(",", "")) if found else 0


def record_faults(pysym, tmp_path, options, count):
    """What faults.py touches. The buffer holds all that a slow recorder leaves there: as it fills up, the period doubles."""
    trace, told, said = record_behind_gate(pysym, tmp_path, ["--ring-size", "64M", *options], PYTHON,
                                           PROGRAMS / "faults.py", count)
    return trace, json.loads(told), said


@pytest.mark.smoke("16")
@pytest.mark.parametrize("period", [1, 16])
def test_page_faults_are_the_growth(needs_bpf, pysym, tmp_path, period):
    count = 4096
    trace, told, _ = record_faults(pysym, tmp_path, ["-e", f"page-faults/period={period}/"], count)
    assert (told["before"], told["after"]) == (0, count)
    # The kernel's own sum lags behind by what each CPU holds back.
    assert abs(told["process_after"] - told["process_before"] - count) <= 64 * os.cpu_count()
    samples = samples_of(pysym, trace)
    assert {s.event for s in samples} == {"page-faults"} and {s.value for s in samples} == {period}
    touched = sum(s.value for s in samples if "touch" in s.functions)
    skipped = skipped_of(pysym, trace) * period
    # At period 1 each page is a sample; else those at either end are of somebody else, or somebody else's are ours. So they are
    # at either end of each turn on a CPU.
    slack = 0 if period == 1 else (2 + told["switches"]) * period
    assert count - slack - skipped <= touched <= count + slack
    # As bytes, in every output.
    page = told["page"]
    top = pysym(trace, "--format", "top").stdout
    every = sum(s.value for s in samples) * page
    assert f"samples of page-faults: {every / 2**20:.1f} MiB, recorded in " in top
    folded = pysym(trace, "--format", "folded")
    assert "counts of memory are bytes" in folded.stderr
    assert sum(int(line.rsplit(" ", 1)[1]) for line in folded.stdout.splitlines()) == every
    scope = json.loads(pysym(trace, "--format", "speedscope", "--merge", "thread").stdout)
    assert {p["unit"] for p in scope["profiles"]} == {"bytes"}
    assert sum(sum(p["weights"]) for p in scope["profiles"]) == every


def test_context_switches_are_the_programs_own(needs_bpf, pysym, tmp_path):
    trace, told, _ = record_behind_gate(pysym, tmp_path, ["-e", "context-switches", "-c", "1", "--ring-size", "64M"], PYTHON,
                                        PROGRAMS / "switches.py", 300)
    told = json.loads(told)
    samples = samples_of(pysym, trace)
    assert {(s.event, s.value) for s in samples} == {("context-switches", 1)}
    inner = sum("inner" in s.functions for s in samples)
    outer = sum("outer" in s.functions for s in samples)
    # Some are dropped where pycap itself was in a system call of BPF when it was preempted: those are told.
    assert inner <= told["switches"] <= outer + skipped_of(pysym, trace)
    assert inner > 200


def test_two_events_in_one_trace(needs_bpf, pysym, tmp_path):
    count = 2048
    trace, told, said = record_faults(pysym, tmp_path, ["-v", "-F", "199", "-e", "cpu-clock", "-e", "page-faults/period=1/"], count)
    clock, faults = events_of(trace)
    assert (clock["frequency_hz"], clock["period"], clock["kind"]) == (199, 10 ** 9 // 199, 0)
    assert (faults["frequency_hz"], faults["period"], faults["kind"]) == (0, 1, 2)
    samples = samples_of(pysym, trace)
    touched = sum(s.event == "page-faults" and "touch" in s.functions for s in samples)
    assert count - skipped_of(pysym, trace) <= touched <= count
    by_event = collections.Counter(s.event for s in samples)
    assert by_event["cpu-clock"] and by_event["page-faults"] > count
    # The account of each event by itself: what was seen is a sample, or is told of.
    records = dump(trace)
    for event, name in ((clock, "cpu-clock"), (faults, "page-faults")):
        ticks = collections.Counter()
        for kind, fields in records:
            if kind == "ticks" and fields["event"] == event["id"]:
                ticks.update({k: fields[k] for k in ("seen", "idle", "unsampled", "count")})
        lost = sum(f["count"] for kind, f in records
                   if kind == "loss" and f["event"] == event["id"] and f["reason"] in (2, 5, 21, 47))
        assert ticks["seen"] - ticks["idle"] - ticks["unsampled"] == by_event[name] + lost
        assert f"{'Ticks' if name == 'cpu-clock' else 'Samples'} of {name}" in said
        assert re.search(rf" of {name}(?: on all CPUs)?: {ticks['seen']}, ", said), said
        skipped = sum(f["count"] for kind, f in records
                      if kind == "loss" and f["event"] == event["id"] and f["reason"] == 4)
        if name == "page-faults":  # every fault of the host was seen, or was told to be skipped
            assert ticks["seen"] + skipped == ticks["count"]
    summary = pysym(trace, "--format", "summary", "-v").stdout
    assert re.search(r"^  cpu-clock +[\d,]+ samples at 199 Hz", summary, re.M)
    assert re.search(r"^  page-faults +[\d,]+ samples, [\d,]+ faults in all: [\d.]+ MiB$", summary, re.M)


def test_a_clock_with_a_period(needs_bpf, pycap, pysym, tmp_path):
    """-c is for clocks, too, where nothing is counted."""
    trace = tmp_path / "t.bin"
    spin = "import time\nwhile time.process_time() < 0.3: pass"
    done = pycap("record", "-c", "5000000", "-o", trace, "--", PYTHON, "-c", spin)
    assert done.returncode == 0, done.stderr
    event, = events_of(trace)
    assert (event["frequency_hz"], event["period"]) == (0, 5000000)
    assert re.search(r"cpu-clock +[\d,]+ samples of 5,000,000 ns each", pysym(trace, "--format", "summary", "-v").stdout)


def written(pysym, trace):
    """The samples that a recorder has written up to now."""
    return script_samples(pysym(trace, "--format", "perf-script").stdout) if trace.exists() else []


def test_a_killed_recorder_leaves_both_events(needs_bpf, pysym, tmp_path):
    trace = tmp_path / "t.bin"
    with subprocess.Popen([PYTHON, "-c", FAULTING], stdin=subprocess.PIPE) as program:
        with subprocess.Popen([PYCAP, "record", "-q", "-o", trace, "-e", "cpu-clock,page-faults", "-p",
                               str(program.pid)]) as recorder:
            deadline = time.monotonic() + 300
            while time.monotonic() < deadline and len({s.event for s in written(pysym, trace)}) < 2:
                time.sleep(0.1)
            recorder.send_signal(signal.SIGKILL)
        program.kill()
    found = collections.Counter(s.event for s in samples_of(pysym, trace))
    assert found["cpu-clock"] and found["page-faults"]
    assert [e["kind"] for e in events_of(trace)] == [0, 2]


def test_the_rate_of_each_event_steps_down(needs_bpf, tmp_path):
    """A ring too small for the stream: both events slow down, each says its new period, and weights stay right."""
    trace = tmp_path / "t.bin"
    said = record_until_slower("-m", "4096", "-e", "cpu-clock,page-faults/period=1/", "-o", trace, "--", PYTHON, "-c", FAULTING)
    records = dump(trace)
    steps = collections.defaultdict(list)
    for kind, fields in records:
        if kind == "period":
            steps[fields["event"]].append(fields["period"])
    assert steps[1][0] > 10 ** 9 // 99 and steps[2][0] == 2
    # By the part that was lost, at most to a half.
    hertz = re.search(r"^pycap: cpu-clock (\d+) Hz, page-faults each 2 faults from here on: the buffer was full$", said, re.M)
    assert hertz and 49 <= int(hertz[1]) < 99, said
    full = {f["event"] for kind, f in records if kind == "loss" and f["reason"] == 2}
    assert 2 in full


# ---- what is refused ----

@pytest.mark.parametrize("options, says", [
    (["-e", "page-fault"], "event 'page-fault' is not known (is page-faults meant?); known are cpu-clock, task-clock, page-faults"),
    (["-e", "probe:malloc"], "event 'probe:malloc' is refused: probes write into the code of processes"),
    (["-e", "usdt:python:gc__start"], "is refused: probes write into the code of processes"),
    (["-e", "mem:0x1234:w"], "takes a debug register of the process"),
    (["-e", "cpu-clock:x"], "'x' is no modifier"),
    (["-e", "sched:sched_process_frok"], "no such tracepoint; like it are sched:sched_process_fork"),
    (["-e", "syscalls:sys_enter_write/weight=buf/"], "its field 'buf' is no number; those that can be added up are: __syscall_nr, fd, count"),
    (["-e", "software/bogus=1/"], "'bogus' is neither a term nor an event of the PMU software"),
    (["-e", "page-faults", "-F", "99"], "page-faults is counted and has no rate"),
    (["-F", "99", "-c", "1000000"], "either -F or -c"),
    (["-c", "1"], "10000 at least"),
    (["-e", "cs", "-e", "context-switches"], "context-switches is named twice"),
    (["-e", "page-faults", "--backend", "proc"], "need BPF"),
])
def test_refusals(pycap, tmp_path, options, says):
    done = pycap("record", "-o", tmp_path / "t.bin", *options, "--", "true")
    assert done.returncode == 2 and says in done.stderr, done.stderr
    assert not (tmp_path / "t.bin").exists()


@pytest.mark.live
def test_host_refuses(pycap, tmp_path):
    """What depends on the host is refused with the reason before anything is recorded, or works."""
    for event, says in (("cycles", "this host has no hardware counter for 'cycles'"),
                        ("LLC-load-misses:u", "this host has no hardware counter for 'LLC-load-misses:u'"),
                        ("cpu/event=0x3c/", "this host has no PMU 'cpu': its CPUs' counters are not there")):
        done = pycap("record", "-o", tmp_path / "t.bin", "-e", event, "--", "true")
        if done.returncode != 0:
            assert done.returncode == 1 and says in done.stderr, done.stderr
            assert not (tmp_path / "t.bin").exists()


# ---- what there is ----

def test_info_events(pycap):
    """Each event that is listed can be recorded, and what perf lists of the kernel's own is there."""
    listed = pycap("info", "--events").stdout.split()
    assert len(listed) == len(set(listed))
    assert {"cpu-clock", "page-faults", "off-cpu", "sched:sched_process_fork", "syscalls:sys_enter_openat"} <= set(listed)
    assert pycap("info", "--events", "sched:*fork").stdout == "sched:sched_process_fork\n"
    assert pycap("info", "--events", "page-faults").stdout == "page-faults\n"
    assert {"syscalls:sys_enter_openat", "syscalls:sys_exit_openat"} <= set(pycap("info", "--events", "_openat").stdout.split())
    by_category = [name for name in listed if ":" in name]
    assert by_category == sorted(by_category)
    done = pycap("info", "--events", "no such*")
    assert done.returncode == 1 and "no event of this host fits 'no such*'" in done.stderr
    tracepoints = sum(":" in name for name in listed)
    line = re.search(r"^tracepoints +([\d,]+);", pycap("info").stdout, re.M)
    assert int(line[1].replace(",", "")) == tracepoints


# ---- modifiers ----

READING = """
import os, sys, time
def warm():
    while not os.path.exists(sys.argv[1]):
        sum(range(1000))
        time.sleep(0.001)
warm()
zero = os.open('/dev/zero', os.O_RDONLY)
buffer = bytearray(1 << 24)
end = time.thread_time() + 0.4
while time.thread_time() < end:
    sum(range(10000))
end = time.thread_time() + 1.5
while time.thread_time() < end:
    os.readv(zero, [buffer])
"""


def test_user_only(needs_bpf, pysym, tmp_path):
    """By :u a clock's ticks in the kernel are no samples, and none of them counts as lost."""
    trace, _, _ = record_behind_gate(pysym, tmp_path, ["-v", "-e", "cpu-clock/freq=199/,cpu-clock/freq=199/u"], PYTHON, "-c", READING)
    samples = {name: [s for s in samples_of(pysym, trace) if s.event == name and "warm" not in s.functions]
               for name in ("cpu-clock", "cpu-clock:u")}
    # Of 1.9 s by the program's clock nearly all but the first 0.4 are in the kernel, which fills the buffer.
    clock, of_user = len(samples["cpu-clock"]), len(samples["cpu-clock:u"])
    assert clock > 100 and 20 < of_user < clock / 2
    text = pysym(trace, "--event", "cpu-clock:u", "--format", "folded").stdout
    assert "_[k]" not in text
    _, user = events_of(trace)
    assert not [f for kind, f in dump(trace) if kind == "loss" and f["event"] == user["id"]]


# ---- the sampler's own guard ----

def held(pid, kind):
    """Numbers of the BPF objects of a kind that a process holds."""
    for link in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found = re.search(rf"^{kind}:\s*(\d+)", link.read_text(), re.M)
            if found:
                yield int(found[1])


class Maps:
    """Maps of a running sampler, through bpf(2)."""

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)

    def call(self, command, attributes):
        buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
        result = self.libc.syscall(321, command, buffer, 128)
        if result < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return result, buffer.raw

    def find(self, pid, name):
        """The map of that name that a process holds, since other samplers may run meanwhile: its file descriptor, and the size
        of its values."""
        for number in held(pid, "map_id"):
            fd, _ = self.call(14, struct.pack("I", number))
            info = ctypes.create_string_buffer(128)
            self.call(15, struct.pack("IIQ", fd, 128, ctypes.addressof(info)))
            if info.raw[24:40].split(b"\0")[0].decode() == name:
                return fd, struct.unpack_from("I", info.raw, 12)[0]
            os.close(fd)
        raise LookupError(f"process {pid} has no map {name}")

    def read(self, fd, key, size):
        value = ctypes.create_string_buffer(size)
        number = ctypes.c_uint(key)
        self.call(1, struct.pack("IIQQQ", fd, 0, ctypes.addressof(number), ctypes.addressof(value), 0))
        return value

    def write(self, fd, key, value):
        number = ctypes.c_uint(key)
        self.call(2, struct.pack("IIQQQ", fd, 0, ctypes.addressof(number), ctypes.addressof(value), 0))


def busy_offset(pid):
    """Of the guard in a CPU's scratch, by the type information of a sampler's programs."""
    btf = subprocess.run(["bpftool", "-j", "btf", "dump", "prog", "id", str(next(held(pid, "prog_id")))], capture_output=True,
                         text=True, timeout=60, check=False)
    try:
        types = json.loads(btf.stdout)["types"]
    except (json.JSONDecodeError, KeyError):
        pytest.skip("bpftool gives no type information: " + btf.stderr.strip())
    scratch = next(t for t in types if t["kind"] == "STRUCT" and t["name"] == "scratch")
    return next(m["bits_offset"] // 8 for m in scratch["members"] if m["name"] == "busy")


def test_a_tick_that_meets_the_sampler_at_work_is_counted(needs_bpf, pysym, tmp_path):
    """No other program of ours is interrupted by a tick yet: the guard is set by hand, on every CPU, so every tick meets it."""
    trace = tmp_path / "t.bin"
    with subprocess.Popen([PYTHON, "-c", "while True: pass"]) as program:
        with subprocess.Popen([PYCAP, "record", "-v", "-o", trace, "-F", "499", "-p", str(program.pid)],
                              stderr=subprocess.PIPE, text=True) as recorder:
            deadline = time.monotonic() + 300
            while time.monotonic() < deadline and (not trace.exists() or trace.stat().st_size < 1024):
                time.sleep(0.1)
            try:
                maps = Maps()
                fd, size = maps.find(recorder.pid, "scratches")
                offset = busy_offset(recorder.pid)
                for cpu in sorted(os.sched_getaffinity(0)):
                    os.sched_setaffinity(0, {cpu})  # here no program runs while the value is copied: ticks go before or after
                    value = maps.read(fd, cpu, size)
                    struct.pack_into("I", value, offset, 1)
                    maps.write(fd, cpu, value)
                worked = cpu_seconds(program.pid) + 0.3
                while cpu_seconds(program.pid) < worked:
                    time.sleep(0.05)
            finally:
                os.sched_setaffinity(0, range(os.cpu_count()))
                recorder.send_signal(signal.SIGINT)
                said = recorder.communicate(timeout=300)[1]
                program.kill()
    records = dump(trace)
    nested = sum(f["count"] for kind, f in records if kind == "loss" and f["reason"] == 5)
    ticks = collections.Counter()
    for kind, fields in records:
        if kind == "ticks":
            ticks.update({k: fields[k] for k in ("seen", "idle", "unsampled")})
    samples = sum(f["count"] for kind, f in records if kind == "samples")
    assert nested > 0, said
    assert re.search(r"^  nested +%d " % nested, said, re.M) and f"{nested} came while the sampler was running" in said
    assert ticks["seen"] - ticks["idle"] - ticks["unsampled"] == samples + nested
