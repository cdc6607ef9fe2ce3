# SPDX-License-Identifier: Apache-2.0
"""What the golden and the live tests share: the two programs, the interpreters, made-up traces and
recordings of a command. A test that needs what this machine lacks is skipped with the reason.

Environment: PYCAP and PYSYM (default build/pycap, build/pysym), PYTHONS (interpreters to
record, separated by spaces or colons; default: those on the PATH and pyenv's, and those that
tests/interpreters.sh has fetched, which run in root trees of their own).
"""
import atexit
import collections
import functools
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import pytest

import accounts
import browser as driver
import chance
import end_counts
import profile_readers

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYCAP = os.environ.get("PYCAP", str(ROOT / "build/pycap"))
PYSYM = os.environ.get("PYSYM", str(ROOT / "build/pysym"))
MAKE_TRACE = pathlib.Path(os.environ.get("MAKE_TRACE", pathlib.Path(PYSYM).parent / "tools/make_trace"))
# A system call that is missing in the list of capture/host/sandbox.c would only fail, and might not be noticed.
os.environ.setdefault("PYCAP_SANDBOX_KILL", "1")


def formats(views=False):
    """The output formats, as `pysym --help` lists them; with `views` also what only a terminal shows."""
    done = subprocess.run([PYSYM, "--help"], capture_output=True, text=True, timeout=60, check=True)
    section = re.search(r"^formats.*:\n((?:  .*\n)+)", done.stdout, re.M)
    found = re.findall(r"^  ([a-z][a-z-]*) ", section[1], re.M)
    assert len(found) > 3 and "live" in found, done.stdout
    return [name for name in found if views or name != "live"]


# ---- interpreters ----

# `name` says version and origin ("3.11-debian"); `version` is (3, 11); `root`: the root tree it runs in, or None.
Interpreter = collections.namedtuple("Interpreter", "path name version root", defaults=[None])
CACHE = pathlib.Path(os.environ.get("PYCAP_TEST_CACHE") or
                     os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "pycap-tests"))


def supported_versions():
    """The minor versions that have a row in versions.def: a new row brings its own tests."""
    text = (ROOT / "formats/cpython/versions.def").read_text()
    return sorted({(int(a), int(b)) for a, b in re.findall(r"^PYTHON\((\d+), *(\d+)", text, re.M)})


def candidates(named):
    if named:
        return named.replace(":", " ").split()
    found = []
    for major, minor in supported_versions():
        on_path = shutil.which(f"python{major}.{minor}", path=os.environ.get("PATH", "") + ":/usr/bin")
        if on_path and "shims" not in on_path:
            found.append(on_path)
        # A shim of pyenv on the PATH hides Debian's interpreter behind it.
        found.append(f"/usr/bin/python{major}.{minor}")
        root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
        found += sorted(glob.glob(f"{root}/versions/*/bin/python{major}.{minor}"))
    return found


@functools.lru_cache(maxsize=None)
def installed(named=None):
    """The interpreters that are there, or of them those that `named` has (as PYTHONS)."""
    seen, out = set(), []
    for path in candidates(named):
        real = os.path.realpath(path)
        if real in seen or not os.access(real, os.X_OK):
            continue
        seen.add(real)
        try:
            text = subprocess.run([path, "-c", "import sys; print(\"%d %d\" % sys.version_info[:2])"], capture_output=True,
                                  text=True, timeout=60, check=True).stdout
        except (OSError, subprocess.SubprocessError):
            continue
        version = tuple(map(int, text.split()))
        origin = "pyenv" if "/versions/" in real else "debian" if real.startswith("/usr/bin/") else "other"
        out.append(Interpreter(path, f"{version[0]}.{version[1]}-{origin}", version))
    return out


def interpreters():
    return installed(os.environ.get("PYTHONS"))


# Root trees of tests/interpreters.sh, and the versions that no other interpreter here has.
ROOTS = {"sid": [(3, 14), (3, 15)]}


