# SPDX-License-Identifier: Apache-2.0
"""Runs `pysym push`, and says what a store has to hold then.

    Pusher(folder, store)           with a state file and a status file in the folder
        .run(*arguments)            to its end; returns the CompletedProcess
        .start(*arguments)          goes on; returns a Running, which .stop(), .kill() and .wait() end
        .end()                      ends what still goes on
        .figures()                  of --status: {(name, value of the label or None): figure}

    expected(trace, *options)       a profile of pysym's own, in the form of profile_store.Stored.profile
"""
import os
import re
import signal
import subprocess
import time
import types

import profile_readers
from conftest import PYSYM
from profile_store import stacks


class Running:
    def __init__(self, command, environment):
        self.errors = None
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment,
                                        start_new_session=True)

    def wait(self, seconds=300):
        """Its exit code."""
        _, self.errors = self.process.communicate(timeout=seconds)
        return self.process.returncode

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self):
        """The sender alone, as the kernel would; what it has forked has to end by itself."""
        self.process.kill()
        return self.wait()

    def family(self):
        """The processes of its session that live."""
        found = []
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit() and os.getsid(int(entry)) == self.process.pid:
                    found.append(int(entry))
            except ProcessLookupError:
                pass
        return found


class Pusher:
    def __init__(self, folder, store):
        self.store, self.state, self.status = store, folder / "push.state", folder / "push.prom"
        self.started = []

    def command(self, *arguments):
        return [str(a) for a in (PYSYM, "push", f"--{self.store.kind}", self.store.url, "--state", self.state, "--status", self.status,
                                 *arguments)]

    def run(self, *arguments, environment=None):
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=300, check=False,
                              env={**os.environ, **(environment or {})})

    def start(self, *arguments, environment=None):
        self.started.append(Running(self.command(*arguments), {**os.environ, **(environment or {})}))
        return self.started[-1]

    def end(self):
        """Ends what a test that failed has left."""
        for running in self.started:
            if running.process.poll() is None:
                running.kill()

    def figures(self):
        found = {}
        for line in self.status.read_text().splitlines():
            if not line.startswith("#"):
                name, value, figure = re.fullmatch(r'(\w+)(?:\{\w+="((?:[^"\\]|\\.)*)"\})? (\S+)', line).groups()
                found[name, value] = float(figure)
        return found


def expected(trace, folder, *options):
    """What pysym itself writes of the samples of a trace. Names have whole paths: what is shortened depends on the rest."""
    out = folder / "expected.pb.gz"
    done = subprocess.run([PYSYM, str(trace), "--full-filenames", "-o", str(out), *options], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return profile_readers.pprof(out)


def stacks_of(profile, kind, key=lambda sample: ()):
    return stacks([types.SimpleNamespace(profile=profile)], kind, lambda _, sample: key(sample))


def good(done, code=0):
    """What a push that ended so said."""
    assert done.returncode == code, done.stderr
    return done.stderr


def refused(push):
    """Profiles that the store refused, by the reason."""
    return {value: figure for (name, value), figure in push.figures().items() if name == "pysym_push_refused_profiles_total" and figure}


def until(condition, seconds=120):
    """Waits for what nothing announces."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
