# SPDX-License-Identifier: Apache-2.0
"""
How pytest runs all tests: those in C as tests of its own, each live test under the mark `live`, and the files of a run by
several workers, the longest first.

A test of tests/unit or tests/toolchain is `TEST(name)` in a file of C, which is a program in BUILD/tests (BUILD: build unless
the environment says otherwise). A program runs once for all of its tests that are chosen.
"""
import collections
import functools
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / os.environ.get("BUILD", "build")
CACHE = pathlib.Path(os.environ.get("PYCAP_TEST_CACHE") or
                     os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "pycap-tests"))
PROGRAM_SECONDS = 300  # what a program in C may take
# Each worker of each run reads all test files; pytest keeps what it makes of them, which takes it five seconds, here.
sys.dont_write_bytecode, sys.pycache_prefix = False, str(ROOT / "build/tests/pycache")


def pytest_configure(config):
    config.addinivalue_line("markers", "live: records a program with the kernel of this machine; set where a fixture records")
    config.addinivalue_line("markers", "c: a test in C; set for each")
    config.addinivalue_line("markers", "smoke: the live test of a capability that `make check` has, with one interpreter")
    config.addinivalue_line("markers", "load: a smoke test that sanitizers have, too; smoke(load=True) sets it")
    config.addinivalue_line("markers", "every_python: runs with every interpreter, not only one of each kind")
    config.addinivalue_line("markers", "each_kind: runs with one of each kind of interpreters, not only with the oldest and the newest")
    config.addinivalue_line("markers", "alone: keeps the machine busy, or measures how busy it is; runs when all others have ended")
    config.addinivalue_line("markers", "sanitized: in every run sanitizers have it, too, with the tests in C; the others are for make check-long")
    config.addinivalue_line("markers", "unsanitized: judges no code of ours in C, or what a sanitizer takes of memory and time; "
                                       "never run under sanitizers")
    config.addinivalue_line("markers", "long: too long for every run; make check-long runs it")


# ---- tests in C ----

def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".c" and file_path.name.startswith("test_") and file_path.parent.name in ("unit", "toolchain"):
        return CFile.from_parent(parent, path=file_path)
    return None


class CFile(pytest.File):
    def collect(self):
        for name in re.findall(r"^TEST(?:_WITH)?\((\w+)", self.path.read_text(), re.M):
            yield CTest.from_parent(self, name=f"test_{name}")

    @functools.cached_property
    def done(self):
        """What the program said of its tests that were chosen: its log, its exit code, a verdict for each name."""
        chosen = [item.name for item in self.session.items if item.parent is self]
        every = sum(1 for _ in self.collect()) == len(chosen)
        log, code = "", 0
        plain = {name: value for name, value in os.environ.items() if name != "PYCAP_SANDBOX_KILL"}  # set for the programs
        for pattern in [None] if every else chosen:
            environment = {**plain, **({"CMOCKA_TEST": pattern} if pattern else {})}
            try:
                run = subprocess.run([BUILD / "tests" / self.path.stem], env=environment, stdin=subprocess.DEVNULL, cwd=ROOT,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PROGRAM_SECONDS, check=False)
                log, code = log + run.stdout.decode(errors="replace"), code or run.returncode
            except subprocess.TimeoutExpired as late:
                log, code = log + (late.stdout or b"").decode(errors="replace") + f"\nstopped after {PROGRAM_SECONDS} s\n", 124
        # What a macro of the file registers is not seen here, and would be left out without a word.
        unseen = set(re.findall(r"^\[ RUN +\] (\w+)$", log, re.M)) - {item.name for item in self.collect()}
        if unseen:
            log, code = log + f"\nwrite TEST(...) at the beginning of a line for {', '.join(sorted(unseen))}\n", code or 1
        verdicts = {name: verdict for verdict, name in re.findall(r"^\[ +(OK|FAILED|SKIPPED) +\] (\w+)$", log, re.M)}
        return collections.namedtuple("Done", "log code verdicts")(log, code, verdicts)


class CTest(pytest.Item):
    def runtest(self):
        done = self.parent.done
        verdict = done.verdicts.get(self.name)
        failed_elsewhere = any(v == "FAILED" for v in done.verdicts.values())
        if verdict == "SKIPPED":
            before = done.log.split(f"[  SKIPPED ] {self.name}\n")[0].rstrip().splitlines()
            why = before[-1] if before and not before[-1].startswith("[") else "it cannot run here; a comment at its skip() says why"
            pytest.skip(why)
        if verdict != "OK" or (done.code and not failed_elsewhere):
            raise ProgramFailed(f"{self.path.stem}'s exit code is {done.code}; it says:\n{done.log[-20000:]}")

    def repr_failure(self, excinfo, style=None):
        return str(excinfo.value) if isinstance(excinfo.value, ProgramFailed) else super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, self.name


class ProgramFailed(Exception):
    pass


# ---- which tests a run has ----

RECORDING = {"needs_bpf", "record", "record_proc"}  # a fixture that is one of these, or uses one, makes a test live
DEBIAN_PYTHON = "/usr/bin/python3"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if isinstance(item, CTest):
            item.add_marker("c")
        if RECORDING & set(getattr(item, "fixturenames", ())):
            item.add_marker("live")
        marker = item.get_closest_marker("smoke")
        if marker and not is_meant(item, marker.args):
            item.own_markers = [m for m in item.own_markers if m.name != "smoke"]
        elif marker:
            item.own_markers = [m for m in item.own_markers if m.name != "long"]  # Debian's Python is neither the oldest nor the newest
            if marker.kwargs.get("load"):
                item.add_marker("load")


def is_meant(item, words):
    """smoke("fork"): of a test with parameters, those whose names have these words; and of interpreters Debian's."""
    if not hasattr(item, "callspec"):
        return True
    if "python" in item.callspec.params:
        python = item.callspec.params["python"]
        if not python or os.path.realpath(python.path) != os.path.realpath(DEBIAN_PYTHON):
            return False
    return set(words) <= set(item.callspec.id.split("-"))


# ---- who runs what ----

SECONDS = CACHE / "seconds.json"  # how long each file took when it last ran


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadFileScheduling

    class LongestFirst(LoadFileScheduling):
        """A file runs in one worker, which keeps its fixtures; the longest begin first, so that all workers end together."""

        def _assign_work_unit(self, node):
            if not self.sorted:
                known = seconds_known()
                queue = sorted(self.workqueue.items(), key=lambda unit: known.get(unit[0], len(unit[1])), reverse=True)
                self.workqueue, self.sorted = collections.OrderedDict(queue), True
            super()._assign_work_unit(node)

        sorted = False

    return LongestFirst(config, log)


def seconds_known():
    try:
        return json.loads(SECONDS.read_text())
    except (OSError, ValueError):
        return {}


SPENT = collections.Counter()


def pytest_runtest_logreport(report):
    SPENT[report.nodeid.split("::")[0]] += report.duration


def pytest_sessionfinish(session):
    if not hasattr(session.config, "workerinput") and SPENT:
        known = {**seconds_known(), **{name: round(spent, 1) for name, spent in SPENT.items()}}
        CACHE.mkdir(parents=True, exist_ok=True)
        SECONDS.write_text(json.dumps(known, indent=0, sort_keys=True))