@functools.lru_cache(maxsize=None)
def root_trees():
    """Interpreters in root trees, each behind a script that goes there; a reason for those that aren't to be had."""
    found, missing = [], []
    for suite, versions in ROOTS.items():
        root = CACHE / "roots" / suite
        for version in versions:
            text = ".".join(map(str, version))
            if os.geteuid() != 0 or not (root / ".complete").exists():
                missing.append((f"{text}-root", f"no root tree with Python {text}: see tests/interpreters.sh {suite}"))
                continue
            script = pathlib.Path(tempfile.gettempdir()) / f"pycap-test-{os.getpid()}-python{text}"
            script.write_text(f'#!/bin/sh\nexec "{ROOT}/tests/in-root.sh" "{root}" /usr/bin/python{text} "$@"\n')
            script.chmod(0o755)
            atexit.register(script.unlink)
            found.append(Interpreter(str(script), f"{text}-root", version, str(root)))
    return found, missing


def in_roots():
    return ([], []) if os.environ.get("PYTHONS") else root_trees()


# One version for each way in which frames are chained. Debian's own interpreter stands for its version.
KINDS = [(3, 8), (3, 11), (3, 13), (3, 14)]


# ---- marks, helpers and parameters ----


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """A worker of pytest-xdist has ended, and says how often it compared."""
    chance.compared += getattr(node, "workeroutput", {}).get("compared", 0)


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["compared"] = chance.compared
    elif chance.compared * chance.PART > chance.IN_A_RUN:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    if chance.compared:
        terminalreporter.write_line(f"{chance.compared} comparisons with what is true by chance; one fails though nothing is wrong in "
                                    f"fewer than {chance.compared * chance.PART:.1e} of such runs (at most {chance.IN_A_RUN})")


def pytest_configure(config):
    # Fixtures of all files, too, that lie beside what they hand out. These helpers read conftest, so they are loaded after it.
    for helper in ("page_user", "perf_readers", "releases"):
        config.pluginmanager.import_plugin(helper)


def one_of_each_kind(found):
    chosen = {}
    for python in found:
        if python.version in KINDS and (python.version not in chosen or python.name.endswith("debian")):
            chosen[python.version] = python
    return list(chosen.values())


WITH_TASKS = (3, 12)  # the first version whose tasks are read


def pythons_with_tasks():
    """
    Interpreters whose tasks are read, and (name, reason) of those that aren't to be had. Where PYTHONS names none that has
    tasks, the newest of KINDS that is installed stands for them: sanitizers are to see what reads tasks, too.
    """
    found, missing = in_roots()
    found = [i for i in interpreters() + found if i.version >= WITH_TASKS]
    if not found and os.environ.get("PYTHONS"):
        others = [i for i in installed() + root_trees()[0] if WITH_TASKS <= i.version <= KINDS[-1]]
        found = sorted(others, key=lambda i: i.version)[-1:]
    return found, missing


def later(*values, **keywords):
    """pytest.param() of what is for make check-long: the other values show the same of the code."""
    return pytest.param(*values, marks=pytest.mark.long, **keywords)


# Of the interpreters that tests/released.sh fetches those of every run: the newest of each make.
RELEASED = ("pbs-3.14.6", "manylinux-3.14t", "manylinux-3.15t")


def released(wanted=".*", in_every_run=RELEASED):
    """Parameters: the commands of those that are there and have such a name, for make check-long but for those of every run."""
    found = {path.parents[1].name: path for path in sorted(CACHE.glob("released/*/bin/python3.*"))
             if re.fullmatch(r"python3\.\d+t?", path.name) and (path.parents[1] / ".complete").exists()}
    return [*((pytest.param if name in in_every_run else later)(str(path), id=name) for name, path in found.items()
              if re.fullmatch(wanted, name)),
            *(pytest.param(None, marks=pytest.mark.skip(f"not there: see tests/released.sh {name}"), id=name)
              for name in in_every_run if name not in found)]


