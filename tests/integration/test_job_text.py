# SPDX-License-Identifier: Apache-2.0
"""No text that pycap and pysym print holds a command of a CI runner, whatever functions, files and threads are called."""
import json
import pathlib
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


@pytest.mark.parametrize("form", ["text", "markdown", "github", "junit", "json", "folded"])
def test_comparisons(pysym, tmp_path, form):
    """Of GitHub's annotations the lines are commands, and what is in them is not."""
    old, new = tmp_path / "::old", tmp_path / "##[new]"
    names = [name for name in NAMES if name != b"app.run"]
    old.write_bytes(craft.calls_by_name(names[:4]))
    new.write_bytes(craft.calls_by_name(names))
    rules = [option for name in names for option in ("--fail-on", f"function {name.decode().strip()} 1%")]
    done = pysym("diff", old, "--", new, "-f", form)
    judged = pysym("diff", old, "--", new, "-f", form, *rules)
    for text in (done.stdout, done.stderr, judged.stdout, judged.stderr):
        own = ("::error", "::warning", "::notice") if form == "github" else ()
        assert not commands("".join(line.removeprefix("::") + "\n" if line.startswith(own) else line + "\n" for line in text.split("\n")
                                    ) if own else text), text
    if form == "junit" and done.stdout:
        ET.fromstring(done.stdout)
    if form == "json" and done.stdout:
        json.loads(done.stdout)
