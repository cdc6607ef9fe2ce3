# SPDX-License-Identifier: Apache-2.0
"""A program that tells of its asyncio tasks (testdata/programs/known_tasks.py) and stops itself, so that others look at them."""
import json
import os
import subprocess

from conftest import ROOT

NAME_LEAST = 200  # characters of a name that are shown


class Stopped:
    """known_tasks.py, stopped at the point where it has told of its tasks."""

    def __init__(self, python, *arguments):
        self.process = subprocess.Popen([python.path, ROOT / "testdata/programs/known_tasks.py", *map(str, arguments)],
                                        stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        told = json.loads(self.process.stdout.readline())
        self.futures = {int(address): by for address, by in told["futures"].items()}
        self.all = {task["id"]: task for task in told["tasks"]}
        # A task in Python is an object like any other: the interpreter does not know it as a task.
        self.tasks = {address: task for address, task in self.all.items() if not task["by_python"]}
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def awaiters(self, task):
        """Addresses of the tasks that wait for this one, also by a future such as that of gather()."""
        if task["awaited_by"] is None:
            return {other["id"] for other in self.tasks.values() if task["id"] in other["tasks"]}
        found, left = set(), list(task["awaited_by"])
        while left:
            one = left.pop()
            if one in self.futures:
                left += self.futures[one]
            else:
                found.add(one)
        return found


def is_shown(name, told):
    """A long name is cut."""
    return name == told or (len(name) > NAME_LEAST and name[-1] == "\u2026" and told.startswith(name[:-1]))