def pytest_generate_tests(metafunc):
    """
    A test with the argument `python` runs once for each interpreter when it is marked every_python, or with
    EVERY_PYTHON=1 in the environment; else with one of each kind. PYTHONS names them all. For make check-long are those that
    are neither of the oldest nor of the newest kind, where a test is not marked each_kind, and with every_python(kinds=True)
    those that are not of KINDS. One with the argument `with_tasks` runs once for each interpreter whose tasks are read.
    """
    if "with_tasks" in metafunc.fixturenames:
        found, missing = pythons_with_tasks()
        metafunc.parametrize("with_tasks", [
            *(pytest.param(i, id=i.name) for i in found),
            *(pytest.param(None, marks=pytest.mark.skip(why), id=name) for name, why in missing)])
    if "python" in metafunc.fixturenames:
        found, missing = in_roots()
        found = interpreters() + found
        every = os.environ.get("PYTHONS") or os.environ.get("EVERY_PYTHON")
        between, marker = (), metafunc.definition.get_closest_marker("every_python")
        if not every and marker and marker.kwargs.get("kinds"):
            between = [i for i in found if i not in one_of_each_kind(found)]
        elif not every and not marker:
            found = one_of_each_kind(found) or found
            missing = [(name, why) for name, why in missing if tuple(map(int, name.split("-")[0].split("."))) in KINDS]
            if not metafunc.definition.get_closest_marker("each_kind"):
                between = found[1:-1]
        skipped = [pytest.param(None, marks=pytest.mark.skip(why), id=name) for name, why in missing]
        if not found and not skipped:
            skipped = [pytest.param(None, marks=pytest.mark.skip("no interpreter to record"), id="none")]
        metafunc.parametrize("python", [(later if i in between else pytest.param)(i, id=i.name) for i in found] + skipped)


# ---- what a test needs ----


@functools.lru_cache(maxsize=None)
def why_no_bpf():
    """Why pycap cannot record here, or None."""
    if not os.access(PYCAP, os.X_OK):
        return f"{PYCAP} is not built"
    info = subprocess.run([PYCAP, "info"], capture_output=True, text=True, timeout=60, check=False)
    answer = re.search(r"^sampling +(.*)", info.stdout, re.M)
    # A pycap that breaks is no reason to skip.
    assert answer and info.returncode == 0, f"pycap info failed: {info.stderr}"
    return None if answer[1] == "yes" else "pycap cannot record here: " + answer[1]


PYTHON = "/usr/bin/python3"  # of tests that are not about interpreters
# A program that works on and on, and leaves most of a CPU to others.
WORKS = "import time\nwhile True:\n    sum(range(100000))\n    time.sleep(0.01)"


@pytest.fixture
def place():
    """A folder that every user reaches and writes into."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="pycap-test-", dir="/tmp"))
    os.chmod(path, 0o777)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def needs_bpf():
    why = why_no_bpf()
    if why:
        pytest.skip(why)
    if not os.access(PYTHON, os.X_OK):
        pytest.skip(f"no {PYTHON}")


@pytest.fixture
def needs_namespaces():
    """Not without root, and not in a tree entered by chroot, where mounts have no root to begin at."""
    try:
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"], capture_output=True, text=True,
                              timeout=60, check=False)
    except OSError as error:
        pytest.skip(f"no unshare: {error}")
    if done.returncode:
        pytest.skip("no namespaces of its own here: " + done.stderr.strip())


# ---- pysym, and traces that are made up ----


@pytest.fixture
def pysym(request):
    """Runs pysym; returns the CompletedProcess. Keywords go to subprocess.run."""
    python = request.node.callspec.params.get("python") if hasattr(request.node, "callspec") else None
    roots = ["--sysroot", python.root] if python and python.root else []

    def run(*arguments, **keywords):
        arguments = [*arguments, *roots]
        keywords = {"capture_output": True, "text": True, "timeout": 300, **keywords}
        return subprocess.run([PYSYM, *map(str, arguments)], check=False, **keywords)
    return run


@pytest.fixture
def make(tmp_path):
    """Writes a trace, made1.bin and so on unless it is named; keywords are make_trace's settings."""
    if not os.access(MAKE_TRACE, os.X_OK):
        pytest.skip(f"{MAKE_TRACE} is not built")
    count = 0

    def run(name=None, **settings):
        nonlocal count
        count += 1
        path = tmp_path / (name or f"made{count}.bin")
        subprocess.run([MAKE_TRACE, path, *(f"{k}={v}" for k, v in settings.items())], check=True)
        return path
    return run


@pytest.fixture
def pprof(tmp_path):
    """Runs pysym -o with pprof's format; returns the profile, as profile_readers reads it."""
    def run(*arguments, **keywords):
        done = subprocess.run([PYSYM, *map(str, arguments), "-o", tmp_path / "out.pb.gz"], capture_output=True, text=True,
                              check=False, timeout=300, **keywords)
        assert done.returncode == 0, done.stderr
        return profile_readers.pprof(tmp_path / "out.pb.gz")
    return run


# ---- pycap, and what it records ----


