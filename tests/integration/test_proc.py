# SPDX-License-Identifier: Apache-2.0
"""Recording without privilege (--backend proc) reads the processes' memory, and wants no BPF."""
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

import accounts
import chance
from conftest import NO_CAPABILITIES, PYCAP, PYSYM, ROOT, formats, record_behind_gate, unprivileged

PROGRAMS = ROOT / "testdata/programs"
DEBIAN = "/usr/bin/python3"
FRAME = re.compile(r"^(.*) \((.*):(\d+)\)$")


def enters_root_tree(request):
    """Interpreters in root trees of their own are entered by chroot, which takes privilege: pycap keeps it, too."""
    python = request.node.callspec.params.get("python") if hasattr(request.node, "callspec") else None
    return bool(python and python.root)


@pytest.fixture
def record_proc(request, tmp_path):
    """Records a command without privilege; returns the trace's path and the CompletedProcess."""
    count = 0

    def run(*command, options=("-F", "499", "--backend", "proc"), before=None, status=0):
        nonlocal count
        if enters_root_tree(request):
            before = [word for word in before or [] if word not in NO_CAPABILITIES]
        count += 1
        trace = tmp_path / f"proc{count}.bin"
        done = subprocess.run([*(unprivileged() if before is None else before), PYCAP, "record", "-o", trace, *options, "--",
                               *map(str, command)], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == status, done.stderr
        return trace, done
    return run


@pytest.fixture
def profile(pysym, tmp_path):
    """A trace as [(profile's name, [(function, file, line) outermost first], nanoseconds)]; marks stand as themselves."""
    def run(trace):
        out = tmp_path / "p.speedscope.json"
        done = pysym(trace, "--format", "speedscope", "--merge", "thread", "--full-filenames", "-o", out)
        assert done.returncode == 0, done.stderr
        data = json.loads(out.read_text())
        frames = []
        for frame in data["shared"]["frames"]:
            match = FRAME.match(frame["name"])
            frames.append((match[1] if match else frame["name"], frame.get("file", ""), frame.get("line", 0)))
        return [(one["name"], [frames[i] for i in stack], weight) for one in data["profiles"]
                for stack, weight in zip(one["samples"], one["weights"])]
    return run


def shares(rows, names):
    """Weight by function."""
    weights = collections.Counter()
    for _, frames, weight in rows:
        for name in {f[0] for f in frames} & set(names):
            weights[name] += weight
    return weights


def unseen_ns(trace, hz):
    """CPU time that the trace says no sample stands for: where the machine gave pycap no CPU until a program had ended."""
    losses = accounts.read(PYSYM, trace).losses
    return (losses["time_unseen"] + losses["children_unseen"]) * 1e9 / hz


# ---- what the stacks say ----

@pytest.mark.each_kind
@pytest.mark.smoke
def test_chains(python, record_proc, profile):
    """Every stack equals what the interpreter says of itself; no native and no kernel frame."""
    seconds = 0.06
    trace, done = record_proc(python.path, PROGRAMS / "chains.py", seconds)
    chains = {c["name"]: [tuple(f) for f in c["frames"]] for c in json.loads(done.stdout)}
    seen, marked = collections.Counter(), 0
    for _, frames, _ in profile(trace):
        if any(f[0] in accounts.MARKS for f in frames):
            marked += frames != [("[no frames]", "", 0)]  # a thread that runs no Python yet, or no more
            continue
        if not frames[-1][0].startswith("spin_"):
            continue  # between two chains
        name = frames[-1][0][len("spin_"):]
        seen[name] += 1
        assert frames[:-1] == chains[name][:-1], name
        assert frames[-1][:2] == chains[name][-1][:2] and 2 <= frames[-1][2] <= 6
    # In each there are 30 ticks: one that fits into a time in which pycap had no CPU is not met. A sample stands for that time
    # then, or none does; or it was before the interpreter was found.
    late_ns = sum(w for w in accounts.read(PYSYM, trace).weights if w > seconds / 2 * 1e9) + unseen_ns(trace, 499)
    missing = [name for name in chains if name not in seen]
    early = [name for first, name in zip(chains, missing) if first == name]
    assert len(chains) >= 10 and len(missing) - len(early) <= late_ns / (seconds * 1e9) and len(seen) >= 5, (seen, late_ns)
    assert accounts.is_rare(marked, sum(seen.values()), 0.01), (marked, seen)


def test_both_backends(record_proc, record, profile):
    """The shares of functions are the program's own, and those of the other backend."""
    seconds, rate = "2", "999"
    by_proc, done = record_proc(DEBIAN, PROGRAMS / "proportions.py", seconds, options=("-F", rate, "--backend", "proc"))
    spent = json.loads(done.stdout)
    by_bpf = record(DEBIAN, PROGRAMS / "proportions.py", seconds, options=("-F", rate))
    account, other = accounts.read(PYSYM, by_proc), accounts.read(PYSYM, by_bpf)
    proc, bpf = shares(profile(by_proc), spent), shares(profile(by_bpf), spent)
    for name, own in spent.items():
        truth, of_proc, of_bpf = own / sum(spent.values()), proc[name] / sum(proc.values()), bpf[name] / sum(bpf.values())
        # Samples of the proc backend weigh differently, which widens their spread; and what the program does between functions.
        proc_bound = chance.of_weights(account.weights, truth) / sum(proc.values()) + 0.005
        bpf_bound = chance.of_weights(other.weights, truth) / sum(bpf.values()) + 0.005 + other.skipped
        assert abs(of_proc - truth) < proc_bound, (name, of_proc, truth)
        assert abs(of_proc - of_bpf) < proc_bound + bpf_bound, (name, of_proc, of_bpf)


AT_WORK = """
import os, sys, time
def warm(): sum(range(20000))
def work(): sum(range(600000))
def rest(): time.sleep(0.02)
def measured():
    start = time.thread_time()
    for i in range(80):
        work()
        rest()
    print(time.thread_time() - start, time.process_time(), flush=True)
    os._exit(0)
while not os.path.exists(sys.argv[1]): warm()
measured()
"""


@pytest.mark.live
def test_weights_are_cpu_time(pysym, profile, tmp_path):
    """What the samples weigh together is the CPU time of the program, however much of the time it waited."""
    trace, told, _ = record_behind_gate(pysym, tmp_path, ["-F", "499", "--backend", "proc"], DEBIAN, "-c", AT_WORK,
                                        before=unprivileged())
    working, spent = map(float, told.split())
    weights = shares(profile(trace), ["measured", "work", "rest"])
    # The first sample behind the gate may stand for time before it, and time behind the last one, whole periods of which are
    # counted, has none.
    account = accounts.read(PYSYM, trace)
    slack, found = max(account.weights) / 1e9 + 1 / 499, weights["measured"] / 1e9
    assert working - slack - unseen_ns(trace, 499) / 1e9 < found < working + slack, (working, found, account.text())
    assert account.weight_ns / 1e9 < spent + 0.02, (spent, account.text())
    # The time before it began to sleep is not the sleep's. Where pycap gets no CPU until the program waits for one again, in the
    # same call, it cannot tell.
    assert weights["work"] > 0.5e9 * found and weights["rest"] < 0.4e9 * found, weights


@pytest.mark.smoke(load=True)
def test_threads(python, record_proc, profile):
    """64 threads that compete: each sample is in the right one."""
    trace, _ = record_proc(python.path, PROGRAMS / "threads.py", "0.04")
    threads = collections.defaultdict(set)
    for name, frames, _ in profile(trace):
        for function, file, _ in frames:
            if function.startswith("only_in_"):
                threads[function].add(name)
                assert file == f"<thread {function[len('only_in_'):]}>"
    assert len(threads) > 32, threads
    assert all(len(names) == 1 for names in threads.values())
    assert len({next(iter(names)) for names in threads.values()}) == len(threads)


def test_waiting_threads(record_proc, profile, pysym):
    program = ("import threading, time\n"
               "over = threading.Event()\n"
               "def wait(): over.wait()\n"
               "def work():\n"
               "    end = time.thread_time() + 1\n"
               "    while time.thread_time() < end: sum(range(1000))\n"
               "    over.set()\n"
               "threads = [threading.Thread(target=f) for f in [wait] * 8 + [work]]\n"
               "for t in threads: t.start()\n"
               "for t in threads: t.join()\n")
    trace, _ = record_proc(DEBIAN, "-c", program)
    weights = shares(profile(trace), ["wait", "work"])
    assert weights["work"] > 0.3e9
    assert weights["wait"] < 0.05 * weights["work"], weights


def test_children(python, record_proc, profile, tmp_path):
    """
    Forked and executed children, multiprocessing both ways, one below a program that is not Python. CPU time belongs to
    the stack that is met next, and what comes after the last meeting to none, which is counted: so that a busy machine, where pycap comes
    late, moves no time into or out of a function, each rests before it begins and at its end.
    """
    script = tmp_path / "p.py"
    script.write_text("import multiprocessing, os, subprocess, sys, time\n"
                      "clock = getattr(time, 'thread_time', None) or time.clock\n"
                      "def burn(seconds):\n"
                      "    end = clock() + seconds\n"
                      "    while clock() < end: sum(range(1000))\n"
                      "    rest()\n"
                      "def rest(): time.sleep(0.15)\n"
                      "def forked(): burn(0.5)\n"
                      "def executed(): burn(0.5)\n"
                      "def pooled(n): burn(0.25)\n"
                      "def spawned(n): burn(0.25)\n"
                      "def rest_pooled(n): rest(), pooled(n)\n"
                      "def rest_spawned(n): rest(), spawned(n)\n"
                      "if __name__ == '__main__':\n"
                      "    if len(sys.argv) > 1:\n"
                      "        rest()\n"
                      "        executed()\n"
                      "        raise SystemExit\n"
                      "    child = os.fork()\n"
                      "    if not child:\n"
                      "        rest()\n"
                      "        forked()\n"
                      "        os._exit(0)\n"
                      "    os.waitpid(child, 0)\n"
                      "    subprocess.check_call(['sh', '-c', sys.executable + ' ' + sys.argv[0] + ' x; true'])\n"
                      "    for how, what in (('fork', rest_pooled), ('spawn', rest_spawned)):\n"
                      "        context = multiprocessing.get_context(how) if sys.version_info > (3,) else multiprocessing\n"
                      "        pool = context.Pool(2)\n"
                      "        pool.map(what, range(2), 1)\n"
                      "        pool.close()\n"
                      "        pool.join()\n")
    trace, _ = record_proc(python.path, script, options=("-F", "199", "--backend", "proc"))
    functions = ["forked", "executed", "pooled", "spawned"]
    weights = shares(profile(trace), functions)
    assert len(weights) == 4 and max(weights.values()) < 0.9e9, weights  # with what a sample stands for of the start
    assert sum(max(0, 0.4e9 - weights[function]) for function in functions) <= unseen_ns(trace, 199), weights


def test_children_left_out(record_proc, profile):
    """-i records the program alone."""
    program = ("import os, time\n"
               "def burn():\n"
               "    end = time.thread_time() + 0.3\n"
               "    while time.thread_time() < end: sum(range(1000))\n"
               "def own(): burn()\n"
               "def forked(): burn()\n"
               "child = os.fork()\n"
               "if not child:\n"
               "    forked()\n"
               "    os._exit(0)\n"
               "os.waitpid(child, 0)\n"
               "own()\n")
    trace, _ = record_proc(DEBIAN, "-c", program, options=("-F", "199", "--backend", "proc", "-i"))
    assert set(shares(profile(trace), ["own", "forked"])) == {"own"}


def test_replaced_image(record_proc, profile):
    """
    A process that executes another interpreter script again and again: never a function of an earlier image. Each rests
    before and at the end, as in test_children(); longer where sanitizers make pycap slow to read a new image.
    """
    rest = 0.4 if "asan" in PYCAP else 0.15
    program = ("import os, sys, time\n"
               "n = int(sys.argv[1])\n"
               f"time.sleep({rest})\n"
               "exec(f'def image_{n}():\\n end = time.thread_time() + 0.1\\n while time.thread_time() < end: sum(range(1000))\\n'\n"
               f"     ' time.sleep({rest})')\n"
               "globals()[f'image_{n}']()\n"
               "if n: os.execv(sys.executable, [sys.executable, '-c', sys.argv[2], str(n - 1), sys.argv[2]])\n")
    trace, _ = record_proc(DEBIAN, "-c", program, "5", program)
    names = [f"image_{n}" for n in range(6)]
    weights = shares(profile(trace), names)
    assert weights and max(weights.values()) < 0.15e9, weights
    assert sum(max(0, 0.05e9 - weights[name]) for name in names) <= unseen_ns(trace, 499), weights


@pytest.mark.parametrize("apart", [False, True], ids=["same-cpus", "other-cpu"])
def test_fast_changes(python, apart, record_proc, profile, pysym):
    """Calls much shorter than a reading: a stack of two moments is never shown as one."""
    before, inside = unprivileged(), []
    if apart:
        # Where pycap may not go to the thread's CPU it cannot keep it from running, and has to compare readings.
        cpus = sorted(os.sched_getaffinity(0))
        if len(cpus) < 2 or not shutil.which("taskset"):
            pytest.skip("needs two CPUs and taskset")
        before, inside = [*before, "taskset", "-c", str(cpus[0])], ["taskset", "-c", str(cpus[1])]
    trace, _ = record_proc(*inside, python.path, PROGRAMS / "pairs.py", "1", options=("-F", "999", "--backend", "proc"),
                           before=before)
    whole = torn = 0
    for _, frames, _ in profile(trace):
        names = [f[0] for f in frames]
        if "[torn]" in names:
            # what is left is the outer part, and the mark stands for the rest
            assert names[-1] == "[torn]" and names.count("[torn]") == 1
            torn += 1
        inner = [i for i, n in enumerate(names) if n.endswith("_inner")]
        whole += bool(inner) and "[torn]" not in names
        for i in inner:
            assert names[i - 1] == names[i].replace("_inner", "_outer"), names
    assert apart or whole
    # Neighbours with one stack are one sample of speedscope's.
    script = pysym(trace, "--format", "perf-script").stdout
    torn, all_samples = script.count(" [torn] ([unknown])\n"), script.count(" task-clock: \n")
    text = pysym(trace, "--format", "summary", "-v").stdout
    counted = re.search(r"^ *python_changed +([\d,]+)  \w", text, re.M)
    assert (int(counted[1].replace(",", "")) if counted else 0) == torn
    if apart:
        assert torn
    else:
        assert accounts.is_rare(torn, all_samples, 0.01), text


def test_reuse(record_proc, profile):
    """A code object's address is used again and again: never another function's name."""
    trace, _ = record_proc(DEBIAN, PROGRAMS / "reuse.py", "1", options=("-F", "999", "--backend", "proc"))
    right = 0
    for _, frames, _ in profile(trace):
        for function, file, line in frames:
            match = re.match(r"f_(\d+)$", function)
            if match:
                n = int(match[1])
                assert file == f"<file {n}>" and line - n % 50000 in (1, 2), (function, file, line)
                right += 1
    assert right > 20


def test_shares_are_of_time(record_proc, pysym):
    """A sample weighs the CPU time since the thread's last one, and shares of samples are not shares of time."""
    trace, _ = record_proc(DEBIAN, PROGRAMS / "pairs.py", "0.5")
    weights = [s.weight for s in accounts.read(PYSYM, trace).samples]
    assert len(set(weights)) > 1
    data = json.loads(pysym(trace, "--format", "speedscope", "--merge", "thread").stdout)
    names = [frame["name"] for frame in data["shared"]["frames"]]
    by_stack, innermost = collections.Counter(), collections.Counter()
    for one in data["profiles"]:
        for stack, weight in zip(one["samples"], one["weights"]):
            by_stack[tuple(names[i] for i in stack)] += weight
            innermost[names[stack[-1]]] += weight
    total = sum(by_stack.values())
    assert total == sum(weights)
    folded = pysym(trace, "--format", "folded")
    assert "counts are microseconds" in folded.stderr
    rows = collections.Counter()
    for line in folded.stdout.splitlines():
        rows[tuple(line.rsplit(" ", 1)[0].split(";")[1:])] += int(line.rsplit(" ", 1)[1])
    assert all(abs(rows[stack] - by_stack[stack] / 1e3) <= 1 for stack in rows.keys() | by_stack.keys())
    assert abs(sum(rows.values()) - total / 1e3) <= 0.5
    event, = json.loads(pysym(trace, "--format", "top", "--by", "line", "--top", "0", "--json").stdout)["events"]
    rows = event["tables"][0]["rows"]
    assert {r["name"]: r["self_weight_ns"] for r in rows if r["self_samples"]} == innermost
    script = pysym(trace, "--format", "perf-script").stdout
    assert sum(int(n) for n in re.findall(r"^\S.*: +(\d+) task-clock: $", script, re.M)) == total


# ---- how recording behaves ----

def test_says_what_it_is(record_proc, pysym):
    trace, _ = record_proc(DEBIAN, "-c", "for i in range(1500): sum(range(10000))")
    text = pysym(trace, "--format", "summary", "-v", "--strict").stdout
    assert re.search(r"backend +proc", text) and re.search(r"kernel +no", text) and re.search(r"unwind +none", text)
    assert re.search(r"task-clock +[\d,]+ samples? at 499 Hz", text), text


def test_falls_back(record_proc, pysym, pycap, tmp_path):
    trace, done = record_proc(DEBIAN, "-c", "print('said'); sum(range(20_000_000))", options=())
    assert done.stdout == "said\n"
    first = done.stderr.splitlines()[0]
    assert first.startswith("pycap: only Python frames are recorded") and "CAP_BPF" in first
    assert re.search(r"backend +proc", pysym(trace, "--format", "summary", "-v").stdout)
    _, done = record_proc("true", options=("--backend", "bpf"), status=1)
    assert "CAP_BPF" in done.stderr
    _, done = record_proc("true", options=("--backend", "ptrace"), status=2)
    assert "--backend wants a backend" in done.stderr
    # What the other backend cannot do is no reason to do less than was asked for.
    _, done = record_proc("true", options=("-e", "cycles"), status=1)
    assert "CAP_BPF" in done.stderr
    _, done = record_proc("true", options=("-e", "cycles", "--backend", "proc"), status=2)
    assert "need BPF" in done.stderr
    for options in ((), ("--backend", "proc")):
        done = subprocess.run([*unprivileged(), PYCAP, "record", "-o", tmp_path / "never.bin", "-d", "1", *options],
                              capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode in (1, 2) and not (tmp_path / "never.bin").exists()


def test_bpf_is_preferred(record, pysym):
    trace = record(DEBIAN, "-c", "sum(range(20_000_000))")
    assert re.search(r"backend +bpf", pysym(trace, "--format", "summary", "-v").stdout)


def test_exit_status_and_output(record_proc, tmp_path):
    program = "import sys; print('out'); print('err', file=sys.stderr); print(sys.stdin.read()); raise SystemExit(7)"
    _, done = record_proc(DEBIAN, "-c", program, status=7, options=("-q", "--backend", "proc"))
    assert done.stdout.splitlines()[0] == "out" and done.stderr == "err\n"
    record_proc(DEBIAN, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", status=128 + 9)
    _, done = record_proc(tmp_path / "no-such-program", status=1)
    assert "no-such-program" in done.stderr


@pytest.mark.long
def test_pytest(record_proc, profile, tmp_path):
    """As in CI: a test run that fails keeps its report and its status."""
    (tmp_path / "test_it.py").write_text("def slow():\n    return sum(range(20_000_000))\n"
                                         "def test_good():\n    assert slow()\ndef test_bad():\n    assert not slow()\n")
    trace, done = record_proc(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path / "test_it.py", status=1)
    assert "1 failed, 1 passed" in done.stdout
    weights = shares(profile(trace), ["slow", "test_good", "test_bad"])
    assert weights["slow"] > 0.1e9 and weights["test_good"] and weights["test_bad"]


@pytest.mark.live
def test_signals(pysym, tmp_path):
    """The end of pycap is told to the command, whose own end counts."""
    program = ("import signal, sys, time\n"
               "signal.signal(signal.SIGTERM, lambda *_: (print('told', flush=True), sys.exit(3)))\n"
               "print('ready', flush=True)\n"
               "while True: sum(range(10000))\n")
    trace = tmp_path / "t.bin"
    process = subprocess.Popen([*unprivileged(), PYCAP, "record", "--backend", "proc", "-o", trace, "--", DEBIAN, "-c", program],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    deadline = time.monotonic() + 120
    while not (accounts.is_begun(trace) and accounts.read(PYSYM, trace).samples):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out, message = process.communicate(timeout=300)
    assert out == "told\n" and "Recorded" in message and process.returncode == 3
    assert re.search(r"duration .*, ended by", pysym(trace, "--format", "summary", "-v").stdout)


@pytest.mark.live
def test_pid(pysym, tmp_path, profile):
    """A process that runs already: what it spent before is not in the trace, and its end ends the recording."""
    program = "import sys, time\nsum(range(50_000_000))\nprint('ready', flush=True)\nsys.stdin.readline()\n" \
              "def later():\n    end = time.thread_time() + 1\n    while time.thread_time() < end: sum(range(1000))\nlater()\n"
    target = subprocess.Popen([*unprivileged(), DEBIAN, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert target.stdout.readline() == "ready\n"
        trace = tmp_path / "t.bin"
        recorder = subprocess.Popen([*unprivileged(), PYCAP, "record", "-o", trace, "-F", "499", "-p", str(target.pid)],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        # It goes on when it is recorded: the first block behind the file's head.
        deadline = time.monotonic() + 120
        while recorder.poll() is None and not accounts.is_begun(trace):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        if recorder.poll() is None:
            target.stdin.write("\n")
            target.stdin.flush()
        out, message = recorder.communicate(timeout=120)
        done = subprocess.CompletedProcess(recorder.args, recorder.returncode, out, message)
        scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
        if done.returncode and scope.exists() and scope.read_text().strip() != "0":
            assert "ptrace_scope" in done.stderr and "record -- COMMAND" in done.stderr
            pytest.skip("kernel.yama.ptrace_scope forbids it here")
        assert done.returncode == 0, done.stderr
    finally:
        target.kill()
        target.communicate()
    rows = profile(trace)
    total = sum(weight for _, _, weight in rows)
    later, slack = shares(rows, ["later"])["later"], max(accounts.read(PYSYM, trace).weights) + unseen_ns(trace, 499)
    assert 0.95e9 - slack < later <= total < 1.2e9


def test_not_permitted(place):
    if os.geteuid():
        pytest.skip("a process of another user needs root")
    other = subprocess.Popen([DEBIAN, "-c", "import time; time.sleep(60)"])
    try:
        for pid, words in ((other.pid, "another user"), (4194300, "no process")):
            done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", *NO_CAPABILITIES[1:], nobody(place), "record",
                                   "-o", "/dev/null", "-d", "1", "-p", str(pid)],
                                  capture_output=True, text=True, timeout=300, check=False)
            assert done.returncode == 1 and words in done.stderr, done.stderr
    finally:
        other.kill()
        other.wait()


def nobody(place):
    """A copy of pycap that any user can execute."""
    copy = place / "pycap"
    if not copy.exists():
        shutil.copy(PYCAP, copy)
    return copy


@pytest.mark.live
def test_nobody(place, profile):
    """A real user without any right."""
    if os.geteuid():
        pytest.skip("becoming another user needs root")
    program = nobody(place)
    home = place / "home"
    home.mkdir()
    os.chown(home, 65534, 65534)
    script = home / "chains.py"
    shutil.copy(PROGRAMS / "chains.py", script)
    script.chmod(0o644)
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *NO_CAPABILITIES[1:], program, "record", "-F", "199",
                           "-o", home / "t.bin", "--", DEBIAN, script, "0.03"],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "only Python frames are recorded" in done.stderr
    assert (home / "t.bin").stat().st_uid == 65534 and (home / "t.bin").stat().st_mode & 0o777 == 0o600
    names = {f[0] for _, frames, _ in profile(home / "t.bin") for f in frames}
    assert "main" in names and any(name.startswith("spin_") for name in names), names


def test_short_lived(record_proc, pysym, profile):
    """Processes that end while they are read: nothing breaks, each that is met has a whole stack, and of what has no name that is told."""
    program = ("import os\n"
               "def short():\n    sum(range(1_500_000))\n"
               "for i in range(80):\n"
               "    child = os.fork()\n"
               "    if not child:\n"
               "        short()\n"
               "        os._exit(0)\n"
               "    os.waitpid(child, 0)\n")
    trace, _ = record_proc(DEBIAN, "-c", program, options=("-F", "999", "--backend", "proc"))
    met, nameless = set(), 0
    for name, frames, _ in profile(trace):
        if any(f[0] == "short" for f in frames):
            assert frames[0][0] in ("<module>", "?"), frames
            nameless += frames[0][0] == "?"
            met.add(name)
    assert len(met) >= 5 and nameless <= accounts.read(PYSYM, trace).losses["code_unknown"]
    dump = pysym(trace, "--format", "summary", "-v").stdout
    assert "python_torn" not in dump and "bad_code" not in dump, dump


def test_same_input_same_bytes(record_proc, pysym):
    """A trace read twice gives the same output: what is archived can be compared."""
    trace, _ = record_proc(DEBIAN, PROGRAMS / "chains.py", "0.02")
    for name in formats():
        outputs = [pysym(trace, "--format", name, text=False).stdout for _ in range(2)]
        assert outputs[0] == outputs[1]
