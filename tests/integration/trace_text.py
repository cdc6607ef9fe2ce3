# SPDX-License-Identifier: Apache-2.0
"""The samples and the records of a trace, read from pysym's perf-script and dump."""
import collections
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYSYM = os.environ.get("PYSYM", str(ROOT / "build/pysym"))

ScriptSample = collections.namedtuple("ScriptSample", "event tid value functions")


def script_samples(text):
    """The samples of perf-script's output; `functions` are Python's, innermost first."""
    for block in text.split("\n\n"):
        head = re.search(r"^.* \d+/(\d+) .*: +(\d+) (\S+): $", block, re.M)
        if head:
            functions = re.findall(r"^\t *[0-9a-f]+ py::([^:]+):", block, re.M)
            yield ScriptSample(head[3], int(head[1]), int(head[2]), functions)


def samples_of(pysym, trace, *options):
    """Every sample, as perf-script has it."""
    done = pysym(trace, "--format", "perf-script", *options)
    assert done.returncode in (0, 3), done.stderr
    return list(script_samples(done.stdout))


def dump(trace):
    """Records of the trace: [(name, {field: value})], numbers as such."""
    text = subprocess.run([PYSYM, "--format", "dump", trace], capture_output=True, text=True, timeout=300, check=False).stdout
    records = []
    for line in text.splitlines():
        if not line.startswith(" "):
            name, *fields = line.split()
            records.append((name, {k: int(v) if v.isdigit() else v for k, _, v in (f.partition("=") for f in fields)}))
    return records
