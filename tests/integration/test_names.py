# SPDX-License-Identifier: Apache-2.0
"""Names that are hard on text formats are whole in each of them.

Spelled as formats/emit/names.h says.
"""
import json
import re

import pytest

from conftest import ROOT, record_behind_gate, why_no_bpf

pytestmark = pytest.mark.live

PROGRAM = ROOT / "testdata/programs/names.py"
# What is no character of a line of text reads "_", and ";", which parts frames, ":".
SHOWN = [(r"[\0-\x1f\x7f-\x9f\u2028\u2029]", "_"), (";", ":")]
# In symbols of perf script parentheses and arrows have meanings, too.
PERF = SHOWN + [(r"\(", "["), (r"\)", "]"), ("->", "\u2192")]


def spelled(text, rules):
    for pattern, instead in rules:
        text = re.sub(pattern, instead, text)
    return text


@pytest.mark.smoke
@pytest.mark.every_python(kinds=True)
def test_names(python, pysym, tmp_path):
    why = why_no_bpf()
    if why:
        pytest.skip(why)
    trace, printed, _ = record_behind_gate(pysym, tmp_path, ["-q", "-F", "999", "-m", "32M"], python.path, PROGRAM, "0.05")
    told = [json.loads(line) for line in printed.splitlines()]
    assert len(told) == 9 and any(";" in name and ";" in path for name, path, _ in told), told

    def texts(name):
        done = pysym(trace, "--format", name, text=False)
        assert done.returncode == 0, done.stderr
        text = done.stdout.decode("utf-8")
        # Nothing in a name ends a line, for whatever a reader takes for an end.
        assert text.splitlines() == text.removesuffix("\n").split("\n")
        return text.removesuffix("\n").split("\n")

    folded = texts("folded")
    assert all(re.search(r" \d+$", line) for line in folded)
    shown = {frame for line in folded for frame in line.rsplit(" ", 1)[0].split(";")[1:]}
    check({frame for frame in shown if " (no " in frame}, r" \((no .*):(\d+)\)$", told, SHOWN, len("/"))

    frames = json.loads("\n".join(texts("speedscope")))["shared"]["frames"]
    check({f["name"] for f in frames if " (no " in f["name"]}, r" \((no .*):(\d+)\)$", told, SHOWN, len("/"))
    paths = {f["file"] for f in frames if " (no " in f["name"]}
    assert paths == {spelled(path, SHOWN) for _, path, _ in told}

    lines = [line for line in texts("perf-script") if line]
    assert all(re.match(r"\S.* \S+: *$|\t *[0-9a-f]+ \S.* \([^ ()]*\)$", line) for line in lines), \
        [line for line in lines if not re.match(r"\S.* \S+: *$|\t *[0-9a-f]+ \S.* \([^ ()]*\)$", line)][:3]
    symbols = {match[1] for line in lines for match in [re.match(r"\t *[0-9a-f]+ py::(.*) \([^ ()]*\)$", line)] if match}
    check({symbol for symbol in symbols if ":/no " in symbol}, r":(/no .*):(\d+)$", told, PERF, 0)


def check(found, pattern, told, rules, start):
    """The frames of the program's spinners are those that it told: function, file, and a line of the function."""
    got = {}
    for text in found:
        match = re.search(pattern, text)
        assert match, text
        got.setdefault((text[:match.start()], match[1]), set()).add(int(match[2]))
    want = {(spelled(name, rules), spelled(path[start:], rules)): first for name, path, first in told}
    assert set(got) == set(want)
    for key, lines in got.items():
        assert lines <= set(range(want[key], want[key] + 4)), (key, lines)
