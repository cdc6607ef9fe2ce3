# SPDX-License-Identifier: Apache-2.0
"""Attacks beside a recording of root's: each group of them runs next to one recording and one victim.

What must hold is the same for all: of the ticks that the victim's own CPU time makes nearly all are samples, with the
victim's whole stack; the recording ends when it should, in good order, with little memory and a small file; what only
root may read is nowhere in what it wrote.
"""
import collections
import contextlib
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import accounts
import text_found
from wait_trace import script_samples, waits_in

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
CACHE = pathlib.Path(os.environ.get("PYCAP_TEST_CACHE") or
                     os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "pycap-tests"))
IN_ROOT = f"{HERE.parent / 'in-root.sh'} {CACHE / 'roots/sid'}"  # where newer interpreters are
PYENV = pathlib.Path(os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv"))
OTHER_PYTHONS = [p for minor in (8, 9, 10, 7) for p in PYENV.glob(f"versions/3.{minor}.*/bin/python3.{minor}")]
CPUS = sorted(os.sched_getaffinity(0))
ATTACKER = 4242  # a user and a group that have nothing
NEIGHBOUR = 4343  # another one
RATE_HZ = 99  # pycap's own
DURATION_S = 5
REST_S = 1.2   # of the victim, until the recorder knows it
WORK_S = 2
NEW_AFTER_S = 1.5  # until then the attackers have taken what they get
SPARE_S = 0.3  # before the recording's end nothing of the victim is left, also where it began late
# What must hold.
LEAST_SHARE = 0.99
LEAST_SHARE_OF_WAITS = 0.95
MOST_RESIDENT_KIB = 128 << 10
MOST_BYTES_A_SECOND = 1_000_000
# What the pools of quotas.def let through at once of line tables, names and stacks (8, 2 and 8 MiB), for programs that start.
MOST_BYTES_AT_ONCE = 19_000_000
END_WITHIN_S, FAIL_AFTER_S = 1, 5  # the first is what is promised; a busy machine may make it the second

# `first`: it begins before the recording. `as_root`: it is started by root, to become other users.
Attack = collections.namedtuple("Attack", "name command first as_root", defaults=[False, False])
# `victim`: "known", a program of root's with the system's interpreter; "new", another user's with a copy of it, which the
# recorder has not met; "service", the same, begun before the recording; "version", a program of root's with an interpreter of a
# version that does not run elsewhere. `rare`: a run without words has another one of its kind, but runs by turns have it.
Group = collections.namedtuple("Group", "name options attacks victim rare", defaults=["known", False])


def switches(*kinds):
    return [Attack(f"threads that switch: {kind}", f"switches.py {kind}") for kind in kinds]


# {programs}: the folder of the compiled attacks.
# {secret}, {program}, {fifo}: a text file, an ELF file and a FIFO that only root may open. {in_root}: the start of a command
# that shall run in a root tree.
GROUPS = [
    Group("code", [], [
        Attack("code of 600 MB in one stack", "codebomb.py 600 1048512 zero"),
        Attack("the same, incompressible", "codebomb.py 300 1048512 random"),
        Attack("code that is new in each stack", "codebomb.py 100 20000 changing"),
        Attack("deep stacks, new at every tick", "storm.py deep"),
        Attack("native stacks that are deep, new at every tick", "storm.py native"),
    ]),
    Group("mappings", [], [
        Attack("8,000 mappings with long paths, forked 150 times", "fork_maps 8000 150"),
        Attack("mappings at ever new addresses", "map_flood"),
        Attack("symbols of 3 GB", "host_elf.py dynsym 3221225472"),
        Attack("8 million sections", "host_elf.py sections 536870912"),
        Attack("a sparse file of 40 GB", "big_map 40 plain"),
        Attack("the same with an ELF header", "big_map 40 elf"),
    ]),
    Group("there before", [], [
        Attack("8,000 mappings with long paths, forked 150 times", "fork_maps 8000 150", first=True),
        Attack("a sparse file of 200 GB", "big_map 200 plain", first=True),
        Attack("4,000 threads with long names", "storm.py threads", first=True),
        Attack("code of 600 MB in one stack", "codebomb.py 600 1048512 zero", first=True),
    ]),
    Group("files of its own", [], [
        Attack("70 perf maps of 8 MiB", "perf_maps.py 70 8388608"),
        Attack("a file of root's bound over a perf map", "leak_perf_map.py {secret} bind"),
        Attack("a perf map that is a symlink", "leak_perf_map.py {secret} symlink"),
        Attack("a perf map that is a hard link", "leak_perf_map.py {secret} hardlink"),
        Attack("processes that keep changing their mappings", "hold_memory.py 6 2"),
        Attack("ever new names of source files", "sources.py names"),
        Attack("source files that are something else", "sources.py places {fifo}"),
        Attack("source files that do not answer", "sources.py silent", as_root=True),
        Attack("200 MB of .eh_frame", "host_elf.py unwind 200000000"),
    ]),
    Group("identity", ["-a", "--archive", "{archive}"], [
        Attack("an interpreter of another version with the same build ID", "poison.py {python} version"),
        Attack("other rules to unwind with the same build ID", "poison.py {python} unwind"),
        Attack("a path that becomes a program of root's", "swap_path {program}"),
        Attack("a path that becomes a FIFO of root's", "swap_path {fifo}"),
        Attack("a path that becomes an endless file", "swap_path /proc/self/pagemap"),
        Attack("an ELF file that is cut all the time", "cut_elf"),
    ]),
    Group("storms", [], [
        Attack("200 users", "storm.py uids", as_root=True),
        Attack("programs that start and end", "storm.py exec"),
        Attack("a thread that renames itself", "storm.py names"),
        Attack("a name with escape sequences", "storm.py escapes"),
        *(Attack(f"a made-up CPython, {how}", f"fake_python {how}")
          for how in ("self", "odd", "edge", "none", "random", "0xffffffff81000000", "0x8000000000000000")),
    ]),
    Group("mappings that come and go", ["-e", "cpu-clock", "-e", "memory-growth"], [
        *(Attack(f"a storm of system calls: {how}", f"calls.py {how}")
          for how in ("maps", "keeps", "pieces", "breaks", "protects", "moves", "wide", "children")),
    ]),
    *(Group(f"sessions of {how}, {what}", [], [
        Attack(f"a session of {how}: {what}", f"sessions.py {how} {what} {{programs}}", as_root=True),
    ], victim, rare) for how, what, victim, rare in (
        ("setuid", "modules", "new", True), ("setuid", "modules", "service", True), ("su", "modules", "new", True),
        ("worker", "modules", "new", True), ("container", "modules", "new", False), ("host-ids", "modules", "new", True),
        ("host-ids", "modules", "service", False), ("subids", "modules", "new", True), ("login", "modules", "new", True),
        ("ids", "modules", "new", True), ("setuid", "layouts", "version", True), ("ids", "layouts", "version", False),
        ("container", "layouts", "version", True), ("host-ids", "layouts", "version", True))),
    Group("threads that switch", ["--wall"], switches("lock", "places", "threads", "children")),
    Group("processes that switch", ["--wall"], switches("crowd")),
    Group("threads that switch, woken by others", ["--wall", "--waker", "-a"], switches("renames", "pairs", "programs")),
    Group("threads that switch, with memory and tasks", ["--wall", "--waker", "-e", "memory-growth", "-e", "task-wait"], [
        Attack("threads that sleep, each elsewhere", "switches.py sleepers", first=True),
        *switches("places", "threads"),
    ]),
    Group("threads that switch, at 999 Hz", ["--wall", "--waker", "-a", "-F", "999"], switches("lock", "places", "children")),
    Group("tracepoints", ["-e", "cpu-clock", "-e", "syscalls:sys_enter_openat"], [
        Attack("files that are opened all the time", "calls.py opens"),
        Attack("programs that start and end", "storm.py exec"),
    ]),
    Group("tasks", ["-e", "cpu-clock", "-e", "task-wait"], [
        *(Attack(f"tasks of asyncio: {how}", f"tasks.py {how} {{in_root}}", as_root=True)
          for how in ("circle", "long", "lost", "deep", "itself", "awaiters", "line", "lengths", "names", "functions", "changing")),
    ]),
    Group("little memory", ["--max-memory", "64M"], [
        Attack("mappings at ever new addresses", "map_flood"),
        Attack("code of 600 MB in one stack", "codebomb.py 600 1048512 zero"),
    ]),
]


class Scene:
    """A folder that attackers may enter, with things of root's in it. Removed with all in it by close()."""

    def __init__(self, programs):
        self.programs = programs.resolve()
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="hostile-"))
        self.top.chmod(0o711)
        self.word = "secret_" + secrets.token_hex(16)
        self.secret, self.program, self.fifo = (self.top / n for n in ("secret.log", "program", "fifo"))
        self.archive, self.trace = self.top / "archive.tar", self.top / "trace.bin"
        self.secret.write_text(f"1000 10 {self.word}\n2000 10 {self.word}\n")
        shutil.copyfile("/bin/true", self.program)
        with open(self.program, "ab") as f:
            f.write(self.word.encode() * 100)
        os.mkfifo(self.fifo, 0o600)
        self.secret.chmod(0o600)
        self.program.chmod(0o700)
        self.fifo_opened = False
        # Whoever opens the FIFO to read lets a writer through.
        self.watcher = threading.Thread(target=self.watch_fifo, daemon=True)
        self.watcher.start()

    def watch_fifo(self):
        fd = os.open(self.fifo, os.O_WRONLY)
        self.fifo_opened = True
        os.close(fd)

    def fill(self, text):
        return text.format(secret=self.secret, program=self.program, fifo=self.fifo, archive=self.archive,
                           python=os.path.realpath(PYTHON), in_root=IN_ROOT, programs=self.programs)

    def close(self):
        if not self.fifo_opened:
            reader = os.open(self.fifo, os.O_RDONLY | os.O_NONBLOCK)
            self.watcher.join()
            os.close(reader)
        shutil.rmtree(self.top, ignore_errors=True)


