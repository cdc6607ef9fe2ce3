# SPDX-License-Identifier: Apache-2.0
"""pytest --pycap: records the session with pycap and names the trace in the report. pytest-xdist's workers are in it, too.

pycap record -- pytest: each test that passed is a unit of work, so that a session with more tests is not a slower one.
"""
import contextlib
import os
import shlex

from . import recorder


def pytest_addoption(parser):
    group = parser.getgroup("pycap")
    # No optional value: the word behind it may be a file of tests.
    group.addoption("--pycap", action="store_true", help="record the session with pycap")
    group.addoption("--pycap-output", metavar="FILE", default="pytest.bin", help="with --pycap: the file to write (pytest.bin)")


class Recording:
    def __init__(self, path):
        self.path, self.error, self.stack = path, None, contextlib.ExitStack()

    def pytest_sessionstart(self):
        try:
            self.stack.enter_context(recorder(self.path))
        except (OSError, RuntimeError) as error:
            self.error = error

    def pytest_sessionfinish(self):
        try:
            self.stack.close()
        except RuntimeError as error:
            self.error = error

    def pytest_terminal_summary(self, terminalreporter):
        terminalreporter.section("pycap")
        if self.error:
            terminalreporter.line(f"The session was not recorded: {self.error}")
        else:
            terminalreporter.line(f"The session is in {self.path}: pysym {shlex.quote(self.path)} shows where its time went.")


def pytest_terminal_summary(terminalreporter, config):
    note = os.environ.get("PYCAP_NOTE")
    if note and not hasattr(config, "workerinput"):  # xdist: the workers have reports, too
        with open(note, "a", encoding="ascii") as file:
            print(f"work={len(terminalreporter.getreports('passed'))}", file=file)


def pytest_configure(config):
    if config.getoption("--pycap") and not hasattr(config, "workerinput"):  # xdist: the controller records
        config.pluginmanager.register(Recording(os.path.abspath(config.getoption("--pycap-output"))), "pycap-recording")
