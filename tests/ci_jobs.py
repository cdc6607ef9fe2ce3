#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the steps of the jobs in docs/ci.md, as GitHub's and GitLab's runners would, in a small project: on the main branch, with a
change that makes nothing slower, and with one that does, which has to fail the job.

usage: ci_jobs.py FOLDER_OF_THE_WHEEL PIP
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[1]
TEST = """import time

def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

def test_it():
    work({seconds})
"""


def blocks():
    return [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/ci.md").read_text(), re.S)]


def holds(condition, main):
    """Whether a step's `if` holds; only what the page uses."""
    if condition in (None, "always()"):
        return True
    found = re.fullmatch(r"github\.ref (==|!=) 'refs/heads/main'", condition)
    return (found[1] == "==") == main


def github(job, main):
    return [step["run"] for step in job["jobs"]["profile"]["steps"] if "run" in step and holds(step.get("if"), main)]


def gitlab(job, _main):
    return job["profile"]["script"]


def run(steps, folder, environment):
    """The exit code of the first step that fails, else 0."""
    for step in steps:
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", step], cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.returncode, f"$ {step}\n{done.stdout}{done.stderr}"
    return 0, ""


def try_job(name, steps_of, job, wheels, pip):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        venv = folder / "venv"
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", "--system-site-packages", venv], check=True)
        (venv / "bin/pip").write_text(f'#!/bin/sh\nexec {venv}/bin/python {pip}/pip "$@"\n')
        (venv / "bin/pip").chmod(0o755)
        # Debian's pytest has its command in /usr/bin, with another Python's path.
        (venv / "bin/pytest").write_text(f'#!/bin/sh\nexec {venv}/bin/python -m pytest "$@"\n')
        (venv / "bin/pytest").chmod(0o755)
        project = folder / "project"
        project.mkdir()
        (project / "requirements.txt").write_text("")
        for what, seconds, main, expected in (("main branch", 0.2, True, 0), ("no change", 0.2, False, 0), ("twice as slow", 0.5, False, 4)):
            (project / "test_it.py").write_text(TEST.format(seconds=seconds))
            environment = {"PATH": f"{venv}/bin:/usr/bin:/bin", "HOME": str(folder), "CI_DEFAULT_BRANCH": "main", "PIP_NO_INDEX": "1",
                           "PIP_FIND_LINKS": str(wheels), "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONDONTWRITEBYTECODE": "1",
                           "CI_COMMIT_BRANCH": "main" if main else "change"}
            code, said = run(steps_of(job, main), project, environment)
            if code != expected:
                sys.exit(f"{name}, {what}: exit code {code}, not {expected}\n{said}")
        kept = {path.name for path in project.iterdir()}
        assert {"run-1.bin", "run-5.bin", "main.pyb", "profile.html"} <= kept, kept


def main(wheels, pip):
    for name, steps_of, job in zip(("GitHub", "GitLab"), (github, gitlab), blocks()):
        try_job(name, steps_of, job, os.path.abspath(wheels), os.path.abspath(pip))


main(*sys.argv[1:])
