# SPDX-License-Identifier: Apache-2.0
"""The recorders that the benchmark compares: how each is had, started, known to be ready, and read."""
import os
import pathlib
import shutil
import subprocess

import judge

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYCAP = os.environ.get("PYCAP", str(ROOT / "build/pycap"))
PYSYM = os.environ.get("PYSYM", str(ROOT / "build/pysym"))
EMPTY_TICK = str(ROOT / "build/tools/empty_tick")
MEASURE = str(ROOT / "build/tools/measure")
CACHE = pathlib.Path(os.environ.get("PYCAP_TEST_CACHE") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "pycap-tests")
PEERS = ["py-spy==0.4.3", "austin-dist==4.0.0"]


class Missing(Exception):
    """Why a recorder can't run here."""


def venv_tool(name):
    """A tool of the peers' virtual environment, which is made in the cache at first use."""
    venv = CACHE / "bench-venv"
    stamp = venv / ".complete"
    wanted = "\n".join(PEERS)
    if not stamp.exists() or stamp.read_text() != wanted:
        for command in ([["/usr/bin/python3", "-m", "venv", str(venv)]] +
                        [[str(venv / "bin/pip"), "install", "-q", peer] for peer in PEERS]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise Missing(f"{command[-1]} can't be installed: " + (done.stderr.strip() or "?").splitlines()[-1])
        stamp.write_text(wanted)
    return str(venv / "bin" / name)


def sid_root():
    """A root tree with Python 3.15 and a newer C library."""
    done = subprocess.run(["bash", str(ROOT / "tests/interpreters.sh"), "sid"], capture_output=True, text=True,
                          check=False)
    for line in done.stdout.splitlines():
        words = line.split()
        if words[0] == "py3.15":
            return words[2]
    raise Missing("no Python 3.15: " + ((done.stdout + done.stderr).strip() or "?").splitlines()[-1])


def program_in_root(root, python, script, name):
    """A command that runs a workload in a root tree, with a /proc of its own there."""
    shutil.copy(script, pathlib.Path(root) / "tmp/pycap-bench-work.py")
    return ["unshare", "-m", "sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', root, python,
            "/tmp/pycap-bench-work.py", name]


def work_command(python, script, name):
    """A command that runs a workload. `python` is a path, or sid:3.14, sid:3.15 for those of the root tree."""
    suite, _, version = python.rpartition(":")
    if suite == "sid":
        return program_in_root(sid_root(), f"/usr/bin/python{version}", script, name)
    return [python, str(script), name]


def runs(command, what):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"{what} does not run here: " + (done.stderr.strip() or "?").splitlines()[-1])
    return command[:-1]


def austin_command():
    tool = venv_tool("austin")
    try:
        return runs([tool, "--version"], "austin")
    except Missing:
        # Its build wants a newer C library than Debian 12 has.
        root = sid_root()
        return runs([f"{root}/lib64/ld-linux-x86-64.so.2", "--library-path",
                     f"{root}/lib/x86_64-linux-gnu:{root}/usr/lib/x86_64-linux-gnu", tool, "--version"], "austin")


class Kind:
    """A recorder. `clock` says whose time its ticks count: the program's CPU time, or everybody's wall time."""
    clock = "cpu"
    bpf = False
    bound = True          # runs on the first CPU only
    ready_text = None     # what it prints when it is at work ("": nothing); else its file is looked at
    settle_seconds = 0.5  # after that
    own_program = False   # records a program of its own interpreter
    work_share = 1.0      # of the work; less where that takes many times longer under the recorder

    def prepare(self):
        """Raises Missing."""

    def command(self, out, hz, target):
        raise NotImplementedError

    def file(self, out, target):
        """Where a file that the recorder calls `out` is seen from here."""
        del target
        return out

    def stacks(self, path, target, window):
        """See judge.py."""
        raise NotImplementedError


class Pycap(Kind):
    bpf = True

    def __init__(self, *options, program=PYCAP):
        self.options, self.program = list(options), program

    def command(self, out, hz, target):
        return [self.program, "record", "-F", str(hz), *self.options, "-o", out, "-p", str(target.pid)]

    def stacks(self, path, target, window):
        none = "none" in self.options
        return ((count, python, None if none else native)
                for count, python, native in judge.read_pycap(path, PYSYM, window))


class PycapProc(Pycap):
    """Without BPF: it goes to the CPU of the thread that it reads, so it has to be let go anywhere."""
    clock = "wall"
    bound = False


class Empty(Kind):
    """The floor: ticks with a BPF program that does nothing."""
    bpf = True
    ready_text = "ready"

    def prepare(self):
        if not os.access(EMPTY_TICK, os.X_OK):
            raise Missing(f"{EMPTY_TICK} is not built")

    def command(self, out, hz, target):
        return [EMPTY_TICK, "hold", str(hz)]

    def stacks(self, path, target, window):
        return None


