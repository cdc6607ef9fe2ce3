# SPDX-License-Identifier: Apache-2.0
"""Judges what in-guest.sh recorded. One line a test: "ok NAME: figures", "FAILED NAME: why".

usage: verify.py DIR
Environment: PYSYM (default build/pysym).
"""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))

from wait_trace import Trace, clock_error, stacks_of  # noqa: E402  (needs the path above)

PYSYM = os.environ.get("PYSYM", str(ROOT / "build/pysym"))
FRAME = re.compile(r"^(.*) \((.*):(\d+)\)$")
HZ = 99
ENOUGH = 20  # samples; the shortest part of the program gets some hundred


class Wrong(Exception):
    pass


def need(condition, why):
    if not condition:
        raise Wrong(why)


def pysym(trace, *options):
    done = subprocess.run([PYSYM, str(trace), *options], capture_output=True, text=True, timeout=300, check=False)
    need(done.returncode == 0, f"pysym {' '.join(options)}: {done.stderr.strip()}")
    return done.stdout


def kinds_of_records(trace):
    return {line.split(None, 1)[0] for line in pysym(trace, "--format", "dump").splitlines() if line.strip()}


def losses():
    text = (ROOT / "formats/trace/losses.def").read_text()
    return {name: int(number) for number, name in re.findall(r"^LOSS\((\d+), (\w+),", text, re.M)}


def samples(trace, *options):
    """[(pid, [(name, file, line, is Python)], how many)], outermost first, of a program without threads."""
    data = json.loads(pysym(trace, "--format", "speedscope", "--merge", "thread", "--interpreter", "calls", "--full-filenames",
                            *options))
    frames = []
    for f in data["shared"]["frames"]:
        match = FRAME.match(f["name"])
        python = bool(match and f.get("line") == int(match[3]))
        frames.append((match[1] if python else f["name"], f.get("file"), f.get("line"), python))
    out = []
    for profile in data["profiles"]:
        tid = int(profile["name"].split()[-1])
        need(profile["unit"] == "nanoseconds", "the profile's unit has changed")
        out += [(tid, [frames[i] for i in stack], round(weight * HZ / 1e9))
                for stack, weight in zip(profile["samples"], profile["weights"])]
    return out


def check_info(info):
    need(re.search(r"^sampling +yes", info, re.M), "it does not say that sampling works")
    return "sampling yes"


def check_capabilities(infos):
    """CAP_BPF and CAP_PERFMON are enough, but where Debian's kernels forbid perf events by a setting, which is named."""
    need(all(re.search(r"^capabilities +bpf yes, perfmon yes, sys_ptrace no", info, re.M) for info in infos.values()),
         "the capabilities are not those that were given")
    need(re.search(r"^sampling +yes", infos[2], re.M), f"it says {re.findall(r'^sampling.*', infos[2], re.M)}")
    need(re.search(r"^sampling +no: kernel.perf_event_paranoid is 3, .*CAP_SYS_ADMIN", infos[3], re.M),
         f"at perf_event_paranoid=3 it says {re.findall(r'^sampling.*', infos[3], re.M)}")
    return "sampling yes with CAP_BPF and CAP_PERFMON; perf_event_paranoid=3 is named"


def check_load(log):
    """The verifier's own figures for each program."""
    found = re.findall(r"prog '(\w+)': -- BEGIN PROG LOAD LOG --.*?verification time (\d+) usec.*?processed (\d+) in",
                       log, re.S)
    need({name for name, _, _ in found} >= {"sample", "forked"}, "the verifier's figures of a program are missing")
    return ", ".join(f"{name} {int(insns):,} instructions in {int(usec) / 1000:.0f} ms" for name, usec, insns in found)


