# SPDX-License-Identifier: Apache-2.0
"""What pysym wrote: whether it ended well, and what its text formats add up to."""
import collections
import json
import re

from conftest import formats

# Those that every trace has something for, and that are written to standard output; test_unwind_check.py and
# test_perf_files.py have the others.
FORMATS = [name for name in formats() if name not in ("unwind-check", "perf-data")]


def good(done, status=0):
    """The output of a command that ended so."""
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done.stdout


def total_of_folded(text):
    return sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines())


def weights_of_speedscope(text):
    """By thread."""
    data = json.loads(text)
    assert data["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    out = collections.Counter()
    for profile in data["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        tid = int(re.search(r"(\d+)\D*$", profile["name"])[1])
        out[tid] += sum(profile["weights"])
    return out


def weights_of_folded(text):
    """By thread."""
    out = collections.Counter()
    for line in text.splitlines():
        stack, count = line.rsplit(" ", 1)
        out[int(stack.split(";")[1].rsplit("-", 1)[1])] += int(count)
    return out


def weights_of_perf_script(text):
    """By thread."""
    out = collections.Counter()
    for match in re.finditer(r"^\S+ +(\d+)/(\d+) +\[\d+\] +[\d.]+: +(\d+) \S+: *$", text, re.M):
        out[int(match[2])] += int(match[3])
    return out