class Perf(Kind):
    def __init__(self, *options):
        self.options = list(options)

    def prepare(self):
        if not shutil.which("perf"):
            raise Missing("perf is not installed (Debian: linux-perf)")

    def command(self, out, hz, target):
        return ["perf", "record", "-q", "-e", "cpu-clock", "-k", "CLOCK_MONOTONIC", "-F", str(hz), *self.options,
                "-o", out, "-p", str(target.pid)]

    def stacks(self, path, target, window):
        return judge.read_perf(path, window)


class PySpy(Kind):
    clock = "wall"
    ready_text = "Sampling process"

    def __init__(self, *options):
        self.options = list(options)
        self.work_share = 0.3 if "--native" in options else 1.0

    def prepare(self):
        self.tool = runs([venv_tool("py-spy"), "--version"], "py-spy")

    def command(self, out, hz, target):
        return [*self.tool, "record", "-r", str(hz), *self.options, "-f", "raw", "-o", out, "-p", str(target.pid)]

    def stacks(self, path, target, window):
        return judge.read_pyspy(path)


def root_of(target):
    """The root tree that a workload runs in; an empty text: none."""
    return os.readlink(f"/proc/{target.pid}/root").rstrip("/")


class InsideTree(Kind):
    """A recorder that looks for the program's files by their paths, so that it has to run in the program's root tree."""

    @staticmethod
    def tree_name(out):
        return f"/tmp/{os.path.basename(os.path.dirname(out))}-{os.path.basename(out)}"

    @staticmethod
    def inside(target, *command):
        return ["nsenter", "-t", str(target.pid), "-m", "-r", *command]

    def file(self, out, target):
        root = root_of(target)
        return root + self.tree_name(out) if root else out


class Austin(InsideTree):
    clock = "wall"

    def prepare(self):
        self.tool = austin_command()

    def command(self, out, hz, target):
        options = ["-i", str(round(1e6 / hz)), "-p", str(target.pid), "-o"]
        if not root_of(target):
            return [*self.tool, *options, out]
        inside = "/tmp/pycap-bench-austin"
        shutil.copy(venv_tool("austin"), root_of(target) + inside)
        return self.inside(target, inside, *options, self.tree_name(out))

    def stacks(self, path, target, window):
        return judge.read_mojo(path)


class Tachyon(InsideTree):
    """Python's own sampler; it reads programs of its own version only, so both run in a root tree."""
    clock = "wall"
    ready_text = ""
    settle_seconds = 2
    own_program = True
    python = "/usr/bin/python3.15"

    def prepare(self):
        self.root = sid_root()

    def command(self, out, hz, target):
        if not os.path.basename(os.readlink(f"/proc/{target.pid}/exe")) == os.path.basename(self.python):
            raise Missing("it reads Python 3.15 only")
        return self.inside(target, self.python, "-m", "profiling.sampling", "attach", "-r", str(hz), "--binary",
                           "-o", self.tree_name(out), str(target.pid))

    def stacks(self, path, target, window):
        name = path[len(self.root):]
        done = subprocess.run(self.inside(target, self.python, "-m", "profiling.sampling", "replay", "--collapsed", "-o",
                                          name + ".folded", name), capture_output=True, text=True, check=False)
        folded = pathlib.Path(path + ".folded")
        if not folded.exists():
            raise Missing("its file cannot be read: " + ((done.stdout + done.stderr).strip() or "?").splitlines()[-1])
        try:
            return list(judge.read_collapsed(folded.read_text()))
        finally:
            folded.unlink()

    def program(self, script, name):
        return program_in_root(self.root, self.python, script, name)


TABLES = "pycap"
SNAPSHOT_8K = "pycap, 8 KiB snapshots"
PYTHON_ONLY = "pycap, Python only"
KINDS = {
    "empty BPF program": Empty(),
    TABLES: Pycap("--unwind", "tables"),
    "pycap, 64 KiB snapshots": Pycap("--unwind", "snapshot", "--stack-size", "65536"),
    SNAPSHOT_8K: Pycap("--unwind", "snapshot", "--stack-size", "8192"),
    PYTHON_ONLY: Pycap("--unwind", "none"),
    "pycap without BPF": PycapProc("--backend", "proc", "--unwind", "none"),
    "perf -g": Perf("-g"),
    "perf dwarf 8 KiB": Perf("--call-graph", "dwarf,8192"),
    "perf dwarf 64 KiB": Perf("--call-graph", "dwarf,65528"),
    "py-spy": PySpy(),
    "py-spy --nonblocking": PySpy("--nonblocking"),
    "py-spy --native": PySpy("--native"),
    "austin": Austin(),
    "profiling.sampling": Tachyon(),
}