def check_chains(trace, truth, way):
    """Every stack of a known chain is what the program says, in the forked child too; kernel frames are under it."""
    seen, kernel, whole = collections.Counter(), 0, 0
    parent = next(p["pid"] for p in truth if p["parent"] not in {q["pid"] for q in truth})
    chains = {(p["pid"], name): chain for p in truth for name, chain in p["chains"].items()}
    options, before = [], ""
    if way == "tables":
        seconds, early, total = after_tables(trace)
        options = ["--time", f"{seconds:.9f},"]
        before = f"; before, {early} of {total} met a module without its table"
    for pid, frames, count in samples(trace, *options):
        python = [f[:3] for f in frames if f[3]]
        chain = chains.get((pid, python[-1][0])) if python else None
        if not chain:
            continue
        expected = [tuple(f) for f in chain["frames"]]
        need(python[:-1] == expected[:-1] and python[-1][:2] == expected[-1][:2] and python[-1][2] in chain["lines"],
             f"the program says {expected}, the sample {python}")
        seen[(pid, python[-1][0])] += count
        at = [i for i, f in enumerate(frames) if f[3]]
        if python[-1][0] == "read":
            kernel += count * any(re.match(r"(ksys|vfs)_read", f[0]) for f in frames[at[-1] + 1:])
        # From the thread's start; the sort in C stands between its caller and its key.
        sorts = [i for i in at if frames[i][0] == "middle"]
        whole += count * (frames[0][0] == "_start" and all(not frames[i + 1][3] for i in sorts))
    for key in chains:
        where = "the program" if key[0] == parent else "the forked child"
        need(seen[key] >= ENOUGH, f"only {seen[key]} samples of {key[1]}() in {where}")
    reads = seen[(parent, "read")]
    need(kernel >= 0.8 * reads, f"{kernel} of {reads} samples of read() have kernel frames")
    total = sum(seen.values())
    child = sum(n for key, n in seen.items() if key[0] != parent)
    text = f"{total} samples as the program says, {child} of the forked child, {kernel} with kernel frames"
    need(whole >= 0.995 * total, f"{whole} of {total} stacks are whole from the thread's start, the sort in its place")
    return f"{text}, {whole} from the thread's start, the sort in its place{before}"


def shares(text):
    """The summary's section on completeness: {first word: (share, samples)}."""
    found = re.findall(r"^  (Python stacks|native stacks|joins) .*? ([\d.]+) % +([\d,]+)$", text, re.M)
    return {name.split()[0]: float(share) for name, share, _ in found}


def after_tables(trace):
    """When the last sample came that met a module without its table, in seconds; how many did, of how many."""
    missing = losses()["table_missing"]
    tuples, start, last = set(), None, 0
    early = total = 0
    for line in pysym(trace, "--format", "dump").splitlines():
        word = line.split(None, 1)
        if not word:
            continue
        if word[0] == "epoch":
            tuples.clear()
            if start is None:
                start = int(re.search(r"time_ns=(\d+)", line)[1])
        elif word[0] == "tuple" and f"native_end={missing}" in line.split():
            tuples.add(re.search(r"\bid=(\d+)", line)[1])
        elif word[0] == "sample":
            total += 1
            if re.search(r"tuple=(\d+)", line)[1] in tuples:
                early += 1
                last = max(last, int(re.search(r"time_ns=(\d+)", line)[1]) - start + 1)
    return last / 1e9, early, total


def check_completeness(trace, way):
    """
    Of all samples, start and exit of the interpreter included. Those are not exact: _init and _fini have no unwind
    information, and on a slow disk code objects of frozen modules are met before their pages are there.
    """
    records = kinds_of_records(trace)
    share = shares(pysym(trace, "--format", "summary", "-v"))
    need(share.get("Python", 0) >= 95, f"{share.get('Python')} % of Python stacks reach their root")
    text = f"Python {share['Python']:.2f} %"
    need(way != "tables" or "snapshot" not in records, "stack memory in the trace")
    need(way != "snapshot" or "snapshot" in records, "no stack memory in the trace")
    need(share.get("native", 0) >= 95, f"{share.get('native')} % of native stacks reach the thread's start")
    need(share.get("joins", 0) >= 95, f"{share.get('joins')} % of Python runs have their native frame")
    return f"{text}, native {share['native']:.2f} %, joins {share['joins']:.2f} %"


def wait_samples(path):
    """How many samples there are, by event, kind of wait and kind of waker ("thread", "interrupt", "other" or None)."""
    out = collections.Counter()
    for row in map(json.loads, pysym(path, "--format", "ndjson", "--labels").splitlines()):
        if row["type"] == "sample":
            waker = row["labels"].get("waker")
            out[row["event"], row["labels"].get("wait"), "thread" if waker and "/" in waker else waker] += 1
    return out


