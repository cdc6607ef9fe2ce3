# SPDX-License-Identifier: Apache-2.0
"""No text that pycap and pysym print holds a command of a CI runner, whatever functions, files and threads are called."""
import json
import pathlib
import random
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from conftest import PYCAP, PYSYM
from pysym_output import FORMATS, good

sys.path.append(str(pathlib.Path(__file__).parents[1] / "hostile"))
import craft

NAMES = [b"::stop-commands::x", b"##vso[task.setvariable variable=PATH]/evil", b"##[error]forged", b"  ::add-mask::e",
         b"##teamcity[buildProblem]", b"##VSO[x]", "\u3000::debug::".encode(), "##\ufe0fvso[y]".encode(), b"##", b"[x", b"a##", b":",
         b":x::y", b"#", b"app.run"]
# As the runners' own sources and manuals have it; what .NET ignores in text is ignored here, too.
IGNORED = re.compile("[\u034f\ufe00-\ufe0f]")
COMMAND = re.compile(r"##(?:vso|teamcity)?\[|^\s*::", re.M | re.I)


def commands(text):
    return COMMAND.findall(IGNORED.sub("", re.sub(r"\x1b\[[0-9;]*m", "", text)))


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("names") / "names.bin"
    path.write_bytes(craft.calls_by_name(NAMES))
    return path


def test_the_judge():
    assert all(commands(name.decode()) for name in NAMES[:8]) and not any(commands(name.decode()) for name in NAMES[8:])


@pytest.mark.parametrize("form", [form for form in FORMATS if form not in ("pprof", "html")])
@pytest.mark.parametrize("options", [(), ("--json",), ("--merge", "all"), ("--merge", "thread"), ("--full-paths",)], ids=" ".join)
def test_formats(trace, pysym, form, options):
    done = pysym(trace, "-f", form, *options)
    if done.returncode == 2:
        pytest.skip(f"{form} does not have {' '.join(options)}")
    out = good(done)
    assert not commands(out) and not commands(done.stderr), out
    if form in ("gil", "summary"):
        return  # not all names are there
    if form in ("speedscope", "firefox") or "--json" in options:
        # Programs read the names as they are.
        assert "##vso[task.setvariable" in json.dumps(json.loads(out))
    elif form == "ndjson":
        assert any("##vso[task.setvariable" in json.dumps(json.loads(line)) for line in out.splitlines())
    elif form == "svg":
        assert any("##vso[task.setvariable" in (e.text or "") for e in ET.fromstring(out).iter())
    elif form != "threads":
        assert r"##vso\x5btask.setvariable" in out


def test_the_first_page_and_messages(trace, pysym, tmp_path):
    for done in (pysym(trace), pysym(trace, "--process", "##vso[x]"), pysym(tmp_path / "##vso[x]"), pysym(trace, "-f", "##[x]"),
                 pysym("annotate", "::stop-commands::x", trace), pysym(trace, "-f", "top", "-o", tmp_path / "##[x]" / "y")):
        assert not commands(done.stdout) and not commands(done.stderr), (done.stdout, done.stderr)
    done = subprocess.run([PYCAP, "record", "-o", tmp_path / "##vso[x]" / "y", "-d", "1"], capture_output=True, text=True, check=False)
    assert done.returncode and r"##vso\x5bx]" in done.stderr and not commands(done.stderr), done.stderr


def test_parts(trace, pysym, tmp_path):
    good(pysym(trace, "-f", "folded", "--split", "process", "-o", tmp_path / "part.folded"))
    parts = list(tmp_path.glob("part*"))
    assert parts and not any(commands(part.read_text()) for part in parts)


def run_of(weights, start_ns, seed):
    """A trace of one stack of functions; each is the innermost in so many samples."""
    names, rng, period_ns = NAMES[:5], random.Random(seed), 10101010
    body = (craft.record(1, 0, start_ns) + b"".join(craft.string(s) for s in (b"cpu-clock", b"ns", NAMES[1][:15])) +
            craft.record(6, 1, 2, 99, period_ns, 0) + craft.record(8, 77, 5, 0, 1, 3, 0, 77, 0, 0, 0, craft.VERSION, 0, 0) +
            craft.record(11, 1, 77, 77, 3))
    for i, name in enumerate(names):
        body += craft.code(name, names[i - 1]) + craft.python_frame(i + 1)
    body += craft.stack(0, range(1, len(names) + 1)) + b"".join(craft.whole_stack(python=i + 1) for i in range(len(names)))
    tuples = [i + 1 for i, weight in enumerate(weights) for _ in range(weight + rng.randint(-5, 5))]
    rng.shuffle(tuples)
    rows = b"".join(craft.signed(period_ns) + craft.number(1) + craft.number(t) + b"\0\0" for t in tuples)
    body += craft.record(26, 1, start_ns, len(tuples), craft.text(rows)) + craft.record(29, start_ns + period_ns * len(tuples), 3, len(tuples), 0)
    return craft.file_header() + craft.block(body, 0, samples=len(tuples))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    sides = []
    for side, weights in enumerate(([100] * 5, [100, 100, 300, 100, 100])):
        sides.append([folder / f"::{side}##[{i}].bin" for i in range(5)])
        for i, path in enumerate(sides[-1]):
            path.write_bytes(run_of(weights, (side + 1) * 10**12 + i * 10**10, 10 * side + i))
    return sides


@pytest.mark.parametrize("form", ["text", "markdown", "github", "junit", "json", "folded"])
def test_comparisons(pysym, runs, form):
    """What got slower is called as a command, and so are files. Of GitHub's annotations the lines are commands, what is in them is not."""
    done = pysym("diff", *runs[0], "--", *runs[1], "-f", form, "--fail-on", "function *forged* 5%")
    assert done.returncode == 4 and not commands(done.stderr), (done.returncode, done.stderr)
    told = done.stdout
    if form == "github":
        assert told.startswith("::error file=") and "\n::warning file=" in told
        told = re.sub("^::(error|warning|notice) [^\n]*?::", "", told, flags=re.M)
    assert not commands(told) and "error]forged" in told, told
    if form == "junit":
        assert "##[error]forged" in next(ET.fromstring(done.stdout).iter("failure")).get("message")
    if form == "json":
        assert "##[error]forged" in json.dumps(json.loads(done.stdout))