class Attacker:
    """An attack program: prepared when this is made, let go by go(), ended by close()."""

    def __init__(self, attack, scene, programs):
        self.attack = attack
        folder = pathlib.Path(tempfile.mkdtemp(dir=scene.top))
        name, *arguments = scene.fill(attack.command).split()
        if name.endswith(".py"):
            for source in HERE.glob("*.py"):
                shutil.copy(source, folder)
            command = [PYTHON, folder / name]
        else:
            shutil.copy(programs / name, folder)
            command = [folder / name]
        os.chown(folder, ATTACKER, ATTACKER)
        user = {} if attack.as_root else {"user": ATTACKER, "group": ATTACKER, "extra_groups": []}
        self.process = subprocess.Popen([*map(str, command), str(DURATION_S + 3), *arguments], cwd=folder, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        start_new_session=True, preexec_fn=beside_victim, **user)

    def why_not(self):
        """Waits until it is prepared. Why it cannot run on this machine, or None; raises if it is broken."""
        for line in self.process.stdout:
            if line == "ready\n":
                return None
            if line.startswith("skip: "):
                return line[6:].strip()
        raise RuntimeError(f"{self.attack.command}: {self.process.stderr.read().strip()}")

    def go(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write("go\n")
            self.process.stdin.flush()

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
        pathlib.Path(f"/tmp/perf-{self.process.pid}.map").unlink(missing_ok=True)
        for path in pathlib.Path("/tmp").glob("perf-*.map"):  # of its children, which could not remove theirs
            with contextlib.suppress(OSError):
                if path.lstat().st_uid == ATTACKER:
                    path.unlink()


def neighbour():
    """The same as another user."""
    before_others()
    os.setgroups([])
    os.setresgid(NEIGHBOUR, NEIGHBOUR, NEIGHBOUR)
    os.setresuid(NEIGHBOUR, NEIGHBOUR, NEIGHBOUR)


class Memory:
    """
    The most that a recorder and its children have held, each at its own worst moment, looked at while they run. Ends a
    recorder that is about to fill the disk of this machine.
    """
    MOST_BYTES = 300_000_000

    def __init__(self, recorder, trace):
        self.recorder, self.pid, self.trace, self.most_kib, self.ended = recorder, recorder.pid, trace, {}, False
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def look_at(self, pid):
        found = re.search(r"^VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)
        if found:
            self.most_kib[pid] = int(found[1])

    def look_at_all(self, pid):
        with contextlib.suppress(OSError):
            self.look_at(pid)
            for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                self.look_at_all(child)

    def watch(self):
        while not self.ended:
            self.look_at_all(str(self.pid))
            with contextlib.suppress(OSError):
                if self.trace.stat().st_size > self.MOST_BYTES:
                    self.recorder.kill()
            time.sleep(0.02)

    def close(self):
        self.ended = True
        self.thread.join()
        return sum(self.most_kib.values())


def before_others():
    """
    Has the victim run before attackers: what it loses shall be the recorder's doing, and not the scheduler's. For the same
    reason it has a CPU of its own (see beside_victim()).
    """
    if len(CPUS) > 1:
        os.sched_setaffinity(0, CPUS[-1:])
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:  # not in every container
        os.nice(-20)


def beside_victim():
    """
    Has recorder and attackers run on the other CPUs: where a program of real-time priority computes they would wait for
    seconds, and attackers with locks of the kernel in their hands, for which others wait then, too.
    """
    if len(CPUS) > 1:
        os.sched_setaffinity(0, CPUS[:-1])


class Victim:
    """The program that attackers try to hide (victim.py). It works when it is told to."""

    def __init__(self, kind, scene):
        python, user = PYTHON, before_others
        if kind == "version":
            python = OTHER_PYTHONS[0]
        elif kind != "known":
            python, user = scene.top / "python", neighbour
            shutil.copy(os.path.realpath(PYTHON), python)
        program = shutil.copy(HERE / "victim.py", scene.top)
        os.chmod(program, 0o644)
        self.process = subprocess.Popen([python, program, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        cwd="/", preexec_fn=user)
        self.pid = self.process.pid

    def work(self, until):
        """Has it work, at most until that time. Returns what it says of that."""
        return json.loads(self.process.communicate(f"{REST_S} {WORK_S} {until}\n")[0])


class Recording:
    """What one recording beside attackers came to."""

    def __init__(self, pycap, pysym, group, scene, attackers):
        self.pysym, self.options, self.scene = pysym, group.options, scene
        victim = Victim(group.victim, scene) if group.victim == "service" else None
        self.whole, self.ticks, self.variance, self.account, self.text = 0, 0.0, 0.0, None, ""
        for attacker in attackers:
            if attacker.attack.first:
                attacker.go()
        if any(attacker.attack.first for attacker in attackers):
            time.sleep(1)
        command = [pycap, "record", "-d", str(DURATION_S), "-o", scene.trace, *map(scene.fill, group.options)]
        with open(scene.top / "messages", "wb") as messages, \
                subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=messages, stderr=messages,
                                 start_new_session=True, preexec_fn=beside_victim) as recorder:
            memory = Memory(recorder, scene.trace)
            asked = time.monotonic()
            began = self.wait_for_file(recorder)
            self.start_s = began - asked
            for attacker in attackers:
                if not attacker.attack.first:
                    attacker.go()
            time.sleep(NEW_AFTER_S if group.victim in ("new", "version") else 0.4)
            victim = victim or Victim(group.victim, scene)
            self.victim_pid = victim.pid
            self.victim = victim.work(began + DURATION_S - SPARE_S)
            self.victim_s = self.victim["cpu_s"]
            try:
                self.exit_code = recorder.wait(began + DURATION_S + 2 * FAIL_AFTER_S - time.monotonic())
            except subprocess.TimeoutExpired:
                recorder.kill()
                self.exit_code = "none: it had to be killed"
            self.late_s = time.monotonic() - began - DURATION_S
            self.resident_kib = memory.close()
        self.messages = (scene.top / "messages").read_bytes()
        self.file_bytes = scene.trace.stat().st_size if scene.trace.exists() else 0

    def wait_for_file(self, recorder):
        """The last moment when there was no trace yet, by the monotonic clock: this process may stand still behind it."""
        began = looked = time.monotonic()
        stop = began + 20
        while not self.scene.trace.exists() and recorder.poll() is None and looked < stop:
            began = looked
            time.sleep(0.005)
            looked = time.monotonic()
        return began

    def of_victim(self, event):
        """Its samples of that event, as perf-script has them."""
        return subprocess.run([self.pysym, self.scene.trace, "-f", "perf-script", "--interpreter", "calls", "--pid",
                               str(self.victim_pid), "--event", event], capture_output=True, text=True, check=False,
                              timeout=60).stdout

    def whole_samples(self):
        """The number of the victim's samples in its chain of functions, from the program's start to the innermost."""
        whole = 0
        for sample in self.of_victim("cpu-clock").split("\n\n"):
            lines = sample.split("\n")
            names = [m[1] for m in (re.search(r" py::(\S+?):.*victim\.py", line) for line in lines) if m]
            whole += names == ["inner", "middle", "outer", "<module>"] and " _start+" in lines[-1]
        return whole

    def faults(self):
        """What does not hold, as texts, but for what missing() says, which comes after this."""
        if self.exit_code != 0:
            yield f"exit code {self.exit_code}"
        if not self.file_bytes or self.file_bytes > Memory.MOST_BYTES:
            self.text = f"a trace of {self.file_bytes} bytes"
            yield self.text
            return
        account = self.account = accounts.read(self.pysym, self.scene.trace)
        rate_hz = int(self.options[self.options.index("-F") + 1]) if "-F" in self.options else RATE_HZ
        self.whole, self.ticks = self.whole_samples(), self.victim_s * rate_hz
        worked_s = self.victim["worked_s"]
        share = min(1, self.victim_s / worked_s)
        self.variance = worked_s * rate_hz * share * (1 - share)  # a tick falls into the victim with that share's chance
        self.text = (f"{self.whole} of {self.ticks:.0f} ticks, began after {self.start_s:.1f} s and ended "
                     f"{self.late_s:+.1f} s, {self.resident_kib >> 10} MiB, "
                     f"{self.file_bytes / 1e6 / DURATION_S:.2f} MB/s")
        if account.ends != [1]:
            yield f"the trace's ends are {account.ends}, not [1] (the duration was over)"
        yield from self.events(rate_hz)
        if self.late_s > FAIL_AFTER_S:
            yield f"pycap ended {self.late_s:.1f} s late (it should within {END_WITHIN_S} s)"
        if self.resident_kib > MOST_RESIDENT_KIB:
            yield f"pycap held {self.resident_kib >> 10} MiB"
        if self.file_bytes > MOST_BYTES_AT_ONCE + MOST_BYTES_A_SECOND * DURATION_S:
            yield f"the trace has {self.file_bytes} bytes"
        yield from self.leaks()
        if self.scene.fifo_opened:
            yield "a FIFO of root's was opened"
        bad = text_found.unprintable(self.messages)
        if bad:
            yield f"messages carry {bad}"

    def missing(self):
        """Whether the victim lacks samples, as texts."""
        if not self.account:
            return
        chance = 4 * self.variance ** 0.5 + 2 + self.account.losses["tick_skipped"]  # the host may take a CPU away
        if self.whole < self.ticks * LEAST_SHARE - chance:
            yield (f"the victim has {self.whole} whole samples of {self.ticks:.0f} (chance: {chance:.0f}); "
                   f"{self.account.text()}")

    def events(self, rate_hz):
        """Of events that are counted: what the victim did is in the samples, within what chance has of samples so heavy."""
        for event, function, truth in (("memory-growth", "grows", self.victim["grown_bytes"]),
                                       ("syscalls:sys_enter_openat", "opens", self.victim["opened"])):
            if event in self.options:
                found = [s.value for s in script_samples(self.of_victim(event)) if function in s.functions]
                chance = 4 * sum(value ** 2 for value in found) ** 0.5 if len(set(found)) > 1 or max(found, default=0) > 1 else 0
                self.text += f", {sum(found)} of {truth} of {event} in {len(found)} samples"
                if abs(sum(found) - truth) > (1 - LEAST_SHARE) * truth + chance:
                    yield f"the victim has {sum(found)} of {truth} of {event}, in {len(found)} samples"
        if "--wall" in self.options:
            truth = self.victim["rested_ns"]
            found = waits_in(self.of_victim("off-cpu"), {"rests"})["rests"]
            self.text += f", {found / 1e6:.1f} of {truth / 1e6:.1f} ms of waiting"
            # Waits for which none at their place stood later are counted, in periods, for all processes together.
            counted = self.account.losses["wait_unwritten"] * 1_000_000_000 / rate_hz
            if found > truth * (2 - LEAST_SHARE_OF_WAITS) or found + counted < truth * LEAST_SHARE_OF_WAITS:
                yield f"the victim has {found} of {truth} ns of waiting"

    def leaks(self):
        word = self.scene.word.encode()
        if text_found.contains(self.scene.trace, word):
            yield "the trace holds what only root may read"
        if self.scene.archive.exists() and word in self.scene.archive.read_bytes():
            yield "the archive holds what only root may read"
        if word in self.messages:
            yield "messages hold what only root may read"


class Together:
    """What the victim had in several recordings, in ticks."""
    whole = ticks = skipped = variance = 0

    def add(self, recording):
        self.whole += recording.whole
        self.ticks += recording.ticks
        self.skipped += recording.account.losses["tick_skipped"] if recording.account else 0
        self.variance += recording.variance

    def share(self):
        return min(1, (self.whole + self.skipped) / self.ticks)

    def variance_of_share(self):
        return (self.variance + self.ticks * self.share() * (1 - self.share())) / self.ticks ** 2

    def text(self):
        return f"{self.whole} of {self.ticks:.0f} ticks ({self.skipped} were skipped)"


def record_beside(pycap, pysym, programs, group, attacks):
    """One recording, with its faults, and {name of an attack: why it was skipped}."""
    scene, attackers, skipped = Scene(programs), [], {}
    try:
        prepared = []
        for attack in attacks:
            attackers.append(Attacker(attack, scene, programs))
        for attacker in attackers:
            why = attacker.why_not()
            if why:
                skipped[attacker.attack.name] = why
            else:
                prepared.append(attacker)
        recording = Recording(pycap, pysym, group, scene, prepared)
        for attacker in attackers:
            attacker.close()
        return recording, list(recording.faults()), skipped
    finally:
        for attacker in attackers:
            attacker.close()
        scene.close()


def why_skipped(group, attacks):
    if group.victim == "version" and not OTHER_PYTHONS:
        return {attack.name: "pyenv has no other interpreter" for attack in attacks}
    return {}


def told(recording):
    return "messages: " + ascii(recording.messages.decode(errors="replace"))[-1500:]


def run_group(pycap, pysym, programs, group, attacks):
    """Runs these attacks beside one recording. Returns (figures, faults, {name of an attack: why it was skipped})."""
    if why := why_skipped(group, attacks):
        return "", [], why
    recording, faults, skipped = record_beside(pycap, pysym, programs, group, attacks)
    faults += recording.missing()
    return recording.text, faults + [told(recording)] if faults else [], skipped


def run_in_turns(pycap, pysym, programs, group, attacks, enough_ticks):
    """
    The same by turns with recordings without attackers, until the victim had so many ticks beside them: of what it has without,
    it keeps LEAST_SHARE, within three standard errors.
    """
    if why := why_skipped(group, attacks):
        return "", [], why
    attacked, alone, faults = Together(), Together(), []
    while attacked.ticks < enough_ticks and not faults:
        recording, faults, skipped = record_beside(pycap, pysym, programs, group, attacks)
        attacked.add(recording)
        if faults or len(skipped) == len(attacks):
            return recording.text, faults + [told(recording)] if faults else [], skipped
        recording, faults, _ = record_beside(pycap, pysym, programs, group, [])
        alone.add(recording)
    error = (attacked.variance_of_share() + alone.variance_of_share()) ** 0.5
    text = f"{attacked.text()} beside attackers, {alone.text()} alone"
    if attacked.share() < LEAST_SHARE * alone.share() - 3 * error:
        faults.append(f"the victim keeps {attacked.share() / alone.share():.3f} of what it has without (standard error {error:.3f})")
    return text, faults, skipped