def record_behind_gate(pysym, folder, options, *command, known_by=(), before=()):
    """Records a program of which the last argument is a file: its work begins when that is there, which is when the trace
    shows that its Python functions are known; `known_by`: options of pysym that choose samples. Until then it runs warm().
    `before`: what stands before pycap, as setpriv. The trace, what it printed, what pycap said."""
    trace, gate, deadline = folder / "t.bin", folder / "gate", time.monotonic() + 300
    with subprocess.Popen([*before, PYCAP, "record", "-o", trace, *options, "--", *map(str, command), gate],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
        while recorder.poll() is None and "warm" not in pysym(trace, "--format", "folded", "--python-only", *known_by).stdout:
            if time.monotonic() > deadline:
                recorder.kill()
            time.sleep(0.1)
        gate.touch()
        told, said = recorder.communicate(timeout=300)
    assert recorder.returncode == 0, said
    return trace, told, said


def cpu_seconds(pid):
    """What a process has used of CPUs."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


NO_CAPABILITIES = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]


def unprivileged():
    """What to put before a command so that it has no capability: nothing when there is none already."""
    if os.geteuid():
        return []
    if not shutil.which("setpriv"):
        pytest.skip("dropping privilege needs setpriv")
    return NO_CAPABILITIES


def record_until_slower(*command):
    """Records a program that ends when its input does, which is once pycap has said that it samples less from here on; what pycap said."""
    with subprocess.Popen([PYCAP, "record", *map(str, command)], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
        said = ""
        while " from here on" not in said and (line := recorder.stderr.readline()):
            said += line
        recorder.stdin.close()
        said += recorder.stderr.read()
    assert recorder.returncode == 0, said
    return said


@pytest.fixture
def pycap():
    """Runs pycap; returns the CompletedProcess. What a recording says at its end has to be what is in its file."""
    def run(*arguments, **keywords):
        keywords = {"capture_output": True, "text": True, "timeout": 300, **keywords}
        done = subprocess.run([PYCAP, *map(str, arguments)], check=False, **keywords)
        if arguments[:1] == ("record",) and done.returncode == 0 and isinstance(done.stderr, str):
            end_counts.compare(PYSYM, done.stderr, keywords.get("cwd"))
        return done
    return run


@pytest.fixture
def record(pycap, tmp_path):
    """Records a command and returns the trace's path; the test is skipped where BPF isn't allowed."""
    why = why_no_bpf()
    if why:
        pytest.skip(why)
    count = 0

    def run(*command, options=("-F", "199"), **keywords):
        nonlocal count
        count += 1
        trace = tmp_path / f"trace{count}.bin"
        done = pycap("record", "-o", trace, *options, "--", *map(str, command), **keywords)
        assert done.returncode == 0, done.stderr
        return trace
    return run


@pytest.fixture
def folded(pysym):
    """Symbolizes a trace; returns [(frames, count)], frames outermost first, comm-pid left out.

    A busy machine may make the rate step down. Then counts are weights, in a unit that makes the sum of the whole trace
    as many equal samples as tell as much, whatever the options leave of it."""
    def run(trace, *options):
        done = pysym(trace, "--format", "folded", *options)
        assert done.returncode in (0, 3), done.stderr
        weights = [s.weight for s in accounts.read(PYSYM, trace).samples]
        scale = 1
        if len(set(weights)) > 1:
            own_ns = 1000
            if "counts are microseconds" not in done.stderr:  # what is left of the trace has one weight
                events = json.loads(pysym(trace, "--format", "top", "--json", *options).stdout)["events"]
                own_ns = events[0]["weight_ns"] / events[0]["samples"] if events else 0
            scale = own_ns * sum(weights) / sum(w * w for w in weights)
        rows = []
        for line in done.stdout.splitlines():
            stack, count = line.rsplit(" ", 1)
            rows.append((stack.split(";")[1:], int(count) * scale))
        return rows
    return run


# ---- Chromium ----


@pytest.fixture(scope="module")
def browser():
    """Chromium, one for all tests of a file."""
    if not driver.chromium():
        pytest.skip("no chromium on this machine")
    if "asan" in PYSYM:
        pytest.skip("a browser finds in a sanitized pysym's pages what it finds in others: they are the same, byte for byte")
    with driver.Browser() as started:
        yield started


@pytest.fixture
def tab(browser):
    """A tab of its own for each test, which fails for whatever is wrong with what the page says or asks for."""
    with browser.page() as page:
        yield page
        assert page.take_faults() == []