def check_waits(path, truth):
    """The times of each thread add up to the time that it existed; waits have their kinds, wakers and whole stacks. How
    long threads wait is up to the emulation, and not judged."""
    trace = Trace(path)
    trace.check_sums()
    accounts = trace.accounts()
    whole_time = max(account["wall"] for account in accounts.values())
    for tid, told in truth.items():
        need(told["wall"] <= accounts[int(tid)]["wall"] <= whole_time, f"{told}, the trace says {dict(accounts[int(tid)])}")
    queued, ran = (max(clock_error(accounts[int(tid)], told, clock) for tid, told in truth.items())
                   for clock in ("queued", "ran"))
    found = wait_samples(path)
    kinds = {kind for event, kind, _ in found if event == "off-cpu"}
    need(kinds >= {"blocked", "GIL"} and kinds & {"run queue", "preempted"}, f"the kinds of waits: {dict(found)}")
    need(found["off-cpu", "blocked", "interrupt"] and found["off-cpu", "GIL", "thread"], f"the wakers: {dict(found)}")
    blame = sum(count for (event, _, _), count in found.items() if event == "gil-blame")
    need(blame, f"nobody is blamed for waits for the GIL: {dict(found)}")
    whole = shares(pysym(path, "--format", "summary", "-v", "--event", "off-cpu"))
    need(whole.get("Python", 0) >= 95, f"{whole.get('Python')} % of Python stacks of waits reach their root")
    return (f"{trace.ticks['seen']} switches, {trace.ticks['thinned']} thinned, beside the kernel's account: on a CPU within "
            f"{100 * ran:.1f} %, wanting one {100 * queued:.1f} %; {len(kinds)} kinds, "
            f"{blame} samples of blame, Python {whole['Python']:.2f} %")


def check_idle(path, truth):
    """Threads that never ran are there, with the stacks that the program says they have, and all of the time."""
    trace, found = Trace(path), stacks_of(path)
    trace.check_sums()
    accounts = trace.accounts()
    for tid, names in truth.items():
        stacks, account = found[int(tid)], accounts[int(tid)]
        need(list(stacks) == [tuple(names)], f"the program says {names}, the samples {dict(stacks)}")
        need(sum(stacks.values()) == account["off"] == account["wall"], f"{names[0]}(): {dict(stacks)}, {dict(account)}")
    return f"{len(truth)} threads as the program says, {min(accounts[int(tid)]['off'] for tid in truth) / 1e9:.2f} s each"


def sums(path):
    """By event and Python function in the stack: the values of all samples, and how many there are."""
    stacks, values, counts = {}, collections.Counter(), collections.Counter()
    for row in map(json.loads, pysym(path, "--format", "ndjson", "--interpreter", "calls").splitlines()):
        if row["type"] == "stack":
            stacks[row["stack"]] = {f["function"] for f in row["frames"] if f["layer"] == "python"}
        else:
            for function in stacks[row["stack"]] | {None}:
                values[row["event"], function] += row["value"]
                counts[row["event"], function] += 1
    return values, counts


def check_events(path, truth, log):
    """Each hit of a tracepoint is there, with its weight, or the kernel skipped it, which pycap says; the other events run
    beside, at their own rates."""
    values, counts = sums(path)
    skipped = {event: int(count) for event, count in re.findall(r"^(?:Ticks|Samples) of (\S+)(?: on all CPUs)?: .*the kernel skipped (\d+)", log, re.M)}
    written = 0
    for event, function, unit in (("syscalls:sys_enter_openat", "opens", "calls"), ("sched:sched_process_fork", "forks", "calls"),
                                  ("syscalls:sys_enter_write", "writes_small", "bytes"),
                                  ("syscalls:sys_enter_write", "writes_large", "bytes")):
        told, found = truth[function], values[event, function]
        missed = skipped.get(event, 0) * (told["largest"] if unit == "bytes" else 1)
        need(told[unit] - missed <= found <= told[unit], f"{function}() says {told}, the samples {found}; skipped: {skipped}")
        written += found if unit == "bytes" else 0
    faults = counts["page-faults", None]
    need(faults and values["page-faults", None] == 16 * 4096 * faults, f"{faults} samples of page faults")
    need(counts["cpu-clock", "spins"] >= ENOUGH, f"{counts['cpu-clock', 'spins']} ticks in spins()")
    return (f"{truth['opens']['calls']} openat, {truth['forks']['calls']} forks, {written:,} bytes written, as the program says, "
            f"{sum(skipped.values())} hits skipped; {counts['cpu-clock', None]} ticks, {faults} of page faults")


