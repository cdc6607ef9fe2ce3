# SPDX-License-Identifier: Apache-2.0
"""Waiting asyncio tasks, read from outside, are what asyncio itself says of them.

In a program that has stopped itself, and in programs that run on meanwhile.
"""
import contextlib
import json
import pathlib
import re
import subprocess

import pytest

from conftest import PYSYM, ROOT
from known_tasks import Stopped, is_shown

pytestmark = pytest.mark.live

PROGRAMS = ROOT / "testdata/programs"
READ_TASKS = pathlib.Path(PYSYM).parent / "tools/read_tasks"
# CPU time of a look at 10,000 tasks: 1 % of a core at a look each 1.5 s. Of a busy machine five times as much is taken.
MOST_US = 15000
FACTOR = 5


class Look:
    """What read_tasks says of a process: `tasks` by address, and its closing line."""

    def __init__(self, pid, looks=1):
        done = subprocess.run([READ_TASKS, str(pid), str(looks)], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        *tasks, self.end = map(json.loads, done.stdout.splitlines())
        self.tasks = {task["address"]: task for task in tasks}
        assert len(self.tasks) == len(tasks), "a task is there twice"


@pytest.fixture(scope="module")
def stopped():
    """Programs that have stopped, by interpreter and by where they did: each is started once."""
    with contextlib.ExitStack() as stack:
        started = {}

        def get(python, where):
            if (python, where) not in started:
                started[python, where] = stack.enter_context(Stopped(python, where))
            return started[python, where]
        yield get


@pytest.mark.smoke("3.14", "task")
@pytest.mark.parametrize("where", ["task", "callback", "thread"])
def test_tasks_are_what_asyncio_says(with_tasks, where, stopped):
    truth = stopped(with_tasks, where)
    look = Look(truth.process.pid)
    assert (look.end["unread"], look.end["changed"]) == (0, 0)
    assert set(look.tasks) == set(truth.tasks)
    assert len(truth.tasks) > 35
    for address, told in truth.tasks.items():
        task = look.tasks[address]
        assert is_shown(task["name"], told["name"]) and task["state"] == told["state"], (task, told)
        assert task["awaits"] == told["waits_for"], told["name"]
        if told["state"] != "running":
            assert [tuple(f) for f in task["frames"]] == [(name, at) for _, name, _, at in reversed(told["frames"])], told["name"]
        awaiters = truth.awaiters(told)
        assert task["awaiters"] == len(awaiters), told["name"]
        assert (task["awaiter"] in awaiters) if awaiters else task["awaiter"] is None, told["name"]


def test_the_program_shows_what_asyncio_shows(with_tasks, stopped):
    """The truth itself: what the program says by attributes is what asyncio.graph says, as far as that goes; and there is
    a task for everything that a stack may be made of."""
    truth = stopped(with_tasks, "thread")
    graphs = 0
    for task in truth.all.values():
        if task["graph"] is not None and task["state"] != "running":
            lines = [line for _, _, line, _ in task["frames"]]
            assert task["graph"] == lines[:len(task["graph"])] and task["graph"]
            graphs += task["graph"] == lines
    assert graphs > 15 or with_tasks.version < (3, 14)
    names = {name for task in truth.all.values() for name, _, _, _ in task["frames"]}
    assert names >= {"deep", "generated", "__await__", "items", "managed", "locks", "of_thread", "awaits_future"}


def look_at_many(python):
    """10,000 tasks are all found."""
    with Stopped(python, "thread", 10000) as truth:
        look = Look(truth.process.pid, 5)
    assert set(look.tasks) == set(truth.tasks) and not look.end["unread"]
    frames = {tuple(map(tuple, t["frames"])) for t in look.tasks.values() if t["name"].startswith("sleeper ")}
    assert len(frames) == 1
    return look


def test_many_tasks(with_tasks):
    look_at_many(with_tasks)


@pytest.mark.long
@pytest.mark.alone
def test_many_tasks_take_no_longer_than_they_may(with_tasks):
    look = look_at_many(with_tasks)
    assert look.end["cpu_us"] < FACTOR * MOST_US, look.end


def test_tasks_that_run_on(with_tasks):
    """Nothing is stopped: each task that is read has a stack that it can have, and one that changed meanwhile is counted."""
    with subprocess.Popen([with_tasks.path, PROGRAMS / "many_tasks.py", "2000", "5", "60", "20000"], stdout=subprocess.PIPE,
                          text=True) as program:
        try:
            assert program.stdout.readline() == "waiting\n"
            looks = []
            for i in range(200):  # until four had a CPU for as long as they wanted one
                looks.append(Look(program.pid, i % 4 + 1))
                if sum(len(look.tasks) - look.end["changed"] > 1000 for look in looks) >= 4:
                    break
        finally:
            program.kill()
    possible = re.compile(r"(Event\.wait,)?(nested,){5}")
    read = 0
    for look in looks:
        changed = {address for address, task in look.tasks.items() if task["state"] == "changed"}
        assert len(look.tasks) + look.end["unread"] <= 2001 and len(changed) == look.end["changed"]
        for task in (task for address, task in look.tasks.items() if address not in changed):
            functions = "".join(name + "," for name, _ in task["frames"])
            if "nested" in functions or task["state"] == "future":
                # Of a task that runs, on a CPU or until it has one again, the coroutines that run await nothing.
                runs = task["state"] == "running" and re.fullmatch("(nested,){1,5}", functions)
                assert runs or possible.fullmatch(functions) or functions in ("sleep,main,", "main,"), (task["state"], functions)
            read += bool(possible.fullmatch(functions))
    assert read > 4 * 2000 * 0.5, [look.end for look in looks]