def check_growth(path, truth, _log, period=1 << 20):
    """What leaked has grown, what came and went has not; with --unwind none there are no native frames."""
    values, counts = sums(path)
    leaked, churned = (sum(values["memory-growth", f] for f in names) for names in
                       (("leak",), ("churn_small", "churn_text", "churn_large")))
    grown = truth["after"]["VmData"] - truth["before"]["VmData"]
    need(abs(values["memory-growth", "work"] - grown) <= 2 * period + truth["lived"],
         f"VmData has grown by {grown:,}, the samples in work() are {values['memory-growth', 'work']:,} bytes")
    need(leaked > 0.75 * truth["leaked"] and churned < truth["leaked"] / 4 + truth["lived"],
         f"{leaked:,} bytes in leak(), {churned:,} in churn()")
    need(not kinds_of_records(path) & {"snapshot", "native_frame"}, "native stacks although none were asked for")
    return f"{leaked:,} of {truth['leaked']:,} bytes in leak(), {churned:,} of {truth['churned']:,} in what came and went"


def check_queue(run, log):
    """Threads that wait for a CPU were an event; its one file has what they did."""
    traces = list(run.parent.glob(f"{run.name}-*.trace"))
    reason = re.search(r"event \((runq \d+\.\d+ > 1\.5 for 0\.2s)\): .* has \d+\.\d s before it", log)
    need(reason and len(traces) == 1, f"{len(traces)} files")
    need("spins" in pysym(traces[0], "--format", "folded"), "spins() is not in it")
    return reason[1]


def show(name, log):
    log = re.sub(r"^libbpf: (?!.*(LOAD LOG|failed)).*\n", "", log, flags=re.M)
    print(f"--- {name}\n{log[-3000:]}", file=sys.stderr)


def judge(name, log, test, *arguments):
    try:
        print(f"ok {name}: {test(*arguments)}")
    except (Wrong, AssertionError, OSError, ValueError, KeyError, StopIteration) as error:
        print(f"FAILED {name}: {type(error).__name__}: {error}")
        show(name, log)


def truth_of(run):
    return [json.loads(line) for line in run.with_suffix(".truth").read_text().splitlines()]


def judge_run(run, name, tests):
    """Judges a recording: `tests` makes of its log a list of (name, function, arguments...)."""
    log = run.with_suffix(".log").read_text()
    code = run.with_suffix(".rc").read_text().strip()
    if code != "0":
        print(f"FAILED record {name}: pycap's exit code {code}")
        show(name, log)
        return
    for test, function, *arguments in tests(log):
        judge(f"{test} {name}", log, function, *arguments)


def main(where):
    release = (where / "release").read_text().strip()
    info = (where / "info").read_text()
    judge(f"info ({release})", info, check_info, info)
    judge(f"capabilities ({release})", info, check_capabilities, {n: (where / f"info-{n}").read_text() for n in (2, 3)})
    for python in sorted(where.glob("*.python")):
        which = f"{python.read_text().strip()} ({release})"
        for way in "tables", "snapshot":
            run = where / f"{python.stem}-{way}"
            trace = run.with_suffix(".trace")
            judge_run(run, f"--unwind {way}, {which}", lambda log, run=run, trace=trace, way=way: [
                ("load", check_load, log),
                ("chains", check_chains, trace, truth_of(run), way),
                ("completeness", check_completeness, trace, way)])
        run = where / f"{python.stem}-wall"
        judge_run(run, f"--wall, {which}", lambda log, run=run: [
            ("waits", check_waits, run.with_suffix(".trace"), truth_of(run)[0])])
        run = where / f"{python.stem}-idle"
        judge_run(run, f"of idle threads, {which}", lambda log, run=run: [
            ("waits", check_idle, run.with_suffix(".trace"), truth_of(run)[0])])
        for name, check in (("events", check_events), ("growth", check_growth)):
            run = where / f"{python.stem}-{name}"
            judge_run(run, f"{name}, {which}", lambda log, run=run, name=name, check=check: [
                (name, check, run.with_suffix(".trace"), truth_of(run)[0], log)])
        run = where / f"{python.stem}-runq"
        judge_run(run, f"--when runq, {which}", lambda log, run=run: [("event", check_queue, run, log)])


main(pathlib.Path(sys.argv[1]))
